//! Recordings of servers that could be faster, each with a harmless twin (tests/improvements): the improvement is reported, or is a cause if the work is
//! avoidable, and the twin has neither.
//!
//! Deterministic: recordings and command lines.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use chokepoint_model::observation::{CpuProfile, ProfilePart};
use chokepoint_recording::{Outcome, read, write};
use serde_json::Value;

use crate::harness::{Chokepoint, recordings, repository};

fn directory() -> PathBuf {
    repository("tests/improvements")
}

fn replay(file: &Path) -> Value {
    let ran = Chokepoint::new().run(&["diagnose", "--json", "--replay", file.to_str().unwrap()]);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{}: {error}: {}", file.display(), ran.stderr))
}

fn ids(list: &Value) -> Vec<&str> {
    list.as_array().map(Vec::as_slice).unwrap_or_default().iter().filter_map(|finding| finding["id"].as_str()).collect()
}

fn improvements(report: &Value) -> Vec<&str> {
    ids(&report["improvements"])
}

#[test]
fn improvements_are_reported_and_harmless_twins_have_none() {
    let cases: Vec<Value> = serde_json::from_slice(&std::fs::read(directory().join("expected.json")).unwrap()).unwrap();
    for case in &cases {
        let report = replay(&directory().join(format!("{}.rec", case["recording"].as_str().unwrap())));
        assert_eq!((&report["verdict"], &report["limited_by"]), (&case["verdict"], &case["limited_by"]), "{case}");
        let expected = |list: &'static str| case[list].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
        assert_eq!(improvements(&report), expected("improvements"), "{case}");
        // Avoidable work is a cause.
        if report["verdict"] == "choked" {
            assert_eq!(ids(&report["findings"]), expected("wasted"), "{case}");
        }
        // Each has evidence for its share and for the gain.
        let wasted = report["findings"].as_array().into_iter().flatten().filter(|_| report["verdict"] == "choked");
        for finding in report["improvements"].as_array().into_iter().flatten().chain(wasted) {
            assert!(finding["evidence"].as_array().is_some_and(|evidence| evidence.len() >= 2), "{finding}");
        }
    }
    let listed: BTreeSet<String> = cases.iter().map(|case| case["recording"].as_str().unwrap().to_owned()).collect();
    assert_eq!(recordings("improvements"), listed, "each recording has its line");
}

/// nginx allocates from its own pools. The share of the allocator is in the report, and is too small for an improvement.
#[test]
fn the_small_share_of_the_allocator_in_nginx_is_in_the_profile() {
    let report = replay(&directory().join("allocator/allocator-nginx.rec"));
    let tier = &report["profile"]["tiers"][0];
    let layer = tier["layers"].as_array().unwrap().iter().find(|layer| layer["layer"] == "allocator").unwrap();
    let share = layer["share"].as_f64().unwrap();
    assert!(tier["tier"] == "nginx" && share > 0.005 && share < 0.09, "{layer}");
    assert!(layer["cpu_us_per_request"].as_f64().is_some_and(|us| us > 0.0), "{layer}");
}

/// The report of a recording whose cores have these loads: the busy share of the time, and the share of the busy time spent receiving packets. The process
/// that ran most on a core runs all of it.
fn with_cores(cores: [(f64, f64); 2]) -> Value {
    let mut recording = read(&std::fs::read(directory().join("cores/spread.rec")).unwrap()).unwrap();
    let entry = recording.entries.iter_mut().find(|entry| entry.source == "profile").unwrap();
    let Outcome::Ok(json) = &mut entry.outcome else { panic!("{entry:?}") };
    let mut profile: CpuProfile = serde_json::from_slice(json).unwrap();
    let samples = profile.seconds() * f64::from(profile.frequency_hz);
    let before = std::mem::take(&mut profile.parts);
    for (cpu, (busy, packets)) in (0..).zip(cores) {
        let most = before.iter().find(|part| part.cpu == cpu && part.pid != 0).unwrap();
        for (layer, aspects, share) in
            [("softirq-receive", vec!["softirq".to_owned()], packets), ("application", Vec::new(), 1.0 - packets)]
        {
            let samples = (samples * busy * share).round() as u64;
            profile.parts.push(ProfilePart { layer: layer.to_owned(), aspects, samples, weight: samples * 10_101_010, ..most.clone() });
        }
    }
    *json = serde_json::to_vec(&profile).unwrap();
    let chokepoint = Chokepoint::new();
    replay(Path::new(&chokepoint.write("cores.rec", &write(&recording.entries, &recording.meta))))
}

/// No scenario produces this case: packets of a veth are received on the core that sent them, so on two busy cores neither is full of receive work alone.
#[test]
fn a_core_that_receives_all_packets_beside_an_idle_core_is_an_improvement() {
    assert_eq!(improvements(&with_cores([(0.99, 0.8), (0.3, 0.1)])), ["softirq-on-one-core"]);
    assert_eq!(improvements(&with_cores([(0.3, 0.1), (0.99, 0.8)])), ["softirq-on-one-core"]);
    for (what, cores) in [
        ("both are full", [(0.99, 0.8), (0.97, 0.1)]),
        ("it does something else", [(0.99, 0.3), (0.3, 0.1)]),
        ("it has time to spare", [(0.7, 0.9), (0.3, 0.1)]),
    ] {
        assert_eq!(improvements(&with_cores(cores)), [""; 0], "{what}");
    }
}
