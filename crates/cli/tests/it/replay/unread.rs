//! Every recording without what a user without rights cannot read, each reading alone and all of them: the verdict becomes weaker or unknown, never another one.
//!
//! Deterministic: recordings.

use std::collections::BTreeSet;
use std::sync::Mutex;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::diagnose::diagnose;
use chokepoint_recording::{Entry, read};
use chokepoint_sources::assemble_recorded;
use serde_json::{Value, json};

use crate::harness::{all_recordings, repository};

/// Readings of other users' processes and of the host's kernel that need a right (docs/privileges.md), and what they are. What a configuration names (logs, a
/// status page) is not found without it.
const LACKING: &[(&str, &[&str])] = &[
    ("which process holds a socket", &["process_files", "process_fd_count"]),
    ("system calls", &["process_syscall", "process_threads"]),
    ("memory", &["process_memory"]),
    ("configuration", &["server_config", "server_log", "server_status"]),
    ("logs", &["server_log"]),
    ("status pages", &["server_status"]),
    ("profile", &["profile"]),
    ("states of the connection table", &["conntrack_states"]),
    ("translations of addresses", &["conntrack_translations"]),
    ("kernel log", &["kernel_log"]),
    (
        "all of it",
        &[
            "process_files",
            "process_fd_count",
            "process_syscall",
            "process_threads",
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
/// Findings that say where requests wait and not for what: what remains of a server's own limit where the setting or the log that names it is not read.
const UNNAMED: [&str; 2] = ["waits-inside", "accepts-slowly"];
/// Local ports that run out where each request has a connection of its own, which costs CPU time as well.
const PORTS: [&str; 2] = ["ephemeral-ports-exhausted", "upstream-connection-churn"];
/// Limits of a server's own before which requests wait in it.
const OWN_LIMITS: [&str; 4] =
    ["rate-limited-by-config", "file-descriptors-exhausted", "worker-connections-exhausted", "server-limit-reached"];

fn told(entries: &[Entry], words: &Catalogue) -> Value {
    serde_json::to_value(diagnose(&assemble_recorded(entries).unwrap(), words)).unwrap()
}

fn list<'a>(report: &'a Value, name: &str) -> &'a [Value] {
    report[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn causes(report: &Value) -> BTreeSet<(&str, &str)> {
    let causes = list(report, "findings").iter().filter(|finding| finding["role"] == "cause");
    causes.filter_map(|finding| Some((finding["id"].as_str()?, finding["tier"].as_str()?))).collect()
}

/// True if the first report says what a cause of the second one claims: as a cause, as what follows from one, or as CPU time that could be saved. A pool is full,
/// without what its workers wait for; workers wait for a server, which the first report followed further; requests wait in a server, without its limit's name.
fn is_claimed(whole: &Value, (id, tier): (&str, &str)) -> bool {
    let found = |name| list(whole, name).iter().filter_map(|finding| Some((finding["id"].as_str()?, finding["tier"].as_str()?)));
    let all: BTreeSet<(&str, &str)> = found("findings").chain(found("improvements")).collect();
    let is_blocked = all.iter().any(|(id, _)| *id == BLOCKED) && [BLOCKED, "worker-pool-exhausted"].contains(&id);
    let is_unnamed = UNNAMED.contains(&id) && OWN_LIMITS.iter().any(|limit| all.contains(&(*limit, tier)));
    let is_edge = id == PORTS[1] && all.contains(&(PORTS[0], tier));
    all.iter().any(|(other, _)| *other == id) || is_blocked || is_unnamed || is_edge
}

/// True if the second report is healthy where the first one says of the same limit that a part of it is avoidable, or says itself what it has not seen.
fn is_less_healthy(whole: &Value, less: &Value) -> bool {
    let is_full = |station: &Value| station["station"] == "cpu" && station["state"] == "saturated";
    match less["limited_by"].as_str() {
        Some("cpu") => list(whole, "path").iter().any(is_full),
        Some("demand") => less["summary"].as_str().is_some_and(|text| text.contains("would not show")),
        _ => false,
    }
}

/// Whether the second report claims nothing that the first one does not.
fn is_weaker(whole: &Value, less: &Value) -> bool {
    let same = ["verdict", "limited_by"].iter().all(|field| whole[*field] == less[*field]);
    match less["verdict"].as_str() {
        Some("unknown") => true,
        Some("healthy") if whole["verdict"] == "choked" => is_less_healthy(whole, less),
        _ => same && causes(less).into_iter().all(|cause| is_claimed(whole, cause)),
    }
}

/// What is wrong with a recording without each of the readings.
fn wrong_in(name: &str, words: &Catalogue) -> Vec<String> {
    let entries = read(&std::fs::read(repository(name)).unwrap()).unwrap().entries;
    let whole = told(&entries, words);
    let mut wrong = Vec::new();
    for (what, sources) in LACKING {
        let less: Vec<Entry> = entries.iter().filter(|entry| !sources.contains(&entry.source.as_str())).cloned().collect();
        if less.len() == entries.len() {
            continue;
        }
        let less = told(&less, words);
        if !is_weaker(&whole, &less) {
            let said = |report: &Value| format!("{} {} {:?}", report["verdict"], report["limited_by"], causes(report));
            wrong.push(format!("{name}, without {what}: {} instead of {}", said(&less), said(&whole)));
        }
    }
    wrong
}

#[test]
fn without_the_rights_of_root_a_verdict_becomes_weaker_or_unknown_and_never_another_one() {
    let (words, wrong) = (Catalogue::english(), Mutex::new(Vec::new()));
    let left = Mutex::new(all_recordings().into_iter());
    let next = || left.lock().unwrap().next();
    let work = || {
        while let Some(name) = next() {
            let found = wrong_in(&name, &words);
            wrong.lock().unwrap().extend(found);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_no_weaker_verdict_is_found() {
    let report = |verdict: &str, by: Option<&str>, cause: &str, summary: &str| {
        let finding = json!({ "id": cause, "tier": "nginx", "role": "cause" });
        let findings = if cause.is_empty() { Vec::new() } else { vec![finding] };
        json!({ "verdict": verdict, "limited_by": by, "findings": findings, "path": [], "summary": summary })
    };
    let limited = report("choked", None, "rate-limited-by-config", "");
    assert!(is_weaker(&limited, &report("unknown", None, "", "")));
    assert!(is_weaker(&limited, &report("choked", None, "waits-inside", "")));
    assert!(!is_weaker(&limited, &report("choked", None, "worker-pool-exhausted", "")));
    assert!(!is_weaker(&limited, &report("healthy", Some("cpu"), "", "")), "its cores are not full");
    assert!(!is_weaker(&limited, &report("healthy", Some("demand"), "", "")));
    assert!(is_weaker(&limited, &report("healthy", Some("demand"), "", "errors would not show.")));
    assert!(!is_weaker(&report("healthy", Some("cpu"), "", ""), &limited));
    assert!(!is_weaker(&limited, &report("client-limited", None, "load-generator-limited", "")));
}
