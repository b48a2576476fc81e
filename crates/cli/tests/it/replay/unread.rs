//! Every recording without what a user without rights cannot read: the verdict becomes weaker or unknown, never another one.
//!
//! Deterministic: recordings and command lines.

use std::collections::BTreeSet;
use std::path::Path;

use chokepoint_recording::{read, write};
use serde_json::Value;

use crate::harness::{Chokepoint, all_recordings, repository};

/// Readings of other users' processes and of the host's kernel that need a right (docs/privileges.md), and what they are.
const LACKING: &[(&str, &[&str])] = &[
    ("which process holds a socket", &["process_files", "process_fd_count"]),
    (
        "all of it",
        &[
            "process_files",
            "process_fd_count",
            "process_syscall",
            "process_memory",
            "server_config",
            "server_log",
            "server_status",
            "profile",
            "conntrack_states",
            "conntrack_translations",
            "kernel_log",
        ],
    ),
];

const BLOCKED: &str = "workers-blocked-on-upstream";

fn replayed(chokepoint: &Chokepoint, file: &Path) -> Value {
    let ran = chokepoint.run(&["diagnose", "--json", "--replay", file.to_str().unwrap()]);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{}: {error}: {}", file.display(), ran.stderr))
}

fn causes(report: &Value) -> BTreeSet<&str> {
    let findings = report["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    findings.iter().filter(|finding| finding["role"] == "cause").filter_map(|finding| finding["id"].as_str()).collect()
}

/// What may be claimed with less: the causes; that a pool is full, without what its workers wait for; and that workers wait for a server, which the first
/// report followed further.
fn claims(report: &Value) -> BTreeSet<&str> {
    let findings = report["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_blocked = findings.iter().any(|finding| finding["id"] == BLOCKED);
    let pool = is_blocked.then_some([BLOCKED, "worker-pool-exhausted"]);
    causes(report).into_iter().chain(pool.into_iter().flatten()).collect()
}

/// Whether the second report claims nothing that the first one does not.
fn is_weaker(whole: &Value, less: &Value) -> bool {
    let same = || ["verdict", "limited_by"].iter().all(|field| whole[*field] == less[*field]);
    less["verdict"] == "unknown" || (same() && causes(less).is_subset(&claims(whole)))
}

#[test]
fn without_the_rights_of_root_a_verdict_becomes_weaker_or_unknown_and_never_another_one() {
    let chokepoint = Chokepoint::new();
    let mut wrong = Vec::new();
    for name in all_recordings() {
        let file = repository(&name);
        let recording = read(&std::fs::read(&file).unwrap()).unwrap();
        let whole = replayed(&chokepoint, &file);
        for (what, sources) in LACKING {
            let mut less = recording.clone();
            less.entries.retain(|entry| !sources.contains(&entry.source.as_str()));
            let path = chokepoint.write("less.rec", &write(&less.entries, &less.meta));
            let less = replayed(&chokepoint, Path::new(&path));
            if !is_weaker(&whole, &less) {
                let told = |report: &Value| format!("{} {} {:?}", report["verdict"], report["limited_by"], causes(report));
                wrong.push(format!("{name}, without {what}: {} instead of {}", told(&less), told(&whole)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
