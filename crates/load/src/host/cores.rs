//! What the cores of this host did: `/proc/stat` (proc_pid_stat(5), "kernel/system statistics").

use std::collections::BTreeMap;

/// Time of each core since the start of the host, in ticks: all of it, and the part in which it was idle or waited for a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CoreTimes(BTreeMap<u32, (u64, u64)>);

/// Cores in use between two readings, as numbers of cores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Used {
    /// All cores: what ran something.
    pub(crate) busy: f64,
    /// All cores: what ran nothing.
    pub(crate) idle: f64,
    /// The idle part of the cores on which this process may run.
    pub(crate) own_idle: f64,
}

/// A line for each of 10,000 cores, and one with the counts of all interrupts.
const STAT_BYTES_MAX: usize = 4 << 20;

/// Reads the times of all cores. `None` if they cannot be read.
pub(crate) fn read() -> Option<CoreTimes> {
    parse(&chokepoint_foreign::read_kernel("/proc/stat", STAT_BYTES_MAX).ok()?)
}

pub(crate) fn parse(text: &str) -> Option<CoreTimes> {
    let core = |line: &str| {
        let (name, times) = line.split_once(' ')?;
        let number = name.strip_prefix("cpu")?.parse().ok()?;
        let times: Vec<u64> = times.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        // user nice system idle iowait irq softirq steal; the times of guests are part of user and nice.
        let all = times.iter().take(8).fold(0_u64, |sum, time| sum.saturating_add(*time));
        Some((number, (all, times.get(3)?.saturating_add(*times.get(4).unwrap_or(&0)))))
    };
    let cores: BTreeMap<u32, (u64, u64)> = text.lines().filter_map(core).collect();
    (!cores.is_empty()).then_some(CoreTimes(cores))
}

impl CoreTimes {
    /// What was in use since an earlier reading. `cpus`: where the generator may run, if not where this process may. `None` if no time has passed.
    pub(crate) fn since(&self, before: &Self, cpus: Option<&[u32]>) -> Option<Used> {
        let own = super::own_cpus();
        let is_own = |core: &u32| cpus.map_or_else(|| own.is_empty() || own.contains(core), |cpus| cpus.contains(core));
        let shares: Vec<(u32, f64)> =
            self.0.iter().filter_map(|(core, now)| Some((*core, idle_share(before.0.get(core)?, now)?))).collect();
        let idle: f64 = shares.iter().map(|(_, idle)| idle).sum();
        let own_idle = shares.iter().filter(|(core, _)| is_own(core)).map(|(_, idle)| idle).sum();
        (!shares.is_empty()).then_some(Used { busy: shares.len() as f64 - idle, idle, own_idle })
    }
}

fn idle_share(before: &(u64, u64), now: &(u64, u64)) -> Option<f64> {
    let all = now.0.checked_sub(before.0).filter(|all| *all > 0)?;
    // The idle time of a core may go back by a tick.
    Some((now.1.saturating_sub(before.1) as f64 / all as f64).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_cores_are_told_from_busy_ones() {
        let before =
            parse("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 0 0 0 100 0 0 0 0 0 0\ncpu1 0 0 0 100 0 0 0 0 0 0\ncpu3 0 0 0 0 0 0 0 0\nintr 12\n")
                .unwrap();
        let after =
            parse("cpu0 20 0 0 100 0 0 10 0 20 0\ncpu1 0 0 0 110 20 0 0 0 0 0\ncpu2 1 0 0 0 0 0 0 0\ncpu3 0 0 0 0 0 0 0 0\n").unwrap();
        let used = after.since(&before, Some(&[0])).unwrap();
        assert_eq!(used, Used { busy: 1.0, idle: 1.0, own_idle: 0.0 });
        assert_eq!(after.since(&before, Some(&[1])).unwrap().own_idle, 1.0);
        assert_eq!(after.since(&after, None), None, "no time has passed");
    }

    #[test]
    fn other_texts_are_no_reading() {
        for text in ["", "cpu 1 2 3", "cpu0", "cpu0 1 2 3", "cpu0 a b c d", "cpux 1 2 3 4\n"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
        assert!(read().is_some(), "this host has one");
    }
}
