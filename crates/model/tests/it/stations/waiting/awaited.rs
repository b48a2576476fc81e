//! What threads wait for besides connections, where it explains the requests inside their server.
//!
//! Deterministic: observations made up by the tests.

mod woken;

use chokepoint_model::observation::{CpuUse, Sessions, Socket, SocketAddress, Syscall, ThreadCalls, ThreadTimes, ThreadWait, WaitKind};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::Verdict;

use super::{ACCEPTED, at_random, evenly, is_choked, seen, under_load};
use crate::stage::*;

/// The only cause, with threads of the server that wait so: the main thread, or these of `threads` others.
fn with_waits(kind: WaitKind, main: bool, waiting: u32, threads: u32) -> String {
    let mut obs = under_load(40_000, &|_| at_random(100, 1_000));
    let view = obs.processes.get_mut(&42).unwrap();
    view.cpu = Default::default();
    for second in 0..=11 {
        let times = vec![ThreadTimes { id: 42, run_ns: second * 20_000_000, delay_ns: 0 }];
        view.cpu.push(second * 1_000_000, Reading::Ok(CpuUse { thread_times: times, threads: threads + 1, ..CpuUse::default() }));
        let wait = |is_main: bool, threads: u32| ThreadWait { kind, is_main, threads, other: None, object: None };
        let waits = [(main, wait(true, 1)), (waiting > 0, wait(false, waiting))];
        let waits = waits.into_iter().filter_map(|(is_there, wait)| is_there.then_some(wait)).collect();
        let calls = ThreadCalls { looked: threads, ..ThreadCalls::default() };
        view.syscall
            .push(second * 1_000_000, Reading::Ok(Syscall { call: Some("read".into()), threads: calls, waits, ..Syscall::default() }));
    }
    obs.netns.get_mut(&SERVER).unwrap().sockets.push(5_000_000, Reading::Ok(Vec::new()));
    let diagnosis = told(&obs);
    assert!(is_choked(&diagnosis), "{diagnosis:#?}");
    diagnosis.findings[0].title.clone()
}

#[test]
fn what_threads_wait_for_is_named_where_it_explains_the_requests() {
    let only = with_waits(WaitKind::FullPipe, true, 0, 0);
    assert!(only.ends_with("whose serving thread waits for whoever reads its output (a full pipe)"), "{only}");
    let many = with_waits(WaitKind::Disk, false, 90, 100);
    assert!(many.ends_with(", for the disk (several files)"), "{many}");
    // One of many writes to a pipe that stays full, and the others wait for its lock.
    let log = with_waits(WaitKind::FullPipe, false, 1, 20);
    assert!(log.ends_with(", for whoever reads its output (a full pipe)"), "{log}");
    // Threads of the server's own that sleep, beside those that serve: they are not what a hundred requests wait for.
    for waiting in [1, 4, 20] {
        let few = with_waits(WaitKind::Timer, false, waiting, 120);
        assert!(!few.contains("timer"), "{waiting}: {few}");
    }
    // As many sleep as requests wait, and as many more may be doing the work.
    let spare = with_waits(WaitKind::Timer, false, 100, 300);
    assert!(!spare.contains("timer"), "{spare}");
}

/// Watched, with twenty requests before forty workers, of which so many wait for one lock and the others for work.
#[test]
fn workers_that_are_seen_to_wait_for_a_lock_wait_for_each_other() {
    let with = |locked: u32| {
        let mut obs = seen(&|_| evenly(20, 10));
        pool::process(&mut obs, 42, 1, "server", &[100, ACCEPTED]);
        for n in 0..40 {
            pool::process(&mut obs, 43 + n, 42, "server", &[100, ACCEPTED]);
            let (kind, object) = (WaitKind::FileLock, Some("/srv/lock".to_owned()));
            let wait = ThreadWait { kind, is_main: true, threads: 1, other: None, object };
            let call = if n < locked { "flock" } else { "accept" };
            let waits = if n < locked { vec![wait] } else { Vec::new() };
            let call = Syscall { call: Some(call.to_owned()), waits, ..Syscall::default() };
            obs.processes.get_mut(&(43 + n)).unwrap().syscall.push(5_000_000, Reading::Ok(call));
        }
        told(&obs)
    };
    let most = with(19);
    assert!(is_choked(&most), "{most:#?}");
    assert!(most.findings[0].title.ends_with(", for a lock on /srv/lock"), "{}", most.findings[0].title);
    for few in [0, 2, 6] {
        assert_eq!(with(few).verdict, Verdict::Unknown, "{few}: {}", with(few).summary);
    }
}

/// Sleepers beside a lock wait for it if it goes round among the workers, and not if one process has it all the time.
#[test]
fn a_lock_that_goes_round_is_what_sleepers_try_for() {
    let with = |holder: fn(u64, u32) -> u32| {
        let mut obs = seen(&|_| evenly(16, 10));
        pool::process(&mut obs, 42, 1, "server", &[100]);
        for pid in 43..47 {
            pool::process(&mut obs, pid, 42, "server", &[100, ACCEPTED]);
            for second in 0..12_u64 {
                let other = Some(holder(second, pid)).filter(|other| *other != pid);
                let kind = if other.is_some() { WaitKind::RetriedLock } else { WaitKind::Timer };
                let wait = ThreadWait { kind, is_main: true, threads: 1, other, object: other.map(|_| "/srv/orders.db".to_owned()) };
                let call = Syscall { call: Some("clock_nanosleep".to_owned()), waits: vec![wait], ..Syscall::default() };
                obs.processes.get_mut(&pid).unwrap().syscall.push(second * 1_000_000, Reading::Ok(call));
            }
        }
        told(&obs)
    };
    let round = with(|second, _| 43 + (second % 4) as u32);
    assert!(is_choked(&round), "{}", round.summary);
    assert!(round.findings[0].title.contains("a lock on /srv/orders.db (it sleeps and tries again)"), "{}", round.findings[0].title);
    let one = with(|_, _| 42);
    assert!(!is_choked(&one) && one.summary.contains("a timer"), "{}", one.summary);
}

/// Watched, with four workers of a tier that are all taken and twelve requests before them. So many of the workers' looks find them in a wait of this kind; the holder of a lock sleeps.
fn four_workers(kind: WaitKind, share: f64) -> chokepoint_model::report::Diagnosis {
    let mut obs = seen(&|_| evenly(16, 10));
    pool::process(&mut obs, 42, 1, "server", &[100]);
    for n in 0..4 {
        let pid = 43 + n;
        pool::process(&mut obs, pid, 42, "server", &[100, ACCEPTED]);
        for second in 0..12_u64 {
            let waits = (second as f64 + 12.0 * f64::from(n)) % 10.0 < 10.0 * share;
            let object = Some("/srv/object".to_owned());
            let kind = if waits { kind } else { WaitKind::Timer };
            let wait = ThreadWait { kind, is_main: true, threads: 1, other: None, object: object.filter(|_| waits) };
            let call = Syscall { call: Some("flock".to_owned()), waits: vec![wait], ..Syscall::default() };
            obs.processes.get_mut(&pid).unwrap().syscall.push(second * 1_000_000, Reading::Ok(call));
        }
    }
    told(&obs)
}

/// Waits that take no time while all is well are told of watched traffic; those that may be a request's own time are not held against a server.
#[test]
fn waits_that_are_faults_are_causes_where_nothing_but_watching_shows_them() {
    for (kind, words) in [
        (WaitKind::FileLock, "for a lock on /srv/object"),
        (WaitKind::FullPipe, "for whoever reads /srv/object (a full pipe)"),
        (WaitKind::NameServer, "for the name server /srv/object"),
        (WaitKind::SharedLock, "for a lock in memory that processes share (futex)"),
        (WaitKind::FullSocket, "for the reader of a full Unix datagram socket, such as a log daemon"),
    ] {
        let found = four_workers(kind, 0.7);
        assert!(is_choked(&found) && found.findings[0].title.ends_with(words), "{kind:?}: {} {:?}", found.summary, found.findings);
    }
    for (kind, words) in [
        (WaitKind::Disk, "waiting for the disk (/srv/object)"),
        (WaitKind::Timer, "waiting for a timer"),
        (WaitKind::EmptyPipe, "waiting for what others write to a pipe"),
    ] {
        let told = four_workers(kind, 0.7);
        assert_eq!(told.verdict, Verdict::Unknown, "{kind:?}: {}", told.summary);
        assert!(told.summary.contains(words), "{kind:?}: {}", told.summary);
    }
    // A lock that is free most of the time.
    let free = four_workers(WaitKind::FileLock, 0.0);
    assert!(!free.summary.contains("lock on"), "{}", free.summary);
}

/// A hundred threads that answer a hundred clients, each after a second, as they answer a single one: in `found` of so many looks all of them wait so.
fn as_slow_alone(kind: WaitKind, found: u64, looks: u64) -> chokepoint_model::report::Diagnosis {
    let mut obs = under_load(995_000, &|_| at_random(100, 1_000));
    let view = obs.processes.get_mut(&42).unwrap();
    view.cpu = Default::default();
    for second in 0..=11 {
        let times = vec![ThreadTimes { id: 42, run_ns: second * 20_000_000, delay_ns: 0 }];
        view.cpu.push(second * 1_000_000, Reading::Ok(CpuUse { thread_times: times, threads: 101, ..CpuUse::default() }));
    }
    for look in 0..looks {
        let wait = ThreadWait { kind, is_main: false, threads: 100, other: None, object: Some("127.0.0.1:53".to_owned()) };
        let calls = ThreadCalls { looked: 100, ..ThreadCalls::default() };
        let waits = if look < found { vec![wait] } else { Vec::new() };
        view.syscall.push(
            2_000_000 + look * 900_000,
            Reading::Ok(Syscall { call: Some("poll".into()), threads: calls, waits, ..Syscall::default() }),
        );
    }
    obs.netns.get_mut(&SERVER).unwrap().sockets.push(5_000_000, Reading::Ok(Vec::new()));
    told(&obs)
}

#[test]
fn what_takes_no_time_while_all_is_well_is_a_cause_although_a_single_request_takes_as_long() {
    for kind in [WaitKind::NameServer, WaitKind::NameQuestion, WaitKind::FullPipe, WaitKind::FileLock] {
        let told = as_slow_alone(kind, 8, 8);
        assert!(is_choked(&told), "{kind:?}: {}", told.summary);
    }
    // A request's own time.
    for kind in [WaitKind::Timer, WaitKind::Disk, WaitKind::Child] {
        assert!(!is_choked(&as_slow_alone(kind, 8, 8)), "{kind:?}");
    }
    // Of three looks all must find it, of two nothing is said.
    let choked = |found, looks| is_choked(&as_slow_alone(WaitKind::NameServer, found, looks));
    assert_eq!([choked(3, 3), choked(2, 3), choked(4, 4), choked(3, 4), choked(2, 2)], [true, false, true, false, false]);
}

/// A database with a process for each of a hundred sessions: so many wait for a lock that another transaction has, and the others for their clients or for nothing that is seen.
fn sessions(waiting: u32, idle: u32) -> chokepoint_model::report::Diagnosis {
    let mut obs = under_load(995_000, &|_| at_random(100, 1_000));
    let view = obs.processes.get_mut(&42).unwrap();
    for look in 0..9 {
        let object = Some("UPDATE".to_owned());
        let wait = ThreadWait { kind: WaitKind::Transaction, is_main: false, threads: waiting, other: None, object };
        let waits = if waiting > 0 { vec![wait] } else { Vec::new() };
        let call = Some("epoll_wait".into());
        let sessions = Some(Sessions { all: 100, idle, open: 0 });
        view.syscall.push(2_000_000 + look * 900_000, Reading::Ok(Syscall { call, waits, sessions, ..Syscall::default() }));
    }
    obs.netns.get_mut(&SERVER).unwrap().sockets.push(5_000_000, Reading::Ok(Vec::new()));
    told(&obs)
}

#[test]
fn sessions_that_wait_for_another_transaction_are_a_cause_where_they_are_many() {
    let found = sessions(60, 30);
    let words = "for a lock that another transaction has (UPDATE)";
    assert!(is_choked(&found) && found.findings[0].title.ends_with(words), "{} {:?}", found.summary, found.findings);
    let fix = found.findings[0].remedies[0].text.as_str();
    assert!(fix.contains("pg_blocking_pids"), "{fix}");
    // A lock now and then, and sessions that only work.
    for (waiting, idle) in [(2, 60), (0, 0), (0, 90)] {
        assert!(!is_choked(&sessions(waiting, idle)), "{waiting} {idle}");
    }
}

/// A database with a process for each of twenty sessions, which hold no listener: at so many of ten looks a process waits for a lock that they share, but for the first, which waits for
/// this.
fn sessions_at(share: f64, first: Option<WaitKind>) -> chokepoint_model::report::Diagnosis {
    let mut obs = under_load(200_000, &|_| at_random(100, 1_000));
    pool::process(&mut obs, 42, 1, "postgres", &[100]);
    let mut connections = Vec::new();
    for n in 0..20_u32 {
        let (pid, inode) = (43 + n, 5_000 + u64::from(n));
        pool::process(&mut obs, pid, 42, "postgres", &[inode]);
        let address = SocketAddress::Tcp { local: (ip(SERVER_IP), 80), remote: (ip("10.0.0.1"), 30_000 + n as u16) };
        let state = chokepoint_model::observation::TcpState::Established;
        connections.push(Socket { address, state, inode, uid: None, receive_queue: 0, send_queue: 0, wait: None });
        for look in 0..10_u64 {
            let kind = match first {
                Some(kind) if n == 0 => Some(kind),
                _ => ((look as f64) < 10.0 * share).then_some(WaitKind::SharedLock),
            };
            let waits = kind.map(|kind| ThreadWait { kind, is_main: true, threads: 1, other: None, object: None });
            let call = Syscall { call: Some("futex".to_owned()), waits: waits.into_iter().collect(), ..Syscall::default() };
            obs.processes.get_mut(&pid).unwrap().syscall.push(2_000_000 + look * 900_000, Reading::Ok(call));
        }
    }
    obs.netns.get_mut(&SERVER).unwrap().sockets.push(5_000_000, Reading::Ok(connections));
    told(&obs)
}

#[test]
fn what_the_processes_of_sessions_wait_for_is_named_with_what_the_holder_of_their_lock_waits_for() {
    let title = |diagnosis: &chokepoint_model::report::Diagnosis| {
        diagnosis.findings.first().map(|finding| finding.title.clone()).unwrap_or_default()
    };
    let lock = "for a lock in memory that processes share (futex)";
    let held = sessions_at(1.0, Some(WaitKind::Disk));
    assert!(is_choked(&held) && title(&held).ends_with(&format!("{lock}, while one of them waits for the disk")), "{}", held.summary);
    assert!(
        held.findings[0]
            .evidence
            .iter()
            .any(|evidence| evidence.text.starts_with("1 of its processes, on average, waited meanwhile for the disk"))
    );
    // What the holder does is not seen, or it computes.
    for first in [None, Some(WaitKind::Timer)] {
        let open = sessions_at(0.9, first);
        assert!(is_choked(&open) && title(&open).ends_with(lock), "{first:?}: {}", open.summary);
    }
    assert!(!title(&sessions_at(0.1, None)).contains("futex"), "hardly anybody waits");
}
