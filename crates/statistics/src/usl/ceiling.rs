//! The asymptotic bounds of a queue, `min(N * x1, C)`, as the rival of the law: throughput in proportion to the load, up to a ceiling.

use super::{Point, curve};

/// The throughput of one and the ceiling.
pub(super) const PARAMETERS: usize = 2;

/// From this difference on, the criterion leaves the worse model without support (K. Burnham and D. Anderson, 2002, 2.6).
const MUCH_BETTER: f64 = 10.0;

/// The ceiling must also fit better by this much without its reward for one parameter fewer, which is large for few points: a likelihood ratio of 7.4 (e^2).
const FITS_BETTER: f64 = 4.0;

/// A fit is never taken as better than residuals of a millionth: beyond are errors of rounding. This is the square.
const ROUNDING: f64 = 1e-12;

/// Bounds that were fitted.
pub(super) struct Bounds {
    /// The throughput of one.
    one: f64,
    /// The throughput that is not exceeded.
    pub(super) ceiling: f64,
    /// The weighted sum of squares.
    pub(super) squares: f64,
}

impl Bounds {
    /// The load from which on the throughput is the ceiling.
    pub(super) fn knee(&self) -> f64 {
        self.ceiling / self.one
    }
}

/// The bounds, if they fit these points (in the order of their loads) much better than the law, whose sum of squares is given.
pub(super) fn much_better(points: &[Point], law_squares: f64) -> Option<Bounds> {
    let bounds = fit(points)?;
    let (least, count) = (ROUNDING * sum(points, |_| 1.0), points.len() as f64);
    let [law, rival] = [law_squares, bounds.squares].map(|squares| count * (squares.max(least) / count).ln());
    let better = law + penalty(points.len(), curve::PARAMETERS) - rival - penalty(points.len(), PARAMETERS);
    (better >= MUCH_BETTER && law - rival >= FITS_BETTER).then_some(bounds)
}

/// What Akaike's criterion asks for the parameters and the noise; corrected for few points (C. Hurvich, C. Tsai, 1989) where the correction of both models is
/// defined.
fn penalty(points: usize, parameters: usize) -> f64 {
    let (n, k) = (points as f64, parameters as f64 + 1.0);
    let correction = if points > curve::PARAMETERS + 2 { 2.0 * k * (k + 1.0) / (n - k - 1.0) } else { 0.0 };
    2.0 * k + correction
}

/// The best bounds. At least two loads must be below the knee and two above it. None if there are
/// fewer.
fn fit(points: &[Point]) -> Option<Bounds> {
    let starts = (1..points.len()).filter(|at| points[at - 1].load < points[*at].load);
    let splits: Vec<usize> = starts.collect();
    let inner = splits.get(1..splits.len().checked_sub(1)?)?;
    let fits = inner.iter().map(|split| {
        let (below, above) = points.split_at(*split);
        let one = (sum(below, |point| (point.throughput / point.load).ln()) / sum(below, |_| 1.0)).exp();
        let ceiling = (sum(above, |point| point.throughput.ln()) / sum(above, |_| 1.0)).exp();
        let squares = sum(points, |point| (point.throughput / (point.load * one).min(ceiling)).ln().powi(2));
        Bounds { one, ceiling, squares }
    });
    fits.min_by(|one, other| one.squares.total_cmp(&other.squares))
}

fn sum(points: &[Point], value: impl Fn(&Point) -> f64) -> f64 {
    points.iter().map(|point| point.weight * value(point)).sum()
}
