//! What brings what about: the graph that each station declares for its own findings, and the one place that decides out of it which findings are causes, which are
//! symptoms and of what, and in what order causes are mended.

mod link;
mod order;

pub(crate) use link::link;
pub use order::{Layout, arrange, order};

use crate::judge::findings::TABLE_FULL;
use crate::judge::stations::STATIONS;
use crate::output::message::Message;

/// What brings a symptom about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A finding, by its id.
    Finding(&'static str),
    /// Any other finding.
    Any,
    /// A station that is at its limit and no fault, by its id.
    Station(&'static str),
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

/// What besides both being found makes the one the other's symptom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attribution {
    /// Nothing: where both are found it cannot be otherwise.
    Found,
    /// What the symptom's own station read says that it stands for something else. Without that both are causes, which is often so.
    Judged,
}

/// A line of the graph. The station of the symptom declares it, or that of the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CouplingDef {
    /// What brings it about.
    pub cause: Source,
    /// The finding that is brought about.
    pub symptom: &'static str,
    /// Where the cause must be.
    pub place: Relation,
    /// What else is asked for.
    pub told: Attribution,
    /// Message id of the sentence that says what tells cause from symptom.
    pub why: &'static str,
}

impl CouplingDef {
    /// A finding brings another one about.
    pub(crate) const fn found(cause: &'static str, symptom: &'static str, place: Relation, why: &'static str) -> Self {
        Self { cause: Source::Finding(cause), symptom, place, told: Attribution::Found, why }
    }

    /// The same, where the symptom's station says that it stands for something else.
    pub(crate) const fn judged(cause: &'static str, symptom: &'static str, place: Relation, why: &'static str) -> Self {
        Self { cause: Source::Finding(cause), symptom, place, told: Attribution::Judged, why }
    }

    /// A station at its limit does.
    pub(crate) const fn station(cause: &'static str, symptom: &'static str, place: Relation, told: Attribution, why: &'static str) -> Self {
        Self { cause: Source::Station(cause), symptom, place, told, why }
    }

    /// Any other finding does.
    pub(crate) const fn any(symptom: &'static str, place: Relation, why: &'static str) -> Self {
        Self { cause: Source::Any, symptom, place, told: Attribution::Found, why }
    }
}

/// What a station says of a finding of its own, out of what it read: whether it stands for something else.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// It does not.
    Alone,
    /// It may: where a line of the graph leads to it.
    Perhaps,
    /// It does, whatever that is; with the explanation that holds then.
    Behind(Message),
}

/// The graph: the lines of all stations. Within one tier it has no ring, and what lies in another tier is taken for a cause only where nothing brings that about in
/// turn.
pub fn couplings() -> impl Iterator<Item = &'static CouplingDef> {
    STATIONS.iter().flat_map(|def| def.graph)
}

/// Findings that neither bring another one about nor are brought about by one: improvements, which are told only where nothing is choked.
pub const ALONE: &[&str] = crate::judge::improvements::FROM_PROFILE;

/// Findings while which hardly anything gets through to what lies behind, at whichever tier's door: packets are lost before a server sees them.
pub const STARVING: &[&str] = &[TABLE_FULL];

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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::output::catalogue::Catalogue;

    fn findings() -> BTreeSet<&'static str> {
        STATIONS.iter().flat_map(|def| def.findings).copied().collect()
    }

    fn of(source: Source) -> Option<&'static str> {
        if let Source::Finding(id) = source { Some(id) } else { None }
    }

    #[test]
    fn a_station_declares_lines_about_its_own_findings_and_each_cause_is_known() {
        let stations: BTreeSet<&str> = STATIONS.iter().map(|def| def.id).collect();
        for station in STATIONS {
            for def in station.graph {
                let is_own = |id: &str| station.findings.contains(&id);
                assert!(is_own(def.symptom) || of(def.cause).is_some_and(is_own), "{}: {def:?}", station.id);
                assert!(findings().contains(def.symptom), "{def:?}");
                assert!(of(def.cause).is_none_or(|id| findings().contains(id) && id != def.symptom), "{def:?}");
                assert!(!matches!(def.cause, Source::Station(id) if !stations.contains(id)), "{def:?}");
            }
        }
        assert!(STARVING.iter().all(|id| findings().contains(id)));
    }

    #[test]
    fn what_stands_alone_is_a_finding_that_no_line_names() {
        let coupled: BTreeSet<&str> = couplings().flat_map(|def| of(def.cause).into_iter().chain([def.symptom])).collect();
        let alone: BTreeSet<&str> = ALONE.iter().copied().collect();
        assert!(coupled.is_disjoint(&alone) && alone.is_subset(&findings()), "{coupled:?} {alone:?}");
    }

    #[test]
    fn every_coupling_is_there_once_and_has_its_sentences() {
        let words = Catalogue::english();
        for (place, def) in couplings().enumerate() {
            let same = |other: &CouplingDef| (other.cause, other.symptom, other.place) == (def.cause, def.symptom, def.place);
            assert_eq!(couplings().position(same), Some(place), "{def:?}");
            for id in [def.why, def.place.words()] {
                assert!(words.plain(id).is_some_and(|text| !text.contains('{')), "{id} is not in the catalogue");
            }
        }
    }

    #[test]
    fn within_a_tier_the_graph_has_no_ring() {
        let local = |from: &str| -> Vec<&str> {
            // Of those that ask for more than both being found no ring can hold: what a station says of its finding excludes it
            // (`worker_connections` and `conntrack_table`).
            let is_from = |def: &&CouplingDef| match def.cause {
                _ if def.told == Attribution::Judged => false,
                Source::Finding(id) => id == from,
                Source::Any => def.symptom != from && !ALONE.contains(&from),
                Source::Station(_) => false,
            };
            couplings().filter(|def| def.place != Relation::Awaited).filter(is_from).map(|def| def.symptom).collect()
        };
        for start in findings() {
            let (mut open, mut seen) = (local(start), BTreeSet::new());
            while let Some(next) = open.pop() {
                assert_ne!(next, start, "{start} brings itself about");
                if seen.insert(next) {
                    open.extend(local(next));
                }
            }
        }
    }
}
