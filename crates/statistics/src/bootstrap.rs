//! Percentile bootstrap intervals (B. Efron, 1979) for display beside a figure. They are too narrow for few values: whether two variants differ is decided by
//! [`crate::signed_rank`].

use crate::random::Random;

/// So many resamples make an end of a 95 % interval repeatable to about a twentieth of the interval's width.
const RESAMPLES: usize = 2_000;

/// The percentile bootstrap interval of the median of these values, in their unit: lower and upper end. `level` is the confidence, such as 0.95. The same
/// seed gives the same interval. None if there are no values, one of them is not finite, or the level is not between 0 and 1.
pub fn median_interval(values: &[f64], level: f64, seed: u64) -> Option<(f64, f64)> {
    interval(values, level, seed, |sample| {
        let middle = sample.len() / 2;
        let (below, high, _) = sample.select_nth_unstable_by(middle, f64::total_cmp);
        let high = *high;
        match below.iter().copied().max_by(f64::total_cmp) {
            Some(low) if values.len().is_multiple_of(2) => low / 2.0 + high / 2.0,
            _ => high,
        }
    })
}

/// The percentile bootstrap interval of the mean of paired differences, in their unit: lower and upper end. Arguments and refusals are those of
/// [`median_interval`]. It takes no account of looks, and its false alarm rate with 8 pairs is about twice the nominal one.
pub fn paired_mean_interval(differences: &[f64], level: f64, seed: u64) -> Option<(f64, f64)> {
    interval(differences, level, seed, |sample| {
        let count = sample.len() as f64;
        sample.iter().map(|value| value / count).sum()
    })
}

fn interval(values: &[f64], level: f64, seed: u64, statistic: impl Fn(&mut [f64]) -> f64) -> Option<(f64, f64)> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) || !(level > 0.0 && level < 1.0) {
        return None;
    }
    let mut random = Random::new(seed);
    let mut sample = vec![0.0; values.len()];
    let mut results: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            sample.iter_mut().for_each(|slot| *slot = values[random.index(values.len())]);
            statistic(&mut sample)
        })
        .collect();
    Some(percentiles(&mut results, level))
}

/// The ends between which the middle `level` of the results lies. There must be at least one.
pub(crate) fn percentiles(results: &mut [f64], level: f64) -> (f64, f64) {
    results.sort_by(f64::total_cmp);
    let outside = ((1.0 - level) / 2.0 * results.len() as f64).floor() as usize;
    let outside = outside.min((results.len() - 1) / 2);
    (results[outside], results[results.len() - 1 - outside])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::median;
    use proptest::prelude::*;

    #[test]
    fn a_large_sample_has_the_interval_of_theory() {
        let mut random = Random::new(3);
        let values: Vec<f64> = (0..400).map(|_| 10.0 + random.normal()).collect();
        let (low, high) = paired_mean_interval(&values, 0.95, 1).unwrap();
        let deviation = (high - low) / 2.0 / 1.96 * 20.0;
        assert!((deviation - 1.0).abs() < 0.1, "{low} {high}");
        // The standard error of the median is sqrt(pi / 2) times that of the mean.
        let (low, high) = median_interval(&values, 0.95, 1).unwrap();
        let deviation = (high - low) / 2.0 / 1.96 * 20.0;
        assert!((deviation - 1.2533).abs() < 0.25, "{low} {high}");
    }

    #[test]
    fn what_has_no_interval_is_refused() {
        for values in [&[][..], &[f64::NAN, 1.0], &[f64::INFINITY]] {
            assert_eq!((median_interval(values, 0.95, 1), paired_mean_interval(values, 0.95, 1)), (None, None));
        }
        for level in [0.0, 1.0, -0.5, f64::NAN] {
            assert_eq!(median_interval(&[1.0, 2.0], level, 1), None);
        }
        assert_eq!((median_interval(&[4.0], 0.95, 1), paired_mean_interval(&[4.0], 0.95, 1)), (Some((4.0, 4.0)), Some((4.0, 4.0))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn intervals_are_repeatable_and_within_the_values(values in proptest::collection::vec(-1e6..1e6f64, 1..30), seed in any::<u64>()) {
            let (least, most) = values.iter().fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(*value), most.max(*value)));
            let (low, high) = median_interval(&values, 0.95, seed).unwrap();
            let middle = median(&values).unwrap();
            prop_assert!(least <= low && low <= middle && middle <= high && high <= most, "{} {} {}", low, middle, high);
            prop_assert_eq!(median_interval(&values, 0.95, seed), Some((low, high)));
            let (low, high) = paired_mean_interval(&values, 0.95, seed).unwrap();
            prop_assert!(least - 1e-6 <= low && low <= high && high <= most + 1e-6);
            let (narrow_low, narrow_high) = paired_mean_interval(&values, 0.5, seed).unwrap();
            prop_assert!(low <= narrow_low && narrow_high <= high);
        }
    }
}
