//! Processes of this host. PID and start time together are unique.

use std::collections::BTreeSet;
use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// Most processes inspected: the kernel's bound on pids (pid_max, proc_sys_kernel(5)).
const PROCESSES_MAX: usize = 1 << 22;

/// Start time of a process, clock ticks since boot. Nothing where it does not exist or is hidden (hidepid, proc(5)).
pub(crate) fn start_ticks(pid: u32) -> Option<u64> {
    stat(pid).map(|(_, start_ticks)| start_ticks)
}

/// True while the process with this PID that started then runs. One that is hidden (hidepid, proc(5)) runs if the kernel would refuse a signal to it (kill(2)).
pub(crate) fn runs(pid: u32, since_ticks: u64) -> bool {
    match read_stat(pid) {
        // One that has ended keeps its entry until its parent asks for it, which may be never.
        Some(text) => parse_stat(&text).is_some_and(|(_, start_ticks)| start_ticks == since_ticks) && !is_ended(&text),
        None => {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::PERM))
        }
    }
}

/// True for this very process.
pub(crate) fn is_own(pid: u32, since_ticks: u64) -> bool {
    pid == std::process::id() && start_ticks(pid).is_none_or(|start_ticks| start_ticks == since_ticks)
}

/// All processes.
pub(crate) fn processes() -> impl Iterator<Item = u32> {
    numbers("/proc")
}

/// A process, its children, their children and so on, as far as they can be seen.
pub fn family(pid: u32) -> BTreeSet<u32> {
    let parents: Vec<(u32, u32)> = processes().filter_map(|pid| Some((pid, stat(pid)?.0))).collect();
    let mut family = BTreeSet::from([pid]);
    loop {
        let before = family.len();
        let children: Vec<u32> = parents.iter().filter(|(_, parent)| family.contains(parent)).map(|(pid, _)| *pid).collect();
        family.extend(children);
        if family.len() == before {
            return family;
        }
    }
}

/// The threads of a process; none if it has ended.
pub(crate) fn threads(pid: u32) -> impl Iterator<Item = u32> {
    numbers(&format!("/proc/{pid}/task"))
}

/// Parent and start time (proc_pid_stat(5), fields 4 and 22).
pub(crate) fn stat(pid: u32) -> Option<(u32, u64)> {
    parse_stat(&read_stat(pid)?)
}

fn read_stat(pid: u32) -> Option<String> {
    chokepoint_foreign::read_kernel(format!("/proc/{pid}/stat"), 1 << 12).ok()
}

fn numbers(directory: &str) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(directory).into_iter().flatten().take(PROCESSES_MAX).flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parse_stat(text: &str) -> Option<(u32, u64)> {
    // The command's name may contain brackets and blanks.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    Some((parent, fields.nth(17)?.parse().ok()?))
}

/// True if none of its threads runs any more (proc_pid_stat(5), fields 3 and 20). A main thread that ended before the others is a zombie too, but its process goes on.
fn is_ended(text: &str) -> bool {
    let Some((_, tail)) = text.rsplit_once(')') else { return false };
    let mut fields = tail.split_whitespace();
    let is_over = fields.next().is_some_and(|state| ["Z", "X", "x"].contains(&state));
    is_over && fields.nth(16).and_then(|threads| threads.parse::<u32>().ok()).is_none_or(|threads| threads <= 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_nobody_asked_for_has_ended() {
        let text = |state: &str, threads: u32| format!("7 (a) b) {state} 3 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 {threads} 0 4242 1 2");
        assert!(is_ended(&text("Z", 1)) && is_ended(&text("X", 0)));
        assert!(!is_ended(&text("Z", 3)) && !is_ended(&text("S", 1)) && !is_ended(""));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let since = start_ticks(child.id()).unwrap();
        assert!(runs(child.id(), since) && !runs(child.id(), since + 1));
        child.kill().unwrap();
        let begin = std::time::Instant::now();
        while runs(child.id(), since) {
            assert!(begin.elapsed().as_secs() < 30, "a process that was killed runs");
        }
        assert!(start_ticks(child.id()).is_some(), "its entry is still there");
        child.wait().unwrap();
    }

    #[test]
    fn a_stat_line_is_parsed_for_any_process_name() {
        let text = "7 (a) b) S 3 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 1 2";
        assert_eq!(parse_stat(text), Some((3, 4242)));
        for at in 0..text.len() {
            let _ = parse_stat(&text[..at]);
        }
    }

    #[test]
    fn a_family_has_the_children_and_a_process_its_threads() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (own, family) = (std::process::id(), family(std::process::id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(family.contains(&own) && family.contains(&child.id()) && !family.contains(&1));
        assert!(threads(own).any(|thread| thread == own));
        assert_eq!((start_ticks(child.id()), threads(u32::MAX).count()), (None, 0));
    }
}
