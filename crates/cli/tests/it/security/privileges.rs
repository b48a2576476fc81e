//! Without privileges the report has what can be read, and names the privilege for what cannot.
//!
//! Live: load on a server of the test.

use std::process::Command;

use serde_json::Value;

use crate::harness::{Chokepoint, Server, has_programs, is_root, ran};

/// A state directory that these runs must not create.
const STATE: &str = "/tmp/chokepoint-nobody-none";

#[test]
fn an_unprivileged_user_gets_a_report_and_the_names_of_missing_privileges() {
    if !is_root() {
        return;
    }
    // The server belongs to root: nobody may not read the files of its process.
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let ran = chokepoint.run_as_nobody(&["diagnose", "--json", "--no-keep", "-c", "2", "-z", "1s", &server.url()], STATE);
    assert!(ran.status.is_some_and(|status| status <= 1), "{}", ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(report["load"]["goodput_rps"].as_f64().unwrap() > 0.0);
    assert_ne!(report["verdict"], "choked");
    assert!(report["target"]["listener"].is_string(), "every user can list the listeners of its own namespace");
    let readings = report["readings"].as_array().unwrap();
    let needed: Vec<&str> = readings.iter().filter_map(|reading| reading["needs"].as_str()).collect();
    assert!(needed.iter().any(|needs| needs.contains("CAP_SYS_PTRACE")), "the owners of sockets: {needed:?}");
    assert!(!std::path::Path::new(STATE).exists());
}

#[test]
fn an_unprivileged_user_cannot_build_a_lab_and_learns_why() {
    if !is_root() {
        return;
    }
    let chokepoint = Chokepoint::new();
    let ran = chokepoint.run_as_nobody(&["lab", "run", "healthy-static"], STATE);
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("root"), "{}", ran.stderr);
}

#[test]
fn an_unprivileged_user_learns_which_privilege_profiling_needs() {
    if !is_root() {
        return;
    }
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if level.trim().parse::<i32>().is_ok_and(|level| level < 1) {
        return eprintln!("skipped: kernel.perf_event_paranoid lets everyone sample everything");
    }
    let chokepoint = Chokepoint::new();
    for args in [&["profile"][..], &["profile", "--off-cpu"], &["profile", "--drops"], &["profile", "--count", "page-faults", "--pid", "1"]]
    {
        let time = if args.contains(&"--count") { ["--count-for", "200ms"] } else { ["-z", "200ms"] };
        let ran = chokepoint.run_as_nobody(&[args, &time].concat(), STATE);
        assert_eq!(ran.status, Some(1), "{args:?}: {}", ran.stderr);
        let reasons = ["CAP_PERFMON", "not readable by this user", "perf_event_open"];
        assert!(reasons.iter().any(|reason| ran.stderr.contains(reason)), "{args:?}: {}", ran.stderr);
    }
}

/// Somebody may give this program the right to read all files, for its readings (setcap(8)). Whoever runs it names files with the own rights alone.
#[test]
fn a_capability_opens_no_file_that_the_caller_names() {
    if !is_root() || !has_programs(&["setpriv"]) {
        return;
    }
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let (secret, url) = (chokepoint.write("secret", b"listen = \"secret\"\nGET /secret\n"), server.url());
    std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let with_rights = |args: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=+dac_read_search",
            "--ambient-caps=+dac_read_search",
        ]);
        command.arg(chokepoint.copy_of_binary()).args(args).current_dir("/").env_clear().env("CHOKEPOINT_STATE_DIR", STATE);
        ran(command.output().unwrap())
    };
    let body = ["bench", "--no-keep", "--yes", "-n", "1", "-m", "POST", "-D", &secret, &url];
    for args in [
        &body[..],
        &["bench", "-n", "1", "--targets", &secret, &url],
        &["watch", "--config", &secret],
        &["diagnose", "--replay", &secret],
        &["profile", "--replay", &secret],
        &["streams", &secret],
    ] {
        let ran = with_rights(args);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.status != Some(0) && said.contains("ermission denied") && !said.contains("GET /secret"), "{args:?}: {said}");
    }
    std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let ran = with_rights(&body);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
}
