//! Workers that keep connections to a database: where their requests stand is told by what they wait for, not by the connections, which look the same with and without a statement.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{CpuUse, ListenerAddress, RequestSocket, Syscall, TcpState, ThreadWait, WaitKind};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Diagnosis, LedgerPlaceKind, Verdict};

use super::{ACCEPTED, evenly, is_choked, seen};
use crate::stage::*;

const DATABASE: &str = "/run/db.sock";
const WORKERS: u32 = 8;

/// The inode of a worker's own end of its connection, and of the database's.
fn ends(worker: u32) -> (u64, u64) {
    (600 + u64::from(worker), 700 + u64::from(worker))
}

/// Watched: eight workers with a request each, and a connection each to the database. In so many of ten looks a worker waits there, in the others for a semaphore.
fn watched(at_database: u64, threads: u32) -> Diagnosis {
    let connection = |inode: u64, (path, peer): (Option<&str>, u64)| RequestSocket {
        address: pool::unix(inode, path, peer).address,
        cookie: inode,
        state: TcpState::Established,
        inode,
        receive_queue: 0,
        send_queue: 0,
        times: None,
    };
    let mut obs = seen(&|_| {
        let pair = |worker| {
            let (own, theirs) = ends(worker);
            [connection(own, (None, theirs)), connection(theirs, (Some(DATABASE), own))]
        };
        evenly(WORKERS as u16, 10).into_iter().chain((0..WORKERS).flat_map(pair)).collect()
    });
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for (at_us, mut listeners) in std::mem::take(&mut view.listeners).points().to_vec() {
        listeners.push(listener(ListenerAddress::Unix(DATABASE.to_owned()), 300, 0, 0));
        view.listeners.push(at_us, Reading::Ok(listeners));
    }
    let pair = |worker| {
        let (own, theirs) = ends(worker);
        [pool::unix(own, None, theirs), pool::unix(theirs, Some(DATABASE), own)]
    };
    view.sockets.push(5_000_000, Reading::Ok((0..WORKERS).flat_map(pair).collect()));
    pool::process(&mut obs, 42, 1, "server", &[100]);
    for worker in 0..WORKERS {
        let pid = 43 + worker;
        let (own, _) = ends(worker);
        pool::process(&mut obs, pid, 42, "server", &[100, ACCEPTED, own]);
        let view = obs.processes.get_mut(&pid).unwrap();
        for second in 0..=11_u64 {
            view.cpu.push(second * 1_000_000, Reading::Ok(CpuUse { threads, ..CpuUse::default() }));
            let is_there = (second + 3 * u64::from(worker)) % 10 < at_database;
            let wait = ThreadWait { kind: WaitKind::Semaphore, is_main: true, threads: 1, other: None, object: None };
            let (call, sockets, waits) = if is_there { ("poll", vec![own], Vec::new()) } else { ("semop", Vec::new(), vec![wait]) };
            let call = Syscall { call: Some(call.to_owned()), sockets, waits, ..Syscall::default() };
            view.syscall.push(second * 1_000_000, Reading::Ok(call));
        }
    }
    let theirs: Vec<u64> = (0..WORKERS).map(|worker| ends(worker).1).chain([300]).collect();
    pool::process(&mut obs, 90, 1, "mariadbd", &theirs);
    told(&obs)
}

/// Mean number of requests at a place of a tier.
fn at(diagnosis: &Diagnosis, tier: &str, place: LedgerPlaceKind) -> f64 {
    let ledger = diagnosis.ledger.as_ref().unwrap();
    ledger.places.iter().filter(|at| at.tier == tier && at.place == place).map(|at| at.mean).sum()
}

#[test]
fn requests_stand_where_their_workers_wait() {
    for at_database in 0..=10 {
        let found = watched(at_database, 1);
        let all = f64::from(WORKERS);
        let share = at_database as f64 / 10.0;
        let behind = at(&found, "mariadbd", LedgerPlaceKind::Waiting);
        // Twelve looks of ten different moments each.
        assert!((behind - share * all).abs() < 0.15 * all, "{at_database}: {behind} {:#?}", found.ledger);
        assert!((at(&found, "server", LedgerPlaceKind::Waiting) + behind - all).abs() < 0.1, "{at_database}: {:#?}", found.ledger);
        assert_eq!(at(&found, "mariadbd", LedgerPlaceKind::Undecided), 0.0, "{at_database}");
        assert!(!found.warnings.iter().any(|warning| warning.contains("do not show")), "{at_database}: {:?}", found.warnings);
    }
    let elsewhere = watched(0, 1);
    assert!(is_choked(&elsewhere) && elsewhere.findings[0].title.contains("a semaphore"), "{}", elsewhere.summary);
    let there = watched(10, 1);
    assert!(there.verdict == Verdict::Unknown && there.summary.contains("wait inside mariadbd"), "{}", there.summary);
}

/// Of a process with several threads only the main thread's sockets are known.
#[test]
fn main_threads_say_nothing_of_the_others() {
    let found = watched(0, 9);
    assert!(at(&found, "mariadbd", LedgerPlaceKind::Undecided) > 7.0, "{:#?}", found.ledger);
    assert!(found.warnings.iter().any(|warning| warning.contains("do not show")), "{:?}", found.warnings);
}
