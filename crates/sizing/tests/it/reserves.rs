//! The report of `capacity`: the first station to fill, and when; and what was not seen is not called roomy.
//!
//! Deterministic: pure functions.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::diagnose::diagnose;
use chokepoint_model::observation::Observation;
use chokepoint_model::report::{At, Ceiling, Diagnosis, LedgerReport, LedgerUnaccounted, Station, StationKind, StationState, TierReport};
use chokepoint_sizing::capacity::{CapacityReport, report};
use chokepoint_sizing::growth::Growth;
use chokepoint_sizing::reserve::{Basis, Unknown};

fn station(id: &str, used: Option<f64>, limit: Option<f64>) -> Station {
    Station {
        tier: "nginx".to_owned(),
        station: id.to_owned(),
        at: At::default(),
        kind: StationKind::Cliff,
        limit,
        used,
        waiting: None,
        refused_per_s: None,
        utilization: None,
        unit: "entries".to_owned(),
        ceiling_rps: None,
        state: StationState::Ok,
        why: "no permission".to_owned(),
    }
}

/// The diagnosis of traffic at this rate.
fn watched(rate_rps: Option<f64>, path: Vec<Station>) -> Diagnosis {
    let mut diagnosis = diagnose(&Observation::default(), &Catalogue::english());
    let tier = TierReport { name: "nginx".to_owned(), listeners: Vec::new(), pids: vec![1], netns: "1".to_owned(), upstreams: Vec::new() };
    diagnosis.target.tiers = vec![tier];
    let unaccounted = LedgerUnaccounted { mean: 0.0, share: 0.0, low: None, high: None };
    diagnosis.ledger =
        Some(LedgerReport { under_way: 1.0, rate_rps, response_time_ms: None, places: Vec::new(), unaccounted, losses: Vec::new() });
    diagnosis.path = path;
    diagnosis
}

fn of(diagnosis: &Diagnosis, growth: Option<&str>) -> CapacityReport {
    let report = report(diagnosis, 10.0, growth.and_then(Growth::parse), &Catalogue::english());
    let json = serde_json::to_string(&report).unwrap();
    assert!(!json.contains("[capacity-"), "{json}");
    assert_eq!(serde_json::from_str::<CapacityReport>(&json).unwrap(), report);
    report
}

fn path() -> Vec<Station> {
    let ceiling = Some(Ceiling { value: 300.0, low: 280.0, high: 320.0 });
    vec![
        Station { ceiling_rps: ceiling, kind: StationKind::Rate, ..station("cpu", Some(0.4), Some(1.0)) },
        station("conntrack-table", Some(100.0), Some(200.0)),
        station("ephemeral-ports", Some(0.0), Some(1000.0)),
        Station { state: StationState::Unknown, ..station("file-descriptors", None, None) },
        station("waiting", Some(3.0), None),
        station("clients", Some(100.0), Some(100.0)),
    ]
}

#[test]
fn the_first_to_fill_is_first_and_growth_says_when() {
    let report = of(&watched(Some(100.0), path()), Some("5%/week"));
    let names: Vec<&str> = report.stations.iter().map(|reserve| reserve.station.as_str()).collect();
    assert_eq!(
        names,
        ["conntrack-table", "cpu", "ephemeral-ports", "file-descriptors"],
        "what cannot fill, and the load generator, are left out"
    );
    let first = &report.stations[report.first.unwrap()];
    assert_eq!((first.headroom_rps, first.basis), (Some(100.0), Some(Basis::Proportion)));
    assert_eq!(report.stations[1].headroom_rps, Some(200.0));
    assert!(report.summary.contains("100 more per second") && report.summary.contains("conntrack table"), "{}", report.summary);
    // 1.05^14.2 = 2: 99 days.
    let growth = report.growth.unwrap();
    assert!((growth.days.unwrap() - 99.4).abs() < 0.1 && growth.text.contains("99 days"), "{growth:?}");
}

#[test]
fn what_was_not_seen_is_not_called_roomy() {
    let report = of(&watched(Some(100.0), path()), None);
    let of = |id: &str| report.stations.iter().find(|reserve| reserve.station == id).unwrap();
    for (id, unknown) in [("ephemeral-ports", Unknown::NotUsed), ("file-descriptors", Unknown::NotRead)] {
        let reserve = of(id);
        assert_eq!((reserve.unknown, reserve.headroom_rps, reserve.full_rps), (Some(unknown), None, None), "{id}");
        assert!(reserve.text.starts_with("unknown"), "{}", reserve.text);
    }
    assert!(report.warnings.iter().any(|warning| warning.contains("They may fill first")), "{:?}", report.warnings);
}

#[test]
fn without_a_rate_or_traffic_nothing_is_told() {
    for (rate, part) in [(None, "rate of requests is not known"), (Some(0.0), "No request was seen")] {
        let report = of(&watched(rate, path()), Some("5%/week"));
        assert_eq!(report.first, None);
        assert!(report.summary.contains(part), "{}", report.summary);
        assert!(report.growth.unwrap().days.is_none());
        assert!(report.stations.iter().all(|reserve| reserve.headroom_rps.is_none()));
    }
    let nobody = diagnose(&Observation::default(), &Catalogue::english());
    assert!(of(&nobody, None).summary.contains("No server"));
}

#[test]
fn a_station_beyond_its_ceiling_has_nothing_in_reserve() {
    let report = of(&watched(Some(400.0), path()), None);
    let cpu = report.stations.iter().find(|reserve| reserve.station == "cpu").unwrap();
    assert_eq!(cpu.headroom_rps, Some(0.0));
    assert!(report.summary.contains("nothing in reserve"), "{}", report.summary);
}
