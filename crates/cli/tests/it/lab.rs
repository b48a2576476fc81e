//! Whole runs of scenarios, as root, in network namespaces: a fault is found, fixed, proven fixed and undone, and an interrupted run can be cleaned up.
//!
//! These tests change settings that only the host has, so they run one after the other.
//!
//! Live: servers, namespaces and load.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Chokepoint, Server, has_programs, is_root, one_lab, ran, signal, wait_until};

/// The limit that the scenario "conntrack-full" sets.
const LIMIT: &str = "200";

/// True if the lab can run here; else prints that the test is skipped.
fn has_lab() -> bool {
    if !is_root() || !has_programs(&["nginx", "nft", "ip"]) {
        return false;
    }
    let has_conntrack = Path::new("/proc/sys/net/netfilter/nf_conntrack_max").exists();
    if !has_conntrack {
        println!("skipped: this kernel has no conntrack");
    }
    has_conntrack
}

fn table_max() -> String {
    std::fs::read_to_string("/proc/sys/net/netfilter/nf_conntrack_max").unwrap().trim().to_owned()
}

/// The namespaces of labs. Namespaces that somebody else left on this host exist before and after a test.
fn namespaces() -> BTreeSet<String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|name| name.starts_with("cp-")).collect()
}

/// The state that a test must leave as it found it.
fn host() -> (String, BTreeSet<String>) {
    (table_max(), namespaces())
}

/// A scenario shortened to `seconds`, under a new name.
fn shortened(chokepoint: &Chokepoint, scenario: &str, seconds: u32) -> String {
    let text = chokepoint_lab::Scenario::find(scenario).unwrap().text().to_owned();
    assert!(text.contains("duration = \"10s\""));
    let text = text.replace("duration = \"10s\"", &format!("duration = \"{seconds}s\""));
    chokepoint.write(&format!("{scenario}.toml"), text.as_bytes())
}

fn json_line(stdout: &str) -> Value {
    serde_json::from_str(stdout.lines().last().unwrap_or_default()).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

#[test]
fn two_coupled_faults_are_found_fixed_proven_and_undone_and_their_recording_replays() {
    if !has_lab() {
        return;
    }
    let _alone = one_lab();
    let chokepoint = Chokepoint::new();
    let before = host();
    let scenario = shortened(&chokepoint, "pair-conntrack-queue", 2);
    // What a load leaves goes away quickly, so that the host settles between two loads.
    let (sysctls, timeout) = ("sysctls = { \"net.core.somaxconn\"", "timeout = \"2s\"");
    let text = std::fs::read_to_string(&scenario).unwrap();
    assert!(text.contains(sysctls) && text.contains(timeout), "{text}");
    let expiry = "sysctls = { \"net.netfilter.nf_conntrack_tcp_timeout_time_wait\" = 2, \"net.core.somaxconn\"";
    std::fs::write(&scenario, text.replace(sysctls, expiry).replace(timeout, "timeout = \"1s\"")).unwrap();
    let recordings = chokepoint.file("recordings");
    let run = chokepoint.run(&["lab", "run", &scenario, "--record", recordings.to_str().unwrap()]);
    assert_eq!(run.status, Some(0), "{}\n{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("cause found: ") && run.stdout.contains("verified undone"), "{}", run.stdout);
    // Each change is tried without the other.
    for remedy in ["raise-conntrack-max", "raise-accept-backlog"] {
        assert!(run.stderr.contains(&format!("taking back {remedy}")), "{remedy}: {}", run.stderr);
    }
    assert!(run.stderr.contains("putting back raise-conntrack-max"), "{}", run.stderr);
    let recording = recordings.join("pair-conntrack-queue-1.rec");
    let replay = chokepoint.run(&["diagnose", "--replay", recording.to_str().unwrap()]);
    assert!(run.stdout.starts_with(&replay.stdout), "the replay of all rounds differs:\n{}\n---\n{}", replay.stdout, run.stdout);
    assert_eq!(host(), before);
    assert_eq!(chokepoint.run(&["undo"]).stdout, "nothing is applied\n");
}

#[test]
fn harmless_twins_and_healthy_servers_have_no_cause() {
    if !has_lab() {
        return;
    }
    let _alone = one_lab();
    let chokepoint = Chokepoint::new();
    let before = host();
    for scenario in ["conntrack-60", "healthy-static", "healthy-php"] {
        for passive in [false, true] {
            let scenario = shortened(&chokepoint, scenario, 3);
            let mut args = vec!["lab", "run", &scenario, "--json"];
            args.extend(passive.then_some("--passive"));
            let run = chokepoint.run(&args);
            let line = json_line(&run.stdout);
            assert_eq!(line["first_cause"], Value::Null, "{scenario} passive={passive}: {line}");
            assert_ne!(line["verdict"], "choked", "{line}");
            assert_eq!((&line["clean"], &line["undone"]), (&Value::Bool(true), &Value::Bool(true)), "{line}");
        }
    }
    assert_eq!(host(), before);
}

#[test]
fn a_sample_of_scenarios_gives_the_same_finding_over_tls() {
    if !has_lab() {
        return;
    }
    let _alone = one_lab();
    let chokepoint = Chokepoint::new();
    let before = host();
    let recordings = chokepoint.file("recordings");
    for (scenario, cause, more) in [
        ("accept-queue-short", "accept-queue-full", &[][..]),
        ("rate-limit-low", "rate-limited-by-config", &["--no-fix"]),
        ("healthy-static", "", &["--no-fix"]),
    ] {
        let shortened = shortened(&chokepoint, scenario, 3);
        let args = ["lab", "run", &shortened, "--https", "--json", "--record", recordings.to_str().unwrap()];
        let run = chokepoint.run(&[&args[..], more].concat());
        let line = json_line(&run.stdout);
        assert_eq!(line["first_cause"].as_str().unwrap_or_default(), cause, "{scenario}: {line}\n{}", run.stderr);
        assert_eq!((&line["clean"], &line["undone"]), (&Value::Bool(true), &Value::Bool(true)), "{line}");
        assert_eq!(line["kept"].as_array().is_some_and(|kept| !kept.is_empty()), more.is_empty(), "{line}");
        let recording = recordings.join(format!("{scenario}-1.rec"));
        let replay = json_line(&chokepoint.run(&["diagnose", "--json", "--replay", recording.to_str().unwrap()]).stdout.replace('\n', ""));
        assert_eq!(replay["findings"][0]["id"].as_str().unwrap_or_default(), cause, "{replay}");
    }
    assert_eq!(host(), before);
}

#[test]
fn a_scenario_without_nginx_is_refused_over_tls() {
    let run = Chokepoint::new().run(&["lab", "run", "inner-limit", "--https"]);
    assert_ne!(run.status, Some(0));
    assert!(run.stderr.contains("speak TLS"), "{}", run.stderr);
}

/// A `lab run` under load. Two connections of each request stay in the table for two minutes, and nothing but the load makes enough of them to fill it.
fn under_load(chokepoint: &Chokepoint) -> Child {
    let scenario = shortened(chokepoint, "conntrack-full", 30);
    let before = namespaces();
    let child = chokepoint.command(&["lab", "run", &scenario]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let server = || namespaces().difference(&before).find(|name| name.ends_with("-server")).cloned();
    wait_until("the lab never came up", || table_max() == LIMIT && server().is_some());
    let server = server().unwrap();
    let count = || {
        let args = ["netns", "exec", &server, "cat", "/proc/sys/net/netfilter/nf_conntrack_count"];
        let output = Command::new("ip").args(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse::<u64>().unwrap_or(0)
    };
    wait_until("the load never filled the table", || count() >= LIMIT.parse().unwrap());
    child
}

#[test]
fn ctrl_c_takes_the_lab_down() {
    if !has_lab() {
        return;
    }
    let _alone = one_lab();
    let chokepoint = Chokepoint::new();
    let before = host();
    let child = under_load(&chokepoint);
    signal(&child, Signal::INT);
    let ended = ran(child.wait_with_output().unwrap());
    assert_eq!(ended.status, Some(130), "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!(host(), before);
}

#[test]
fn the_next_start_reports_what_a_kill_left_and_lab_down_removes_it() {
    if !has_lab() {
        return;
    }
    let _alone = one_lab();
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let before = host();
    let mut child = under_load(&chokepoint);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_ne!(namespaces(), before.1, "a kill cannot clean up");
    let next = chokepoint.run(&["diagnose", "-z", "1s", &server.url()]);
    assert!(next.stderr.contains("lab down conntrack-full"), "{}", next.stderr);
    assert_ne!(namespaces(), before.1, "a start changes nothing by itself");
    let down = chokepoint.run(&["lab", "down"]);
    assert_eq!(down.status, Some(0), "{}\n{}", down.stdout, down.stderr);
    assert_eq!(host(), before);
}

#[test]
fn after_a_kill_undo_restores_the_setting_of_the_lab() {
    if !has_lab() {
        return;
    }
    let _alone = one_lab();
    let chokepoint = Chokepoint::new();
    let before = host();
    let scenario = shortened(&chokepoint, "conntrack-full", 4);
    let mut child = chokepoint.command(&["lab", "run", &scenario]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the lab never came up", || table_max() == LIMIT);
    wait_until("no fix was applied", || table_max() != LIMIT);
    child.kill().unwrap();
    child.wait().unwrap();
    let list = chokepoint.run(&["undo", "--list"]);
    assert!(list.stdout.contains("raise-conntrack-max"), "{}", list.stdout);
    let undo = chokepoint.run(&["undo"]);
    assert_eq!(undo.status, Some(0), "{}\n{}", undo.stdout, undo.stderr);
    assert_eq!(table_max(), LIMIT, "the value that the lab had set is restored");
    assert_eq!(chokepoint.run(&["lab", "down"]).status, Some(0));
    assert_eq!(host(), before);
}
