//! A drawn stack from end to end, as root, in network namespaces.
//!
//! Live beside others: the draw is only run to its end; its verdict is not judged.

use std::collections::BTreeSet;
use std::process::Command;

use chokepoint_lab::{Scenario, preflight};
use serde_json::Value;

/// The network namespaces of the draw's labs. Other tests build labs too.
fn namespaces() -> BTreeSet<String> {
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).filter(|name| name.starts_with("cp-random-1-1")).collect()
}

#[test]
fn a_drawn_stack_is_measured_diagnosed_kept_and_taken_down() {
    for like in ["conntrack-full", "healthy-php"] {
        if let Err(missing) = preflight(&Scenario::find(like).unwrap()) {
            println!("skipped: {}", missing[0]);
            return;
        }
    }
    let before = namespaces();
    let directory = tempfile::tempdir().unwrap();
    // Another user's servers must reach the files of the lab.
    std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let keep = directory.path().join("draws");
    // The verdict may be wrong: the score counts that.
    let output = Command::new(env!("CARGO_BIN_EXE_scoreboard"))
        .args(["run", "--random", "1", "--seed", "1", "--index", "1", "--duration", "3", "--json", "--keep"])
        .arg(&keep)
        .env("CHOKEPOINT_STATE_DIR", directory.path().join("state"))
        .env("CHOKEPOINT_RUN_DIR", directory.path().join("run"))
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(matches!(output.status.code(), Some(0 | 1)), "{stdout}\n{stderr}");
    let lines: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [draw, total] = lines.as_slice() else { panic!("{stdout}\n{stderr}") };
    assert_eq!((&draw["seed"], &draw["index"], &total["draws"], &total["errors"]), (&1.into(), &1.into(), &1.into(), &0.into()), "{draw}");
    assert_eq!(total["wrong"].as_array().unwrap().is_empty(), draw["right"] == Value::Bool(true), "{total}");
    let runs = draw["proof"]["together"]["with"].as_array().map_or(0, Vec::len);
    assert!(if draw["faults"].as_array().unwrap().is_empty() { runs == 0 } else { runs >= 2 }, "{draw}");
    let scenario = std::fs::read_to_string(keep.join("random-1-1.toml")).unwrap();
    assert!(scenario.contains("name = \"random-1-1\"") && scenario.contains("duration = \"3s\""), "{scenario}");
    assert_eq!(namespaces(), before);
}
