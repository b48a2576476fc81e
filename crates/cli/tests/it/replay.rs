//! A replay prints the same report, byte for byte, for a new run and for frozen recordings of every version.
//!
//! Deterministic: recordings and command lines; tests with a server are in its module `live`.

mod figures;
mod improvements;
mod misses;
mod schemas;
mod unread;

use std::collections::BTreeSet;

use chokepoint_model::change::{Activation, Change, ServerKind, ServerSetting};
use chokepoint_model::observation::NetnsId;
use serde_json::Value;

use crate::harness::{self, Chokepoint, all_recordings, errors, fits, is_root, recordings, remedies_of, repository};

fn data(name: &str) -> String {
    repository("tests/data").join(name).to_str().unwrap().to_owned()
}

/// The stored report of a frozen recording. `CHOKEPOINT_BLESS=1` rewrites it, so that a review shows the difference.
fn expected(name: &str, found: &str) -> String {
    if std::env::var_os("CHOKEPOINT_BLESS").is_some() {
        std::fs::write(data(name), found).unwrap();
    }
    std::fs::read_to_string(data(name)).unwrap()
}

#[test]
fn frozen_recordings_give_their_stored_reports() {
    let chokepoint = Chokepoint::new();
    let recordings = recordings("data");
    assert!(recordings.len() >= 2, "two recordings are frozen, found {recordings:?}");
    for name in recordings {
        let file = data(&format!("{name}.rec"));
        for (args, kind) in
            [(&["diagnose", "--replay", &file, "--json"] as &[&str], "json"), (&["diagnose", "--verbose", "--replay", &file], "txt")]
        {
            let ran = chokepoint.run(args);
            assert!(ran.status.is_some_and(|status| status <= 1), "{name}: {}", ran.stderr);
            assert_eq!(ran.stdout, expected(&format!("{name}.{kind}"), &ran.stdout), "{name}.{kind}");
        }
    }
}

/// The lines of the short report from the title of the cause to the first proof.
fn explanation(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().skip_while(|line| !line.starts_with("cause"));
    lines.take_while(|line| !["  • ", "  also ", "  fix "].iter().any(|begin| line.starts_with(begin)) && !line.is_empty())
}

/// The default report fits one screen of 80 columns, whatever the recording, and leaves no explanation unfinished.
#[test]
fn every_short_report_fits_one_screen() {
    let chokepoint = Chokepoint::new();
    let mut wrong: Vec<String> = Vec::new();
    for folder in ["data", "misses", "improvements", "left-out"] {
        for name in recordings(folder) {
            let file = repository(&format!("tests/{folder}/{name}.rec"));
            let ran = chokepoint.command(&["diagnose", "--replay", file.to_str().unwrap()]).env("COLUMNS", "80").output().unwrap();
            let text = String::from_utf8(ran.stdout).unwrap();
            let most = if text.contains("\nchanges") { 45 } else { 25 };
            let (lines, widest) = (text.lines().count(), text.lines().map(|line| line.chars().count()).max().unwrap_or(0));
            let is_cut = explanation(&text).any(|line| line.contains('…'));
            if lines == 0 || lines > most || widest > 80 || is_cut {
                wrong.push(format!("{name}: {lines} lines, {widest} columns:\n{text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_replay_needs_no_privilege() {
    if !is_root() {
        return;
    }
    // The user nobody may have no access to the checkout, so the recording is copied.
    let chokepoint = Chokepoint::new();
    let recording = chokepoint.path("full.rec");
    std::fs::copy(data("conntrack-table/conntrack-full.rec"), &recording).unwrap();
    let args = ["diagnose", "--json", "--replay", &recording];
    let root = chokepoint.run(&args);
    let nobody = chokepoint.run_as_nobody(&args, &chokepoint.path("state"));
    assert_eq!(nobody.stdout, root.stdout, "{}", nobody.stderr);
}

#[test]
fn every_recorded_report_fits_its_schema() {
    let ran = Chokepoint::new().run(&["diagnose", "--replay", &data("conntrack-table/conntrack-full.rec"), "--json"]);
    fits(&ran.stdout, "diagnosis-1.json");
}

/// A remedy that prints the same for its undo would leave the reader with one of the two. A server's edit without its text is words, and still differs.
#[test]
fn no_remedy_is_taken_back_by_the_steps_that_make_it() {
    let chokepoint = Chokepoint::new();
    let mut seen = BTreeSet::new();
    for file in all_recordings() {
        for remedy in remedies_of(&chokepoint, &file) {
            let id = remedy["id"].as_str().unwrap();
            let steps = |which: &str| remedy[which].as_array().unwrap();
            for which in ["runtime", "persistent"] {
                assert!(steps(which).is_empty() || steps(which) != steps("undo"), "{file}: {id}: {which}");
                // Words alone and the command of a reload may stand in both; what changes something must not.
                let changes =
                    |step: &&Value| step["command"].as_str().is_some_and(|command| !is_reload(command)) || step["lines"].is_string();
                let both: Vec<&Value> = steps(which).iter().filter(changes).filter(|step| steps("undo").contains(step)).collect();
                assert!(both.is_empty(), "{file}: {id}: {both:#?}");
            }
            let is_applied = !remedy["change"].as_array().unwrap().is_empty();
            assert!(!is_applied || (!steps("runtime").is_empty() && !steps("undo").is_empty()), "{file}: {id} has no steps");
            seen.insert(id.to_owned());
        }
    }
    assert!(seen.contains("raise-accept-backlog") && seen.contains("raise-conntrack-max"), "{seen:?}");
}

/// True for the test of a configuration, for what puts it in force, and for the wait until it is.
fn is_reload(command: &str) -> bool {
    [" -t ", " -c -f ", "kill -", "systemctl reload ", "systemctl restart ", "worker process is shutting down"]
        .iter()
        .any(|part| command.contains(part))
}

#[test]
fn every_change_fits_the_schema() {
    let named = |name: &str| name.to_owned();
    let settings = [
        ServerSetting::NginxListenBacklog { address: named("[::]:80") },
        ServerSetting::NginxWorkerConnections,
        ServerSetting::NginxWorkerRlimitNofile,
        ServerSetting::NginxFastcgiReuse { pass: named("php") },
        ServerSetting::NginxErrorLogLevels { to: named("/var/log/nginx/error.log") },
        ServerSetting::NginxTlsSessionCache,
        ServerSetting::PhpFpmMaxChildren { pool: named("www") },
        ServerSetting::PhpFpmBacklog { pool: named("www") },
        ServerSetting::PhpFpmSecondPool { pool: named("www") },
        ServerSetting::PhpFpmListen { pool: named("www") },
        ServerSetting::NginxFastcgiAddress { address: named("127.0.0.1:9000"), socket: named("unix:/run/www.sock") },
        ServerSetting::Limit {
            server: ServerKind::Haproxy,
            section: named("backend app"),
            line: named("server a"),
            limit: named("maxconn"),
        },
    ];
    let of_server = |setting: &ServerSetting| Change::Server {
        server: setting.server(),
        pid: 7,
        start_ticks: 1,
        file: named("/etc/x.conf"),
        setting: setting.clone(),
        from: named("5"),
        to: named("20"),
        activation: Activation::Reload,
    };
    let (key, netns_name, from, to) = (named("net.core.somaxconn"), named("host"), named("1"), named("2"));
    let mut changes = vec![
        Change::Sysctl { key, netns: NetnsId(1), netns_name, from: from.clone(), to: to.clone() },
        Change::Cgroup { dir: named("/sys/fs/cgroup/a"), file: named("cpu.max"), from, to },
    ];
    changes.extend(settings.iter().map(of_server));
    let schema: serde_json::Value = serde_json::from_slice(&std::fs::read(repository("docs/schema/diagnosis-1.json")).unwrap()).unwrap();
    let schema = serde_json::json!({ "$defs": schema["$defs"], "$ref": "#/$defs/change" });
    for change in &changes {
        // A new kind of change or setting does not compile until it is listed here, and then the schema is checked for it.
        match change {
            // A plan's own changes are in no report.
            Change::Sysctl { .. } | Change::Cgroup { .. } | Change::Affinity { .. } => {}
            Change::Server { setting, .. } => match setting {
                ServerSetting::NginxListenBacklog { .. }
                | ServerSetting::NginxWorkerConnections
                | ServerSetting::NginxWorkerRlimitNofile
                | ServerSetting::NginxFastcgiReuse { .. }
                | ServerSetting::NginxErrorLogLevels { .. }
                | ServerSetting::NginxTlsSessionCache
                | ServerSetting::PhpFpmMaxChildren { .. }
                | ServerSetting::PhpFpmBacklog { .. }
                | ServerSetting::PhpFpmSecondPool { .. }
                | ServerSetting::PhpFpmListen { .. }
                | ServerSetting::NginxFastcgiAddress { .. }
                | ServerSetting::Limit { .. }
                | ServerSetting::Text { .. } => {}
            },
        }
        assert_eq!(errors(&schema, &serde_json::to_value(change).unwrap()), Vec::<String>::new(), "{change:?}");
    }
}

mod live {
    use std::path::Path;

    use super::harness::{Chokepoint, Server};

    fn assert_replays(chokepoint: &Chokepoint, live: &str, file: &Path) {
        let replay = chokepoint.run(&["diagnose", "--replay", file.to_str().unwrap(), "--json"]);
        assert_eq!(replay.stdout, live, "{}", replay.stderr);
    }

    #[test]
    fn a_run_and_its_replay_are_the_same_bytes() {
        let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
        let file = chokepoint.file("run.rec");
        let name = file.to_str().unwrap();
        for args in [&["-c", "2"] as &[&str], &["-q", "50"], &["-n", "20", "--disable-keepalive"], &[]] {
            let url = server.url();
            let mut all = vec!["diagnose", "--json", "-z", "1s", "--record", name];
            all.extend(args);
            all.push(&url);
            let live = chokepoint.run(&all);
            assert!(live.status.is_some_and(|status| status <= 1), "{}", live.stderr);
            assert_replays(&chokepoint, &live.stdout, &file);
        }
    }

    #[test]
    fn a_wrong_answer_is_unknown_and_asks_for_the_right_url() {
        let (chokepoint, server) = (Chokepoint::new(), Server::start("404 Not Found"));
        let ran = chokepoint.run(&["diagnose", "-c", "2", "-z", "1s", &server.url()]);
        assert_eq!(ran.status, Some(1), "{}", ran.stderr);
        assert!(ran.stdout.contains("404") && ran.stdout.contains("right URL"), "{}", ran.stdout);
    }
}
