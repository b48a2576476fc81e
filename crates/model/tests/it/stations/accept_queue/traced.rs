//! Finding `processes-traced`: a tracer stops the threads that serve, and requests wait.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{Observation, RequestSocket, ThreadState, Tracing};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Role, Verdict};

use super::accepts::{both, queued, says, states};
use super::members::{always, connection, prefork};
use crate::stage::pool::process;
use crate::stage::*;

/// strace (pid 9) traces a process. Its only serving thread has this state in each of 44 looks; others of its threads sleep.
fn trace(obs: &mut Observation, pid: u32, state: impl Fn(u64) -> char) {
    let series = &mut obs.processes.get_mut(&pid).unwrap().tracing;
    for look in 0..44 {
        let helper = |id: u32| ThreadState { id, state: 'S' };
        let threads = [ThreadState { id: pid, state: state(look) }, helper(1_000 + pid), helper(2_000 + pid)];
        let tracing = Tracing { tracer: Some(9), name: Some("strace".to_owned()), threads: threads.to_vec() };
        series.push(250_000 * look, Reading::Ok(tracing));
    }
}

/// Six of ten looks stopped, two running, two asleep.
fn mostly_stopped(look: u64) -> char {
    ['t', 't', 'R', 't', 'S', 't', 't', 'R', 't', 'S'][look as usize % 10]
}

/// A server of one thread, at whose only listener requests wait.
fn single(waiting: u32) -> Observation {
    let mut obs = queued(waiting, 150_000_000);
    let sockets: Vec<RequestSocket> = (0..u64::from(waiting) + 2).map(|n| connection(n, 7, n > 0)).collect();
    always(&mut obs, &sockets);
    obs
}

#[test]
fn a_tracer_that_stops_a_server_most_of_the_time_is_the_cause_of_all_that_waits_for_it() {
    let mut obs = single(18);
    trace(&mut obs, 42, mostly_stopped);
    for diagnosis in both(&obs) {
        assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["processes-traced"]), "{}", diagnosis.summary);
        let cause = &diagnosis.findings[0];
        assert!(cause.title.contains("is traced by strace (pid 9)"), "{}", cause.title);
        assert!(cause.evidence.iter().any(|proof| proof.text.starts_with("In 59 % of 41 looks")), "{:?}", cause.evidence);
        assert!(says(&diagnosis, "kill -INT 9"), "{:?}", cause.remedies);
    }
}

#[test]
fn one_traced_worker_of_four_slows_its_part() {
    let mut obs = prefork(18, 50_000_000);
    let held: Vec<RequestSocket> = (0..20).map(|n| connection(n, 7, true)).collect();
    process(&mut obs, 42, 41, "gunicorn", &[100, 7]);
    always(&mut obs, &held);
    (42..=45).for_each(|pid| trace(&mut obs, pid, |_| 't'));
    let diagnosis = told(&obs);
    let traced = diagnosis.findings.iter().find(|finding| finding.id == "processes-traced").unwrap();
    assert!(traced.role == Role::Cause && traced.title.starts_with("gunicorn is traced"), "{}", traced.title);
    (43..=45).for_each(|pid| obs.processes.get_mut(&pid).unwrap().tracing = Default::default());
    let diagnosis = told(&obs);
    let traced = diagnosis.findings.iter().find(|finding| finding.id == "processes-traced").unwrap();
    assert!(traced.title.starts_with("1 of 4 processes of gunicorn is traced"), "{}", traced.title);
}

#[test]
fn a_tracer_that_stops_hardly_anything_or_whom_nobody_waits_for_is_no_cause() {
    let sleeps = |_: u64| 'S';
    let seldom = |look: u64| if look.is_multiple_of(20) { 't' } else { 'R' };
    let mut attached = single(18);
    trace(&mut attached, 42, sleeps);
    let mut hardly = single(18);
    trace(&mut hardly, 42, seldom);
    let mut unwaited = healthy();
    trace(&mut unwaited, 42, mostly_stopped);
    let mut untraced = single(18);
    untraced.processes.get_mut(&42).unwrap().tracing.push(0, Reading::Ok(Tracing::default()));
    let mut stopped = single(18);
    states(&mut stopped, 42, 0, |_| 'S');
    for (name, obs) in [("attached", attached), ("hardly", hardly), ("unwaited", unwaited), ("untraced", untraced), ("not read", stopped)] {
        for diagnosis in both(&obs) {
            assert!(!says(&diagnosis, "processes-traced"), "{name}: {}", diagnosis.summary);
            // Whoever is seen to trace is told.
            let is_told = diagnosis.warnings.iter().any(|told| told.contains(") traces nginx (42): the kernel stops what is traced"));
            assert_eq!(is_told, ["hardly", "unwaited"].contains(&name), "{name}: {:?}", diagnosis.warnings);
        }
    }
}
