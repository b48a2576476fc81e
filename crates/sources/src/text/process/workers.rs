//! What the worker processes of a server use: for one that looks every few seconds, for months.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use chokepoint_recording::Outcome;

use super::{limits, stat};
use crate::root::Root;
use crate::text::error::TextLine;

/// Names the text in an error.
const NAME: &str = "workers";
/// Most bytes of `/proc/PID/io` and of `/proc/PID/limits`.
const FILE_BYTES_MAX: usize = 16 << 10;

/// The use of all workers of a master in a span of time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WorkerUse {
    /// How many there are.
    pub workers: u32,
    /// Length of the span, seconds.
    pub seconds: f64,
    /// CPU time in programs and in the kernel, seconds. Of a worker that began in the span all it had used.
    pub user_s: f64,
    /// The same in the kernel.
    pub system_s: f64,
    /// Memory, bytes.
    pub resident_bytes: u64,
    /// Address space, bytes.
    pub virtual_bytes: u64,
    /// Open files; nothing before Linux 6.2, which does not tell their number at once.
    pub open_files: Option<u64>,
    /// The sum of their limits of open files; nothing if one has none.
    pub open_files_limit: Option<u64>,
    /// Bytes that disks read and wrote for them; nothing without the right to trace them.
    pub read_bytes: Option<u64>,
    /// The same for writing.
    pub written_bytes: Option<u64>,
    /// Times since the first look that all workers were new ones: reloads, or deaths of a single worker.
    pub reloads: u64,
}

impl WorkerUse {
    /// The values under the names that the agent of NGINX Amplify gave them. `memory_total`: of the host, bytes.
    pub fn amplify(&self, memory_total: Option<u64>) -> BTreeMap<&'static str, f64> {
        let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let percent = |part: f64, whole: f64| share(100.0 * part, whole);
        let number = |value: Option<u64>| value.map(|value| value as f64);
        let kilobytes = |bytes: Option<u64>| share(bytes? as f64 / 1024.0, self.seconds);
        let all = [
            ("nginx.workers.count", Some(f64::from(self.workers))),
            ("nginx.workers.cpu.user", percent(self.user_s, self.seconds)),
            ("nginx.workers.cpu.system", percent(self.system_s, self.seconds)),
            ("nginx.workers.mem.rss", Some(self.resident_bytes as f64)),
            ("nginx.workers.mem.vms", Some(self.virtual_bytes as f64)),
            ("nginx.workers.mem.rss_pct", memory_total.and_then(|total| percent(self.resident_bytes as f64, total as f64))),
            ("nginx.workers.fds_count", number(self.open_files)),
            ("nginx.workers.rlimit_nofile", number(self.open_files_limit)),
            ("nginx.workers.io.kbs_r", kilobytes(self.read_bytes)),
            ("nginx.workers.io.kbs_w", kilobytes(self.written_bytes)),
            ("nginx.master.reloads", Some(self.reloads as f64)),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// Looks at the workers of some masters again and again.
#[derive(Default)]
pub struct WorkerUses {
    root: Root,
    before: BTreeMap<u32, Seen>,
}

/// The counters of one look at the workers of a master.
struct Seen {
    at: Instant,
    /// By pid and start.
    workers: BTreeMap<(u32, u64), Counters>,
    reloads: u64,
}

/// The counters of one worker.
#[derive(Clone, Copy)]
struct Counters {
    user_ticks: u64,
    system_ticks: u64,
    /// Bytes read and written.
    io: Option<(u64, u64)>,
}

impl WorkerUses {
    /// The use since the last call by the workers of each master. A master has nothing the first time. Those that are not asked for are forgotten.
    pub fn look(&mut self, masters: &BTreeMap<u32, BTreeSet<u32>>) -> BTreeMap<u32, WorkerUse> {
        self.before.retain(|master, _| masters.contains_key(master));
        masters.iter().filter_map(|(master, workers)| Some((*master, self.look_at(*master, workers)?))).collect()
    }

    fn look_at(&mut self, master: u32, workers: &BTreeSet<u32>) -> Option<WorkerUse> {
        let page_bytes = rustix::param::page_size() as u64;
        let tick_s = 1.0 / rustix::param::clock_ticks_per_second().max(1) as f64;
        let before = self.before.remove(&master);
        let mut used = WorkerUse { open_files: Some(0), open_files_limit: Some(0), ..WorkerUse::default() };
        (used.read_bytes, used.written_bytes) = (Some(0), Some(0));
        let mut now = Seen { at: Instant::now(), workers: BTreeMap::new(), reloads: before.as_ref().map_or(0, |before| before.reloads) };
        for pid in workers {
            let Ok((_, stat)) = stat::read_alive(&self.root, NAME, *pid) else { continue };
            let id = (*pid, stat.start_ticks);
            let counters = Counters { user_ticks: stat.user_ticks, system_ticks: stat.system_ticks, io: self.io(*pid) };
            // A worker that began since then did all its work since then.
            let since = before.as_ref().and_then(|before| before.workers.get(&id).copied());
            let grown = |now: u64, then: fn(Counters) -> u64| now.saturating_sub(since.map_or(0, then));
            used.workers += 1;
            used.user_s += grown(counters.user_ticks, |then| then.user_ticks) as f64 * tick_s;
            used.system_s += grown(counters.system_ticks, |then| then.system_ticks) as f64 * tick_s;
            used.resident_bytes += stat.resident_pages.saturating_mul(page_bytes);
            used.virtual_bytes = used.virtual_bytes.saturating_add(stat.virtual_bytes);
            let (read, written) = counters.io.unzip();
            let io_then = since.map(|since| since.io.unwrap_or_default()).unwrap_or_default();
            used.read_bytes = used.read_bytes.zip(read).map(|(sum, read)| sum + read.saturating_sub(io_then.0));
            used.written_bytes = used.written_bytes.zip(written).map(|(sum, written)| sum + written.saturating_sub(io_then.1));
            used.open_files = used.open_files.zip(self.open_files(*pid)).map(|(sum, files)| sum + files);
            used.open_files_limit = used.open_files_limit.zip(self.open_files_limit(*pid)).map(|(sum, limit)| sum.saturating_add(limit));
            now.workers.insert(id, counters);
        }
        if let Some(before) = before.as_ref().filter(|before| !before.workers.is_empty() && !now.workers.is_empty()) {
            let are_new = now.workers.keys().all(|id| !before.workers.contains_key(id));
            now.reloads += u64::from(are_new);
        }
        (used.reloads, used.seconds) = (now.reloads, before.as_ref().map_or(0.0, |before| (now.at - before.at).as_secs_f64()));
        self.before.insert(master, now);
        before.map(|_| used)
    }

    fn io(&self, pid: u32) -> Option<(u64, u64)> {
        let Outcome::Ok(bytes) = self.root.read_process(pid, "io", FILE_BYTES_MAX, None) else { return None };
        parse_io(&bytes)
    }

    fn open_files(&self, pid: u32) -> Option<u64> {
        self.root.metadata(&format!("proc/{pid}/fd")).ok().map(|directory| directory.size()).filter(|size| *size > 0)
    }

    fn open_files_limit(&self, pid: u32) -> Option<u64> {
        let Outcome::Ok(bytes) = self.root.read_process(pid, "limits", FILE_BYTES_MAX, None) else { return None };
        limits::parse(&bytes).ok()?.open_files_soft
    }
}

/// The bytes that disks read and wrote for a process (proc_pid_io(5)).
fn parse_io(bytes: &[u8]) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.ends_with('\n'))?;
    let of = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name))?;
        TextLine::new(NAME, 1).number("a number of bytes", Some(value.trim())).ok()
    };
    Some((of("read_bytes:")?, of("write_bytes:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_use_of_all_workers_is_the_difference_of_two_looks() {
        let tree = tempfile::tempdir().unwrap();
        let write = |pid: u32, file: &str, text: &str| {
            let path = tree.path().join(format!("proc/{pid}/{file}"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let worker = |pid: u32, start: u64, user: u64, system: u64, read: u64| {
            write(pid, "stat", &format!("{pid} (nginx) S 1 1 1 0 -1 0 0 0 0 0 {user} {system} 0 0 20 0 1 0 {start} {MIB} 10 0 1 1 0\n"));
            write(pid, "io", &format!("rchar: 5\nwchar: 6\nread_bytes: {read}\nwrite_bytes: 0\ncancelled_write_bytes: 0\n"));
            write(pid, "limits", "Limit Soft Hard Units\nMax open files            1024                 524288               files     \n");
        };
        let masters = |workers: &[u32]| BTreeMap::from([(1, workers.iter().copied().collect())]);
        let mut uses = WorkerUses { root: Root::new(tree.path()), before: BTreeMap::new() };
        worker(7, 1, 100, 50, 4_096);
        worker(8, 1, 10, 5, 0);
        assert!(uses.look(&masters(&[7, 8])).is_empty(), "nothing to compare with");
        worker(7, 1, 130, 60, 12_288);
        let used = uses.look(&masters(&[7, 8]))[&1];
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!((used.workers, used.virtual_bytes, used.open_files_limit), (2, 2 * MIB, Some(2_048)));
        assert!((used.user_s - 30.0 / ticks).abs() < 1e-9 && (used.system_s - 10.0 / ticks).abs() < 1e-9);
        assert_eq!((used.read_bytes, used.written_bytes, used.reloads), (Some(8_192), Some(0), 0));
        let values = used.amplify(Some(8 * used.resident_bytes));
        assert_eq!((values["nginx.workers.count"], values["nginx.workers.mem.rss_pct"]), (2.0, 12.5));
        // One of two died and was replaced; then all were.
        worker(8, 9, 1, 1, 0);
        assert_eq!(uses.look(&masters(&[7, 8]))[&1].reloads, 0);
        worker(17, 20, 1, 1, 0);
        worker(18, 20, 1, 1, 0);
        let reloaded = uses.look(&masters(&[17, 18]))[&1];
        assert_eq!((reloaded.reloads, reloaded.workers), (1, 2));
        assert!(uses.look(&BTreeMap::new()).is_empty() && uses.before.is_empty(), "a master that is gone is forgotten");
    }

    #[test]
    fn what_may_not_be_read_is_left_out() {
        let tree = tempfile::tempdir().unwrap();
        let mut uses = WorkerUses { root: Root::new(tree.path()), before: BTreeMap::new() };
        let masters = BTreeMap::from([(1, BTreeSet::from([7]))]);
        uses.look(&masters);
        assert_eq!(uses.look(&masters)[&1].workers, 0);
        std::fs::create_dir_all(tree.path().join("proc/7")).unwrap();
        std::fs::write(tree.path().join("proc/7/stat"), "7 (nginx) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 5 4096 10 0 1 1 0\n").unwrap();
        let used = uses.look(&masters)[&1];
        assert_eq!((used.workers, used.read_bytes, used.open_files_limit), (1, None, None));
        assert!(
            !used.amplify(None).contains_key("nginx.workers.io.kbs_r") && !used.amplify(None).contains_key("nginx.workers.mem.rss_pct")
        );
        for wrong in ["", "read_bytes: 1\n", "read_bytes: 1\nwrite_bytes: x\n", "read_bytes: 1\nwrite_bytes: 2"] {
            assert_eq!(parse_io(wrong.as_bytes()), None, "{wrong:?}");
        }
    }
}
