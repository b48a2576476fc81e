//! A remedy with everything known about it, as ids and messages.

use super::change::{Activation, Change};
use crate::judge::id::StationId;
use crate::output::message::Message;
use crate::output::report::Ceiling;

/// One remedy of a finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Remedy {
    /// Id, kebab-case: "raise-conntrack-max".
    pub id: &'static str,
    /// What it changes; empty for advice, which this program never applies.
    pub change: Vec<Change>,
    /// What it does.
    pub text: Message,
    /// The exact commands that do it now.
    pub runtime: Vec<String>,
    /// The exact lines that make it permanent, with the file that they belong to.
    pub persistent: Vec<String>,
    /// When it takes effect.
    pub activation: Activation,
    /// What could go wrong, and what it costs.
    pub risk: Message,
    /// The commands that take it back.
    pub undo: String,
    /// What shows that it worked.
    pub signal: Signal,
    /// The goodput that it should give.
    pub prediction: Prediction,
    /// The group of alternatives that it belongs to.
    pub group: Option<&'static str>,
}

/// The success signal that a remedy names in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Refusals at this station fall to zero.
    Refusals(StationId),
    /// Goodput rises beyond noise.
    Goodput,
    /// The p99 of response time falls beyond noise.
    LatencyP99,
}

/// A predicted goodput, or why none is given.
#[derive(Debug, Clone, PartialEq)]
pub enum Prediction {
    /// No prediction, with the reason.
    Refused {
        /// Why.
        why: Message,
        /// An upper bound, requests per second.
        at_most: Option<f64>,
        /// What the ceilings alone would have predicted.
        unsaid: Option<Ceiling>,
    },
    /// A prediction.
    Goodput {
        /// Requests per second.
        rps: Ceiling,
        /// The station that will limit next; `None` if none has a ceiling.
        next_station: Option<StationId>,
    },
}
