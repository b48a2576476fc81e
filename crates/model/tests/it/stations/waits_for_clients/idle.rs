//! Finding `waits-for-clients` by idle connections: workers that each hold one on which nothing is asked; silent where they have requests, or wait for something else.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{CpuUse, Identity, Observation, Syscall, ThreadCalls};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Diagnosis, Role, Verdict};

use crate::stage::held::{keep, watched};
use crate::stage::pool::{pool, ran, threads};
use crate::stage::*;

use super::looked;

fn has_remedy(diagnosis: &Diagnosis, id: &str) -> bool {
    diagnosis.findings[0].remedies.iter().any(|remedy| remedy.id == id)
}

fn is_silent(obs: &Observation) -> bool {
    told(obs).findings.iter().all(|finding| finding.id != "waits-for-clients")
}

#[test]
fn workers_that_hold_idle_connections_are_the_cause_and_the_pool_their_symptom() {
    for (looks, confidence) in [(true, Confidence::High), (false, Confidence::Medium)] {
        for loaded in [true, false] {
            let mut obs = keep(pool(5, 5, 60), 5, 4);
            if !loaded {
                obs = watched(obs);
            }
            if looks {
                looked(&mut obs, "poll", true);
            }
            let diagnosis = told(&obs);
            assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["waits-for-clients"]), "{looks} {loaded}");
            let (cause, symptom) = (&diagnosis.findings[0], &diagnosis.findings[1]);
            assert_eq!((symptom.id.as_str(), symptom.role), ("worker-pool-exhausted", Role::Symptom));
            assert_eq!((cause.tier.as_str(), cause.confidence), ("php-fpm", confidence));
            assert!(cause.title.starts_with("4 of 5 workers of php-fpm are held"), "{}", cause.title);
            assert!(has_remedy(&diagnosis, "let-idle-connections-go") && !has_remedy(&diagnosis, "end-lingering"));
            // Five are held, and sixty wait.
            let text = &cause.remedies[0].text;
            assert!(text.contains("65 workers (5 that are held + 60 that wait)") && text.contains("keep fewer idle connections"), "{text}");
        }
    }
}

/// Fifty connections in 9.4 s at five workers: 940 ms each, and four fifths of that without a request.
#[test]
fn how_long_each_holds_a_worker_follows_from_their_number() {
    let diagnosis = told(&watched(keep(pool(5, 5, 60), 5, 4)));
    let sum = diagnosis.findings[0].evidence.iter().find(|proof| proof.text.contains("50 connections")).unwrap();
    assert!(sum.text.contains("in 9.4 s were held for 940 ms each") && sum.text.contains("for 752 ms"), "{}", sum.text);
}

#[test]
fn a_known_server_is_told_the_name_of_its_setting() {
    let mut obs = watched(keep(pool(5, 5, 60), 5, 5));
    // The pool itself is asked.
    (obs.request.url, obs.request.port, obs.request.addresses) = ("http://127.0.0.1:9000/".into(), 9000, vec![ip("127.0.0.1")]);
    obs.request.client_netns = SERVER;
    for pid in 50..56 {
        let process = obs.processes.get_mut(&pid).unwrap();
        let identity =
            Identity { comm: "apache2".into(), exe: Some("/usr/sbin/apache2".into()), ..process.identity.last().unwrap().clone() };
        process.identity = Default::default();
        process.identity.push(0, Reading::Ok(identity));
    }
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), ["waits-for-clients"]);
    let text = &diagnosis.findings[0].remedies[0].text;
    assert!(text.contains("event MPM") && text.contains("KeepAliveTimeout") && text.contains("KeepAlive Off"), "{text}");
}

#[test]
fn workers_with_requests_or_other_waits_are_too_few() {
    assert_eq!(causes(&told(&watched(keep(pool(5, 5, 60), 5, 2)))), ["worker-pool-exhausted"], "fewer than half are idle");
    assert_eq!(causes(&told(&watched(keep(pool(5, 5, 60), 5, 0)))), ["worker-pool-exhausted"], "all have requests");
    let mut working = watched(keep(pool(5, 5, 60), 5, 5));
    looked(&mut working, "clock_nanosleep", false);
    assert_eq!(causes(&told(&working)), ["worker-pool-exhausted"], "they do something after the response");
}

/// Workers in a call on connections of which no sample met the other end were not seen to wait for something else.
#[test]
fn a_look_that_tells_nothing_leaves_the_sockets_word() {
    let mut obs = watched(keep(pool(5, 5, 60), 5, 5));
    for pid in 51..56 {
        let view = obs.processes.get_mut(&pid).unwrap();
        for second in 1..=10_u64 {
            let call = Syscall { call: Some("poll".to_owned()), sockets: vec![9_000 + second], ..Syscall::default() };
            view.syscall.push(second * 1_000_000, Reading::Ok(call));
        }
    }
    let diagnosis = told(&obs);
    assert_eq!((causes(&diagnosis), diagnosis.findings[0].confidence), (vec!["waits-for-clients"], Confidence::Medium));
}

#[test]
fn idle_connections_for_which_nobody_waits_are_no_finding() {
    assert!(is_silent(&watched(keep(pool(5, 5, 0), 5, 5))), "a free place is found at once");
    // Two hundred kept connections at one event loop.
    let mut obs = watched(keep(pool(1, 200, 0), 200, 200));
    ran(&mut obs, [51], 100_000_000);
    assert_eq!(told(&obs).findings.len(), 0);
    // Their workers compute, and the cores are full.
    let mut full = keep(pool(5, 5, 60), 5, 5);
    cpu(&mut full, 0.99);
    assert!(is_silent(&full));
}

/// Eight threads that serve one connection each. Those of a pool that waits for work or for a lock hold none.
#[test]
fn threads_are_kept_as_processes_are() {
    let of = |idle: u64, locked: u32| {
        let mut obs = watched(keep(threads(9, 8, 0.3, 0.2), 8, idle));
        let view = obs.processes.get_mut(&50).unwrap();
        for second in 1..=10_u64 {
            let calls = ThreadCalls { looked: 8, locked, ..ThreadCalls::default() };
            let call = Syscall { call: Some("accept".to_owned()), threads: calls, ..Syscall::default() };
            view.syscall.push(second * 1_000_000, Reading::Ok(call));
        }
        told(&obs)
    };
    let kept = of(8, 0);
    assert_eq!((causes(&kept), kept.findings[0].confidence), (vec!["waits-for-clients"], Confidence::Medium));
    assert!(kept.findings[0].title.starts_with("8 of 8 threads of php-fpm"), "{}", kept.findings[0].title);
    assert_eq!(causes(&of(3, 0)), ["worker-pool-exhausted"]);
    assert_eq!(causes(&of(8, 8)), ["worker-pool-exhausted"], "an event loop with helpers, which wait for work");
}

#[test]
fn places_of_an_event_loop_are_kept_as_well() {
    let diagnosis = told(&watched(keep(threads(4, 40, 0.3, 0.2), 40, 39)));
    assert_eq!(causes(&diagnosis), ["waits-for-clients"]);
    assert!(
        diagnosis.findings[0].title.contains("39 of the 40 connections that php-fpm accepts at most are idle"),
        "{}",
        diagnosis.findings[0].title
    );
}

/// Of a single process with one thread, which serves one connection after the other (Python's http.server): one idle connection keeps it from all others.
#[test]
fn one_idle_connection_keeps_the_only_thread() {
    let diagnosis = told(&one_thread('S'));
    assert_eq!((causes(&diagnosis), diagnosis.findings[0].confidence), (vec!["waits-for-clients"], Confidence::High));
    assert!(diagnosis.findings.iter().any(|finding| finding.id == "accepts-none" && finding.role == Role::Symptom));
    // Whatever a stopped one holds, it serves nobody.
    assert_eq!(causes(&told(&one_thread('T'))), ["accepts-none"]);
}

fn one_thread(state: char) -> Observation {
    let mut obs = watched(keep(threads(1, 1, 0.3, 0.01), 1, 1));
    let view = obs.processes.get_mut(&50).unwrap();
    view.cpu = Default::default();
    for second in 0..=11_u64 {
        // It never ran, so nobody accepted.
        let used = CpuUse { run_ns: Some(0), run_delay_ns: Some(0), threads: 1, state, ..CpuUse::default() };
        view.cpu.push(second * 1_000_000, Reading::Ok(used));
        let call = Syscall { call: Some("recvfrom".to_owned()), sockets: vec![1_000], ..Syscall::default() };
        view.syscall.push(second * 1_000_000, Reading::Ok(call));
    }
    obs
}

#[test]
fn without_the_times_of_connections_nothing_is_claimed_of_them() {
    let mut obs = watched(keep(pool(5, 5, 60), 5, 5));
    obs.netns.get_mut(&SERVER).unwrap().request_samples = Default::default();
    assert_eq!(causes(&told(&obs)), ["worker-pool-exhausted"]);
}
