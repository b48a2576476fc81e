//! The search for a free port by its share of the CPU time: recordings derived from a frozen one by moving samples of its profile.
//!
//! Deterministic: recordings and command lines.

use chokepoint_model::observation::{CpuProfile, ProfilePart};
use chokepoint_recording::{Outcome, read, write};
use serde_json::Value;

use crate::harness::{Chokepoint, repository};

/// The core that the servers of the frozen recording share.
const CORE: u32 = 1;
const SEARCH: &str = "port-search";
/// What the core of case A did besides the search, as shares of its other time (CASES.md: 30 % user, 20 % soft interrupts, the rest in system calls).
const OTHER_WORK: &[(&str, &[&str], f64)] = &[
    ("application", &[], 0.30),
    ("softirq-receive", &["kernel-network", "softirq"], 0.20),
    ("tcp-transmit", &["kernel-network"], 0.25),
    ("connection", &["kernel-network", "connection"], 0.25),
];

/// Gives the search this share of the core. Its other samples become [`OTHER_WORK`], in these proportions; their number, processes and cores stay.
fn set_search_share(profile: &mut CpuProfile, share: f64) {
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
        for (layer, aspects, times) in OTHER_WORK {
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

/// The report of the frozen recording with this share of the search.
fn with_share(share: f64) -> Value {
    let file = repository("tests/data/ephemeral-ports/port-search.rec");
    let mut recording = read(&std::fs::read(file).unwrap()).unwrap();
    let entry = recording.entries.iter_mut().find(|entry| entry.source == "profile").unwrap();
    let Outcome::Ok(json) = &mut entry.outcome else { panic!("{entry:?}") };
    let mut profile: CpuProfile = serde_json::from_slice(json).unwrap();
    set_search_share(&mut profile, share);
    *json = serde_json::to_vec(&profile).unwrap();
    let chokepoint = Chokepoint::new();
    let file = chokepoint.write("moved.rec", &write(&recording.entries, &recording.meta));
    let ran = chokepoint.run(&["diagnose", "--json", "--replay", &file]);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stderr))
}

fn causes(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().filter(|finding| finding["role"] == "cause").filter_map(|finding| finding["id"].as_str()).collect()
}

#[test]
fn a_search_with_the_share_of_case_a_is_a_cause() {
    let report = with_share(0.30);
    assert_eq!((causes(&report), &report["verdict"]), (vec!["time-wait-port-search"], &Value::from("choked")));
    let evidence = report["findings"][0]["evidence"].to_string();
    assert!(evidence.contains("__inet_hash_connect") || evidence.contains("__inet_check_established"), "{evidence}");
    let bound = report["profile"]["bounds"].as_array().unwrap().iter().find(|bound| bound["what"] == SEARCH).unwrap();
    let share = bound["share"].as_f64().unwrap();
    assert!((share - 0.30).abs() < 0.01, "{bound}");
}

#[test]
fn a_search_with_a_small_share_is_no_cause() {
    let report = with_share(0.03);
    // The cost of a connection for each request is then opening and closing it.
    assert_eq!(causes(&report), ["upstream-connection-churn"], "{}", report["summary"]);
}
