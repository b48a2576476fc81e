//! Tests of the looks: published boundaries, what is spent in all, and ends that were not planned.

use super::*;
use proptest::prelude::*;

/// The boundaries of looks that spend so much of the false alarms, as the normal quantiles of the published tables.
fn boundaries(at: &[usize], spent: impl Fn(f64) -> f64) -> Vec<f64> {
    let (mut walk, most) = (Walk::start(), at[at.len() - 1] as f64);
    at.iter()
        .map(|&pairs| {
            let level = walk.level_for(pairs, spent(pairs as f64 / most));
            walk.look(pairs, level);
            quantile_above(level / 2.0)
        })
        .collect()
}

#[test]
fn published_boundaries_come_out() {
    // ldbounds and gsDesign: Lan and DeMets after O'Brien and Fleming, and after Pocock, five equal steps, two-sided 0.05.
    let fleming = boundaries(&[1, 2, 3, 4, 5], |t: f64| 4.0 * tail(quantile_above(0.0125) / t.sqrt()));
    // They spend a half of the level on each side.
    for (found, published) in fleming.iter().zip([4.877, 3.357, 2.680, 2.290, 2.031]) {
        assert!((found - published).abs() < 2e-3, "{fleming:?}");
    }
    let pocock = boundaries(&[1, 2, 3, 4, 5], |t: f64| 0.05 * (1.0 + (std::f64::consts::E - 1.0) * t).ln());
    for (found, published) in pocock.iter().zip([2.438, 2.427, 2.410, 2.397, 2.386]) {
        assert!((found - published).abs() < 2e-3, "{pocock:?}");
    }
}

#[test]
fn the_constant_boundary_of_pocock_leaves_one_in_twenty() {
    // Pocock 1977 and Jennison and Turnbull 2000, table 2.1.
    for (looks, boundary) in [(1, 1.960), (2, 2.178), (3, 2.289), (5, 2.413), (10, 2.555), (20, 2.672)] {
        let mut walk = Walk::start();
        (1..=looks).for_each(|look| walk.look(look * 4, 2.0 * tail(boundary)));
        assert!((walk.left - 0.05).abs() < 2e-4, "{looks}: {}", walk.left);
    }
    // Armitage, McPherson and Rowe 1969: five looks at the level of one.
    let mut walk = Walk::start();
    (1..=5).for_each(|look| walk.look(look, 0.05));
    assert!((walk.left - 0.142).abs() < 5e-4, "{}", walk.left);
}

#[test]
fn the_exponent_of_the_spending_leaves_the_last_look_most_of_its_level() {
    let power = boundaries(&[1, 2, 3, 4, 5], |t: f64| 0.05 * t.powi(SPENDING_EXPONENT));
    assert!((power[0] - quantile_above(0.0002)).abs() < 1e-6 && (2.0 * tail(power[4]) - 0.041).abs() < 1e-3, "{power:?}");
}

#[test]
fn looks_begin_where_they_can_find_something_and_end_at_the_most() {
    for (first, most, at) in [
        (6, 40, vec![11, 17, 26, 40]),
        (6, 16, vec![9, 16]),
        (6, 8, vec![7, 8]),
        (12, 40, vec![12, 18, 27, 40]),
        (1, 3, vec![3]),
        (20, 10, vec![10]),
        (0, 0, vec![1]),
    ] {
        let looks = Looks::plan(first, most, 0.05);
        assert_eq!(looks.at(), at, "{first} {most}: {looks:?}");
        assert_eq!(looks.level(at.len()), 0.0);
    }
    assert_eq!(Looks::plan(6, 40, 0.05), Looks::plan(6, 40, 0.05));
    assert_eq!(Looks::plan(1, 3, 0.05).level(0), Looks::plan(1, 3, 0.05).level_at_end(3));
}

#[test]
fn a_level_that_is_none_finds_nothing() {
    for alpha in [0.0, -0.1, 1.0, f64::NAN, f64::INFINITY] {
        let looks = Looks::plan(6, usize::MAX, alpha);
        assert_eq!((looks.at(), looks.level(0), looks.level_at_end(9)), (&[usize::MAX][..], 0.0, 0.0), "{alpha}");
    }
    let long = Looks::plan(6, 100_000, 0.05);
    assert!(long.at().len() < 30 && long.at()[0] < 60 && long.level(long.at().len() - 1) > 0.035, "{long:?}");
    assert!(Looks::plan(6, 100, 0.999).at()[0] >= 6);
}

#[test]
fn an_early_end_gets_what_is_left() {
    let looks = Looks::plan(6, 40, 0.05);
    for pairs in [1, 6, 11] {
        assert!((looks.level_at_end(pairs) - 0.05).abs() < 1e-9, "{pairs}: {}", looks.level_at_end(pairs));
    }
    let last = looks.at().len() - 1;
    assert!((looks.level_at_end(40) - looks.level(last)).abs() < 1e-12 && looks.level_at_end(41) == looks.level_at_end(40));
    for (look, pairs) in looks.at().iter().enumerate() {
        assert!(looks.level_at_end(*pairs) >= looks.level(look) - 1e-12, "{looks:?}");
    }
    let ends: Vec<f64> = (12..=40).map(|pairs| looks.level_at_end(pairs)).collect();
    assert!(ends.iter().all(|level| *level > 0.03 && *level < 0.05), "{ends:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn looks_ascend_and_never_spend_more_than_the_level(first in 1usize..50, most in 1usize..400, alpha in 0.005..0.2f64) {
        let looks = Looks::plan(first, most, alpha);
        prop_assert!(looks.at().windows(2).all(|pair| pair[0] < pair[1]) && looks.at().last() == Some(&most));
        prop_assert!(looks.at().len() <= 16, "{:?}", looks);
        let mut walk = Walk::start();
        for (look, pairs) in looks.at().iter().enumerate() {
            prop_assert!(looks.level(look) > 0.0 && looks.level(look) <= alpha * 1.000_001);
            walk.look(*pairs, usable(*pairs, looks.level(look)));
        }
        prop_assert!(walk.left <= alpha * 1.000_01, "{} of {}", walk.left, alpha);
    }
}
