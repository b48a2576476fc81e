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
    /// The steps that do it now.
    pub runtime: Vec<Step>,
    /// The steps that keep it across a reboot; empty if the others keep it, or if only somebody else can.
    pub persistent: Vec<Step>,
    /// When it takes effect.
    pub activation: Activation,
    /// What could go wrong, and what it costs; then what stops while the steps are carried out.
    pub risk: Vec<Message>,
    /// The steps that take it back, those of `persistent` included.
    pub undo: Vec<Step>,
    /// What shows that it worked.
    pub signal: Signal,
    /// The goodput that it should give.
    pub prediction: Prediction,
    /// The group of alternatives that it belongs to.
    pub group: Option<&'static str>,
    /// Those whom it serves last; `None` if it serves all alike.
    pub starved: Option<Starved>,
}

/// What a remedy costs the requests that it serves last.
#[derive(Debug, Clone, PartialEq)]
pub struct Starved {
    /// The longest that such a request should wait, seconds. A measurement that is not some times as long does not show what it costs them.
    pub wait_s: f64,
    /// Why they wait, as the end of a sentence.
    pub why: Message,
}

/// One step of a person who carries a remedy out. It has a command, lines or words alone.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// What it does, or what to do.
    pub text: Option<Message>,
    /// The command to paste into a shell of the host, as root; several lines where it writes a file.
    pub command: Option<String>,
    /// Lines that belong into a file, to be edited by hand.
    pub lines: Option<String>,
}

impl Step {
    /// A command that needs no words.
    pub fn command(command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), ..Self::default() }
    }

    /// Words alone.
    pub fn words(text: Message) -> Self {
        Self { text: Some(text), ..Self::default() }
    }

    /// A command with what it does.
    pub fn told(text: Message, command: impl Into<String>) -> Self {
        Self { text: Some(text), ..Self::command(command) }
    }

    /// Lines of a file.
    pub fn lines(text: Message, lines: impl Into<String>) -> Self {
        Self { lines: Some(lines.into()), ..Self::words(text) }
    }
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
