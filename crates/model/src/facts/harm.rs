//! Noise between two measurements of the same state, and the rule that follows: what a place on the path must cost to count as harm.

/// Relative change of goodput between two equal runs that noise alone explains, if a state is measured once and its noise is not known. 30 equal runs had a
/// standard deviation of 3 %, so the difference of two has one of 4.2 %, and 98 % of the differences are smaller than this (docs/measuring.md, "Noise floor").
pub const NOISE_SHARE: f64 = 0.10;
/// The same for p99: a standard deviation of 7.9 %, 11 % for a difference, and 97 % of the differences are smaller than this.
pub const LATENCY_NOISE_SHARE: f64 = 0.25;
/// Share of failed requests (of all offered) by which two equal runs may differ. A run below it counts as free of failures: the end of the load cuts a few
/// requests short. It is also the share of the slowest requests that make up the p99.
pub const FAILED_SHARE_NOISE: f64 = 0.01;

/// What clients lose at one place, as shares from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Cost {
    /// Share of the requests that failed or were slow there.
    pub(crate) requests: f64,
    /// Share of the clients' time that was spent or lost there.
    pub(crate) time: f64,
}

impl Cost {
    /// `suffered` requests of `of`; none if `of` is zero.
    pub(crate) fn of_requests(suffered: u64, of: u64) -> Self {
        Self::share_of_requests(if of == 0 { 0.0 } else { suffered as f64 / of as f64 })
    }

    /// A share of the requests.
    pub(crate) fn share_of_requests(share: f64) -> Self {
        Self { requests: share, time: 0.0 }
    }

    /// A share of the clients' time.
    pub(crate) fn of_time(share: f64) -> Self {
        Self { requests: 0.0, time: share }
    }

    /// The same loss measured in two ways: the larger of each share.
    pub(crate) fn or(self, other: Self) -> Self {
        Self { requests: self.requests.max(other.requests), time: self.time.max(other.time) }
    }

    /// The rule of harm: without this place goodput would rise by more than noise, or enough requests suffer to show in the p99 and in the share of failures.
    pub(crate) fn hurts(self) -> bool {
        self.requests >= FAILED_SHARE_NOISE || gain_of(self.time) >= NOISE_SHARE
    }
}

/// Gain of throughput, as a share of today's, if this share of the limiting time disappeared. Finite even for a share of 1.
pub(crate) fn gain_of(share: f64) -> f64 {
    1.0 / (1.0 - share.clamp(0.0, 0.999)) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harm_is_a_tenth_of_throughput_or_a_hundredth_of_the_requests() {
        assert!(Cost::of_time(0.1).hurts() && !Cost::of_time(0.09).hurts());
        assert!(Cost::of_requests(10, 1_000).hurts() && !Cost::of_requests(9, 1_000).hurts());
        assert!(!Cost::of_requests(5, 0).hurts() && !Cost::default().hurts());
    }

    #[test]
    fn one_loss_seen_in_two_ways_counts_once() {
        let (few, long) = (Cost { requests: 0.006, time: 0.01 }, Cost { requests: 0.001, time: 0.08 });
        assert_eq!(few.or(long), Cost { requests: 0.006, time: 0.08 });
        assert!(!few.or(long).hurts());
    }
}
