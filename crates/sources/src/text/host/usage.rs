//! How much of the host's CPU time, memory and disks is used, and by which programs: for one that looks every few seconds, for months.

use std::collections::BTreeMap;
use std::time::Instant;

use chokepoint_model::observation::CoreTimes;
use chokepoint_recording::Outcome;

use super::{cpu, memory};
use crate::root::Root;
use crate::text::error::{TextLine, whole};
use crate::text::process::stat;

/// Names the text in an error.
const NAME: &str = "usage";
/// Most bytes of `/proc/diskstats`.
const DISKS_BYTES_MAX: usize = 1 << 20;
/// Most programs of one look: those that used most CPU time.
const PROGRAMS_MAX: usize = 8;
/// Most cores of one look.
const CORES_MAX: usize = 64;
/// Most disks of one look: the busiest.
const DISKS_MAX: usize = 8;
/// Block devices without a disk of their own.
const NO_DISKS: [&str; 3] = ["loop", "ram", "zram"];

/// The use of a host in a span of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostUsage {
    /// Length of the span, seconds.
    pub seconds: f64,
    /// Cores that are online.
    pub cores: u32,
    /// CPU time that was used, by programs, the kernel, and a hypervisor that took it, seconds.
    pub busy_s: f64,
    /// CPU time of each core by kind, seconds: programs, the kernel, interrupts, and what a hypervisor took; at most 64 cores.
    pub core_s: BTreeMap<u32, [f64; 4]>,
    /// CPU time by the name of the program, seconds: at most eight, those with most. What ended within the span is missing.
    pub programs: BTreeMap<String, f64>,
    /// Memory, bytes. `None` if it could not be read.
    pub memory_total: Option<u64>,
    /// Memory that programs can still get without swapping, bytes. `None` if it could not be read.
    pub memory_available: Option<u64>,
    /// Time in which each disk had something to do, seconds: at most eight, the busiest.
    pub disks: BTreeMap<String, f64>,
}

/// Looks at a host again and again.
#[derive(Default)]
pub struct HostUsages {
    root: Root,
    before: Option<Seen>,
}

/// The counters of one look.
struct Seen {
    at: Instant,
    /// Ticks of each process, by pid and start, with its name.
    processes: BTreeMap<(u32, u64), (u64, String)>,
    /// Ticks of each core by kind.
    cores: BTreeMap<u32, [u64; 4]>,
    /// Milliseconds that each disk was busy.
    disks: BTreeMap<String, u64>,
}

impl HostUsages {
    /// Of another tree than `/`.
    #[cfg(test)]
    fn of(root: Root) -> Self {
        Self { root, before: None }
    }

    /// The use since the last call. Nothing the first time, and if `/proc` cannot be read.
    pub fn look(&mut self) -> Option<HostUsage> {
        let now = Seen::of(&self.root)?;
        let before = self.before.replace(now)?;
        let now = self.before.as_ref()?;
        let memory = self.root.read("proc/meminfo", 64 << 10, None);
        let memory = if let Outcome::Ok(bytes) = memory { memory::parse(&bytes).ok() } else { None };
        let tick_s = 1.0 / rustix::param::clock_ticks_per_second().max(1) as f64;
        let mut programs: BTreeMap<String, f64> = BTreeMap::new();
        for (id, (ticks, name)) in &now.processes {
            // A process that began since then used all its time since then.
            let since = before.processes.get(id).map_or(0, |(ticks, _)| *ticks);
            let used = ticks.saturating_sub(since);
            if used > 0 {
                *programs.entry(name.clone()).or_default() += used as f64 * tick_s;
            }
        }
        let busy_ms = |(disk, ms): (&String, &u64)| Some((disk.clone(), ms.checked_sub(*before.disks.get(disk)?)? as f64 / 1e3));
        let grown = |(core, now): (&u32, &[u64; 4])| {
            let then = before.cores.get(core)?;
            Some((*core, std::array::from_fn(|kind| now[kind].saturating_sub(then[kind]) as f64 * tick_s)))
        };
        let mut core_s: BTreeMap<u32, [f64; 4]> = now.cores.iter().filter_map(grown).collect();
        let busy_s = core_s.values().flatten().sum();
        core_s = core_s.into_iter().take(CORES_MAX).collect();
        Some(HostUsage {
            core_s,
            seconds: now.at.duration_since(before.at).as_secs_f64(),
            cores: u32::try_from(now.cores.len()).unwrap_or(u32::MAX),
            busy_s,
            programs: most(programs, PROGRAMS_MAX),
            memory_total: memory.as_ref().map(|memory| memory.total),
            memory_available: memory.as_ref().map(|memory| memory.available),
            disks: most(now.disks.iter().filter_map(busy_ms).filter(|(_, seconds)| *seconds > 0.0).collect(), DISKS_MAX),
        })
    }
}

/// The largest ones.
fn most(all: BTreeMap<String, f64>, number: usize) -> BTreeMap<String, f64> {
    let mut all: Vec<(String, f64)> = all.into_iter().collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.into_iter().take(number).collect()
}

impl Seen {
    fn of(root: &Root) -> Option<Self> {
        let Outcome::Ok(cores) = root.read("proc/stat", cpu::BYTES_MAX, None) else { return None };
        let lines: Vec<u8> =
            cores.split_inclusive(|byte| *byte == b'\n').take_while(|line| line.starts_with(b"cpu")).flatten().copied().collect();
        let times = cpu::parse(&lines).ok()?;
        let kinds = |times: &CoreTimes| [times.user + times.nice, times.system, times.irq + times.softirq, times.steal];
        let disks = root.read("proc/diskstats", DISKS_BYTES_MAX, None);
        let process = |pid: u32| {
            let Outcome::Ok(bytes) = root.read(&format!("proc/{pid}/stat"), stat::BYTES_MAX, None) else { return None };
            let stat = stat::parse(TextLine::new(NAME, 1), &bytes).ok()?;
            Some(((pid, stat.start_ticks), (stat.user_ticks + stat.system_ticks, stat.comm)))
        };
        Some(Self {
            at: Instant::now(),
            processes: root.pids().ok()?.into_iter().filter_map(process).collect(),
            cores: times.cores.iter().map(|(core, times)| (*core, kinds(times))).collect(),
            disks: if let Outcome::Ok(bytes) = disks { parse_disks(&bytes) } else { BTreeMap::new() },
        })
    }
}

/// Whole disks and the milliseconds that they were busy: the tenth number after the name (Documentation/admin-guide/iostats.rst). Lines of another form are skipped.
fn parse_disks(bytes: &[u8]) -> BTreeMap<String, u64> {
    let Ok(text) = whole(NAME, bytes) else { return BTreeMap::new() };
    let mut disks: BTreeMap<String, u64> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace().skip(2);
        let Some((name, ms)) = words.next().zip(words.nth(9).and_then(|ms| ms.parse().ok())) else { continue };
        // The kernel lists a disk before its partitions, whose names begin with its own.
        let is_part = disks.keys().any(|disk| is_partition(disk, name));
        if !is_part && !NO_DISKS.iter().any(|kind| name.starts_with(kind)) {
            disks.insert(name.to_owned(), ms);
        }
    }
    disks
}

/// True if a device is a partition of a disk: "sda1" of "sda", "nvme0n1p2" of "nvme0n1".
fn is_partition(disk: &str, name: &str) -> bool {
    let Some(rest) = name.strip_prefix(disk) else { return false };
    let number = if disk.ends_with(|last: char| last.is_ascii_digit()) { rest.strip_prefix('p') } else { Some(rest) };
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_of_two_looks_is_the_use() {
        let tree = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = tree.path().join("proc").join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let process = |pid: u32, name: &str, ticks: u64, start: u64| {
            write(&format!("{pid}/stat"), &format!("{pid} ({name}) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 {start} 0 10 0 1 1 0\n"));
        };
        let host = |busy: u64, ms: u64| {
            write("stat", &format!("cpu  9 9 9 9\ncpu0 {busy} 0 0 5 0 0 0 0 0 0\ncpu1 0 0 0 5 0 0 0 0 0 0\nintr 1\n"));
            write(
                "diskstats",
                &format!("8 0 sda 1 0 1 1 1 0 1 1 0 {ms} 2\n8 1 sda1 1 0 1 1 1 0 1 1 0 {ms} 2\n7 0 loop0 1 0 1 1 1 0 1 1 0 5 2\nshort\n"),
            );
            write("meminfo", "MemTotal: 8 kB\nMemAvailable: 4 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n");
        };
        let mut usages = HostUsages::of(Root::new(tree.path()));
        assert_eq!(HostUsages::of(Root::new(tree.path().join("none"))).look(), None);
        host(100, 1_000);
        process(7, "a b) c", 40, 1);
        process(8, "idle", 5, 1);
        process(9, "again", 900, 1);
        assert_eq!(usages.look(), None, "nothing to compare with");
        host(250, 1_500);
        process(7, "a b) c", 90, 1);
        process(9, "again", 30, 2);
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let found = usages.look().unwrap();
        assert_eq!((found.cores, found.memory_total, found.memory_available), (2, Some(8 << 10), Some(4 << 10)));
        assert!((found.busy_s - 150.0 / ticks).abs() < 1e-9 && (found.disks["sda"] - 0.5).abs() < 1e-9 && found.disks.len() == 1);
        assert_eq!(found.core_s[&0].map(|seconds| (seconds * ticks).round()), [150.0, 0.0, 0.0, 0.0]);
        let used: Vec<(&str, f64)> = found.programs.iter().map(|(name, seconds)| (name.as_str(), (seconds * ticks).round())).collect();
        assert_eq!(used, [("a b) c", 50.0), ("again", 30.0)], "the second process with a pid is another one");
    }

    #[test]
    fn partitions_are_no_disks() {
        for (disk, name, is) in
            [("sda", "sda12", true), ("nvme0n1", "nvme0n1p2", true), ("nvme0n1", "nvme0n11", false), ("sda", "sdab", false)]
        {
            assert_eq!(is_partition(disk, name), is, "{disk} {name}");
        }
        assert!(parse_disks(b"\xff\xfe").is_empty() && parse_disks(b"1 2 a b c d e f g h i j k l").is_empty());
    }
}
