//! Statistics that several crates need, none of which may know another: the interval of a share counted in few trials, medians, and how paired trials of two
//! variants are compared (exact interval, planned looks, precision, scalability).

pub mod bootstrap;
pub mod histogram;
mod normal;
pub mod precision;
mod random;
pub mod residence;
pub mod runs;
mod selection;
pub mod sequential;
pub mod signed_rank;
pub mod usl;

pub use random::Random;

/// The standard normal quantile of a two-sided 95 % interval.
const Z_95: f64 = 1.959_963_984_540_054;

/// The 95 % interval, lower and upper end, of a share (0 to 1) that was seen in so many trials: the Wilson score interval (E. B. Wilson, 1927). It stays
/// within 0 and 1, and is honest where all trials or none were hits. Of no trials nothing is known: 0 to 1.
pub fn wilson(share: f64, of: u64) -> (f64, f64) {
    if of == 0 {
        return (0.0, 1.0);
    }
    let (n, share, z2) = (of as f64, share.clamp(0.0, 1.0), Z_95 * Z_95);
    let middle = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = Z_95 / (1.0 + z2 / n) * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

/// The median; the mean of the two middle values of an even number of them. None for an empty list.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = *sorted.get(sorted.len() / 2)?;
    Some(if sorted.len() % 2 == 1 { middle } else { (middle + sorted[sorted.len() / 2 - 1]) / 2.0 })
}

/// The median of whole numbers; the higher of the two middle values of an even number of them. None for an empty list.
pub fn median_high(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_number_of_values_has_two_in_the_middle() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 2.0, 3.0]), median(&[])), (Some(2.0), Some(2.5), None));
        assert_eq!((median_high(vec![3, 1, 2]), median_high(vec![4, 1, 2, 3]), median_high(vec![])), (Some(2), Some(3), None));
    }

    #[test]
    fn the_interval_is_that_of_the_tables() {
        // Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
        for (hits, of, low, high) in
            [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718), (98, 100, 0.93, 0.9945)]
        {
            let seen = wilson(f64::from(hits) / of as f64, of);
            assert!((seen.0 - low).abs() < 1e-4 && (seen.1 - high).abs() < 1e-4, "{hits} of {of}: {seen:?}");
        }
    }

    #[test]
    fn it_stays_a_share_whatever_was_counted() {
        assert_eq!(wilson(0.5, 0), (0.0, 1.0));
        for of in [1, 2, 7, 1000, u64::MAX] {
            for share in [-1.0, 0.0, 1.0 / of as f64, 0.5, 1.0, 7.0] {
                let (low, high) = wilson(share, of);
                assert!((0.0..=1.0).contains(&low) && (0.0..=1.0).contains(&high), "{low} {high}");
                let share = share.clamp(0.0, 1.0);
                assert!(low <= share + 1e-9 && high >= share - 1e-9, "{share} of {of}: {low} {high}");
            }
        }
    }
}
