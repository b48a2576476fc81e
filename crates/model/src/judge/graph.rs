//! Lines of the cause graph. Stations declare them for their own findings.

use super::id::{FindingId, StationId};
use crate::output::message::Message;

/// What causes a symptom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A finding.
    Finding(FindingId),
    /// Any other finding.
    Any,
    /// Any other finding but this one.
    AnyBut(FindingId),
    /// A station at its limit that is no fault in itself.
    Station(StationId),
}

/// Where the cause must be, seen from the symptom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// In the same tier.
    Tier,
    /// At the very same instance of the station: the same listener or pool.
    Station,
    /// At the same listener, at any station.
    Listener,
    /// In a tier that the symptom's workers were seen waiting for, or in a tier that such a tier calls.
    Awaited,
    /// In the same tier, or in one that it calls, directly or not.
    Behind,
    /// In any tier of the path.
    Path,
    /// In a tier that runs on the same cores, if these are busy.
    Cores,
    /// In a network namespace that the upstream connections of the symptom's tier pass through.
    Edge,
}

/// What makes one finding a symptom of the other, besides both being found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attribution {
    /// Nothing else.
    Found,
    /// The symptom's own station must have read that something else may cause it. Otherwise both are causes, which is common.
    Judged,
}

/// A line of the graph. The station of the symptom or the station of the cause declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CouplingDef {
    /// The cause.
    pub cause: Source,
    /// The symptom.
    pub symptom: FindingId,
    /// Where the cause must be.
    pub relation: Relation,
    /// What else must hold.
    pub attribution: Attribution,
    /// Message id of the sentence that says what distinguishes cause from symptom.
    pub why: &'static str,
}

impl CouplingDef {
    /// A finding causes another one.
    pub(crate) const fn found(cause: FindingId, symptom: FindingId, relation: Relation, why: &'static str) -> Self {
        Self { cause: Source::Finding(cause), symptom, relation, attribution: Attribution::Found, why }
    }

    /// The same, but only if the symptom's station read that something else may cause it.
    pub(crate) const fn judged(cause: FindingId, symptom: FindingId, relation: Relation, why: &'static str) -> Self {
        Self { cause: Source::Finding(cause), symptom, relation, attribution: Attribution::Judged, why }
    }

    /// A station at its limit causes the finding.
    pub(crate) const fn station(
        cause: StationId,
        symptom: FindingId,
        relation: Relation,
        attribution: Attribution,
        why: &'static str,
    ) -> Self {
        Self { cause: Source::Station(cause), symptom, relation, attribution, why }
    }

    /// Any other finding but one causes it.
    pub(crate) const fn any_but(other: FindingId, symptom: FindingId, relation: Relation, why: &'static str) -> Self {
        Self { cause: Source::AnyBut(other), ..Self::any(symptom, relation, why) }
    }

    /// Any other finding causes it.
    pub(crate) const fn any(symptom: FindingId, relation: Relation, why: &'static str) -> Self {
        Self { cause: Source::Any, symptom, relation, attribution: Attribution::Found, why }
    }
}

/// What a station says about its own finding: whether something else may cause it.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// Nothing else causes it.
    Alone,
    /// Something else causes it if a line of the graph leads to it.
    Perhaps,
    /// Something else causes it, whatever that is. The message then explains it.
    Behind(Message),
}

impl Relation {
    /// Message id of the words for it.
    pub fn words(self) -> &'static str {
        match self {
            Relation::Tier => "coupling-place-tier",
            Relation::Station => "coupling-place-station",
            Relation::Listener => "coupling-place-listener",
            Relation::Awaited => "coupling-place-awaited",
            Relation::Behind => "coupling-place-behind",
            Relation::Path => "coupling-place-path",
            Relation::Cores => "coupling-place-cores",
            Relation::Edge => "coupling-place-edge",
        }
    }
}
