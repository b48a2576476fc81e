//! Watched event loops that leave requests unread: choked where nothing of them runs meanwhile, silent where they read as soon as they have time.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{CpuUse, RequestSocket, Syscall, ThreadTimes, ThreadWait, WaitKind};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Diagnosis, Verdict};

use super::{client, is_choked, later, mixed, seen};
use crate::stage::*;

/// Sixteen clients in a closed loop. In this share of the samples ten of their requests are unread, with so many bytes; each request has a hundred.
fn loop_with(share: f64, busy: f64, unread_bytes: u32, waits: Option<WaitKind>) -> Diagnosis {
    loop_of(share, busy, (unread_bytes, 1), waits)
}

/// The same, with requests that are so many times as long.
fn loop_of(share: f64, busy: f64, (unread_bytes, times): (u32, u64), waits: Option<WaitKind>) -> Diagnosis {
    let sockets = |sample: u64| -> Vec<RequestSocket> {
        let is_late = (mixed(sample) % 1_000) as f64 <= 1_000.0 * share;
        let of = |n: u16| {
            let age_ms = 4 + mixed(u64::from(n) + sample) % 100 / 4 * 4;
            let mut socket = later(client(n, age_ms, true), 5 * sample);
            if let Some(read) = socket.times.as_mut() {
                read.bytes_received = read.bytes_received.map(|bytes| times * bytes);
            }
            RequestSocket { receive_queue: if is_late && n < 10 { unread_bytes } else { 0 }, ..socket }
        };
        (0..16).map(of).collect()
    };
    let mut obs = seen(&sockets);
    obs.netns.get_mut(&SERVER).unwrap().sockets.push(5_000_000, Reading::Ok(Vec::new()));
    let view = obs.processes.get_mut(&42).unwrap();
    view.cpu = Default::default();
    for second in 0..=11 {
        let times = vec![ThreadTimes { id: 42, run_ns: (second as f64 * busy * 1e9) as u64, delay_ns: 0 }];
        view.cpu.push(second * 1_000_000, Reading::Ok(CpuUse { thread_times: times, threads: 1, ..CpuUse::default() }));
        let wait = |kind| ThreadWait { kind, is_main: true, threads: 1, other: None, object: None };
        let call = Some(if waits.is_some() { "clock_nanosleep" } else { "epoll_wait" }.to_owned());
        let waits = waits.into_iter().map(wait).collect();
        view.syscall.push(second * 1_000_000, Reading::Ok(Syscall { call, waits, ..Syscall::default() }));
    }
    told(&obs)
}

#[test]
fn requests_that_stand_unread_while_nothing_runs_wait_for_the_loop() {
    for busy in [0.05, 0.3, 0.5] {
        for share in [0.9, 1.0] {
            let found = loop_with(share, busy, 100, None);
            assert!(is_choked(&found), "{share} unread, {busy} busy: {}", found.summary);
            assert!(found.findings[0].title.ends_with(", or until it reads them"), "{}", found.findings[0].title);
        }
    }
    // A loop that reads whatever has come before it waits again has unread requests only while it runs.
    for busy in [0.05, 0.2, 0.4, 0.6] {
        for part in [0.0, 0.5, 1.0] {
            let quiet = loop_with(part * busy, busy, 100, None);
            assert!(!is_choked(&quiet), "{part} of {busy}: {:#?}", quiet.findings);
        }
    }
    // What is left of a long body stands there until the server wants it.
    assert!(!is_choked(&loop_with(1.0, 0.05, 40_000, None)));
    // So does the whole body of each, where the header was read.
    assert!(!is_choked(&loop_of(1.0, 0.05, (190_000, 2_000), None)));
}

#[test]
fn what_the_only_thread_waits_for_is_the_cause_for_all_of_its_requests() {
    for kind in [WaitKind::Timer, WaitKind::Disk, WaitKind::Child] {
        let found = loop_with(0.0, 0.05, 100, Some(kind));
        assert!(is_choked(&found), "{kind:?}: {}", found.summary);
        assert!(found.findings[0].title.contains("whose serving thread waits for"), "{}", found.findings[0].title);
    }
    assert_eq!(loop_with(0.0, 0.05, 100, None).verdict, Verdict::Unknown);
}
