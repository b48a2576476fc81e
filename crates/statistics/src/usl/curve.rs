//! The curve of the law and its weighted least squares. `N / X` is a sum of three known functions of N with unknown factors, so the fit starts from a linear
//! one and the bounds are those of the factors.

use super::Point;

/// lambda, sigma and kappa.
pub(super) const PARAMETERS: usize = 3;

/// Steps of the fit at the most; ten are usual.
const STEPS: usize = 100;

/// With so much damping a step is of the size of rounding.
const DAMPING_MOST: f64 = 1e12;

/// The fit ends if a step changes the sum of squares by less than this part.
const CONVERGED: f64 = 1e-10;

/// `X(N) = N / (factors[0] + factors[1] * (N - 1) + factors[2] * N * (N - 1))`: 1, sigma and kappa, each divided by lambda.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Curve {
    factors: [f64; PARAMETERS],
}

fn basis(load: f64) -> [f64; PARAMETERS] {
    [1.0, load - 1.0, load * (load - 1.0)]
}

impl Curve {
    pub(super) fn of(lambda: f64, sigma: f64, kappa: f64) -> Self {
        Curve { factors: [1.0 / lambda, sigma / lambda, kappa / lambda] }
    }

    /// The best curve of those with sigma and kappa of 0 or more, beginning at `start` or at the linearised law. None if no curve fits.
    pub(super) fn fit(points: &[Point], start: Option<&Curve>) -> Option<Curve> {
        let all = fit_free(points, start, [true; PARAMETERS]);
        // What is best without bounds is best, if it keeps them.
        if let Some(curve) = all.filter(Curve::is_in_range) {
            return Some(curve);
        }
        [[true, true, false], [true, false, true], [true, false, false]]
            .into_iter()
            .filter_map(|free| fit_free(points, start, free))
            .filter(Curve::is_in_range)
            .min_by(|one, other| one.squares(points).total_cmp(&other.squares(points)))
    }

    fn is_in_range(&self) -> bool {
        self.factors[0] > 0.0 && self.factors[1] >= 0.0 && self.factors[2] >= 0.0 && self.factors.iter().all(|factor| factor.is_finite())
    }

    pub(super) fn lambda(&self) -> f64 {
        1.0 / self.factors[0]
    }

    pub(super) fn sigma(&self) -> f64 {
        self.factors[1] / self.factors[0]
    }

    pub(super) fn kappa(&self) -> f64 {
        self.factors[2] / self.factors[0]
    }

    pub(super) fn throughput(&self, load: f64) -> f64 {
        load / self.divisor(load)
    }

    /// The load of the largest throughput: infinite without coherency costs, and 1 if the second only makes it worse.
    pub(super) fn peak_load(&self) -> f64 {
        ((self.factors[0] - self.factors[1]).max(0.0) / self.factors[2]).sqrt().max(1.0)
    }

    /// The largest throughput, or the limit that it grows towards.
    pub(super) fn peak_throughput(&self) -> f64 {
        let load = self.peak_load();
        if load.is_finite() { self.throughput(load) } else { 1.0 / self.factors[1] }
    }

    /// How far the logarithm of a point is above the curve, in units of 1 / sqrt(weight).
    pub(super) fn residual(&self, point: &Point) -> f64 {
        point.weight.sqrt() * (point.throughput / self.throughput(point.load)).ln()
    }

    /// The weighted sum of squares; infinite for a curve that is not positive at each point.
    pub(super) fn squares(&self, points: &[Point]) -> f64 {
        if self.factors[0] <= 0.0 || points.iter().any(|point| self.divisor(point.load) <= 0.0) {
            return f64::INFINITY;
        }
        points.iter().map(|point| self.residual(point).powi(2)).sum()
    }

    fn divisor(&self, load: f64) -> f64 {
        let basis = basis(load);
        (0..PARAMETERS).map(|at| self.factors[at] * basis[at]).sum()
    }
}

/// The best curve if only these factors may differ from zero.
fn fit_free(points: &[Point], start: Option<&Curve>, free: [bool; PARAMETERS]) -> Option<Curve> {
    let mut curve = match start {
        Some(curve) => *curve,
        None => linearised(points, free).unwrap_or(Curve::of(points[0].throughput / points[0].load, 0.0, 0.0)),
    };
    (0..PARAMETERS).filter(|at| !free[*at]).for_each(|at| curve.factors[at] = 0.0);
    let (mut squares, mut damping) = (curve.squares(points), 1e-4);
    for _ in 0..STEPS {
        let mut sums = Sums::default();
        for point in points {
            let (basis, divisor) = (basis(point.load), curve.divisor(point.load));
            sums.add(basis.map(|value| -value / divisor), (point.throughput / curve.throughput(point.load)).ln(), point.weight);
        }
        let step = sums.solve(damping, free)?;
        let mut next = curve;
        (0..PARAMETERS).for_each(|at| next.factors[at] += step[at]);
        let next_squares = next.squares(points);
        let is_done = (squares - next_squares).abs() <= CONVERGED * squares || damping > DAMPING_MOST;
        if next_squares <= squares {
            (curve, squares, damping) = (next, next_squares, damping / 10.0);
        } else {
            damping *= 10.0;
        }
        if is_done {
            break;
        }
    }
    squares.is_finite().then_some(curve)
}

/// The fit to `N / X`, which is linear in the factors. Its noise is a share of it, as that of the throughput is.
fn linearised(points: &[Point], free: [bool; PARAMETERS]) -> Option<Curve> {
    let mut sums = Sums::default();
    for point in points {
        sums.add(basis(point.load).map(|value| value * point.throughput / point.load), 1.0, point.weight);
    }
    let curve = Curve { factors: sums.solve(0.0, free)? };
    curve.squares(points).is_finite().then_some(curve)
}

/// The normal equations of a weighted linear fit.
#[derive(Default)]
struct Sums {
    products: [[f64; PARAMETERS]; PARAMETERS],
    right: [f64; PARAMETERS],
}

impl Sums {
    fn add(&mut self, row: [f64; PARAMETERS], value: f64, weight: f64) {
        for one in 0..PARAMETERS {
            (0..PARAMETERS).for_each(|other| self.products[one][other] += weight * row[one] * row[other]);
            self.right[one] += weight * row[one] * value;
        }
    }

    /// The solution with the diagonal raised by this part; the factors that are not free are zero. None if it is not unique. The equations are first scaled
    /// to a diagonal of ones, since the basis grows with the square of the load.
    fn solve(&self, damping: f64, free: [bool; PARAMETERS]) -> Option<[f64; PARAMETERS]> {
        let scale: [f64; PARAMETERS] = std::array::from_fn(|at| self.products[at][at].sqrt());
        let mut rows = [[0.0; PARAMETERS + 1]; PARAMETERS];
        for (one, row) in rows.iter_mut().enumerate() {
            row[one] = 1.0;
            if free[one] {
                row[PARAMETERS] = self.right[one] / scale[one];
                let others = (0..PARAMETERS).filter(|other| free[*other]);
                others.for_each(|other| row[other] = self.products[one][other] / scale[one] / scale[other]);
                row[one] += damping;
            }
        }
        // Gauss, without pivots: the matrix is symmetric and positive.
        for at in 0..PARAMETERS {
            let pivot = rows[at];
            if pivot[at].is_nan() || pivot[at] < 1e-14 {
                return None;
            }
            for (_, row) in rows.iter_mut().enumerate().filter(|(other, _)| *other != at) {
                let factor = row[at] / pivot[at];
                (0..=PARAMETERS).for_each(|column| row[column] -= factor * pivot[column]);
            }
        }
        let solution = std::array::from_fn(|at| if free[at] { rows[at][PARAMETERS] / rows[at][at] / scale[at] } else { 0.0 });
        solution.iter().all(|value: &f64| value.is_finite()).then_some(solution)
    }
}
