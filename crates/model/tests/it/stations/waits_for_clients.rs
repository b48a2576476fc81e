//! Finding `waits-for-clients`: a pool whose workers hold answered connections until their clients close; silent where no worker is held.
//!
//! Deterministic: observations made up by the tests.

mod idle;

use chokepoint_model::observation::{Observation, Socket, Syscall, TcpState};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Role, Verdict};

use crate::stage::pool::{pool, ran, tcp, threads};
use crate::stage::*;

/// A pool of five. Of its connections in each sample, the first `ended` are answered and closed by the server.
fn lingering(busy: u32, ended: usize, waiting: u32) -> Observation {
    let mut obs = pool(5, busy, waiting);
    end(&mut obs, ended);
    obs
}

/// The first of the connections in service are answered and closed by the server.
fn end(obs: &mut Observation, ended: usize) {
    change(obs, |sockets| {
        let held = sockets.iter_mut().filter(|socket| (1_000..2_000).contains(&socket.inode));
        held.take(ended).for_each(|socket| socket.state = TcpState::FinWait2);
    });
}

fn change(obs: &mut Observation, of: impl Fn(&mut Vec<Socket>)) {
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.sockets.points().to_vec();
    view.sockets = Default::default();
    for (at, mut sockets) in points {
        of(&mut sockets);
        view.sockets.push(at, Reading::Ok(sockets));
    }
}

/// In every sample each worker is in this call, on its own connection.
fn looked(obs: &mut Observation, call: &str, on_its_connection: bool) {
    for n in 0..5_u64 {
        let view = obs.processes.get_mut(&(51 + n as u32)).unwrap();
        for second in 1..=10_u64 {
            let sockets = if on_its_connection { vec![1_000 + n] } else { Vec::new() };
            view.syscall.push(second * 1_000_000, Reading::Ok(Syscall { call: Some(call.to_owned()), sockets, ..Syscall::default() }));
        }
    }
}

#[test]
fn workers_kept_by_clients_that_do_not_close_are_the_cause_and_the_pool_their_symptom() {
    for (looks, confidence) in [(true, Confidence::High), (false, Confidence::Medium)] {
        let mut obs = lingering(5, 4, 60);
        if looks {
            looked(&mut obs, "recvfrom", true);
        }
        let diagnosis = told(&obs);
        assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["waits-for-clients"]), "{looks}");
        let (cause, symptom) = (&diagnosis.findings[0], &diagnosis.findings[1]);
        assert_eq!((symptom.id.as_str(), symptom.role), ("worker-pool-exhausted", Role::Symptom));
        assert_eq!((cause.tier.as_str(), cause.confidence), ("php-fpm", confidence));
        assert!(cause.title.contains("4 of 5") && !cause.remedies.is_empty(), "{}", cause.title);
    }
}

#[test]
fn it_is_seen_without_a_load() {
    let mut obs = lingering(5, 5, 60);
    (obs.load, obs.request.loaded) = (None, false);
    assert_eq!(causes(&told(&obs)), ["waits-for-clients"]);
}

#[test]
fn the_clients_ends_on_this_host_are_evidence() {
    let mut obs = lingering(5, 5, 60);
    let told_open = |obs: &Observation| told(obs).findings[0].evidence.iter().any(|proof| proof.text.contains("CLOSE_WAIT"));
    assert!(!told_open(&obs));
    change(&mut obs, |sockets| {
        let client = tcp(7_000, (ip("127.0.0.1"), 40_001), (ip("127.0.0.1"), 9000));
        sockets.push(Socket { state: TcpState::CloseWait, ..client });
    });
    assert!(told_open(&obs));
}

#[test]
fn workers_that_wait_for_something_else_are_the_pools_own() {
    assert_eq!(causes(&told(&lingering(5, 2, 60))), ["worker-pool-exhausted"], "fewer than half");
    let mut asleep = lingering(5, 5, 60);
    looked(&mut asleep, "clock_nanosleep", false);
    assert_eq!(causes(&told(&asleep)), ["worker-pool-exhausted"], "they were seen to sleep");
}

#[test]
fn ends_for_which_nobody_waits_are_no_finding() {
    assert_eq!(causes(&told(&lingering(5, 4, 0))), [""; 0], "a lingering close without clients in the queue");
    // Closed sockets belong to no process: the kernel ends them.
    let mut orphaned = lingering(5, 5, 60);
    change(&mut orphaned, |sockets| {
        sockets.iter_mut().filter(|socket| socket.state == TcpState::FinWait2).for_each(|socket| socket.inode = 0);
    });
    assert!(told(&orphaned).findings.iter().all(|finding| finding.id != "waits-for-clients"));
    // What is unread is to be read first.
    let mut unread = lingering(5, 5, 60);
    change(&mut unread, |sockets| {
        sockets.iter_mut().filter(|socket| socket.state == TcpState::FinWait2).for_each(|socket| socket.receive_queue = 99);
    });
    assert!(told(&unread).findings.iter().all(|finding| finding.id != "waits-for-clients"));
}

/// nginx's lingering close: two processes with many such connections, in epoll_wait, on cores that are full.
#[test]
fn an_event_loop_that_closes_like_this_keeps_no_worker() {
    let mut obs = lingering(40, 30, 60);
    looked(&mut obs, "epoll_wait", false);
    cpu(&mut obs, 0.99);
    ran(&mut obs, 51..56, 900_000_000);
    assert!(told(&obs).findings.iter().all(|finding| finding.id != "waits-for-clients"));
}

/// gunicorn's threads: connections of many threads, and a main thread that accepts and closes.
#[test]
fn a_main_thread_that_waits_for_a_client_accepts_nobody() {
    let mut obs = lingering(40, 5, 60);
    looked(&mut obs, "poll", true);
    let diagnosis = told(&obs);
    assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["waits-for-clients"]));
    assert!(diagnosis.findings[0].title.starts_with("the processes of php-fpm"), "{}", diagnosis.findings[0].title);
}

/// A process whose threads each wait for a client: its main thread, the only one that is looked at, waits for the next connection.
#[test]
fn threads_kept_by_their_clients_are_not_judged_by_the_main_thread() {
    let of_threads = |ended: usize| {
        let mut obs = threads(8, 6, 0.3, 0.2);
        end(&mut obs, ended);
        let view = obs.processes.get_mut(&50).unwrap();
        for second in 1..=10_u64 {
            view.syscall.push(second * 1_000_000, Reading::Ok(Syscall { call: Some("futex".to_owned()), ..Syscall::default() }));
        }
        obs
    };
    assert_eq!(causes(&told(&of_threads(5))), ["waits-for-clients"]);
    assert_eq!(causes(&told(&of_threads(2))), ["worker-pool-exhausted"], "fewer than half");
}
