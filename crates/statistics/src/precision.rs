//! How small a difference so many pairs can show, and how many pairs a difference takes: what more certainty would cost in time.

use crate::normal::quantile_above;
use crate::random::Random;
use crate::selection::kth;
use crate::signed_rank::{Ends, pairs_needed};
use std::f64::consts::PI;

/// The median of the absolute difference of two normal values is their standard deviation divided by this: 1 / (sqrt(2) * 0.6745).
const SHAMOS_TO_DEVIATION: f64 = 1.048_358;

/// Up to so many pairs the test is simulated. Beyond, the asymptotic formula differs from it by less than 3 %.
const SIMULATED_PAIRS: usize = 40;

/// So many simulated experiments, each counted with its mirror image, are right to about 1 % of the smallest difference.
const EXPERIMENTS: usize = 2_000;

/// The seed of the simulation: the same question has the same answer.
const SEED: u64 = 0x5eed;

/// The standard deviation of the differences, in their unit, by the estimator of M. Shamos (1976): the median of the absolute differences of any two of them,
/// times 1.048, which is right for normal noise (86 % as efficient as the standard deviation). Up to 29 % of outliers move it little, as they do the
/// signed-rank interval. None for fewer than two values, or if one is not finite.
pub fn spread(differences: &[f64]) -> Option<f64> {
    if differences.len() < 2 || differences.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut sorted: Vec<f64> = differences.iter().map(|value| value / 2.0).collect();
    sorted.sort_by(f64::total_cmp);
    let count_at_most = |limit: f64| {
        let mut end = 0;
        let within = |at: usize, end: usize| end < sorted.len() && sorted[end] - sorted[at] <= limit;
        (0..sorted.len()).fold(0, |count, at| {
            while within(at, end) {
                end += 1;
            }
            count + (end - at - 1) as u64
        })
    };
    let (n, range) = (sorted.len() as u64, sorted[sorted.len() - 1] - sorted[0]);
    let count = n * (n - 1) / 2;
    let middle = |k: u64| kth(0.0, range, k, count_at_most);
    // The values are halves, and the median is the mean of two.
    Some((middle(count.div_ceil(2)) + middle(count / 2 + 1)) * SHAMOS_TO_DEVIATION)
}

/// The smallest true difference, in the unit of `spread`, that `pairs` pairs show with the chance `power` (such as 0.8) at the two-sided level `alpha`. For an
/// experiment with looks, `alpha` is the level of the last one.
///
/// `spread` is the standard deviation of the differences ([`spread()`]), whose noise is taken as normal. Up to 40 pairs the test is simulated: the interval
/// of differences that are larger by `d` is higher by `d`, so the answer is a quantile of how far below zero intervals without a difference begin. Beyond,
/// it is the formula `spread * (z(alpha / 2) + z(1 - power)) * sqrt(pi / 3 / pairs)` (E. Lehmann, "Nonparametrics", 4.3). Infinite if no difference can be
/// shown by so few pairs, or an argument is not a number in its range.
pub fn smallest_difference(spread: f64, pairs: usize, alpha: f64, power: f64) -> f64 {
    let valid = spread >= 0.0 && spread.is_finite() && within_unit(alpha) && within_unit(power);
    if !valid || pairs < pairs_needed(alpha) {
        return f64::INFINITY;
    }
    if pairs > SIMULATED_PAIRS {
        return spread * (asymptotic(alpha, power) / pairs as f64).sqrt();
    }
    let (mut random, ends) = (Random::new(SEED), Ends::new(pairs, alpha));
    let mut needed: Vec<f64> = (0..EXPERIMENTS)
        .flat_map(|_| {
            let noise: Vec<f64> = (0..pairs).map(|_| random.normal()).collect();
            let (low, high) = ends.of(&noise);
            [-low, high]
        })
        .collect();
    needed.sort_by(f64::total_cmp);
    let at = ((power * needed.len() as f64).ceil() as usize).clamp(1, needed.len());
    spread * needed[at - 1].max(0.0)
}

/// How many pairs show a true difference of this size (its sign does not matter) with the chance `power` at the two-sided level `alpha`, if the differences
/// have this spread. The method is that of [`smallest_difference`]. `usize::MAX` if there is no such number.
pub fn pairs_for(spread: f64, difference: f64, alpha: f64, power: f64) -> usize {
    let (difference, least) = (difference.abs(), pairs_needed(alpha));
    let valid = spread >= 0.0 && spread.is_finite() && within_unit(alpha) && within_unit(power);
    if !valid || difference.is_nan() || difference == 0.0 {
        return usize::MAX;
    }
    let shown_by = |pairs: usize| smallest_difference(spread, pairs, alpha, power) <= difference;
    if !shown_by(SIMULATED_PAIRS) {
        let pairs = (asymptotic(alpha, power) * (spread / difference).powi(2)).ceil();
        return (pairs as usize).max(SIMULATED_PAIRS + 1).max(least);
    }
    let (mut low, mut high) = (least, SIMULATED_PAIRS);
    while low < high {
        let middle = (low + high) / 2;
        if shown_by(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

fn within_unit(value: f64) -> bool {
    value > 0.0 && value < 1.0
}

/// The number of pairs that many pairs take for a difference of one standard deviation. The signed-rank test needs pi / 3 times as many as the t test.
fn asymptotic(alpha: f64, power: f64) -> f64 {
    (quantile_above(alpha / 2.0) + quantile_above(1.0 - power)).max(0.0).powi(2) * PI / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signed_rank::difference;
    use proptest::prelude::*;

    /// The share of experiments with this difference (the standard deviation is 1) that show it.
    fn power(pairs: usize, shift: f64, noise: impl Fn(&mut Random) -> f64) -> f64 {
        let mut random = Random::new(99 + pairs as u64);
        let shown = (0..2_000).filter(|_| {
            let differences: Vec<f64> = (0..pairs).map(|_| shift + noise(&mut random)).collect();
            difference(&differences, 0.05).is_some_and(|found| found.excludes_zero())
        });
        shown.count() as f64 / 2_000.0
    }

    #[test]
    fn the_smallest_difference_is_shown_with_the_power() {
        for pairs in [6, 8, 16, 40, 41, 80] {
            for wanted in [0.5, 0.8, 0.9] {
                let found = power(pairs, smallest_difference(1.0, pairs, 0.05, wanted), Random::normal);
                assert!((found - wanted).abs() < 0.04, "{pairs} pairs, {wanted}: {found}");
            }
        }
    }

    #[test]
    fn it_holds_for_heavy_tails_by_the_robust_spread() {
        let heavy = |random: &mut Random| random.normal() / (random.chi_squared(3) / 3.0).sqrt();
        let mut random = Random::new(5);
        let noise: Vec<f64> = (0..2_000).map(|_| heavy(&mut random)).collect();
        let spread = spread(&noise).unwrap();
        for pairs in [10, 40, 80] {
            let found = power(pairs, smallest_difference(spread, pairs, 0.05, 0.8), heavy);
            assert!((found - 0.8).abs() < 0.1, "{pairs} pairs, spread {spread}: {found}");
        }
    }

    #[test]
    fn the_spread_is_the_deviation_and_outliers_move_it_little() {
        let mut random = Random::new(8);
        let mut values: Vec<f64> = (0..2_000).map(|_| 7.0 + 3.0 * random.normal()).collect();
        assert!((spread(&values).unwrap() - 3.0).abs() < 0.15, "{:?}", spread(&values));
        values[..200].fill(1e9);
        assert!(spread(&values).unwrap() < 4.5, "{:?}", spread(&values));
        let few: f64 = (0..2_000).map(|_| spread(&[(); 8].map(|()| random.normal())).unwrap()).sum::<f64>() / 2_000.0;
        assert!((few - 1.0).abs() < 0.1, "{few}");
        assert_eq!((spread(&[1.0]), spread(&[1.0, f64::NAN]), spread(&[2.0, 2.0])), (None, None, Some(0.0)));
    }

    #[test]
    fn what_cannot_be_shown_takes_for_ever() {
        for (spread, pairs, alpha, power) in [
            (1.0, 5, 0.05, 0.8),
            (1.0, 0, 0.05, 0.8),
            (f64::NAN, 9, 0.05, 0.8),
            (-1.0, 9, 0.05, 0.8),
            (1.0, 9, 0.0, 0.8),
            (1.0, 9, 0.05, 1.0),
        ] {
            assert_eq!(smallest_difference(spread, pairs, alpha, power), f64::INFINITY);
        }
        for difference in [0.0, f64::NAN] {
            assert_eq!(pairs_for(1.0, difference, 0.05, 0.8), usize::MAX);
        }
        assert_eq!(
            (pairs_for(0.0, 0.1, 0.05, 0.8), pairs_for(1.0, f64::INFINITY, 0.05, 0.8), pairs_for(1.0, 1e-30, 0.05, 0.8)),
            (6, 6, usize::MAX)
        );
        assert_eq!((smallest_difference(0.0, 6, 0.05, 0.8), pairs_for(1.0, 9.0, 1e-15, 0.8)), (0.0, 51));
    }

    #[test]
    fn the_formula_continues_the_simulation() {
        let (simulated, formula) = (smallest_difference(1.0, 40, 0.05, 0.8), (asymptotic(0.05, 0.8) / 40.0).sqrt());
        assert!((simulated / formula - 1.0).abs() < 0.03, "{simulated} {formula}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn both_questions_have_one_answer(difference in 0.05..3.0f64, spread in 0.1..2.0f64) {
            let pairs = pairs_for(spread, difference, 0.05, 0.8);
            prop_assert!(pairs >= 6 && smallest_difference(spread, pairs, 0.05, 0.8) <= difference * 1.000_001);
            prop_assert_eq!(pairs_for(spread, -difference, 0.05, 0.8), pairs);
            prop_assert!(pairs == 6 || pairs == 41 || smallest_difference(spread, pairs - 1, 0.05, 0.8) > difference);
            prop_assert!(pairs_for(spread, difference, 0.05, 0.9) >= pairs && pairs_for(spread, difference * 2.0, 0.05, 0.8) <= pairs);
        }

        #[test]
        fn the_spread_is_the_median_of_all_pairs(values in proptest::collection::vec(-5.0..5.0f64, 2..25), scale in 0.1..10.0f64) {
            let all: Vec<f64> = (0..values.len()).flat_map(|i| (0..i).map(|j| (values[i] - values[j]).abs()).collect::<Vec<_>>()).collect();
            let found = spread(&values).unwrap();
            prop_assert!((found - crate::median(&all).unwrap() * SHAMOS_TO_DEVIATION).abs() < 1e-9);
            let scaled: Vec<f64> = values.iter().map(|value| 3.0 + scale * value).collect();
            prop_assert!((spread(&scaled).unwrap() - scale * found).abs() < 1e-9);
        }
    }
}
