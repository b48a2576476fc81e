//! What a remedy should give, from what it lifts: the one place where goodput is predicted, or where that is refused with its reason.

use crate::message::Message;
use crate::report::{Finding, Prediction};
use crate::stations::{Context, Placed};

/// Good answers below which nothing is divided by them (DESIGN.md, when the model must refuse).
const GOOD_MIN: u64 = 30;

/// What a remedy lifts at the station of its finding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lift {
    /// The station's limit becomes this, in the station's own unit: workers, ports, requests a second.
    Limit(f64),
    /// A cliff goes away or further off: a table, a queue, file descriptors. It has no ceiling to be lifted.
    Cliff,
    /// Each request becomes cheaper by an amount that the readings do not tell: a search, a connection less.
    Cost,
}

/// All that was read and judged of one observation: what a prediction follows from.
pub struct Scene<'a> {
    /// What the stations read from.
    pub ctx: &'a Context<'a>,
    /// Every station's reading, in the order of the path.
    pub stations: &'a [Placed],
    /// Every finding, causes first.
    pub findings: &'a [Finding],
}

/// The goodput that lifting this finding's station should give.
pub fn predict(scene: &Scene<'_>, _finding: &Finding, _placed: &Placed, lift: Lift) -> Prediction {
    let why = match (lift, &scene.ctx.obs.load) {
        (_, None) => Message::new("prediction-refused-passive"),
        (_, Some(load)) if load.good < GOOD_MIN => Message::new("prediction-refused-few").with("good", load.good),
        (Lift::Limit(_), Some(_)) => Message::new("prediction-refused-failing"),
        (Lift::Cost, Some(_)) => Message::new("prediction-refused-search"),
        (Lift::Cliff, Some(load)) => {
            Message::new("prediction-refused-hidden").with("share", 100.0 * load.good as f64 / load.requests.max(1) as f64)
        }
    };
    Prediction::Refused { refused: scene.ctx.text(why) }
}
