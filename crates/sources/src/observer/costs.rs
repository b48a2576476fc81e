//! The CPU time of an observation by kind of work, separately for the sampling and for its two ends.

use std::collections::BTreeMap;

use super::messages::ReadResult;

/// Cost of the search for the path in what was read.
pub(super) const PATH: &str = "(path)";
/// Cost of the search for the processes that hold a listener.
pub(super) const HOLDERS: &str = "(holders)";
/// Cost of searching all namespaces again.
pub(super) const SURVEY: &str = "(survey)";
/// Cost of the other work of the sampling thread: to give out work and to store readings.
pub(super) const KEEPING: &str = "(keeping)";

/// The cost of one kind of work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// How often it was done.
    pub times: u64,
    /// CPU time of the threads that did it, user and system, microseconds (CLOCK_THREAD_CPUTIME_ID).
    pub cpu_us: u64,
}

/// The cost of an observation by source. Names in parentheses are work that is no reading. The time to wake threads and to pass messages is not included; the
/// process's own CPU time has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Costs {
    /// While it sampled.
    pub sampling: BTreeMap<&'static str, Cost>,
    /// At its beginning and at its end.
    pub ends: BTreeMap<&'static str, Cost>,
    is_sampling: bool,
}

impl Costs {
    /// Says whether the following costs belong to the sampling.
    pub(super) fn sampling(&mut self, is_sampling: bool) {
        self.is_sampling = is_sampling;
    }

    /// True during the sampling. Only then the bucket pays.
    pub(super) fn is_sampling(&self) -> bool {
        self.is_sampling
    }

    pub(super) fn read(&mut self, read: &ReadResult) {
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
    fn the_sampling_and_the_ends_are_counted_separately() {
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
