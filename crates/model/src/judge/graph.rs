//! Lines of the cause graph, which stations declare about their own findings.

use super::id::{FindingId, StationId};
use crate::output::message::Message;

/// What brings a symptom about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A finding.
    Finding(FindingId),
    /// Any other finding.
    Any,
    /// A station that is at its limit and no fault.
    Station(StationId),
}

/// Where the cause must be, seen from the symptom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// In the same tier.
    Tier,
    /// At the very same station: the same listener or pool.
    Station,
    /// At the same listener, whichever station it is.
    Listener,
    /// In a tier for which the symptom's workers were seen to wait, or which one of those calls.
    Awaited,
    /// In the same tier, or one that it calls, directly or not.
    Behind,
    /// In any tier of the path.
    Path,
    /// In a tier that runs on the same cores, which are busy.
    Cores,
    /// In a network namespace that the connections of the symptom's tier to its upstreams pass.
    Edge,
}

/// What makes one finding the other's symptom, besides both being found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attribution {
    /// Nothing else.
    Found,
    /// The symptom's own station read that something else may cause it. Without that both are causes, which is often so.
    Judged,
}

/// A line of the graph. The station of the symptom declares it, or that of the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CouplingDef {
    /// What brings it about.
    pub cause: Source,
    /// The finding that is brought about.
    pub symptom: FindingId,
    /// Where the cause must be.
    pub relation: Relation,
    /// What else must hold.
    pub attribution: Attribution,
    /// Message id of the sentence that says what tells cause from symptom.
    pub why: &'static str,
}

impl CouplingDef {
    /// A finding brings another one about.
    pub(crate) const fn found(cause: FindingId, symptom: FindingId, relation: Relation, why: &'static str) -> Self {
        Self { cause: Source::Finding(cause), symptom, relation, attribution: Attribution::Found, why }
    }

    /// The same, but only where the symptom's station read that something else may cause it.
    pub(crate) const fn judged(cause: FindingId, symptom: FindingId, relation: Relation, why: &'static str) -> Self {
        Self { cause: Source::Finding(cause), symptom, relation, attribution: Attribution::Judged, why }
    }

    /// A station at its limit does.
    pub(crate) const fn station(
        cause: StationId,
        symptom: FindingId,
        relation: Relation,
        attribution: Attribution,
        why: &'static str,
    ) -> Self {
        Self { cause: Source::Station(cause), symptom, relation, attribution, why }
    }

    /// Any other finding does.
    pub(crate) const fn any(symptom: FindingId, relation: Relation, why: &'static str) -> Self {
        Self { cause: Source::Any, symptom, relation, attribution: Attribution::Found, why }
    }
}

/// What a station says of a finding of its own: whether something else may cause it.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// Nothing else causes it.
    Alone,
    /// Something else causes it where a line of the graph leads to it.
    Perhaps,
    /// Something else causes it, whatever that is. The message explains it then.
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
