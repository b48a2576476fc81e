//! What an observation itself costs: CPU time by what it was spent on, apart for the sampling and for what is read once.

use std::collections::BTreeMap;

use super::reader::Read;

/// Work that is no reading of a source, by the names under which its cost is told: the search for the path in what was read,
pub(super) const PATH: &str = "(path)";
/// the search for the processes that hold a listener,
pub(super) const HOLDERS: &str = "(holders)";
/// and what the sampling thread does beside: giving out work and keeping what was read.
pub(super) const KEEPING: &str = "(keeping)";

/// What one kind of work cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// How often it was done.
    pub times: u64,
    /// CPU time of the threads that did it, user and system, microseconds (CLOCK_THREAD_CPUTIME_ID).
    pub cpu_us: u64,
}

/// What an observation cost, by the names of the sources; names in parentheses are work that is no reading. What threads need to wake up and
/// to talk to each other is not in it: the process's own CPU time has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Costs {
    /// While it sampled.
    pub sampling: BTreeMap<&'static str, Cost>,
    /// At its beginning and at its end.
    pub ends: BTreeMap<&'static str, Cost>,
    is_sampling: bool,
}

impl Costs {
    /// From now on costs are those of the sampling, or those of the ends.
    pub(super) fn sampling(&mut self, is_sampling: bool) {
        self.is_sampling = is_sampling;
    }

    /// True while it samples: only then the bucket pays.
    pub(super) fn is_sampling(&self) -> bool {
        self.is_sampling
    }

    pub(super) fn read(&mut self, read: &Read) {
        self.add(read.order.source.name, read.cost_us);
    }

    pub(super) fn add(&mut self, name: &'static str, cpu_us: u64) {
        let costs = if self.is_sampling { &mut self.sampling } else { &mut self.ends };
        let cost = costs.entry(name).or_default();
        cost.times += 1;
        cost.cpu_us += cpu_us;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sampling_and_the_ends_are_told_apart() {
        let mut costs = Costs::default();
        costs.add(PATH, 5);
        costs.sampling(true);
        costs.add(PATH, 7);
        costs.add(PATH, 1);
        costs.sampling(false);
        costs.add(HOLDERS, 2);
        assert_eq!(costs.sampling, BTreeMap::from([(PATH, Cost { times: 2, cpu_us: 8 })]));
        assert_eq!(costs.ends, BTreeMap::from([(PATH, Cost { times: 1, cpu_us: 5 }), (HOLDERS, Cost { times: 1, cpu_us: 2 })]));
    }
}
