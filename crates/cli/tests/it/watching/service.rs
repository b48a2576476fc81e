//! The unit of systemd: what it may do beside its task, whether systemd knows its settings, and that each of its capabilities is accounted for in the documents.
//!
//! Deterministic: systemd reads files; none has to run.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use crate::harness::{Chokepoint, has_programs, repository};

/// The most that `systemd-analyze security` may find, tenths of its points. It calls less than 50 "OK" and less than 25 "SAFE", which no unit with these capabilities
/// reaches.
const EXPOSURE_MAX: &str = "29";

fn unit() -> String {
    std::fs::read_to_string(repository("packaging/systemd/chokepoint-watch.service")).unwrap()
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
    let path = repository("packaging/systemd/chokepoint-watch.service");
    let output = analyze(&["security", "--offline=true", "--no-pager", "--threshold", EXPOSURE_MAX], path.to_str().unwrap());
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("Overall exposure level"), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}");
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
    let output = analyze(&["verify", "--man=no"], &file);
    let told = String::from_utf8_lossy(&output.stderr);
    // It tells of other units, too.
    let ours: Vec<&str> = told.lines().filter(|line| line.contains("chokepoint")).collect();
    assert!(ours.is_empty() && output.status.success(), "{told}");
}

#[test]
fn the_documents_say_what_each_capability_of_the_unit_is_for() {
    let unit = unit();
    let bounding = values(&unit, "CapabilityBoundingSet");
    assert_eq!(bounding, values(&unit, "AmbientCapabilities"));
    assert!(bounding.len() >= 6, "{bounding:?}");
    let document = std::fs::read_to_string(repository("docs/privileges.md")).unwrap();
    let section = document.split("\n## ").find(|section| section.starts_with("The service `chokepoint-watch`")).unwrap();
    for capability in bounding {
        assert!(section.contains(&format!("| `{capability}` |")), "{capability}");
    }
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
