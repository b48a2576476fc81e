//! Tests of the signed-rank test: published cases, all cases of few pairs, and properties.

use super::*;
use proptest::prelude::*;

fn rank_outside(pairs: usize, alpha: f64) -> u64 {
    Null::new(pairs).rank_outside(alpha)
}

fn averages(values: &[f64]) -> Vec<f64> {
    let mut all: Vec<f64> = (0..values.len()).flat_map(|i| (i..values.len()).map(move |j| values[i] / 2.0 + values[j] / 2.0)).collect();
    all.sort_by(f64::total_cmp);
    all
}

#[test]
fn a_published_example_comes_out() {
    // Hollander and Wolfe, example 3.1 (depression scores of nine patients): one-sided p 0.019, estimate -0.46, 96 % interval -0.786 to -0.010.
    let differences = [-0.952, 0.147, -1.022, -0.430, -0.620, -0.590, -0.490, 0.080, -0.010];
    let found = difference(&differences, 0.04).unwrap();
    assert!((found.p - 2.0 * 0.019_531_25).abs() < 1e-12 && (found.estimate + 0.46).abs() < 1e-9, "{found:?}");
    assert!((found.low + 0.786).abs() < 1e-9 && (found.high + 0.010).abs() < 1e-9, "{found:?}");
    assert!(found.excludes_zero() && !difference(&differences, 0.03).unwrap().excludes_zero());
}

#[test]
fn critical_values_are_those_of_the_tables() {
    // Wilcoxon and Wilcox 1964, two-sided 0.05: the largest rank sum that is significant.
    for (pairs, largest) in [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (15, 25), (20, 52), (25, 89), (50, 434)] {
        assert_eq!(rank_outside(pairs, 0.05), largest + 1, "{pairs}");
    }
    assert_eq!((rank_outside(5, 0.05), rank_outside(7, 0.01), rank_outside(8, 0.01)), (0, 0, 1));
}

#[test]
fn the_least_number_of_pairs_is_the_first_that_can_show_something() {
    assert_eq!((pairs_needed(0.05), pairs_needed(0.01), pairs_needed(0.0625), pairs_needed(1.0), pairs_needed(1e-9)), (6, 8, 5, 1, 31));
    assert_eq!((pairs_needed(0.0), pairs_needed(-1.0), pairs_needed(f64::NAN)), (usize::MAX, usize::MAX, usize::MAX));
    for (pairs, shows) in [(1, false), (5, false), (6, true), (7, true)] {
        let found = difference(&vec![0.25; pairs], 0.05).unwrap();
        assert_eq!((found.excludes_zero(), found.low.is_finite(), found.high.is_finite()), (shows, shows, shows), "{pairs}");
        assert_eq!((found.estimate, found.p), (0.25, 2f64.powi(1 - pairs as i32)), "{pairs}");
    }
}

#[test]
fn the_false_alarm_rate_is_exact_over_all_signs_and_at_most_that_with_ties() {
    for (magnitudes, ties) in [
        ([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0], false),
        ([1.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0], true),
        ([0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], true),
        ([0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0], true),
    ] {
        for alpha in [0.01, 0.05, 0.1, 0.3] {
            let calls = (0..512u32)
                .filter(|signs| {
                    let signed: Vec<f64> = (0..9).map(|at| if signs >> at & 1 == 1 { magnitudes[at] } else { -magnitudes[at] }).collect();
                    let found = difference(&signed, alpha).unwrap();
                    assert_eq!(found.excludes_zero(), found.p <= alpha, "{signed:?} {alpha} {found:?}");
                    found.excludes_zero()
                })
                .count() as f64;
            let rate = calls / 512.0;
            assert!(rate <= alpha && (ties || (rate - attained(9, alpha)).abs() < 1e-12), "{magnitudes:?} {alpha}: {rate}");
        }
    }
}

#[test]
fn many_pairs_are_compared_by_the_normal_approximation() {
    let exact = Null::new(EXACT_PAIRS);
    let (n, most) = (EXACT_PAIRS as f64, EXACT_PAIRS as u64);
    let approximate = Null::Normal(n * (n + 1.0) / 4.0, (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt());
    for sum in (most * 80..=most * 125).step_by(97) {
        assert!((exact.at_most(sum) - approximate.at_most(sum)).abs() < 2e-4, "{sum}");
    }
    assert!(exact.rank_outside(0.05).abs_diff(approximate.rank_outside(0.05)) < 20);
    let many: Vec<f64> = (0..3_000).map(|at| f64::from(at) - 1_000.0).collect();
    let found = difference(&many, 0.05).unwrap();
    assert!((found.estimate - 499.5).abs() < 1e-9 && found.low > 460.0 && found.high < 540.0 && found.p < 1e-9, "{found:?}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    for values in [&[][..], &[f64::NAN], &[1.0, f64::INFINITY], &[f64::NEG_INFINITY, 1.0]] {
        assert_eq!(difference(values, 0.05), None);
    }
    for alpha in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(difference(&[1.0, 2.0], alpha), None);
    }
    let huge = difference(&[f64::MAX, f64::MAX, -f64::MAX, f64::MAX, f64::MAX, f64::MAX, f64::MAX], 0.05).unwrap();
    assert!(huge.estimate.is_finite() && huge.low.is_finite() && huge.high.is_finite(), "{huge:?}");
    let zeros = difference(&[0.0; 20], 0.05).unwrap();
    assert_eq!((zeros.estimate, zeros.low, zeros.high, zeros.p), (0.0, 0.0, 0.0, 1.0));
}

proptest! {
    #[test]
    fn the_ends_are_order_statistics_of_the_averages(values in proptest::collection::vec(-5.0..5.0f64, 1..30), alpha in 0.001..0.5f64, whole in any::<bool>()) {
        let values: Vec<f64> = values.into_iter().map(|value| if whole { value.round() } else { value }).collect();
        let (found, all, rank) = (difference(&values, alpha).unwrap(), averages(&values), rank_outside(values.len(), alpha) as usize);
        prop_assert!((found.estimate - (all[(all.len() - 1) / 2] + all[all.len() / 2]) / 2.0).abs() < 1e-12);
        if rank > 0 {
            prop_assert_eq!((found.low, found.high), (all[rank - 1], all[all.len() - rank]));
        } else {
            prop_assert_eq!((found.low, found.high), (f64::NEG_INFINITY, f64::INFINITY));
        }
        prop_assert!(found.low <= found.estimate && found.estimate <= found.high && found.p > 0.0 && found.p <= 1.0);
        prop_assert_eq!(found.excludes_zero(), found.p <= alpha);
    }

    #[test]
    fn the_other_way_round_is_the_mirror_image(values in proptest::collection::vec(-5.0..5.0f64, 1..30)) {
        let mirrored: Vec<f64> = values.iter().map(|value| -value).collect();
        let (one, other) = (difference(&values, 0.05).unwrap(), difference(&mirrored, 0.05).unwrap());
        prop_assert_eq!((one.low, one.high, one.p), (-other.high, -other.low, other.p));
    }

    #[test]
    fn a_stricter_level_gives_a_wider_interval(values in proptest::collection::vec(-5.0..5.0f64, 1..30), alpha in 0.01..0.9f64) {
        let (strict, loose) = (difference(&values, alpha / 2.0).unwrap(), difference(&values, alpha).unwrap());
        prop_assert!(strict.low <= loose.low && strict.high >= loose.high);
    }

    #[test]
    fn any_finite_values_are_survived(values in proptest::collection::vec(any::<f64>(), 0..40), alpha in any::<f64>()) {
        if let Some(found) = difference(&values, alpha) {
            prop_assert!(found.estimate.is_finite() && found.low <= found.high);
        }
    }
}
