//! When the configuration of a server is read for an observation without an end: once for each process of a path, and again after its master has started workers.

use std::collections::{BTreeMap, BTreeSet};

use crate::table::Phase;

/// A worker that a reload ends goes on for a moment beside the new ones.
const SETTLED_US: u64 = 2_000_000;
/// A busy one goes on for longer. Masters that start workers all the time are looked at no more often than that.
const AGAIN_US: u64 = 10_000_000;

/// The processes whose configuration is to be read.
#[derive(Debug, Default)]
pub(super) struct Reloads {
    /// Processes that joined a path.
    fresh: BTreeSet<u32>,
    /// Masters whose configuration was read.
    masters: BTreeSet<u32>,
    /// Masters that have started a worker: the times of the next look and of the last one.
    started: BTreeMap<u32, (u64, u64)>,
}

impl Reloads {
    /// A process joined a path.
    pub(super) fn joined(&mut self, pid: u32) {
        self.fresh.insert(pid);
    }

    /// The configuration of this master was read.
    pub(super) fn configured(&mut self, master: u32) {
        self.masters.insert(master);
    }

    /// A new process of a path has this parent.
    pub(super) fn has_child(&mut self, parent: u32, now_us: u64) {
        if self.masters.contains(&parent) {
            let (_, last_us) = self.started.entry(parent).or_insert((now_us + SETTLED_US, 0));
            *last_us = now_us + AGAIN_US;
        }
    }

    /// A process ended.
    pub(super) fn forget(&mut self, pid: u32) {
        self.fresh.remove(&pid);
        self.masters.remove(&pid);
        self.started.remove(&pid);
    }

    /// True if one is to be read now.
    pub(super) fn is_due(&self, now_us: u64) -> bool {
        !self.fresh.is_empty() || self.started.values().any(|(next_us, _)| *next_us <= now_us)
    }

    /// At most so many of those that are to be read now. A master that started workers is looked at once more.
    pub(super) fn take(&mut self, now_us: u64, at_once: usize) -> Vec<(u32, Phase)> {
        let started = self.started.iter().filter(|(_, (next_us, _))| *next_us <= now_us).map(|(pid, _)| (*pid, Phase::Running));
        let due: Vec<(u32, Phase)> = started.chain(self.fresh.iter().map(|pid| (*pid, Phase::First))).take(at_once).collect();
        for (pid, phase) in &due {
            match self.started.get_mut(pid) {
                _ if *phase == Phase::First => drop(self.fresh.remove(pid)),
                Some((next_us, last_us)) if *next_us < *last_us => *next_us = *last_us,
                _ => drop(self.started.remove(pid)),
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_US: u64 = 1_000_000;

    #[test]
    fn a_master_is_looked_at_after_it_started_workers_and_once_more() {
        let mut reloads = Reloads::default();
        reloads.has_child(7, 0);
        assert!(!reloads.is_due(100 * SECOND_US), "nobody has read its configuration");
        reloads.configured(7);
        let mut looks = Vec::new();
        for second in 100..200 {
            if second == 100 {
                (0..4).for_each(|_| reloads.has_child(7, second * SECOND_US));
            }
            assert_eq!(reloads.is_due(second * SECOND_US), matches!(second, 102 | 110), "{second}");
            looks.extend(reloads.take(second * SECOND_US, 8).into_iter().map(|(pid, phase)| (second, pid, phase)));
        }
        assert_eq!(looks, [(102, 7, Phase::Running), (110, 7, Phase::Running)]);
    }

    #[test]
    fn a_master_that_starts_workers_all_the_time_is_looked_at_rarely_and_an_ended_one_never() {
        let mut reloads = Reloads::default();
        reloads.configured(7);
        let mut looks = 0;
        for second in 0..100 {
            reloads.has_child(7, second * SECOND_US);
            looks += reloads.take(second * SECOND_US, 8).len();
        }
        assert!((8..=12).contains(&looks), "{looks} in 100 s");
        reloads.forget(7);
        reloads.has_child(7, 100 * SECOND_US);
        assert!(!reloads.is_due(200 * SECOND_US));
    }

    #[test]
    fn many_new_processes_are_read_a_few_at_a_time_and_reloads_come_first() {
        let mut reloads = Reloads::default();
        reloads.configured(90);
        reloads.has_child(90, 0);
        (1..=20).for_each(|pid| reloads.joined(pid));
        let first = reloads.take(SETTLED_US, 8);
        assert_eq!((first[0], first[1], first.len()), ((90, Phase::Running), (1, Phase::First), 8));
        let rest: Vec<u32> = (0..2).flat_map(|_| reloads.take(SETTLED_US, 8)).map(|(pid, _)| pid).collect();
        assert_eq!(rest, (8..=20).collect::<Vec<_>>());
        assert!(reloads.take(SETTLED_US, 8).is_empty());
    }
}
