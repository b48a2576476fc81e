//! Ceilings with the bounds between which they lie.

use crate::output::report::Ceiling;

/// How far a rate that was predicted from a ceiling may be off: the worst of the prototype's undisturbed predictions was 14 to 18 %, the
/// median 1 to 2 % (DESIGN.md). The noise of the two runs that were compared there is in it.
const CEILING_SPREAD: f64 = 0.15;

/// A ceiling that lies between two others, each of them off by the usual spread; nothing where that gives no rate. What makes it uncertain and the spread
/// have nothing to do with each other, so that their factors add up like the sides of a right angle.
pub(crate) fn ceiling_between(value: f64, low: f64, high: f64) -> Option<Ceiling> {
    ceiling_spread(value, low, high, CEILING_SPREAD)
}

/// As [`ceiling_between`], with a spread of its own.
pub(crate) fn ceiling_spread(value: f64, low: f64, high: f64, spread: f64) -> Option<Ceiling> {
    let times = |bound: f64, spread: f64| (bound / value).ln().hypot(spread.ln()).exp();
    let (low, high) = (value / times(low.min(value), 1.0 - spread), value * times(high.max(value), 1.0 + spread));
    (value.is_finite() && high.is_finite() && value > 0.0).then_some(Ceiling { value, low, high })
}
