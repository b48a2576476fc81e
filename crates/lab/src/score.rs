//! Statistics of scores: the middle of some figures, and how sure a share is that was counted in a few trials.

use serde::Serialize;

/// The standard normal quantile of a two-sided 95 % interval.
const Z_95: f64 = 1.959_963_984_540_054;

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

/// The Wilson score interval (E. B. Wilson, 1927): it stays within 0 and 1, and is honest where all trials or none were right. Of no trials nothing
/// is known: 0 to 1. More right ones than trials count as all.
pub fn wilson(right: u64, of: u64) -> Share {
    let right = right.min(of);
    if of == 0 {
        return Share { right, of, low: 0.0, high: 1.0 };
    }
    let (n, share, z2) = (of as f64, right as f64 / of as f64, Z_95 * Z_95);
    let middle = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z_95 / (1.0 + z2 / n) * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    Share { right, of, low: (middle - half).max(0.0), high: (middle + half).min(1.0) }
}

/// The middle of some figures, the mean of the two in the middle of an even number of them; nothing of none.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = *sorted.get(sorted.len() / 2)?;
    Some(if sorted.len() % 2 == 1 { middle } else { (middle + sorted[sorted.len() / 2 - 1]) / 2.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_tables() {
        // Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
        for (right, of, low, high) in
            [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718), (98, 100, 0.93, 0.9945)]
        {
            let share = wilson(right, of);
            assert!((share.low - low).abs() < 1e-4 && (share.high - high).abs() < 1e-4, "{right} of {of}: {share:?}");
        }
    }

    #[test]
    fn it_stays_a_share_whatever_was_counted() {
        assert_eq!(wilson(0, 0), Share { right: 0, of: 0, low: 0.0, high: 1.0 });
        assert_eq!(wilson(5, 3).right, 3);
        for of in [1, 2, 7, 1000, u64::MAX] {
            for right in [0, 1, of / 2, of] {
                let share = wilson(right, of);
                let value = right as f64 / of as f64;
                assert!((0.0..=1.0).contains(&share.low) && (0.0..=1.0).contains(&share.high), "{share:?}");
                assert!(share.low <= value + 1e-9 && share.high >= value - 1e-9, "{share:?}");
            }
        }
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
