//! The search for a free port, by how much of the CPU time it takes: recordings that are made of a frozen one by moving samples of its profile.
//!
//! Deterministic: recordings and command lines.

use chokepoint_model::observation::{CpuProfile, ProfilePart};
use chokepoint_recording::{Outcome, read, write};
use serde_json::Value;

use crate::harness::Chokepoint;

/// The core that the servers of the frozen recording share.
const CORE: u32 = 1;
const SEARCH: &str = "port-search";
/// What the core of case A did besides (CASES.md has it by mode: 30 % user, 20 % soft interrupts, the rest in system calls), as shares of what is
/// left of it without the search.
const BESIDES: &[(&str, &[&str], f64)] = &[
    ("application", &[], 0.30),
    ("softirq-receive", &["kernel-network", "softirq"], 0.20),
    ("tcp-transmit", &["kernel-network"], 0.25),
    ("connection", &["kernel-network", "connection"], 0.25),
];

/// Of the samples in which the search ran so many stay that it has this share of the core; each of the others becomes one of [`BESIDES`], in these
/// proportions. Their number, processes and cores stay.
fn moved(profile: &mut CpuProfile, share: f64) {
    let on_core = |part: &ProfilePart| part.cpu == CORE;
    let all: u64 = profile.parts.iter().filter(|part| on_core(part)).map(|part| part.samples).sum();
    let searched: u64 = profile.parts.iter().filter(|part| on_core(part) && part.layer == SEARCH).map(|part| part.samples).sum();
    let stay = share * all as f64 / searched as f64;
    assert!(searched > 0 && stay < 1.0, "{searched} of {all} samples are of the search");
    let mut others = Vec::new();
    for part in profile.parts.iter_mut().filter(|part| on_core(part) && part.layer == SEARCH) {
        let (samples, weight) = (part.samples, part.weight);
        part.samples = (samples as f64 * stay).round() as u64;
        part.weight = weight / samples * part.samples;
        for (layer, aspects, times) in BESIDES {
            let count = ((samples - part.samples) as f64 * times).round() as u64;
            let aspects = aspects.iter().map(|aspect| (*aspect).to_owned()).collect();
            others.push(ProfilePart {
                layer: (*layer).to_owned(),
                aspects,
                samples: count,
                weight: weight / samples * count,
                ..part.clone()
            });
        }
    }
    profile.parts.extend(others);
}

/// The report of the frozen recording with the search at this share of the core.
fn with_share(share: f64) -> Value {
    let file = format!("{}/../../tests/data/ephemeral-ports/port-search.rec", env!("CARGO_MANIFEST_DIR"));
    let mut recording = read(&std::fs::read(file).unwrap()).unwrap();
    let entry = recording.entries.iter_mut().find(|entry| entry.source == "profile").unwrap();
    let Outcome::Ok(json) = &mut entry.outcome else { panic!("{entry:?}") };
    let mut profile: CpuProfile = serde_json::from_slice(json).unwrap();
    moved(&mut profile, share);
    *json = serde_json::to_vec(&profile).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("moved.rec");
    std::fs::write(&file, write(&recording.entries, &recording.meta)).unwrap();
    let ran = Chokepoint::new().run(&["diagnose", "--json", "--replay", file.to_str().unwrap()]);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stderr))
}

fn causes(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().filter(|finding| finding["role"] == "cause").filter_map(|finding| finding["id"].as_str()).collect()
}

#[test]
fn a_search_that_takes_as_much_as_in_case_a_is_named() {
    let report = with_share(0.30);
    assert_eq!((causes(&report), &report["verdict"]), (vec!["time-wait-port-search"], &Value::from("choked")));
    let told = report["findings"][0]["evidence"].to_string();
    assert!(told.contains("__inet_hash_connect") || told.contains("__inet_check_established"), "{told}");
    let bound = report["profile"]["bounds"].as_array().unwrap().iter().find(|bound| bound["what"] == SEARCH).unwrap();
    let share = bound["share"].as_f64().unwrap();
    assert!((share - 0.30).abs() < 0.01, "{bound}");
}

#[test]
fn a_search_that_a_kernel_made_cheap_is_not() {
    let report = with_share(0.03);
    // What is left of a connection for each request is opening and closing it.
    assert_eq!(causes(&report), ["upstream-connection-churn"], "{}", report["summary"]);
}
