//! Cause and effect: the graph that each station declares for its own findings, and the one place that uses it to decide which findings are causes, which are
//! symptoms of what, and in what order causes are fixed.

mod link;
mod order;

pub use super::graph::{Attribution, CouplingDef, Relation, Source, Standing};
pub(crate) use link::link;
pub use order::{Layout, arrange, order};

use crate::judge::id::{CPU_FINDINGS, FindingId};
use crate::judge::stations::STATIONS;

/// The graph: the lines of all stations. It has no cycle within one tier. A finding of another tier counts as a cause only if nothing causes it in turn.
pub fn couplings() -> impl Iterator<Item = &'static CouplingDef> {
    STATIONS.iter().flat_map(|def| def.graph)
}

/// Findings without a line in the graph: improvements, which are reported only if nothing is choked.
pub const ALONE: &[FindingId] = CPU_FINDINGS;

/// Findings that let hardly anything through to the stations behind, in any tier: packets are lost before a server sees them.
pub const STARVING: &[FindingId] = &[FindingId::TABLE_FULL];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::judge::id::StationId;
    use crate::output::catalogue::Catalogue;

    fn findings() -> BTreeSet<FindingId> {
        STATIONS.iter().flat_map(|def| def.findings).copied().collect()
    }

    fn of(source: Source) -> Option<FindingId> {
        if let Source::Finding(id) = source { Some(id) } else { None }
    }

    #[test]
    fn a_station_declares_lines_about_its_own_findings_and_each_cause_is_known() {
        let stations: BTreeSet<StationId> = STATIONS.iter().map(|def| def.id).collect();
        for station in STATIONS {
            for def in station.graph {
                let is_own = |id: FindingId| station.findings.contains(&id);
                assert!(is_own(def.symptom) || of(def.cause).is_some_and(is_own), "{}: {def:?}", station.id);
                assert!(findings().contains(&def.symptom), "{def:?}");
                assert!(of(def.cause).is_none_or(|id| findings().contains(&id) && id != def.symptom), "{def:?}");
                assert!(!matches!(def.cause, Source::Station(id) if !stations.contains(&id)), "{def:?}");
            }
        }
        assert!(STARVING.iter().all(|id| findings().contains(id)));
    }

    #[test]
    fn what_stands_alone_is_a_finding_that_no_line_names() {
        let coupled: BTreeSet<FindingId> = couplings().flat_map(|def| of(def.cause).into_iter().chain([def.symptom])).collect();
        let alone: BTreeSet<FindingId> = ALONE.iter().copied().collect();
        assert!(coupled.is_disjoint(&alone) && alone.is_subset(&findings()), "{coupled:?} {alone:?}");
    }

    #[test]
    fn every_coupling_is_there_once_and_has_its_sentences() {
        let words = Catalogue::english();
        for (place, def) in couplings().enumerate() {
            let same = |other: &CouplingDef| (other.cause, other.symptom, other.relation) == (def.cause, def.symptom, def.relation);
            assert_eq!(couplings().position(same), Some(place), "{def:?}");
            for id in [def.why, def.relation.words()] {
                assert!(words.plain(id).is_some_and(|text| !text.contains('{')), "{id} is not in the catalogue");
            }
        }
    }

    #[test]
    fn within_a_tier_the_graph_has_no_ring() {
        let local = |from: FindingId| -> Vec<FindingId> {
            // Lines with `Judged` form no cycle: what the stations read excludes it (`worker_connections` and `conntrack_table`).
            let is_from = |def: &&CouplingDef| match def.cause {
                _ if def.attribution == Attribution::Judged => false,
                Source::Finding(id) => id == from,
                Source::Any => def.symptom != from && !ALONE.contains(&from),
                Source::AnyBut(id) => ![def.symptom, id].contains(&from) && !ALONE.contains(&from),
                Source::Station(_) => false,
            };
            couplings().filter(|def| def.relation != Relation::Awaited).filter(is_from).map(|def| def.symptom).collect()
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
