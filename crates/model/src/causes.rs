//! The cause graph as data: which finding, or which station at its limit, brings which other finding about, where the two must be for that, and
//! what tells cause from symptom; and the order in which several causes are mended.

mod link;
mod order;

pub(crate) use link::link;
pub use order::{arrange, order};

/// What brings a symptom about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A finding, by its id.
    Finding(&'static str),
    /// A station that is at its limit and no fault, by its id.
    Station(&'static str),
}

/// Where the cause must be, seen from the symptom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the same tier.
    Tier,
    /// At the very same station: the same listener or pool.
    Station,
    /// At the same listener, whichever station it is.
    Listener,
    /// In a tier for which the symptom's workers were seen to wait, or which one of those calls.
    Awaited,
    /// In any tier of the path.
    Path,
    /// In a tier that runs on the same cores, which are busy.
    Cores,
    /// In a network namespace that the connections of the symptom's tier to its upstreams pass.
    Edge,
}

/// What besides both being found makes the one the other's symptom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Nothing: where both are found it cannot be otherwise.
    Found,
    /// The symptom's own station took it for one by what it read. Without that both are causes, which is often so.
    Judged,
}

/// A line of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CouplingDef {
    /// What brings it about.
    pub cause: Source,
    /// The finding that is brought about.
    pub symptom: &'static str,
    /// Where the cause must be.
    pub place: Place,
    /// What else is asked for.
    pub told: Told,
    /// Message id of the sentence that says what tells cause from symptom.
    pub why: &'static str,
}

const fn by(cause: &'static str, symptom: &'static str, place: Place, told: Told, why: &'static str) -> CouplingDef {
    CouplingDef { cause: Source::Finding(cause), symptom, place, told, why }
}

/// Workers of a tier wait for a server behind it that has a cause of its own.
const fn awaited(cause: &'static str) -> CouplingDef {
    by(cause, WAITING, Place::Awaited, Told::Found, "coupling-blocked-awaited")
}

/// Requests stand inside a program for a reason that a station found.
const fn holds(cause: &'static str) -> CouplingDef {
    by(cause, INSIDE, Place::Path, Told::Found, "coupling-inside-found")
}

/// A server that turns requests away at once keeps a generator busy that asks again at once.
const fn asked_again(cause: &'static str) -> CouplingDef {
    by(cause, GENERATOR, Place::Path, Told::Judged, "coupling-generator-asks-again")
}

/// The finding whose cause may be in another tier: in one for which its workers were seen to wait.
pub(crate) const WAITING: &str = "workers-blocked-on-upstream";
const QUEUE: &str = "accept-queue-full";
const SYN_QUEUE: &str = "syn-queue-full";
const POOL: &str = "worker-pool-exhausted";
const FILES: &str = "file-descriptors-exhausted";
const CONNECTIONS: &str = "worker-connections-exhausted";
const PORTS: &str = "ephemeral-ports-exhausted";
const SEARCH: &str = "time-wait-port-search";
const TABLE: &str = "conntrack-table-full";
const UNFORCED: &str = crate::facts::setting::NOT_IN_FORCE;
const CHURN: &str = crate::stations::upstream_connect::CHURN;
const RACE: &str = crate::stations::upstream_connect::RACE;
const LIMITED: &str = "rate-limited-by-config";
const GENERATOR: &str = crate::stations::load_generator::ID;
const QUOTA: &str = crate::stations::cpu_quota::ID;
const LOSS: &str = crate::stations::transport::LOSS;
const BUFFER: &str = crate::stations::sending::BUFFER;
const STALL: &str = crate::stations::sending::STALL;
const FIRST_WINDOW: &str = crate::stations::sending::FIRST_WINDOW;
const RECEIVER: &str = crate::stations::sending::RECEIVER;
const INSIDE: &str = crate::stations::waiting::INSIDE;
const CORES: Source = Source::Station("cpu");
const LINK: Source = Source::Station("link");

/// The graph. Within one tier it has no ring, and what lies in another tier is taken for a cause only where nothing brings that about in turn.
pub const COUPLINGS: &[CouplingDef] = &[
    by(POOL, QUEUE, Place::Tier, Told::Found, "coupling-queue-pool"),
    by(FILES, QUEUE, Place::Tier, Told::Found, "coupling-queue-files"),
    by(CONNECTIONS, QUEUE, Place::Tier, Told::Judged, "coupling-queue-connections"),
    by(QUOTA, QUEUE, Place::Tier, Told::Found, "coupling-queue-quota"),
    by(SEARCH, QUEUE, Place::Cores, Told::Found, "coupling-queue-search"),
    by(SEARCH, UNFORCED, Place::Cores, Told::Found, "coupling-queue-search"),
    by(UNFORCED, QUEUE, Place::Station, Told::Found, "coupling-queue-unforced"),
    CouplingDef { cause: CORES, symptom: QUEUE, place: Place::Tier, told: Told::Judged, why: "coupling-queue-cores" },
    by(QUEUE, SYN_QUEUE, Place::Listener, Told::Judged, "coupling-syn-queue-accept"),
    by(FILES, UNFORCED, Place::Tier, Told::Found, "coupling-unforced-files"),
    by(QUOTA, UNFORCED, Place::Tier, Told::Found, "coupling-unforced-quota"),
    by(QUOTA, CONNECTIONS, Place::Tier, Told::Found, "coupling-held-quota"),
    by(QUOTA, POOL, Place::Tier, Told::Found, "coupling-pool-quota"),
    by(SEARCH, QUOTA, Place::Tier, Told::Found, "coupling-quota-search"),
    by(WAITING, POOL, Place::Tier, Told::Found, "coupling-pool-blocked"),
    by(FILES, POOL, Place::Tier, Told::Found, "coupling-pool-files"),
    by(UNFORCED, POOL, Place::Station, Told::Found, "coupling-pool-unforced"),
    CouplingDef { cause: LINK, symptom: POOL, place: Place::Tier, told: Told::Found, why: "coupling-pool-link" },
    by(TABLE, CONNECTIONS, Place::Edge, Told::Found, "coupling-held-table"),
    by(TABLE, FILES, Place::Edge, Told::Found, "coupling-held-table"),
    by(TABLE, PORTS, Place::Edge, Told::Found, "coupling-ports-table"),
    by(TABLE, WAITING, Place::Edge, Told::Found, "coupling-blocked-table"),
    by(LOSS, WAITING, Place::Edge, Told::Found, "coupling-blocked-loss"),
    by(LOSS, POOL, Place::Tier, Told::Found, "coupling-pool-loss"),
    by(BUFFER, POOL, Place::Tier, Told::Found, "coupling-pool-buffer"),
    awaited(LOSS),
    by(RECEIVER, POOL, Place::Path, Told::Found, "coupling-pool-receiver"),
    by(FIRST_WINDOW, POOL, Place::Tier, Told::Found, "coupling-pool-first-window"),
    awaited(BUFFER),
    awaited(STALL),
    awaited(TABLE),
    awaited(SYN_QUEUE),
    awaited(QUEUE),
    awaited(UNFORCED),
    awaited(CONNECTIONS),
    awaited(FILES),
    awaited(LIMITED),
    awaited(PORTS),
    awaited(SEARCH),
    awaited(QUOTA),
    awaited(CHURN),
    awaited(POOL),
    awaited(WAITING),
    CouplingDef { cause: CORES, symptom: WAITING, place: Place::Awaited, told: Told::Judged, why: "coupling-blocked-cores" },
    holds(TABLE),
    holds(LOSS),
    holds(BUFFER),
    holds(STALL),
    holds(FIRST_WINDOW),
    holds(SYN_QUEUE),
    holds(QUEUE),
    holds(UNFORCED),
    holds(CONNECTIONS),
    holds(FILES),
    holds(LIMITED),
    holds(PORTS),
    holds(SEARCH),
    holds(CHURN),
    holds(POOL),
    holds(WAITING),
    holds(QUOTA),
    CouplingDef { cause: CORES, symptom: INSIDE, place: Place::Path, told: Told::Judged, why: "coupling-inside-cores" },
    CouplingDef { cause: LINK, symptom: INSIDE, place: Place::Path, told: Told::Found, why: "coupling-inside-link" },
    asked_again(CONNECTIONS),
    asked_again(QUEUE),
    asked_again(PORTS),
    asked_again(LIMITED),
    asked_again(RACE),
];

/// Findings that neither bring another one about nor are brought about by one: improvements, which are told only where nothing is choked.
pub const ALONE: &[&str] = crate::improvements::FROM_PROFILE;

/// Findings while which hardly anything gets through to what lies behind, at whichever tier's door: packets are lost before a server sees them.
pub const STARVING: &[&str] = &[TABLE];

impl Place {
    /// Message id of the words for it.
    pub fn words(self) -> &'static str {
        match self {
            Place::Tier => "coupling-place-tier",
            Place::Station => "coupling-place-station",
            Place::Listener => "coupling-place-listener",
            Place::Awaited => "coupling-place-awaited",
            Place::Path => "coupling-place-path",
            Place::Cores => "coupling-place-cores",
            Place::Edge => "coupling-place-edge",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::catalogue::Catalogue;
    use crate::stations::STATIONS;

    fn findings() -> BTreeSet<&'static str> {
        STATIONS.iter().flat_map(|def| def.findings).copied().collect()
    }

    fn of(source: Source) -> Option<&'static str> {
        match source {
            Source::Finding(id) => Some(id),
            Source::Station(_) => None,
        }
    }

    #[test]
    fn every_finding_is_coupled_or_declared_to_stand_alone_and_nothing_else_is() {
        let coupled: BTreeSet<&str> = COUPLINGS.iter().flat_map(|def| of(def.cause).into_iter().chain([def.symptom])).collect();
        let alone: BTreeSet<&str> = ALONE.iter().copied().collect();
        assert!(coupled.is_disjoint(&alone), "{coupled:?} {alone:?}");
        assert_eq!(&coupled | &alone, findings());
        let stations: BTreeSet<&str> = STATIONS.iter().map(|def| def.id).collect();
        for def in COUPLINGS {
            assert!(!matches!(def.cause, Source::Station(id) if !stations.contains(id)), "{def:?}");
        }
        assert!(STARVING.iter().all(|id| coupled.contains(id)));
    }

    #[test]
    fn every_coupling_is_there_once_and_has_its_sentences() {
        let words = Catalogue::english();
        for (place, def) in COUPLINGS.iter().enumerate() {
            let same = |other: &CouplingDef| (other.cause, other.symptom, other.place) == (def.cause, def.symptom, def.place);
            assert_eq!(COUPLINGS.iter().position(same), Some(place), "{def:?}");
            for id in [def.why, def.place.words()] {
                assert!(words.plain(id).is_some_and(|text| !text.contains('{')), "{id} is not in the catalogue");
            }
        }
    }

    #[test]
    fn within_a_tier_the_graph_has_no_ring() {
        let local = |from: &str| -> Vec<&str> {
            let lines = COUPLINGS.iter().filter(|def| def.place != Place::Awaited && of(def.cause) == Some(from));
            lines.map(|def| def.symptom).collect()
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
