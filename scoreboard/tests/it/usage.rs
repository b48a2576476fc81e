//! The command line, and drawn stacks written as scenario files.
//!
//! Deterministic: it runs the binary without servers or load.

use std::process::{Command, Output};

fn scoreboard(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scoreboard")).args(args).output().unwrap()
}

#[test]
fn a_wrong_command_line_ends_with_two_and_names_the_flag() {
    for (args, reason) in [
        (vec!["run"], "--random"),
        (vec!["run", "--random", "0"], "--random"),
        (vec!["run", "--random", "1", "--duration", "0"], "--duration"),
        (vec!["run", "conntrack-full", "--random", "3"], "conntrack-full"),
        (vec!["score"], "FILE"),
    ] {
        let output = scoreboard(&args);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{args:?}: {stderr}");
        assert!(stderr.contains(reason), "{args:?}: {stderr}");
    }
}

#[test]
fn drawn_stacks_are_written_as_scenarios() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let output = scoreboard(&["write", "--random", "2", "--seed", "7", "--index", "3", path]);
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(directory.path().join("draw-004.toml")).unwrap();
    assert!(text.contains("name = \"random-7-4\""), "{text}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
}
