//! The cost of the same work on a busy core and on a core that rested. It shows how fast caches, branch predictors and a virtual machine's page tables forget
//! a program on this host. A reference workload measures it before a load.

use serde::{Deserialize, Serialize};

/// CPU time of a reference workload of many short steps (messages between two sockets, small files) on this host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warmth {
    /// Median without a rest before it, nanoseconds.
    pub busy_ns: u64,
    /// After rests, in ascending order of the rest.
    pub rested: Vec<AfterRest>,
}

/// CPU time of the same workload after a rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AfterRest {
    /// How long the thread slept, microseconds.
    pub rest_us: u64,
    /// Median, nanoseconds.
    pub cost_ns: u64,
}

impl Warmth {
    /// Extra cost of the work after such a rest, nanoseconds, never below zero. Linear between the measured rests, constant beyond the longest. `None` if
    /// nothing was measured.
    pub fn extra_ns(&self, rest_us: f64) -> Option<f64> {
        let last = self.rested.last().filter(|_| self.busy_ns > 0)?;
        let extra = |cost_ns: u64| cost_ns.saturating_sub(self.busy_ns) as f64;
        let (mut before_us, mut before) = (0.0, 0.0);
        for after in &self.rested {
            let (at_us, at) = (after.rest_us as f64, extra(after.cost_ns));
            if rest_us <= at_us {
                let part = if at_us > before_us { ((rest_us - before_us) / (at_us - before_us)).max(0.0) } else { 1.0 };
                return Some(before + part * (at - before));
            }
            (before_us, before) = (at_us, at);
        }
        Some(extra(last.cost_ns))
    }

    /// Cost after such a rest as a multiple of the cost without a rest: at least 1.
    pub fn times(&self, rest_us: f64) -> Option<f64> {
        Some(1.0 + self.extra_ns(rest_us)? / self.busy_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warmth() -> Warmth {
        let rested = [(1_000, 48_000), (4_000, 60_000), (16_000, 120_000)];
        Warmth { busy_ns: 40_000, rested: rested.into_iter().map(|(rest_us, cost_ns)| AfterRest { rest_us, cost_ns }).collect() }
    }

    #[test]
    fn costs_lie_on_lines_between_the_rests_that_were_tried() {
        for (rest_us, times) in [(0.0, 1.0), (500.0, 1.1), (1_000.0, 1.2), (2_500.0, 1.35), (16_000.0, 3.0), (1e9, 3.0)] {
            let got = warmth().times(rest_us).unwrap();
            assert!((got - times).abs() < 1e-9, "{rest_us}: {got}");
        }
    }

    #[test]
    fn what_was_not_measured_is_not_told() {
        assert_eq!(Warmth::default().times(1_000.0), None);
        assert_eq!(Warmth { busy_ns: 0, ..warmth() }.times(1_000.0), None);
        let odd =
            Warmth { busy_ns: 40_000, rested: vec![AfterRest { rest_us: 0, cost_ns: 1_000 }, AfterRest { rest_us: 0, cost_ns: u64::MAX }] };
        assert!(odd.times(f64::NAN).is_some_and(|times| times >= 1.0), "never below one, whatever a recording holds");
    }
}
