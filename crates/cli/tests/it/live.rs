//! The whole thing live, as root, in network namespaces: found, fixed, proven, undone; and whatever interrupts it leaves nothing behind.
//!
//! These tests set host-only settings and so run one after the other.
//!
//! Live: servers, namespaces and load.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Chokepoint, Server, is_root, ran};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True where the lab can run here; else tells that the test is skipped.
fn has_lab() -> bool {
    let table = Path::new("/proc/sys/net/netfilter/nf_conntrack_max");
    if !is_root() {
        return false;
    }
    let there = |name: &str| ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].iter().any(|dir| Path::new(dir).join(name).exists());
    for program in ["nginx", "nft", "ip"] {
        if !there(program) {
            println!("skipped: {program} is not installed");
            return false;
        }
    }
    if !table.exists() {
        println!("skipped: this kernel has no conntrack");
        return false;
    }
    true
}

fn table_max() -> String {
    std::fs::read_to_string("/proc/sys/net/netfilter/nf_conntrack_max").unwrap()
}

/// The namespaces of labs. What somebody else left on this host is there before a test and after it.
fn namespaces() -> BTreeSet<String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|name| name.starts_with("cp-")).collect()
}

/// What a test must leave as it found it.
fn host() -> (String, BTreeSet<String>) {
    (table_max(), namespaces())
}

/// A scenario shortened to `seconds`, under a name of its own.
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
    let _alone = alone();
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
    assert!(run.stdout.contains("CHOKE POINT") && run.stdout.contains("verified undone"), "{}", run.stdout);
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
fn twins_and_healthy_servers_have_no_cause() {
    if !has_lab() {
        return;
    }
    let _alone = alone();
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

/// A `lab run` in the middle of its load.
fn under_load(chokepoint: &Chokepoint) -> Child {
    let scenario = shortened(chokepoint, "conntrack-full", 30);
    let before = namespaces();
    let child = chokepoint.command(&["lab", "run", &scenario]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while table_max().trim() != "200" || !namespaces().difference(&before).any(|name| name.ends_with("-server")) {
        assert!(begin.elapsed() < Duration::from_secs(60), "the lab never came up");
        std::thread::sleep(Duration::from_millis(20));
    }
    // The load fills the table, and nothing else does.
    while tracked(&before) < 100 {
        assert!(begin.elapsed() < Duration::from_secs(60), "the load never began");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

/// Connections that the new lab's server tracks.
fn tracked(before: &BTreeSet<String>) -> u32 {
    let Some(server) = namespaces().difference(before).find(|name| name.ends_with("-server")).cloned() else { return 0 };
    let count = ["netns", "exec", &server, "cat", "/proc/sys/net/netfilter/nf_conntrack_count"];
    let output = Command::new("ip").args(count).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(0)
}

#[test]
fn ctrl_c_takes_the_lab_down() {
    if !has_lab() {
        return;
    }
    let _alone = alone();
    let chokepoint = Chokepoint::new();
    let before = host();
    let child = under_load(&chokepoint);
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ended = ran(child.wait_with_output().unwrap());
    assert_eq!(ended.status, Some(130), "{}\n{}", ended.stdout, ended.stderr);
    assert_eq!(host(), before);
}

#[test]
fn what_a_kill_leaves_is_told_by_the_next_start_and_taken_down() {
    if !has_lab() {
        return;
    }
    let _alone = alone();
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
fn a_kill_after_the_fix_is_undone_before_the_lab() {
    if !has_lab() {
        return;
    }
    let _alone = alone();
    let chokepoint = Chokepoint::new();
    let before = host();
    let scenario = shortened(&chokepoint, "conntrack-full", 4);
    let mut child = chokepoint.command(&["lab", "run", &scenario]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    let mut was_full = false;
    loop {
        let now = table_max();
        was_full |= now.trim() == "200";
        if was_full && now.trim() != "200" {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "no fix was applied");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let list = chokepoint.run(&["undo", "--list"]);
    assert!(list.stdout.contains("raise-conntrack-max"), "{}", list.stdout);
    let undo = chokepoint.run(&["undo"]);
    assert_eq!(undo.status, Some(0), "{}\n{}", undo.stdout, undo.stderr);
    assert_eq!(table_max().trim(), "200", "the fix is taken back to what the lab had set");
    assert_eq!(chokepoint.run(&["lab", "down"]).status, Some(0));
    assert_eq!(host(), before);
}
