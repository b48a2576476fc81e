//! Steps for programs whose configuration is not known: their limits, and a look inside.
//!
//! Live beside others: processes and the clock; nothing is measured.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use chokepoint_model::observation::Limits;
use chokepoint_model::series::Series;
use serde_json::Value;

use super::recorded::{Recorded, only};
use super::{Shell, commands};
use crate::harness::{Running, has_programs, is_root};

/// A hard limit of open files.
const HARD: u64 = 4_096;

/// The number after each of these words in the commands.
fn pids(commands: &[String]) -> Vec<u32> {
    commands.iter().filter_map(|command| command.split("--pid ").nth(1)?.split(' ').next()?.parse().ok()).collect()
}

/// Soft and hard limit of the open files of a process.
fn open_files(pid: u32) -> String {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    line.split_whitespace().take(2).collect::<Vec<_>>().join(":")
}

/// The remedy with these processes in place of the recorded ones.
fn of_processes(remedy: &Value, processes: &BTreeMap<u32, Running>) -> Value {
    let told = |text: String, (pid, process): (&u32, &Running)| text.replace(&format!("--pid {pid}"), &format!("--pid {}", process.0.id()));
    serde_json::from_str(&processes.iter().fold(remedy.to_string(), told)).unwrap()
}

#[test]
fn the_steps_for_the_open_files_of_a_program_change_its_limits() {
    if !is_root() || !has_programs(&["prlimit"]) {
        return;
    }
    // Without its configuration, nginx is a program like any other.
    let mut recorded = Recorded::of("left-out/files-few");
    let master = recorded.master("nginx.conf");
    recorded.observation.servers.get_mut(&master).unwrap().config = Series::default();
    for process in recorded.observation.processes.values_mut() {
        // As systemd starts services. To raise the hard limit takes CAP_SYS_RESOURCE, which root in a container may lack.
        let limits = process.limits.last().map(|limits| Limits { open_files_hard: Some(HARD), ..limits.clone() });
        process.limits = limits.map(only).unwrap_or_default();
    }
    let remedy = recorded.remedy("raise-nofile-by-hand");
    let undo = commands(&remedy, "undo");
    let processes: BTreeMap<u32, Running> = pids(&undo)
        .into_iter()
        .map(|pid| {
            let before = undo.iter().find(|command| command.contains(&format!("--pid {pid} "))).unwrap();
            let limits = before.split("--nofile=").nth(1).unwrap();
            (pid, Running::start(Command::new("prlimit").args([&format!("--nofile={limits}"), "sleep", "1000"])).unwrap())
        })
        .collect();
    let in_force = || processes.values().map(|process| open_files(process.0.id())).collect::<Vec<_>>();
    let is_asleep =
        |process: &Running| std::fs::read_to_string(format!("/proc/{}/comm", process.0.id())).is_ok_and(|name| name == "sleep\n");
    crate::harness::wait_until("prlimit(1) has set the limits", || processes.values().all(is_asleep));
    let (before, remedy) = (in_force(), of_processes(&remedy, &processes));
    assert!(!before.is_empty(), "{remedy:#}");
    Shell::of_host().carry_out(&remedy, "runtime");
    assert!(in_force().iter().zip(&before).all(|(now, before)| now != before), "{remedy:#}");
    Shell::of_host().carry_out(&remedy, "undo");
    assert_eq!(in_force(), before, "{remedy:#}");
}

#[test]
fn the_steps_that_look_inside_a_program_are_accepted() {
    let can_trace = std::fs::read_to_string("/proc/filesystems").is_ok_and(|systems| systems.contains("tracefs"));
    if !is_root() || !can_trace {
        println!("skipped: needs root and a kernel with tracepoints");
        return;
    }
    let remedy = Recorded::of("left-out/rate-limit-delay").remedy("look-inside");
    let process = || Running::start(Command::new("sleep").arg("1000")).unwrap();
    let pids = pids(&commands(&remedy, "runtime"));
    let processes = pids.into_iter().map(|pid| (pid, process())).collect();
    let here = of_processes(&remedy, &processes);
    let programs = Path::new(env!("CARGO_BIN_EXE_chokepoint")).parent().map(Path::to_owned);
    Shell { before: Vec::new(), programs }.carry_out(&here, "runtime");
}
