//! Without privileges: what can be told is told, and what cannot names the privilege that would give it.
//!
//! Live: load on a server of its own.

use std::os::unix::process::CommandExt;

use serde_json::Value;

use crate::harness::{self, Chokepoint, Server, is_root};

/// User and group "nobody".
const NOBODY: u32 = 65534;

#[test]
fn nobody_gets_a_report_and_the_names_of_what_is_missing() {
    if !is_root() {
        return;
    }
    // Another user's server: nobody may not see its processes.
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let binary = chokepoint.copy_of_binary();
    let mut command = std::process::Command::new(&binary);
    command.args(["diagnose", "--json", "-c", "2", "-z", "1s"]).arg(server.url());
    command.uid(NOBODY).gid(NOBODY).current_dir("/").env_clear().env("CHOKEPOINT_STATE_DIR", "/tmp/chokepoint-nobody-none");
    let ran = harness::ran(command.output().unwrap());
    assert!(ran.status.is_some_and(|status| status <= 1), "{}", ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(report["load"]["goodput_rps"].as_f64().unwrap() > 0.0);
    assert_ne!(report["verdict"], "choked");
    assert!(report["target"]["listener"].is_string(), "its own namespace's listeners are for everyone to see");
    let readings = report["readings"].as_array().unwrap();
    let needed: Vec<&str> = readings.iter().filter_map(|reading| reading["needs"].as_str()).collect();
    assert!(needed.iter().any(|needs| needs.contains("CAP_SYS_PTRACE")), "whose sockets they are: {needed:?}");
    assert!(!std::path::Path::new("/tmp/chokepoint-nobody-none").exists());
}

#[test]
fn nobody_cannot_build_a_lab_and_is_told_so() {
    if !is_root() {
        return;
    }
    let chokepoint = Chokepoint::new();
    let binary = chokepoint.copy_of_binary();
    let mut command = std::process::Command::new(&binary);
    command.args(["lab", "run", "healthy-static"]).uid(NOBODY).gid(NOBODY).current_dir("/");
    let ran = harness::ran(command.output().unwrap());
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("root"), "{}", ran.stderr);
}

#[test]
fn nobody_is_told_what_looking_at_other_programs_takes() {
    if !is_root() {
        return;
    }
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if level.trim().parse::<i32>().is_ok_and(|level| level < 1) {
        return eprintln!("skipped: kernel.perf_event_paranoid lets everyone sample everything");
    }
    let chokepoint = Chokepoint::new();
    let binary = chokepoint.copy_of_binary();
    for args in [&["profile"][..], &["profile", "--off-cpu"], &["profile", "--drops"], &["profile", "--count", "page-faults", "--pid", "1"]]
    {
        let mut command = std::process::Command::new(&binary);
        command.args(args).args(if args.contains(&"--count") { &["--count-for", "200ms"] } else { &["-z", "200ms"] });
        command.uid(NOBODY).gid(NOBODY).current_dir("/").env_clear();
        let ran = harness::ran(command.output().unwrap());
        assert_eq!(ran.status, Some(1), "{args:?}: {}", ran.stderr);
        let told = ["CAP_PERFMON", "not readable for this user", "perf_event_open"];
        assert!(told.iter().any(|words| ran.stderr.contains(words)), "{args:?}: {}", ran.stderr);
    }
}
