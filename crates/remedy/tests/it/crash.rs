//! The process dies after each step of applying and of undoing. The next process notices it, and an undo restores every value.
//!
//! Deterministic: its own files and settings; it waits for nothing.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use chokepoint_remedy::{Filter, PendingState};

use crate::support::{Host, MAX, SOMAXCONN, change, purpose};

const STEP: &str = "CHOKEPOINT_TEST_CRASH_STEP";
const DIR: &str = "CHOKEPOINT_TEST_CRASH_DIR";

/// Counts steps and kills the process at the step in the environment.
fn die_at_step() -> impl FnMut() {
    let mut left: i64 = std::env::var(STEP).unwrap().parse().unwrap();
    move || {
        left -= 1;
        if left < 0 {
            // Like a power cut for the process: nothing runs afterwards.
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
    }
}

/// Runs this test in a new process that dies at the step.
fn run_child(test: &str, host: &Host, step: usize) -> ExitStatus {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("crash::{test}"), "--nocapture", "--test-threads=1"]);
    command.env(STEP, step.to_string()).env(DIR, &host.dir).output().unwrap().status
}

fn child_host() -> Option<Host> {
    std::env::var_os(DIR).map(|dir| Host::at(dir.into()))
}

fn assert_original(host: &Host) {
    assert_eq!((host.get(MAX).as_str(), host.get(SOMAXCONN).as_str()), ("200", "128"));
}

#[test]
fn undo_restores_everything_after_a_death_while_applying() {
    if let Some(host) = child_host() {
        let mut die = die_at_step();
        let changes = [change(MAX, "200", "300"), change(SOMAXCONN, "128", "4096")];
        host.store().lock().unwrap().apply(&changes, &purpose("diagnose"), &mut |_| die()).unwrap();
        return;
    }
    // Read, journalled, two changes written and verified, applied; then one run that survives.
    for step in 0..=7 {
        let host = Host::new();
        let status = run_child("undo_restores_everything_after_a_death_while_applying", &host, step);
        assert_eq!(status.signal(), (step < 7).then_some(9), "step {step}");
        let store = host.store();
        let states: Vec<_> = store.pending().unwrap().iter().map(|pending| pending.state).collect();
        let expected: &[PendingState] = match step {
            0 => &[],
            1..=5 => &[PendingState::Unfinished],
            _ => &[PendingState::Applied],
        };
        assert_eq!(states, expected, "step {step}");
        let written = (host.get(MAX), host.get(SOMAXCONN));
        let expected = (if step >= 2 { "300" } else { "200" }, if step >= 4 { "4096" } else { "128" });
        assert_eq!((&*written.0, &*written.1), expected, "step {step}: looking changed nothing");

        let report = store.lock().unwrap().undo(&Filter::All);
        assert!(report.is_clean() && report.gone.is_empty(), "step {step}: {report:?}");
        assert_eq!(report.restored.len(), if step == 0 { 0 } else { 2 }, "step {step}");
        assert_original(&host);
        assert_eq!(store.pending().unwrap(), [], "step {step}");
    }
}

#[test]
fn a_run_that_ended_leaves_its_changes_to_the_next_undo() {
    if let Some(host) = child_host() {
        let mut guard = host.store().lock().unwrap();
        guard.apply(&[change(MAX, "200", "300"), change(SOMAXCONN, "128", "4096")], &purpose("diagnose"), &mut |_| {}).unwrap();
        guard.apply(&[change(MAX, "300", "400")], &purpose("diagnose"), &mut |_| {}).unwrap();
        return;
    }
    let host = Host::new();
    assert!(run_child("a_run_that_ended_leaves_its_changes_to_the_next_undo", &host, 0).success());
    let pending = host.store().pending().unwrap();
    assert_eq!(pending.iter().map(|set| (set.changes.len(), set.alive)).collect::<Vec<_>>(), [(2, false), (1, false)]);
    assert!(host.store().lock().unwrap().undo(&Filter::All).is_clean());
    assert_original(&host);
}

#[test]
fn the_next_undo_completes_one_that_died() {
    if let Some(host) = child_host() {
        let mut die = die_at_step();
        host.store().lock().unwrap().undo_watched(&Filter::All, &mut |_| die());
        return;
    }
    // Three changes, two of one setting; each is restored and closed; then one run that survives.
    for step in 0..=6 {
        let host = Host::new();
        assert!(run_child("a_run_that_ended_leaves_its_changes_to_the_next_undo", &host, 0).success());
        let status = run_child("the_next_undo_completes_one_that_died", &host, step);
        assert_eq!(status.signal(), (step < 6).then_some(9), "step {step}");

        let report = host.store().lock().unwrap().undo(&Filter::All);
        assert!(report.is_clean(), "step {step}: {report:?}");
        assert_original(&host);
        assert_eq!(host.store().pending().unwrap(), [], "step {step}");
    }
}
