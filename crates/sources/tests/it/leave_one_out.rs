//! Leave one out: recordings of faults, judged without the station that knows the fault. The verdict may be `unknown` or another finding, but never
//! `healthy`, and the account of requests shows the place (docs/measuring.md, "Leave one out").
//!
//! Deterministic: recorded bytes.

use std::path::Path;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::diagnose::{diagnose, diagnose_without};
use chokepoint_model::report::{Diagnosis, LedgerPlaceKind, Role, Verdict};
use chokepoint_sources::assemble;

use LedgerPlaceKind::{AcceptQueue, Connecting, Waiting};

/// A recording, the finding that is the first cause, and the place of most requests; none if requests fail at once, and only the account of losses, which the
/// station keeps, shows them.
type Case = (&'static str, &'static str, Option<(LedgerPlaceKind, &'static str)>);

const CASES: &[Case] = &[
    ("accept-queue-short", "accept-queue-full", Some((Connecting, "nginx"))),
    ("conntrack-full", "conntrack-table-full", Some((Connecting, "nginx"))),
    ("files-few", "file-descriptors-exhausted", Some((AcceptQueue, "nginx"))),
    ("pool-exhausted", "worker-pool-exhausted", Some((AcceptQueue, "php-fpm"))),
    ("ports-exhausted", "ephemeral-ports-exhausted", None),
    ("quota-throttled", "cgroup-cpu-throttled", Some((AcceptQueue, "php-fpm"))),
    ("rate-limit-delay", "rate-limited-by-config", Some((Waiting, "nginx"))),
    ("syn-queue-full", "syn-queue-full", Some((Connecting, "nginx"))),
    ("worker-connections-few", "worker-connections-exhausted", None),
];

/// The place of most requests.
fn most(diagnosis: &Diagnosis) -> Option<(LedgerPlaceKind, &str)> {
    let places = diagnosis.ledger.iter().flat_map(|ledger| &ledger.places);
    places.max_by(|a, b| a.mean.total_cmp(&b.mean)).map(|place| (place.place, place.tier.as_str()))
}

#[test]
fn a_fault_without_its_station_is_never_healthy() {
    let words = Catalogue::english();
    for (name, id, place) in CASES {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/left-out").join(format!("{name}.rec"));
        let observation = assemble(&chokepoint_recording::read(&std::fs::read(file).unwrap()).unwrap().entries);
        let whole = diagnose(&observation, &words);
        let cause = whole.findings.iter().find(|finding| finding.role == Role::Cause).expect("a fault was recorded");
        assert_eq!(cause.id, *id, "{name}: {}", whole.summary);
        let without = diagnose_without(&cause.station, &observation, &words);
        println!("{name}: {:?}, {:?}: {}", without.verdict, most(&without), without.summary);
        assert_ne!(without.verdict, Verdict::Healthy, "{name}: {}", without.summary);
        assert!(without.findings.iter().all(|finding| finding.id != *id), "{name}");
        assert!(place.is_none() || most(&without) == *place, "{name}: {:?}", most(&without));
    }
}
