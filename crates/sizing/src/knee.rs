//! The knee: from which number of connections on goodput does not rise any more.

use crate::interval::Interval;
use crate::step::{Step, curve};

/// Doublings without a rise after which the search for the knee ends. One may be chance.
pub const FLAT_DOUBLINGS: usize = 2;

/// The knee of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Knee<'s> {
    /// The step with the fewest connections whose goodput is not below the best beyond noise, and the best step.
    At(&'s Step, &'s Step),
    /// Goodput still rises at the last step.
    Beyond(&'s Step),
    /// There is no usable step with a good answer.
    Unknown,
}

/// Finds the knee. It is known only if goodput was measured at more connections and did not rise there.
pub fn knee(steps: &[Step]) -> Knee<'_> {
    let curve = curve(steps);
    let goodput = |step: &&Step| step.goodput_rps;
    let Some(best) = best(&curve).filter(|best| best.goodput_rps.value > 0.0) else { return Knee::Unknown };
    let is_below = |step: &&Step| goodput(&best).is_above(&goodput(step));
    // The last step below the best, before it: every later one up to the best is as good.
    let place = curve.iter().position(|step| std::ptr::eq(*step, best)).unwrap_or(0);
    let first = curve[..place].iter().rposition(is_below).map_or(0, |last| last + 1);
    match curve[first + 1..].is_empty() {
        true => Knee::Beyond(best),
        false => Knee::At(curve[first], best),
    }
}

/// The step with the highest goodput.
fn best<'s>(curve: &[&'s Step]) -> Option<&'s Step> {
    curve.iter().copied().max_by(|a, b| a.goodput_rps.value.total_cmp(&b.goodput_rps.value))
}

/// True if the last steps did not rise above the best before them.
pub fn is_flat(steps: &[Step]) -> bool {
    let curve = curve(steps);
    let Some(split) = curve.len().checked_sub(FLAT_DOUBLINGS).filter(|split| *split > 0) else { return false };
    let Some(before) = best(&curve[..split]) else { return false };
    curve[split..].iter().all(|step| !step.goodput_rps.is_above(&before.goodput_rps))
}

/// The highest goodput of the curve.
pub fn most(steps: &[Step]) -> Option<Interval> {
    best(&curve(steps)).map(|step| step.goodput_rps)
}
