//! Shares of right answers with the interval that their number of trials leaves.

use serde::Serialize;

/// A share with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// Trials that were right.
    pub right: u64,
    /// All trials.
    pub of: u64,
    /// Lower bound of the share, 0 to 1.
    pub low: f64,
    /// Upper bound of the share, 0 to 1.
    pub high: f64,
}

/// The share with its interval (Wilson's). More right ones than trials count as all.
pub fn wilson(right: u64, of: u64) -> Share {
    let right = right.min(of);
    let (low, high) = chokepoint_statistics::wilson(right as f64 / of.max(1) as f64, of);
    Share { right, of, low, high }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_the_interval_of_its_trials() {
        assert_eq!(wilson(0, 0), Share { right: 0, of: 0, low: 0.0, high: 1.0 });
        assert_eq!(wilson(5, 3), wilson(3, 3));
        // Newcombe 1998, table I.
        let share = wilson(81, 263);
        assert!((share.low - 0.2553).abs() < 1e-4 && (share.high - 0.3662).abs() < 1e-4, "{share:?}");
    }
}
