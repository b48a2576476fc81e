//! Deterministic: how often planned looks with the exact interval find a difference, where there is none and where there is one, in seeded simulations.

use crate::noise::{KINDS, Noise, experiment};
use chokepoint_statistics::Random;
use chokepoint_statistics::bootstrap::paired_mean_interval;
use chokepoint_statistics::sequential::Looks;
use chokepoint_statistics::signed_rank::difference;

/// The number of pairs after which a difference is found, if it is.
fn found_after(looks: &Looks, differences: &[f64]) -> Option<usize> {
    let calls = |look: &usize| difference(&differences[..looks.at()[*look]], looks.level(*look)).is_some_and(|found| found.excludes_zero());
    (0..looks.at().len()).find(calls).map(|look| looks.at()[look])
}

/// The share of so many experiments in which a difference is found, and the mean number of pairs that they took.
fn share_found(looks: &Looks, noise: Noise, shift: f64, experiments: u64) -> (f64, f64) {
    let most = looks.at()[looks.at().len() - 1];
    let (mut found, mut pairs) = (0, 0);
    for seed in 0..experiments {
        let after = found_after(looks, &experiment(noise, most, shift, &mut Random::new(seed * 7919 + most as u64)));
        found += u64::from(after.is_some());
        pairs += after.unwrap_or(most);
    }
    (found as f64 / experiments as f64, pairs as f64 / experiments as f64)
}

/// The share of so many experiments without a difference in which the percentile bootstrap of the mean, at a level of 0.05 at each look, finds one.
fn share_bootstrapped(at: &[usize], noise: Noise, experiments: u64) -> f64 {
    let most = at[at.len() - 1];
    let calls = |seed: &u64| {
        let differences = experiment(noise, most, 0.0, &mut Random::new(seed * 7919 + most as u64));
        at.iter().any(|pairs| paired_mean_interval(&differences[..*pairs], 0.95, *seed).is_some_and(|(low, high)| low > 0.0 || high < 0.0))
    };
    (0..experiments).filter(calls).count() as f64 / experiments as f64
}

#[test]
fn like_variants_differ_in_five_of_a_hundred_experiments() {
    for most in [8, 16, 40] {
        let looks = Looks::plan(6, most, 0.05);
        for noise in KINDS {
            let (share, _) = share_found(&looks, noise, 0.0, 2_000);
            println!("{most} pairs, {noise:?}: {share:.4} {looks:?}");
            assert!((share - 0.05).abs() <= 0.015, "{most} pairs, {noise:?}: {share}");
        }
    }
}

#[test]
fn an_end_that_was_not_planned_keeps_the_rate() {
    let looks = Looks::plan(6, 40, 0.05);
    for pairs in [14, 17, 33] {
        let before = (0..looks.at().len()).take_while(|look| looks.at()[*look] < pairs);
        let mut levels: Vec<(usize, f64)> = before.map(|look| (looks.at()[look], looks.level(look))).collect();
        levels.push((pairs, looks.level_at_end(pairs)));
        let calls = |seed: &u64| {
            let differences = experiment(Noise::Heavy, pairs, 0.0, &mut Random::new(seed * 31 + pairs as u64));
            levels.iter().any(|(pairs, level)| difference(&differences[..*pairs], *level).is_some_and(|found| found.excludes_zero()))
        };
        let share = (0..2_000).filter(calls).count() as f64 / 2_000.0;
        assert!((share - 0.05).abs() <= 0.015, "{pairs} pairs: {share}");
    }
}

#[test]
fn the_bootstrap_without_correction_finds_differences_that_are_not_there() {
    for (most, once_at_least, looked_at_least) in [(8, 0.08, 0.1), (16, 0.06, 0.08), (40, 0.045, 0.09)] {
        let looks = Looks::plan(6, most, 0.05);
        let (once, looked) = (share_bootstrapped(&[most], Noise::Normal, 1_000), share_bootstrapped(looks.at(), Noise::Normal, 1_000));
        let every = share_bootstrapped(&(6..=most).step_by(2).collect::<Vec<_>>(), Noise::Normal, 200);
        println!("{most} pairs: {once:.3} {looked:.3} {every:.3}");
        assert!(once > once_at_least && looked > looked_at_least, "{most} pairs: {once} {looked}");
    }
}

#[test]
fn a_true_difference_is_found_as_often_as_expected() {
    // A block's difference has the standard deviation 0.05: its four trials count by a half. Least shares: the t test's power (n 8, 16 and 40) less 7 %.
    for (most, shift, least) in [(8, 0.065, 0.80), (16, 0.0375, 0.74), (40, 0.0225, 0.73)] {
        let looks = Looks::plan(6, most, 0.05);
        let (share, pairs) = share_found(&looks, Noise::Normal, shift, 1_000);
        let (large, early) = share_found(&looks, Noise::Normal, 3.0 * shift, 200);
        println!("{most} pairs, shift {shift}: {share:.3} after {pairs:.1}; three times: {large:.3} after {early:.1}");
        assert!(share >= least && large > 0.99 && early < pairs, "{most} pairs: {share} {pairs} {large} {early}");
    }
}
