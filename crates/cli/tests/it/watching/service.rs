//! The unit of systemd: what it may do beside its task, whether systemd knows its settings, and that each of its capabilities is accounted for in the documents.
//!
//! Deterministic: systemd reads files; none has to run.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use crate::harness::{Chokepoint, has_programs, repository};

/// The most that `systemd-analyze security` may find of the unit, tenths of its points.
const EXPOSURE_MAX: &str = "20";
/// What it may find with all files that add capabilities: docs/privileges.md says so.
const EXPOSURE_MAX_OF_ALL: &str = "27";
/// Files that add to the unit what some hosts need.
const ADDITIONS: [&str; 2] = ["containers.conf", "kernel.conf"];

fn unit() -> String {
    part("chokepoint-watch.service")
}

fn part(name: &str) -> String {
    std::fs::read_to_string(repository("packaging/systemd").join(name)).unwrap()
}

/// The values of a setting.
fn values<'a>(unit: &'a str, setting: &str) -> BTreeSet<&'a str> {
    unit.lines().filter_map(|line| line.strip_prefix(setting)?.strip_prefix('=')).flat_map(str::split_whitespace).collect()
}

fn analyze(args: &[&str], unit: &str) -> Output {
    let mut command = Command::new("systemd-analyze");
    command.args(args).arg(unit).env("SYSTEMD_COLORS", "0").env("SYSTEMD_PAGER", "cat").output().unwrap()
}

/// True for a systemd whose `security` reads files (250 and later); else prints that the test is skipped.
fn reads_files() -> bool {
    if !has_programs(&["systemd-analyze"]) {
        return false;
    }
    let help = Command::new("systemd-analyze").arg("--help").output().unwrap();
    let reads = String::from_utf8_lossy(&help.stdout).contains("--offline=");
    if !reads {
        println!("skipped: this systemd-analyze needs a running systemd");
    }
    reads
}

#[test]
fn the_unit_is_exposed_to_little() {
    if !reads_files() {
        return;
    }
    let chokepoint = Chokepoint::new();
    let file = chokepoint.write("chokepoint-watch.service", unit().as_bytes());
    let is_below = |most: &str| {
        let output = analyze(&["security", "--offline=true", "--no-pager", "--threshold", most], &file);
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(told.contains("Overall exposure level"), "{told}{}", String::from_utf8_lossy(&output.stderr));
        output.status.success()
    };
    assert!(is_below(EXPOSURE_MAX));
    let folder = chokepoint.file("chokepoint-watch.service.d");
    std::fs::create_dir(&folder).unwrap();
    ADDITIONS.iter().for_each(|name| std::fs::write(folder.join(name), part(name)).unwrap());
    assert!(!is_below(EXPOSURE_MAX) && is_below(EXPOSURE_MAX_OF_ALL), "they are read");
    assert!(std::fs::read_to_string(repository("docs/privileges.md")).unwrap().contains("finds 1.9 of 10"));
}

#[test]
fn systemd_knows_each_setting_of_the_unit() {
    if !reads_files() {
        return;
    }
    let chokepoint = Chokepoint::new();
    let installed = "/usr/bin/chokepoint";
    assert!(unit().contains(&format!("ExecStart={installed} watch ")));
    // What it starts must exist. A unit of the same name that is installed here would be read with it.
    let file = chokepoint.write("chokepoint-watch-test.service", unit().replace(installed, env!("CARGO_BIN_EXE_chokepoint")).as_bytes());
    let folder = chokepoint.file("chokepoint-watch-test.service.d");
    std::fs::create_dir(&folder).unwrap();
    ADDITIONS.iter().for_each(|name| std::fs::write(folder.join(name), part(name)).unwrap());
    let output = analyze(&["verify", "--man=no"], &file);
    let told = String::from_utf8_lossy(&output.stderr);
    // It tells of other units, too.
    let ours: Vec<&str> = told.lines().filter(|line| line.contains("chokepoint")).collect();
    assert!(ours.is_empty() && output.status.success(), "{told}");
}

#[test]
fn the_documents_say_what_each_capability_of_the_unit_is_for() {
    let document = std::fs::read_to_string(repository("docs/privileges.md")).unwrap();
    let section = document.split("\n## ").find(|section| section.starts_with("The service `chokepoint-watch`")).unwrap();
    let mut count = 0;
    for name in ["chokepoint-watch.service"].into_iter().chain(ADDITIONS) {
        let part = part(name);
        let bounding = values(&part, "CapabilityBoundingSet");
        assert_eq!(bounding, values(&part, "AmbientCapabilities"), "{name}");
        count += bounding.len();
        for capability in bounding {
            assert!(section.contains(&format!("| `{capability}` | `{name}` |")), "{name}: {capability}");
        }
    }
    assert_eq!(count, section.matches("| `CAP_").count(), "each is in one of them");
}

#[test]
fn the_command_of_the_unit_is_one_that_the_program_takes() {
    let (chokepoint, unit) = (Chokepoint::new(), unit());
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/chokepoint ")).unwrap();
    let (config, data) = (repository("packaging/systemd/watch.toml"), chokepoint.path("data"));
    let args: Vec<&str> = line
        .split(' ')
        .map(|word| match word {
            "/etc/chokepoint/watch.toml" => config.to_str().unwrap(),
            "${STATE_DIRECTORY}" => &data,
            word => word,
        })
        .chain(["--print-config"])
        .collect();
    let ran = chokepoint.run(&args);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{args:?}");
    assert!(ran.stdout.contains(&data) && !Path::new(&data).exists(), "{}", ran.stdout);
}
