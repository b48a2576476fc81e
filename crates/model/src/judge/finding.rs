//! Findings and the links between them, as ids and messages. `output` turns them into the report's names and sentences.

use super::id::{FindingId, StationId};
use super::location::Location;
use crate::facts::owner::Owner;
use crate::fix::remedy::Remedy;
use crate::output::message::Message;
use crate::output::report::{Cause, Confidence, Role};

/// One finding.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What is wrong.
    pub id: FindingId,
    /// Its station.
    pub station: StationId,
    /// Whose it is.
    pub owner: Owner,
    /// Where it is.
    pub at: Location,
    /// Cause or symptom.
    pub role: Role,
    /// The findings that cause it, if it is a symptom: the root first, then what lies between.
    pub symptom_of: Vec<FindingId>,
    /// How sure it is.
    pub confidence: Confidence,
    /// One line.
    pub title: Message,
    /// What shows it.
    pub evidence: Vec<Evidence>,
    /// The cause in plain words, a message for each sentence or two.
    pub explanation: Vec<Message>,
    /// What would remove it, the best first.
    pub remedies: Vec<Remedy>,
    /// Share of the clients' time that is lost there, if it is known.
    pub lost_time: Option<f64>,
}

impl Finding {
    /// A finding to be filled in. The cause graph decides its role; its remedies are attached last.
    pub fn new(id: FindingId, station: StationId, owner: impl Into<Owner>, at: Location) -> Self {
        Self {
            id,
            station,
            owner: owner.into(),
            at,
            role: Role::Cause,
            symptom_of: Vec::new(),
            confidence: Confidence::Low,
            title: Message::default(),
            evidence: Vec::new(),
            explanation: Vec::new(),
            remedies: Vec::new(),
            lost_time: None,
        }
    }

    /// True if it rests on lines of a log that no reading bears out.
    pub fn rests_on_log(&self) -> bool {
        self.evidence.iter().any(|proof| proof.is_log_alone)
    }
}

/// One piece of evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// One sentence.
    pub text: Message,
    /// Where it was read: a path or an interface of the kernel.
    pub source: String,
    /// The value, if it is one number.
    pub value: Option<f64>,
    /// True for lines of a log that no reading bears out: whoever sends requests can have written them.
    pub is_log_alone: bool,
}

impl Evidence {
    /// A sentence with its source, and the value if it is one number.
    pub(crate) fn new(text: Message, source: impl Into<String>, value: Option<f64>) -> Self {
        Self { text, source: source.into(), value, is_log_alone: false }
    }
}

/// One link of a chain from cause to symptom. Findings and stations are named by their index.
#[derive(Debug, Clone, PartialEq)]
pub struct Coupling {
    /// What causes the symptom.
    pub cause: Cause,
    /// The symptom.
    pub symptom: usize,
    /// What distinguishes cause from symptom.
    pub why: Message,
}

/// Why one of several causes is fixed before or after the others.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderReason {
    /// Index of the cause among the findings.
    pub finding: usize,
    /// Why it has this position.
    pub why: Message,
}
