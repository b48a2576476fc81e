//! What a station is: its definition and its readings.

use super::finding::{Evidence, Finding};
use super::graph::{CouplingDef, Standing};
use super::id::{FindingId, StationId};
use super::location::Location;
use crate::facts::owner::Owner;
use crate::facts::{Context, Logged};
use crate::output::message::Message;
use crate::output::report::{Ceiling, StationKind, StationState};

/// A station's definition.
pub struct StationDef {
    /// Its id.
    pub id: StationId,
    /// Rate or cliff.
    pub kind: StationKind,
    /// The findings it can make.
    pub findings: &'static [FindingId],
    /// Ids of the remedies and the advice for its findings.
    pub remedies: &'static [&'static str],
    /// Lines of the cause graph with one of its findings as cause or symptom.
    pub graph: &'static [CouplingDef],
    /// Says whether its own finding may be a symptom, based on what it read and its own reading at the same place. The cause graph decides the rest.
    pub standing: fn(&Context<'_>, &Finding, Option<&StationReading>) -> Standing,
    /// Reads its instances on this path; empty if the request does not pass it.
    pub read: fn(&Context<'_>) -> Vec<StationReading>,
    /// Makes its findings from its own instances.
    pub judge: fn(&Context<'_>, &[StationReading]) -> Vec<Finding>,
}

impl StationDef {
    /// A station whose findings are causes unless another station's line of the graph says otherwise.
    pub(crate) const fn new(
        id: StationId,
        kind: StationKind,
        findings: &'static [FindingId],
        read: fn(&Context<'_>) -> Vec<StationReading>,
        judge: fn(&Context<'_>, &[StationReading]) -> Vec<Finding>,
    ) -> Self {
        Self { id, kind, findings, remedies: &[], graph: &[], standing: |_, _, _| Standing::Alone, read, judge }
    }

    /// A reading to be filled in. `unit` is the unit of limit and use.
    pub(crate) fn reading(&self, owner: impl Into<Owner>, at: Location, unit: &'static str) -> StationReading {
        StationReading::new((self.id, self.kind), owner, at, unit)
    }

    /// A finding of this station to be filled in, for a place without a reading.
    pub(crate) fn finding(&self, id: FindingId, owner: impl Into<Owner>, at: Location) -> Finding {
        Finding::new(id, self.id, owner, at)
    }
}

/// One instance of a station as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct StationReading {
    /// The station.
    pub station: StationId,
    /// Rate or cliff.
    pub kind: StationKind,
    /// Whose it is.
    pub owner: Owner,
    /// Where it is.
    pub at: Location,
    /// The unit of limit and use: "entries", "connections", "cores", "bits/s".
    pub unit: &'static str,
    /// Its limit.
    pub limit: Option<f64>,
    /// Peak use in the window.
    pub used: Option<f64>,
    /// Mean number waiting in the window.
    pub waiting: Option<f64>,
    /// Refusals per second over the window.
    pub refused_per_s: Option<f64>,
    /// used / limit.
    pub utilization: Option<f64>,
    /// Its ceiling, if it has one that is known.
    pub ceiling_rps: Option<Ceiling>,
    /// Its state.
    pub state: StationState,
    /// Why it is in that state, or why that is unknown.
    pub why: Message,
}

impl StationReading {
    /// A reading to be filled in.
    pub fn new((station, kind): (StationId, StationKind), owner: impl Into<Owner>, at: Location, unit: &'static str) -> Self {
        Self {
            station,
            kind,
            owner: owner.into(),
            at,
            unit,
            limit: None,
            used: None,
            waiting: None,
            refused_per_s: None,
            utilization: None,
            ceiling_rps: None,
            state: StationState::Unknown,
            why: Message::default(),
        }
    }

    /// The same reading with a state and its reason.
    pub(crate) fn in_state(self, state: StationState, why: Message) -> Self {
        Self { state, why, ..self }
    }

    /// A finding at the same place, to be filled in.
    pub(crate) fn finding(&self, id: FindingId) -> Finding {
        Finding::new(id, self.station, self.owner.clone(), self.at.clone())
    }

    /// True if a finding is about this very instance.
    pub(crate) fn is_of(&self, finding: &Finding) -> bool {
        self.station == finding.station && self.owner == finding.owner && self.at == finding.at
    }

    /// True if both are readings of the same instance.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.station == other.station && self.owner == other.owner && self.at == other.at
    }
}

impl Logged {
    /// As evidence: the number of lines, and the first of them.
    pub(crate) fn proof(&self) -> Evidence {
        let text = Message::new("evidence-logged").with("count", self.count).with("about", u64::from(self.is_estimated));
        let proof = Evidence::new(text.with("line", self.line.as_str()), self.path.as_str(), Some(self.count as f64));
        Evidence { is_log_alone: self.is_alone, ..proof }
    }
}

/// How many times the active limit a configured one must be if the number of waiting clients is not known.
pub(crate) const TIMES_MIN: f64 = 2.0;

/// Evidence that a file was changed after it was read.
pub(crate) fn changed_proof(file: &str) -> Evidence {
    Evidence::new(Message::new("evidence-not-in-force-changed").with("file", file), "stat(2), /proc/PID/stat", None)
}

/// A finding that the setting is not active, which causes another finding at the same place. It takes that finding's evidence, because the harm is the same.
pub(crate) fn unforced(title: Message, explanation: Message, mut evidence: Vec<Evidence>, symptom: &Finding) -> Finding {
    evidence.extend(symptom.evidence.iter().cloned());
    Finding { id: FindingId::NOT_IN_FORCE, title, evidence, explanation: vec![explanation], ..symptom.clone() }
}
