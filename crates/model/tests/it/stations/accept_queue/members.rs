//! Some of a server's processes accept or answer nothing: one of several sockets at an address (SO_REUSEPORT), and workers that are stopped.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{ListenerAddress, Observation, RequestSample, RequestSocket, RequestTimes, SocketAddress, TcpState};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Diagnosis, Station, Verdict};

use super::accepts::{both, offers_a_longer_queue, queued, says, states};
use crate::stage::pool::process;
use crate::stage::queue::suffer;
use crate::stage::*;

/// A connection with an answered request if `inode` is not zero and `unread` is false, else with a request that came.
pub(super) fn connection(n: u64, inode: u64, unread: bool) -> RequestSocket {
    let answered = inode != 0 && !unread;
    let times = RequestTimes {
        last_data_recv_ms: if answered { 12 } else { 200 },
        last_data_sent_ms: if answered { 4 } else { 200 },
        data_segs_in: Some(if answered { 100 } else { 1 }),
        data_segs_out: Some(if answered { 100 } else { 0 }),
        bytes_received: Some(100),
        bytes_sent: Some(if answered { 500 } else { 0 }),
        min_rtt_us: Some(20),
        rtt_us: Some(50),
        ..RequestTimes::default()
    };
    RequestSocket {
        address: SocketAddress::Tcp { local: (ip(SERVER_IP), 80), remote: (ip("10.0.0.1"), 10_000 + n as u16) },
        cookie: 1 + n,
        state: TcpState::Established,
        inode,
        receive_queue: if answered { 0 } else { 100 },
        send_queue: 0,
        times: Some(times),
    }
}

/// The same connections in each of the samples.
pub(super) fn always(obs: &mut Observation, sockets: &[RequestSocket]) {
    let view = obs.netns.get_mut(&SERVER).unwrap();
    view.request_samples = Default::default();
    for number in 0..48_u64 {
        let sample = RequestSample { share: 1.0, handshake_share: 1.0, sockets: sockets.to_vec(), ..RequestSample::default() };
        view.request_samples.push(WINDOW.0 + 100_000 + number * 200_000, Reading::Ok(sample));
    }
    for (at, opens) in [(0, 0), (11_000_000, 60)] {
        view.netstat.push(at, Reading::Ok([("Tcp.PassiveOpens".to_owned(), opens)].into_iter().collect()));
    }
}

/// Three processes with a socket each at the same address. Twenty connections were given to each; `lengths` says how many wait in their queues at a moment.
fn three(lengths: impl Fn(u64) -> [u32; 3]) -> Observation {
    let mut obs = healthy();
    cpu(&mut obs, 0.1);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    view.listeners = Default::default();
    for tick in 0..=220_u64 {
        let address = || ListenerAddress::Tcp(ip("0.0.0.0"), 80);
        let all = lengths(tick).into_iter().zip(100..).map(|(length, inode)| listener(address(), inode, length, 0));
        view.listeners.push(tick * 50_000, Reading::Ok(all.collect()));
    }
    for (n, pid) in [(0, 42), (1, 43), (2, 44)] {
        process(&mut obs, pid, 1, "python3", &[100 + n, 1_000 + n]);
        states(&mut obs, pid, 100_000_000, |_| 'S');
    }
    let waiting = u64::from(lengths(100)[1]);
    let served = (0..40).map(|n| connection(n, if n % 2 == 0 { 1_000 } else { 1_002 }, false));
    let sockets: Vec<RequestSocket> = served.chain((40..40 + waiting).map(|n| connection(n, 0, true))).collect();
    always(&mut obs, &sockets);
    let load = obs.load.as_mut().unwrap();
    load.keep_alive = true;
    suffer(&mut obs, 60, 60_000);
    obs
}

pub(super) fn first_fix(diagnosis: &Diagnosis) -> String {
    diagnosis.findings[0].remedies[0].text.clone()
}

#[test]
fn one_stopped_process_of_those_that_share_a_port_is_named() {
    let mut obs = three(|_| [0, 20, 0]);
    states(&mut obs, 43, 0, |_| 'T');
    for diagnosis in both(&obs) {
        assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["accepts-none"]));
        let cause = &diagnosis.findings[0];
        assert!(cause.title.starts_with("process 43 of python is stopped (SIGSTOP or a debugger)"), "{}", cause.title);
        assert_eq!(cause.confidence, Confidence::High);
        assert!(cause.evidence.iter().any(|proof| proof.text.contains("20 connections waited in this queue")), "{:?}", cause.evidence);
        assert!(first_fix(&diagnosis).contains("kill -CONT 43"), "{}", first_fix(&diagnosis));
        assert!(!says(&diagnosis, "accepts at most") && !offers_a_longer_queue(&diagnosis));
        // Only the queue of that process is marked.
        assert_eq!(cause.at.pid, Some(43));
        let marked = |station: &&Station| station.station == "accept-queue" && station.at == cause.at;
        assert_eq!(diagnosis.path.iter().filter(marked).map(|station| station.used).collect::<Vec<_>>(), [Some(20.0)]);
    }
}

#[test]
fn one_sleeping_process_of_those_that_share_a_port_is_named() {
    let mut obs = three(|_| [0, 20, 0]);
    states(&mut obs, 43, 0, |_| 'D');
    for diagnosis in both(&obs) {
        assert_eq!(causes(&diagnosis), ["accepts-none"]);
        assert!(diagnosis.findings[0].title.starts_with("process 43 of python accepts none"), "{}", diagnosis.findings[0].title);
        assert!(!says(&diagnosis, "accepts at most"));
    }
}

#[test]
fn a_stopped_worker_is_named_also_where_all_workers_have_all_the_sockets() {
    let mut obs = three(|_| [0, 20, 0]);
    for (n, pid) in [(0, 42), (1, 43), (2, 44)] {
        process(&mut obs, pid, 41, "python3", &[100, 101, 102, 1_000 + n]);
        states(&mut obs, pid, 100_000_000, |_| 'S');
    }
    process(&mut obs, 41, 1, "python3", &[100, 101, 102]);
    states(&mut obs, 41, 1_000, |_| 'S');
    // What waits may as well wait for a worker that goes on.
    assert!(both(&obs).iter().all(|diagnosis| !causes(diagnosis).contains(&"accepts-none")));
    states(&mut obs, 43, 0, |_| 'T');
    for diagnosis in both(&obs) {
        assert_eq!(causes(&diagnosis), ["accepts-none"]);
        assert!(diagnosis.findings[0].title.starts_with("process 43 of python is stopped"), "{}", diagnosis.findings[0].title);
    }
}

#[test]
fn uneven_queues_of_a_port_that_is_shared_are_no_harm() {
    let uneven = three(|tick| [0, if tick % 2 == 0 { 3 } else { 0 }, 1]);
    let mut shortly = three(|tick| [0, if (60..100).contains(&tick) { 5 } else { 0 }, 0]);
    states(&mut shortly, 43, 50_000_000, |second| if (3..5).contains(&second) { 'T' } else { 'S' });
    let mut unused = three(|_| [0, 0, 0]);
    states(&mut unused, 43, 0, |_| 'T');
    for (name, mut obs) in [("uneven", uneven), ("shortly stopped", shortly), ("nobody waits for it", unused)] {
        let load = obs.load.as_mut().unwrap();
        *load = chokepoint_model::load::LoadResult { keep_alive: true, ..crate::stage::load() };
        for diagnosis in both(&obs) {
            assert_eq!(causes(&diagnosis), [""; 0], "{name}: {}", diagnosis.summary);
        }
    }
}

/// A master (41) and four workers that share a listener. The first serves a request at a time, and `waiting` connections wait in the queue.
pub(super) fn prefork(waiting: u32, ns_per_s: u64) -> Observation {
    let mut obs = queued(waiting, ns_per_s);
    process(&mut obs, 41, 1, "gunicorn", &[100]);
    states(&mut obs, 41, 1_000_000, |_| 'S');
    for pid in 42..=45 {
        process(&mut obs, pid, 41, "gunicorn", if pid == 42 { &[100, 7] } else { &[100] });
        states(&mut obs, pid, if pid == 42 { ns_per_s } else { 0 }, |_| 'S');
    }
    obs
}

#[test]
fn workers_that_are_stopped_are_the_cause_of_a_queue_before_the_others() {
    let mut obs = prefork(18, 50_000_000);
    (43..=45).for_each(|pid| states(&mut obs, pid, 0, |_| 'T'));
    let diagnosis = told(&obs);
    assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["processes-stopped"]), "{}", diagnosis.summary);
    let title = &diagnosis.findings[0].title;
    assert!(title.starts_with("3 of 4 processes of gunicorn are stopped") && title.ends_with("43, 44, 45"), "{title}");
    assert!(first_fix(&diagnosis).contains("kill -CONT 43 44 45"), "{}", first_fix(&diagnosis));
}

/// The one that goes on serves all of it after a while, again and again.
#[test]
fn stopped_workers_are_the_cause_of_a_queue_that_is_empty_at_times() {
    let mut obs = prefork(18, 50_000_000);
    (43..=45).for_each(|pid| states(&mut obs, pid, 0, |_| 'T'));
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (tick, (at, mut listeners)) in points.into_iter().enumerate() {
        listeners.iter_mut().filter(|_| tick % 4 == 0).for_each(|one| one.accept_queue = 0);
        view.listeners.push(at, Reading::Ok(listeners));
    }
    assert_eq!(causes(&told(&obs)), ["processes-stopped"], "{}", told(&obs).summary);
}

#[test]
fn all_workers_may_be_stopped_while_their_master_goes_on() {
    let mut obs = prefork(18, 0);
    (42..=45).for_each(|pid| states(&mut obs, pid, 0, |_| 'T'));
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), ["processes-stopped"]);
    assert!(diagnosis.findings[0].title.starts_with("gunicorn is stopped"), "{}", diagnosis.findings[0].title);
}

#[test]
fn requests_on_the_connections_of_a_stopped_worker_wait_for_it() {
    let mut obs = prefork(0, 50_000_000);
    process(&mut obs, 43, 41, "gunicorn", &[100, 8]);
    states(&mut obs, 43, 0, |_| 'T');
    let sockets: Vec<RequestSocket> = (0..30).map(|n| connection(n, 7, false)).chain((30..40).map(|n| connection(n, 8, true))).collect();
    always(&mut obs, &sockets);
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), ["processes-stopped"], "{}", diagnosis.summary);
    let cause = &diagnosis.findings[0];
    assert!(cause.title.starts_with("1 of 4 processes of gunicorn is stopped") && cause.title.ends_with(": 43"), "{}", cause.title);
    assert!(
        cause.evidence.iter().any(|proof| proof.text.contains("10 stood on connections that only it has open")),
        "{:?}",
        cause.evidence
    );
}

#[test]
fn stopped_workers_that_nobody_needs_or_that_would_find_no_core_are_no_cause() {
    let stop = |mut obs: Observation| {
        (43..=45).for_each(|pid| states(&mut obs, pid, 0, |_| 'T'));
        obs
    };
    let nobody_waits = stop(prefork(0, 50_000_000));
    let mut full = stop(prefork(18, 950_000_000));
    cpu(&mut full, 0.99);
    let mut shortly = prefork(18, 50_000_000);
    (43..=45).for_each(|pid| states(&mut shortly, pid, 0, |second| if second == 5 { 'T' } else { 'S' }));
    let mut one_of_many = prefork(18, 50_000_000);
    (46..=60).for_each(|pid| {
        process(&mut one_of_many, pid, 41, "gunicorn", &[100]);
        states(&mut one_of_many, pid, 0, |_| 'S');
    });
    states(&mut one_of_many, 60, 0, |_| 'T');
    let all = [("nobody waits", nobody_waits), ("full cores", full), ("shortly", shortly), ("one of many", one_of_many)];
    for (name, obs) in all {
        assert!(!says(&told(&obs), "processes-stopped"), "{name}");
    }
}
