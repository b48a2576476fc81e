//! The scaling law (Universal Scalability Law, N. Gunther) as this report needs it: coefficients with intervals, or why the data do not support a fit.

use serde::{Deserialize, Serialize};

use crate::interval::Interval;

/// A point of the curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Connections.
    pub connections: f64,
    /// Goodput per second.
    pub goodput_rps: Interval,
}

/// The law fitted to the curve: X(N) = lambda N / (1 + contention (N - 1) + coherency N (N - 1)).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScalingLaw {
    /// Share of the work that is done one after another, 0 to 1.
    pub contention: Interval,
    /// Share of the work that each pair of requests costs.
    pub coherency: Interval,
    /// Connections at which the law has its peak; null if it has none.
    pub peak_connections: Option<Interval>,
    /// Goodput per second at the peak.
    pub peak_rps: Option<Interval>,
}

/// The fit, or one sentence that says why there is none.
pub type Scaling = Result<ScalingLaw, String>;
