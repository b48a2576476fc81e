//! Ceilings with lower and upper bounds.

use crate::output::report::Ceiling;

/// Error of a rate predicted from a ceiling. The worst of the prototype's undisturbed predictions was off by 14 to 18 %, the median by 1 to 2 % (DESIGN.md).
/// This includes the noise of the two runs compared.
const CEILING_SPREAD: f64 = 0.15;

/// A ceiling between two bounds, each widened by the usual spread. `None` if there is no positive rate. The bounds and the spread are independent, so their
/// logarithms add in quadrature.
pub(crate) fn ceiling_between(value: f64, low: f64, high: f64) -> Option<Ceiling> {
    ceiling_spread(value, low, high, CEILING_SPREAD)
}

/// Like [`ceiling_between`], with a given spread.
pub(crate) fn ceiling_spread(value: f64, low: f64, high: f64, spread: f64) -> Option<Ceiling> {
    let times = |bound: f64, spread: f64| (bound / value).ln().hypot(spread.ln()).exp();
    let (low, high) = (value / times(low.min(value), 1.0 - spread), value * times(high.max(value), 1.0 + spread));
    (value.is_finite() && high.is_finite() && value > 0.0).then_some(Ceiling { value, low, high })
}
