//! Finding `workers-blocked-on-upstream`: the cause if a full pool waits for a server without a cause of its own, else a symptom or no finding.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{Socket, SocketAddress, Syscall, ThreadCalls, UnixPeer};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Diagnosis, LimitedBy, Role, Verdict};

use crate::stage::blocked::*;
use crate::stage::pool::{ran, tcp};
use crate::stage::*;

fn roles(diagnosis: &Diagnosis) -> Vec<(&str, &str, Role)> {
    diagnosis.findings.iter().map(|finding| (finding.id.as_str(), finding.tier.as_str(), finding.role)).collect()
}

#[test]
fn a_server_on_another_host_is_the_cause_and_the_pool_its_symptom() {
    for address in [AWAY, "2001:db8::7"] {
        let diagnosis = told(&towards(address));
        assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["workers-blocked-on-upstream"]));
        let [blocked, exhausted] = &diagnosis.findings[..] else { panic!("{:?}", diagnosis.findings) };
        assert_eq!((exhausted.id.as_str(), exhausted.symptom_of[0].as_str()), ("worker-pool-exhausted", blocked.id.as_str()));
        assert!(blocked.title.contains(address) && blocked.remedies.is_empty(), "{}", blocked.title);
        assert_eq!(blocked.confidence, Confidence::Medium, "nothing at its door can be seen");
    }
}

#[test]
fn connections_that_wait_to_be_accepted_there_make_it_certain() {
    let mut obs = towards(BEHIND);
    behind(&mut obs, 1, 2, 3);
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), ["workers-blocked-on-upstream"]);
    assert_eq!(diagnosis.findings[0].confidence, Confidence::High);
    assert_eq!(diagnosis.findings[0].at.edge.as_deref(), Some("php-fpm->database"));
}

#[test]
fn a_server_on_a_unix_socket_counts_too() {
    let path = "/run/mysqld/mysqld.sock";
    let mut obs = waiting("recvfrom", |n| vec![2_000 + n]);
    let end = |inode, path: Option<&str>, peer| Socket {
        address: SocketAddress::Unix { path: path.map(str::to_owned), peer: UnixPeer::Inode(peer) },
        ..tcp(inode, (ip("::"), 0), (ip("::"), 0))
    };
    sockets(&mut obs, |n| end(2_000 + n, None, 3_000 + n));
    assert_eq!(causes(&told(&obs)), ["worker-pool-exhausted"], "who is at the other end was not seen");
    sockets(&mut obs, |n| end(3_000 + n, Some(path), 2_000 + n));
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), ["workers-blocked-on-upstream"]);
    assert!(diagnosis.findings[0].title.contains(path));
}

#[test]
fn a_server_behind_with_a_full_pool_is_the_cause() {
    let mut obs = towards(BEHIND);
    behind(&mut obs, 3, 2, 3);
    let diagnosis = told(&obs);
    let expected = [
        ("worker-pool-exhausted", "database", Role::Cause),
        ("workers-blocked-on-upstream", "php-fpm", Role::Symptom),
        ("worker-pool-exhausted", "php-fpm", Role::Symptom),
    ];
    // In the order of the chain.
    assert_eq!(roles(&diagnosis), expected);
    assert_eq!(diagnosis.findings[1].symptom_of, ["worker-pool-exhausted"]);
    assert_eq!(diagnosis.findings[2].symptom_of, ["worker-pool-exhausted", "workers-blocked-on-upstream"]);
}

#[test]
fn a_server_behind_that_computes_on_busy_cores_leaves_no_cause() {
    let mut obs = towards(BEHIND);
    behind(&mut obs, 1, 5, 0);
    cpu(&mut obs, 0.99);
    ran(&mut obs, 50..56, 10_000_000);
    ran(&mut obs, [80], 950_000_000);
    let diagnosis = told(&obs);
    assert_eq!((diagnosis.verdict, diagnosis.limited_by, causes(&diagnosis)), (Verdict::Healthy, Some(LimitedBy::Cpu), vec![]));
    assert_eq!(diagnosis.findings.len(), 0, "more workers would wait for the same core");
}

#[test]
fn workers_that_wait_for_a_caller_without_a_core_leave_no_cause() {
    // The web server uses its one core fully, or it waits and others use the core. The workers wait for the web server, or for themselves.
    for (nginx_ns, call, socket, expected) in [
        (950_000_000, "recvfrom", Some(1_000), vec![]),
        (950_000_000, "clock_nanosleep", None, vec!["worker-pool-exhausted"]),
        (10_000_000, "recvfrom", Some(1_000), vec!["worker-pool-exhausted"]),
        (10_000_000, "clock_nanosleep", None, vec!["worker-pool-exhausted"]),
    ] {
        let mut obs = waiting(call, |n| socket.map(|first| first + n).into_iter().collect());
        cpu(&mut obs, 0.99);
        ran(&mut obs, 50..56, 10_000_000);
        ran(&mut obs, [42], nginx_ns);
        // The core may be full of failing requests, so a full core alone proves nothing.
        let load = obs.load.as_mut().unwrap();
        (load.requests, load.errors.reset) = (load.good + 2_000, 2_000);
        assert_eq!(causes(&told(&obs)), expected, "the web server runs {nginx_ns} ns a second, the workers are in {call}");
    }
}

#[test]
fn a_server_behind_with_free_workers_is_no_cause() {
    let mut obs = towards(BEHIND);
    behind(&mut obs, 21, 5, 0);
    assert_eq!(causes(&told(&obs)), ["worker-pool-exhausted"]);
}

#[test]
fn a_threaded_server_whose_threads_wait_for_connections_has_room_unless_they_wait_for_each_other() {
    for (looked, accepting, locked, waiting, expected) in [
        (12, 7, 0, 0, "worker-pool-exhausted"),
        (12, 7, 2, 0, "worker-pool-exhausted"),
        (12, 7, 3, 0, "workers-blocked-on-upstream"),
        (12, 1, 0, 0, "workers-blocked-on-upstream"),
        (5, 0, 0, 0, "workers-blocked-on-upstream"),
        (0, 0, 0, 0, "workers-blocked-on-upstream"),
        (12, 7, 0, 3, "workers-blocked-on-upstream"),
        (0, u32::MAX, u32::MAX, 0, "workers-blocked-on-upstream"),
    ] {
        let mut obs = towards(BEHIND);
        behind(&mut obs, 1, 5, waiting);
        let database = obs.processes.get_mut(&80).unwrap();
        let look = Syscall { threads: ThreadCalls { looked, accepting, locked, ..ThreadCalls::default() }, ..Syscall::default() };
        (1..=10).for_each(|second| database.syscall.push(second * 1_000_000, Reading::Ok(look.clone())));
        assert_eq!(causes(&told(&obs)), [expected], "{accepting} of {looked} accept, {locked} wait for a lock, {waiting} for a thread");
    }
}

#[test]
fn a_server_as_fast_as_for_a_single_request_has_room_and_is_no_cause() {
    // Five workers give 250 answers per second: each request takes 20 ms.
    for (alone_us, good, expected) in
        [(19_000, 5, "worker-pool-exhausted"), (10_000, 5, "workers-blocked-on-upstream"), (19_000, 4, "workers-blocked-on-upstream")]
    {
        for address in [AWAY, BEHIND] {
            let mut obs = towards(address);
            if address == BEHIND {
                behind(&mut obs, 1, 5, 0);
            }
            let mut alone = load();
            (alone.good, alone.latency_us.p50) = (good, alone_us);
            obs.unloaded = Some(alone);
            let found = told(&obs);
            assert_eq!(causes(&found), [expected], "{alone_us} us alone, measured {good} times, {address}");
            // More workers help, and yet it is told what they wait for.
            let name = if address == BEHIND { "database" } else { "192.0.2.7:5432" };
            let exhausted = found.findings.iter().find(|finding| finding.id == "worker-pool-exhausted").unwrap();
            assert!(exhausted.title.ends_with(&format!("they do not compute but wait for {name}")), "{}", exhausted.title);
        }
    }
}

#[test]
fn a_pool_that_calls_itself_waits_for_its_own_workers() {
    let mut obs = waiting("poll", |n| vec![2_000 + n]);
    sockets(&mut obs, |n| tcp(2_000 + n, (ip("10.0.0.2"), 30_000 + n as u16), (ip(SERVER_IP), 80)));
    assert_eq!(causes(&told(&obs)), ["worker-pool-exhausted"]);
}

#[test]
fn workers_that_wait_for_anything_else_are_too_few() {
    let sleeping = waiting("clock_nanosleep", |_| vec![]);
    let mut slow_clients = waiting("recvfrom", |n| vec![1_000 + n]);
    sockets(&mut slow_clients, |n| tcp(2_000 + n, (ip("10.0.0.2"), 30_000 + n as u16), (ip(AWAY), 5432)));
    let idle = waiting("accept", |_| vec![200]);
    let unseen = waiting("poll", |n| vec![9_000 + n]);
    let mut unread = waiting("poll", |_| vec![]);
    (51..56).for_each(|pid| unread.processes.get_mut(&pid).unwrap().syscall = Default::default());
    for (obs, why) in [
        (sleeping, "a timer"),
        (slow_clients, "its own clients"),
        (idle, "a listener"),
        (unseen, "a socket not seen"),
        (unread, "not read"),
    ] {
        assert_eq!(causes(&told(&obs)), ["worker-pool-exhausted"], "{why}");
    }
}

#[test]
fn a_pool_that_is_not_full_is_no_finding_whatever_it_waits_for() {
    let mut obs = towards(AWAY);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in points {
        listeners[1].accept_queue = 0;
        view.listeners.push(at, Reading::Ok(listeners));
    }
    assert_eq!(causes(&told(&obs)), [""; 0]);
}
