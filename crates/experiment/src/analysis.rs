//! What the trials show: paired differences with intervals, and when to stop.
//!
//! A difference is taken within each block, where both variants ran within seconds of each other, as the logarithm of the ratio (or, for shares, as points).
//! Its interval inverts the exact signed-rank test ([`chokepoint_statistics::signed_rank`]), at a level that allows for looking several times
//! ([`chokepoint_statistics::sequential`]) and for comparing several variants (Bonferroni). The deciding figure alone makes the verdict: of a dozen other
//! figures one differs by chance now and then.

mod difference;
mod disturbed;
mod summary;

use chokepoint_statistics::sequential;

use crate::plan::Plan;
use crate::trial::Trial;

pub use difference::{Seen, paired, seen};
pub use disturbed::mark as mark_disturbed;
pub use sequential::Looks;
pub use summary::{Aside, experiment};

/// How often an experiment without a true difference may call one.
pub const ALPHA: f64 = 0.05;
/// How often a true difference of the smallest size that is named would be found.
pub const POWER: f64 = 0.8;
/// A difference is clear once half of its interval is less than this share of it.
const CLEAR_SHARE: f64 = 0.25;

/// Complete blocks: those in which every variant has a trial.
pub fn blocks(plan: &Plan, trials: &[Trial]) -> usize {
    let last = trials.iter().map(|trial| trial.block + 1).max().unwrap_or(0);
    let is_whole = |block: &usize| {
        (0..plan.variants.len()).all(|variant| trials.iter().any(|trial| trial.block == *block && trial.variant == variant))
    };
    (0..last).filter(is_whole).count()
}

/// When to look at the figures, if there is time for `most` blocks.
pub fn looks(plan: &Plan, most: usize) -> Looks {
    // The first look is where the test can call a difference at all.
    Looks::plan(1, most.max(1), level(plan))
}

/// The share of false alarms that each comparison may have.
fn level(plan: &Plan) -> f64 {
    ALPHA / plan.comparisons.len().max(1) as f64
}

/// The level of the figures after so many blocks: that of the look there, or, at the end of the experiment, all that earlier looks left.
fn level_after(looks: &Looks, blocks: usize, is_over: bool) -> f64 {
    match looks.at().iter().position(|at| *at == blocks) {
        Some(look) if !is_over => looks.level(look),
        _ => looks.level_at_end(blocks),
    }
}

/// True if no comparison would gain by more trials: its interval is as narrow as asked for, or its difference is clear.
pub fn is_clear(plan: &Plan, trials: &[Trial], looks: &Looks) -> bool {
    let alpha = level_after(looks, blocks(plan, trials), false);
    let clear = |(baseline, variant): &(usize, usize)| {
        let seen = seen(trials, *baseline, *variant, plan.decide, alpha);
        seen.and_then(|seen| seen.interval.map(|(low, high)| (seen.value, low, high))).is_some_and(|(value, low, high)| {
            let half = (high - low) / 2.0;
            half <= plan.precision || (low > 0.0 || high < 0.0) && half <= CLEAR_SHARE * value.abs()
        })
    };
    !plan.comparisons.is_empty() && plan.comparisons.iter().all(clear)
}

#[cfg(test)]
mod tests;
