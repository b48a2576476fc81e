//! The scaling law (Universal Scalability Law, N. Gunther) of the curve: coefficients with intervals, or why the data do not support a fit.

use chokepoint_model::message::Message;
use chokepoint_statistics::usl::{self, Point, Refused};
use serde::{Deserialize, Serialize};

use crate::interval::Interval;
use crate::step::{Step, curve};

/// Confidence of the intervals.
const LEVEL: f64 = 0.95;
/// The intervals come from resampling; the same steps give the same ones.
const SEED: u64 = 1;

/// The law fitted to the curve: X(N) = single N / (1 + contention (N - 1) + coherency N (N - 1)).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScalingLaw {
    /// Goodput per second of one connection by the law.
    pub single_rps: Interval,
    /// Share of the work that is done one after another, 0 to 1.
    pub contention: Interval,
    /// Share of the work that each pair of requests costs, 0 to 1.
    pub coherency: Interval,
    /// Connections at which the law has its peak; null if the steps do not support one.
    pub peak_connections: Option<Interval>,
    /// Goodput per second at the peak.
    pub peak_rps: Option<Interval>,
}

impl ScalingLaw {
    /// Goodput per second at this many connections.
    pub fn goodput_rps(&self, connections: f64) -> f64 {
        let others = connections - 1.0;
        self.single_rps.value * connections / (1.0 + self.contention.value * others + self.coherency.value * connections * others)
    }
}

/// The fit, or why there is none.
pub type Scaling = Result<ScalingLaw, Message>;

/// Fits the law to the closed-loop steps.
pub fn fit(steps: &[Step]) -> Scaling {
    let point = |step: &&Step| {
        let goodput = step.goodput_rps;
        let plain = Point::new(f64::from(step.connections()?), goodput.value);
        // The noise of each step was measured: a weight is one by its variance relative to the goodput.
        let weight = 1.0 / goodput.relative().max(f64::MIN_POSITIVE).powi(2);
        (goodput.value > 0.0).then_some(Point { weight: if weight.is_finite() && weight > 0.0 { weight } else { plain.weight }, ..plain })
    };
    let curve = curve(steps);
    let points: Vec<Point> = curve.iter().filter_map(point).collect();
    usl::fit(&points, LEVEL, SEED).map(law).map_err(|refused| why(refused, points.len()))
}

fn law(fit: usl::Fit) -> ScalingLaw {
    // A document has no infinite numbers. Both coefficients are shares.
    let share = |of: usl::Interval| Interval { value: of.estimate, low: of.low, high: of.high.min(1.0).max(of.estimate) };
    let finite = |of: usl::Interval| of.high.is_finite().then_some(Interval { value: of.estimate, low: of.low, high: of.high });
    let single = fit.lambda;
    ScalingLaw {
        single_rps: finite(single).unwrap_or(Interval::exact(single.estimate)),
        contention: share(fit.sigma),
        coherency: share(fit.kappa),
        peak_connections: fit.peak.and_then(|peak| finite(peak.load)),
        peak_rps: fit.peak.and_then(|peak| finite(peak.throughput)),
    }
}

fn why(refused: Refused, points: usize) -> Message {
    match refused {
        Refused::TooFewLoads(_) | Refused::OutOfRange => Message::new("size-law-few").with("points", points as f64),
        Refused::HardCeiling { knee, ceiling } => Message::new("size-law-ceiling").with("knee", knee).with("ceiling", ceiling),
        Refused::AnotherShape => Message::new("size-law-shape"),
        Refused::NoSolution => Message::new("size-law-unsolved"),
    }
}
