//! The paired difference of one figure between two variants.

use chokepoint_statistics::signed_rank;

use crate::trial::{Metric, Trial};

/// A difference as seen so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// Percent of the baseline, or points.
    pub value: f64,
    /// Its interval; `None` if there are too few pairs.
    pub interval: Option<(f64, f64)>,
    /// Number of pairs.
    pub pairs: usize,
}

/// The trial of a variant in a block that counts: the undisturbed one, else the last.
pub(super) fn counting(trials: &[Trial], block: usize, variant: usize) -> Option<&Trial> {
    let own = || trials.iter().filter(|trial| trial.block == block && trial.variant == variant);
    own().find(|trial| trial.disturbed.is_empty()).or_else(|| own().next_back())
}

/// Differences of a figure between two variants, one for each block: logarithms of ratios, or points. A ratio with zero has no logarithm and is left out.
pub fn paired(trials: &[Trial], baseline: usize, variant: usize, metric: Metric) -> Vec<f64> {
    let last = trials.iter().map(|trial| trial.block + 1).max().unwrap_or(0);
    let figure = |block, variant| counting(trials, block, variant)?.figures.get(&metric).copied();
    let difference = |block| {
        let (before, after) = (figure(block, baseline)?, figure(block, variant)?);
        let difference = if metric.is_ratio() { (after / before).ln() } else { after - before };
        difference.is_finite().then_some(difference)
    };
    (0..last).filter_map(difference).collect()
}

/// The difference of a figure with its interval at a two-sided level.
pub fn seen(trials: &[Trial], baseline: usize, variant: usize, metric: Metric, alpha: f64) -> Option<Seen> {
    let differences = paired(trials, baseline, variant, metric);
    let difference = signed_rank::difference(&differences, alpha)?;
    let shown = |value: f64| if metric.is_ratio() { value.exp_m1() * 100.0 } else { value };
    let interval = (shown(difference.low), shown(difference.high));
    let is_known = difference.low.is_finite() && difference.high.is_finite();
    Some(Seen { value: shown(difference.estimate), interval: is_known.then_some(interval), pairs: differences.len() })
}
