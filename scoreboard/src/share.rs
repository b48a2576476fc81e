//! A share counted in a few trials, with its confidence interval.

use serde::Serialize;

/// A share with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Share {
    /// Trials that were right.
    pub(crate) right: u64,
    /// All trials.
    pub(crate) of: u64,
    /// Lower bound of the share, 0 to 1.
    pub(crate) low: f64,
    /// Upper bound of the share, 0 to 1.
    pub(crate) high: f64,
}

/// The share of trials that were right, with Wilson's interval.
pub(crate) fn wilson(right: usize, of: usize) -> Share {
    let (right, of) = (right.min(of) as u64, of as u64);
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
