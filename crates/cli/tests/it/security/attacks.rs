//! Attacks by another user of the host: what must hold, holds. One test for each kind, so that they run side by side.
//!
//! Live: the attacks bound how long the program may take beside them, and each other would be one more; files, processes, connections and bounds are checked.

use chokepoint_lab::attack::KINDS;
use serde_json::Value;

use crate::harness::Chokepoint;

/// Carries out the attacks of a kind.
fn hold(kind: &str) {
    let chokepoint = Chokepoint::new();
    let ran = chokepoint.run(&["lab", "attack", kind, "--json"]);
    let trials: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!trials.is_empty(), "{}", ran.stderr);
    let mut broken = Vec::new();
    for trial in &trials {
        let why = trial["why"].as_array().unwrap().iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n");
        match trial["outcome"].as_str() {
            Some("held") => {}
            Some("skipped") => println!("skipped: {why}"),
            _ => broken.push(format!("{}: {why}", trial["attack"])),
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
}

macro_rules! kinds {
    ($($test:ident $kind:literal)*) => {
        const TESTED: &[&str] = &[$($kind),*];
        $(#[test] fn $test() { hold($kind); })*
    };
}

kinds! {
    look_alikes_hold "look-alikes"
    configuration_holds "configuration"
    status_holds "status"
    page_holds "page"
    recorder_holds "recorder"
    processes_hold "processes"
    peers_hold "peers"
    files_hold "files"
}

#[test]
fn every_kind_of_attack_is_tested() {
    assert_eq!(KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>(), TESTED);
}

#[test]
fn the_list_names_every_attack_and_a_wrong_name_is_answered() {
    let chokepoint = Chokepoint::new();
    let list = chokepoint.run(&["lab", "attack"]);
    let attacks: Value = serde_json::from_str(&chokepoint.run(&["lab", "attack", "--json"]).stdout).unwrap();
    let attacks = attacks["attacks"].as_array().unwrap();
    assert!(attacks.len() >= 30, "{}", attacks.len());
    for attack in attacks {
        assert!(list.stdout.contains(attack["name"].as_str().unwrap()), "{attack}: {}", list.stdout);
    }
    let wrong = chokepoint.run(&["lab", "attack", "nginx-lookalike"]);
    assert_eq!(wrong.status, Some(1));
    assert!(wrong.stderr.contains("nginx-look-alike"), "{}", wrong.stderr);
    assert_eq!(chokepoint.run(&["lab", "attack", "--all", "page"]).status, Some(2));
}

/// An attack that does what must not be: each way to fail is reported.
#[test]
fn a_hole_is_reported() {
    let chokepoint = Chokepoint::new();
    let file = chokepoint.write("hole.toml", include_bytes!("../../data/hole.toml"));
    let ran = chokepoint.run(&["lab", "attack", &file, "--program", "/bin/cat", "--json"]);
    let trial: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stderr));
    if trial["outcome"] == "skipped" {
        return println!("skipped: {}", trial["why"]);
    }
    let why = trial["why"].to_string();
    assert_eq!((ran.status, &trial["outcome"]), (Some(1), &Value::from("broken")), "{trial}");
    for word in [
        "was read",
        "was changed",
        "was executed",
        "exit status is 1",
        "steers a terminal",
        "does not say",
        "did not end within 1.0 s",
        "more than 1",
    ] {
        assert!(why.contains(word), "{word}: {why}");
    }
}
