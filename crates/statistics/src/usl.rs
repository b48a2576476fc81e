//! The Universal Scalability Law (N. Gunther, "Guerrilla Capacity Planning", 2007) fitted to throughputs at several loads, with intervals, or the reason why
//! the law does not fit.
//!
//! `X(N) = lambda * N / (1 + sigma * (N - 1) + kappa * N * (N - 1))`: `lambda` is the throughput of one, `sigma` the share of the work that waits in line
//! (contention), `kappa` the cost of keeping each pair in agreement (coherency). With `kappa` above zero the throughput has its peak at
//! `N = sqrt((1 - sigma) / kappa)`, and more load lowers it.

mod ceiling;
mod curve;

use crate::bootstrap::percentiles;
use crate::random::Random;
use curve::Curve;

/// Fewer distinct loads say nothing of three parameters and of the noise.
const LOADS_LEAST: usize = 5;

/// A peak beyond so many times the largest load is a guess, however narrow its interval.
const PEAK_REACH: f64 = 2.0;

/// Refits of resampled residuals: the ends of a 95 % interval are right to about a twelfth of its width.
const RESAMPLES: usize = 1_000;

/// Residuals are systematic if chance gives their size less often than this, as a normal quantile (0.001) ...
const SYSTEMATIC_Z: f64 = 3.09;

/// ... and they are at least this large (root mean square of the weighted logarithms: parts of the throughput if the weights are 1). Smaller ones do not
/// matter, even if many repetitions show them.
const SYSTEMATIC_LEAST: f64 = 0.03;

/// Points beyond one for each load, in all, without which the noise of repetitions is not known.
const REPETITIONS_LEAST: usize = 3;

/// Without repetitions, points that are further from a model (root mean square of the logarithms) do not show it: noise and another shape look alike.
const MISFIT_MOST: f64 = 0.1;

/// A measured throughput.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// N: users, connections or threads at the same time; 1 or more.
    pub load: f64,
    /// X(N), in any unit; above 0.
    pub throughput: f64,
    /// One by the variance of the throughput's logarithm, up to a factor that all points share; above 0. It is 1 where the noise is the same share of each
    /// throughput.
    pub weight: f64,
}

impl Point {
    /// A point whose noise is a share of its throughput, the same share for all points.
    pub fn new(load: f64, throughput: f64) -> Self {
        Point { load, throughput, weight: 1.0 }
    }
}

/// An estimate with the ends of its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub estimate: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end; it may be infinite.
    pub high: f64,
}

/// The largest throughput and the load that it has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// The load, in the unit of [`Point::load`].
    pub load: Interval,
    /// The throughput, in the unit of [`Point::throughput`].
    pub throughput: Interval,
}

/// The law as fitted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    /// The throughput of one, in the unit of [`Point::throughput`].
    pub lambda: Interval,
    /// Contention, from 0.
    pub sigma: Interval,
    /// Coherency, from 0.
    pub kappa: Interval,
    /// None if the points do not support a peak: the interval of `kappa` includes zero, or the peak is beyond twice the largest load. Then only the
    /// contention is known.
    pub peak: Option<Peak>,
    /// The root mean square of the residuals of the logarithms: parts of the throughput if the weights are 1.
    pub misfit: f64,
}

impl Fit {
    /// The throughput at this load by the estimates, in the unit of [`Point::throughput`].
    pub fn throughput(&self, load: f64) -> f64 {
        Curve::of(self.lambda.estimate, self.sigma.estimate, self.kappa.estimate).throughput(load)
    }
}

/// Why there is no fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Refused {
    /// A number is not finite, a load is below 1, a throughput or a weight is not positive, or the level is not between 0 and 1.
    OutOfRange,
    /// There are fewer than five distinct loads: so many.
    TooFewLoads(usize),
    /// The throughput grows in proportion and then stays at a ceiling, which fits much better than the law: something has a fixed capacity.
    HardCeiling {
        /// The load from which on the throughput stays, in the unit of [`Point::load`].
        knee: f64,
        /// The throughput there, in the unit of [`Point::throughput`].
        ceiling: f64,
    },
    /// The residuals are systematic: the means at the loads are further from the law, and from a ceiling, than the repetitions at each load are from each other.
    /// Or there are no repetitions, and the points are further than a tenth from both.
    AnotherShape,
    /// No parameters in their range fit.
    NoSolution,
}

/// Fits the law to these points by weighted least squares of the logarithms (D. Marquardt, 1963, from the linearised law; `sigma` and `kappa` are at least 0).
/// Logarithms, because the noise of a throughput is a share of it, and weights that come from noisy throughputs would prefer those that are low by chance.
/// `level` is the confidence of the intervals, such as 0.95. The same seed gives the same intervals.
///
/// The intervals are percentiles of refits to resampled residuals. Each resample has residuals of a size that is drawn too, as the few residuals leave it
/// unknown: that is the difference between the normal distribution and Student's t, and without it the intervals of six points are far too narrow.
///
/// A ceiling is told by the asymptotic bounds `min(N * x1, C)`, if the corrected information criterion of Akaike prefers it by 10 or more. Systematic
/// residuals are told by the F test of the lack of fit. It takes repetitions at the loads; without them, residuals above a tenth are refused.
pub fn fit(points: &[Point], level: f64, seed: u64) -> Result<Fit, Refused> {
    let positive = |value: f64| value.is_finite() && value > 0.0;
    let is_valid = |point: &Point| positive(point.throughput) && positive(point.weight) && point.load.is_finite() && point.load >= 1.0;
    if !(level > 0.0 && level < 1.0 && points.iter().all(is_valid)) {
        return Err(Refused::OutOfRange);
    }
    let mut points = points.to_vec();
    points.sort_by(|one, other| one.load.total_cmp(&other.load));
    let loads = points.chunk_by(|one, other| one.load == other.load).count();
    if loads < LOADS_LEAST {
        return Err(Refused::TooFewLoads(loads));
    }
    let curve = Curve::fit(&points, None).ok_or(Refused::NoSolution)?;
    if let Some(bounds) = ceiling::much_better(&points, curve.squares(&points)) {
        // What fits neither is not a ceiling.
        let is_ceiling = !is_another_shape(&points, bounds.squares, ceiling::PARAMETERS);
        return Err(if is_ceiling { Refused::HardCeiling { knee: bounds.knee(), ceiling: bounds.ceiling } } else { Refused::AnotherShape });
    }
    if is_another_shape(&points, curve.squares(&points), curve::PARAMETERS) {
        return Err(Refused::AnotherShape);
    }
    let refits = refits(&points, &curve, seed);
    if refits.len() < RESAMPLES / 2 {
        return Err(Refused::NoSolution);
    }
    Ok(with_intervals(&points, &curve, &refits, level))
}

fn with_intervals(points: &[Point], curve: &Curve, refits: &[Curve], level: f64) -> Fit {
    let interval = |figure: fn(&Curve) -> f64| {
        let (low, high) = percentiles(&mut refits.iter().map(figure).collect::<Vec<_>>(), level);
        let estimate = figure(curve);
        Interval { estimate, low: low.min(estimate), high: high.max(estimate) }
    };
    let (kappa, largest) = (interval(Curve::kappa), points.last().map_or(0.0, |point| point.load));
    let peak = Peak { load: interval(Curve::peak_load), throughput: interval(Curve::peak_throughput) };
    let is_supported = kappa.low > 0.0 && peak.load.estimate <= PEAK_REACH * largest;
    Fit {
        lambda: interval(Curve::lambda),
        sigma: interval(Curve::sigma),
        kappa,
        peak: is_supported.then_some(peak),
        misfit: (curve.squares(points) / points.len() as f64).sqrt(),
    }
}

/// The law fitted to the curve with resampled residuals.
fn refits(points: &[Point], curve: &Curve, seed: u64) -> Vec<Curve> {
    let mut random = Random::new(seed);
    let (count, degrees) = (points.len() as f64, points.len() - curve::PARAMETERS);
    let residuals: Vec<f64> = points.iter().map(|point| curve.residual(point)).collect();
    let mean = residuals.iter().sum::<f64>() / count;
    let mut resampled = points.to_vec();
    (0..RESAMPLES)
        .filter_map(|_| {
            // The parameters took up a part of the noise: count / degrees. The rest is the draw of its size.
            let size = (count / random.chi_squared(degrees)).sqrt();
            for (slot, point) in resampled.iter_mut().zip(points) {
                let residual = (residuals[random.index(residuals.len())] - mean) * size;
                slot.throughput = curve.throughput(point.load) * (residual / point.weight.sqrt()).exp();
            }
            Curve::fit(&resampled, Some(curve))
        })
        .collect()
}

/// The F test of the lack of fit of a model with this sum of squares and number of parameters: squares of the mean logarithms
/// at the loads about it, beside squares of the repetitions about their means. Without enough repetitions, the
/// residuals must be small.
fn is_another_shape(points: &[Point], squares: f64, parameters: usize) -> bool {
    let groups = points.chunk_by(|one, other| one.load == other.load);
    let (mut loads, mut pure) = (0, 0.0);
    for group in groups {
        let weight: f64 = group.iter().map(|point| point.weight).sum();
        let mean = group.iter().map(|point| point.weight * point.throughput.ln() / weight).sum::<f64>();
        pure += group.iter().map(|point| point.weight * (point.throughput.ln() - mean).powi(2)).sum::<f64>();
        loads += 1;
    }
    let (lack_degrees, pure_degrees) = (loads - parameters, points.len() - loads);
    if pure_degrees < REPETITIONS_LEAST {
        return (squares / points.len() as f64).sqrt() > MISFIT_MOST;
    }
    let lack = (squares - pure).max(0.0);
    let (of_lack, of_pure) = (2.0 / 9.0 / lack_degrees as f64, 2.0 / 9.0 / pure_degrees as f64);
    // The cube root of F is nearly normal (E. Paulson, 1942).
    let root = (lack / lack_degrees as f64 / (pure / pure_degrees as f64).max(f64::MIN_POSITIVE)).cbrt();
    let z = ((1.0 - of_pure) * root - (1.0 - of_lack)) / (of_pure * root * root + of_lack).sqrt();
    z > SYSTEMATIC_Z && (lack / points.len() as f64).sqrt() > SYSTEMATIC_LEAST
}

#[cfg(test)]
mod tests;
