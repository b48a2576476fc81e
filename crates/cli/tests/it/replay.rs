//! A replay is the same report, byte for byte: of a run just made, and of recordings that were frozen and must replay for ever.
//!
//! Deterministic: recordings and command lines; what takes a server is in its module `live`.

use std::os::unix::process::CommandExt;

use chokepoint_model::change::{Activation, Change, ServerSetting};
use chokepoint_model::observation::NetnsId;

use crate::harness::{self, Chokepoint, is_root, recordings, tests};

/// User and group "nobody".
const NOBODY: u32 = 65534;

fn data(name: &str) -> String {
    tests("data").join(name).display().to_string()
}

/// The expected text of a frozen recording. `CHOKEPOINT_BLESS=1` writes it anew: a change of words is then seen in review.
fn expected(name: &str, found: &str) -> String {
    if std::env::var_os("CHOKEPOINT_BLESS").is_some() {
        std::fs::write(data(name), found).unwrap();
    }
    std::fs::read_to_string(data(name)).unwrap()
}

#[test]
fn frozen_recordings_replay_for_ever() {
    let chokepoint = Chokepoint::new();
    let recordings = recordings("data");
    assert!(recordings.len() >= 2, "two recordings are frozen, found {recordings:?}");
    for name in recordings {
        let file = data(&format!("{name}.rec"));
        for (args, kind) in [(&["diagnose", "--replay", &file, "--json"] as &[&str], "json"), (&["diagnose", "--replay", &file], "txt")] {
            let ran = chokepoint.run(args);
            assert!(ran.status.is_some_and(|status| status <= 1), "{name}: {}", ran.stderr);
            assert_eq!(ran.stdout, expected(&format!("{name}.{kind}"), &ran.stdout), "{name}.{kind}");
        }
    }
}

#[test]
fn a_replay_needs_no_privilege() {
    if !is_root() {
        return;
    }
    // Nobody may not be able to reach the checkout: binary and recording are copied to where all may.
    let chokepoint = Chokepoint::new();
    let (binary, recording) = (chokepoint.copy_of_binary(), chokepoint.file("full.rec"));
    std::fs::copy(data("conntrack-table/conntrack-full.rec"), &recording).unwrap();
    let root = chokepoint.run(&["diagnose", "--replay", recording.to_str().unwrap(), "--json"]);
    let output = std::process::Command::new(&binary)
        .args(["diagnose", "--json", "--replay"])
        .arg(&recording)
        .uid(NOBODY)
        .gid(NOBODY)
        .current_dir("/")
        .env_clear()
        .output()
        .unwrap();
    let nobody = harness::ran(output);
    assert_eq!(nobody.stdout, root.stdout, "{}", nobody.stderr);
}

/// A validator for the report, or for one of its definitions.
fn schema(definition: Option<&str>) -> jsonschema::Validator {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/diagnosis-1.json")).unwrap();
    let mut schema: serde_json::Value = serde_json::from_str(&text).unwrap();
    if let Some(definition) = definition {
        schema = serde_json::json!({ "$defs": schema["$defs"], "$ref": format!("#/$defs/{definition}") });
    }
    jsonschema::validator_for(&schema).unwrap()
}

fn errors(schema: &jsonschema::Validator, value: &serde_json::Value) -> Vec<String> {
    schema.iter_errors(value).map(|error| error.to_string()).collect()
}

#[test]
fn every_recorded_report_fits_its_schema() {
    let chokepoint = Chokepoint::new();
    let ran = chokepoint.run(&["diagnose", "--replay", &data("conntrack-table/conntrack-full.rec"), "--json"]);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(errors(&schema(None), &report), Vec::<String>::new());
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
    let schema = schema(Some("change"));
    for change in &changes {
        // A new kind of change or setting does not compile before it is written here, and in the schema.
        match change {
            Change::Sysctl { .. } | Change::Cgroup { .. } => {}
            Change::Server { setting, .. } => match setting {
                ServerSetting::NginxListenBacklog { .. }
                | ServerSetting::NginxWorkerConnections
                | ServerSetting::NginxWorkerRlimitNofile
                | ServerSetting::NginxFastcgiReuse { .. }
                | ServerSetting::NginxErrorLogLevels { .. }
                | ServerSetting::NginxTlsSessionCache
                | ServerSetting::PhpFpmMaxChildren { .. }
                | ServerSetting::PhpFpmBacklog { .. } => {}
            },
        }
        assert_eq!(errors(&schema, &serde_json::to_value(change).unwrap()), Vec::<String>::new(), "{change:?}");
    }
}

mod live {
    use std::path::Path;

    use super::harness::{Chokepoint, Server};

    fn same(chokepoint: &Chokepoint, live: &str, file: &Path) {
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
            same(&chokepoint, &live.stdout, &file);
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
