//! By how much two measurements of the same state differ, and the one rule that follows: what a place on the request's path must cost for it to be harm.

use crate::output::catalogue::Catalogue;
use crate::output::message::Message;
use crate::output::report::HarmRule;

/// Relative change of goodput between two runs alike that noise alone explains, where a state is measured once and nothing else is known of its noise: 30 runs alike had
/// a standard deviation of 3 %, so that of the difference of two is 4.2 %, and 98 % of the differences are smaller than this (docs/measuring.md, "Noise floor").
pub const NOISE_SHARE: f64 = 0.10;
/// The same for p99: a standard deviation of 7.9 %, 11 % for a difference, and 97 % of the differences are smaller than this.
pub const LATENCY_NOISE_SHARE: f64 = 0.25;
/// Share of failed requests (of all that were offered) by which two runs alike may differ, and below which a run counts as one without failures: a few requests
/// that the end of the load cut short. It is also the share of the slowest of which the p99 is made.
pub const FAILED_SHARE_NOISE: f64 = 0.01;

/// The rule as the report states it.
pub(crate) fn rule(words: &Catalogue) -> HarmRule {
    let text = Message::new("harm-rule").with("goodput", NOISE_SHARE * 100.0).with("requests", FAILED_SHARE_NOISE * 100.0);
    HarmRule { goodput_share: NOISE_SHARE, requests_share: FAILED_SHARE_NOISE, text: words.text(&text) }
}

/// What clients lose at one place, each as a share from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Cost {
    /// Of the requests: those that failed there, or were slow for it.
    pub(crate) requests: f64,
    /// Of the clients' time: what stands there, or was lost there.
    pub(crate) time: f64,
}

impl Cost {
    /// So many of so many requests; none of none.
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

    /// What the same loss comes to, seen in two ways: the larger of each.
    pub(crate) fn or(self, other: Self) -> Self {
        Self { requests: self.requests.max(other.requests), time: self.time.max(other.time) }
    }

    /// The one rule of harm: without this place goodput would rise by more than noise, or requests suffer of which the p99 and the share of failures are made.
    pub(crate) fn hurts(self) -> bool {
        self.requests >= FAILED_SHARE_NOISE || gain_of(self.time) >= NOISE_SHARE
    }
}

/// What throughput could gain where a share of the time falls away that a request takes, or that limits: as a share of today's; finite for all of it, too.
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
