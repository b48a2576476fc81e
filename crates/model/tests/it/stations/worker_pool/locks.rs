//! Threads of a full pool that wait for other threads of their process, seen by their system calls: more of them would wait as well.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{CpuUse, Syscall, ThreadCalls};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Role};

use crate::stage::held::{all_taken, calls};
use crate::stage::*;

#[test]
fn threads_that_wait_for_one_lock_are_not_too_few() {
    for calls in [calls(15, 15, 15), calls(15, 0, 15)] {
        let diagnosis = told(&all_taken(calls));
        assert_eq!(causes(&diagnosis), ["workers-wait-for-each-other"], "{calls:?}");
        let (cause, symptom) = (&diagnosis.findings[0], &diagnosis.findings[1]);
        assert_eq!((symptom.id.as_str(), symptom.role), ("worker-pool-exhausted", Role::Symptom));
        assert_eq!(cause.confidence, Confidence::High);
        assert!(cause.title.contains("30 of the 32 threads") && cause.title.contains("one lock"), "{}", cause.title);
        assert!(cause.remedies.iter().all(|remedy| remedy.id == "look-inside"), "no advice of threads");
    }
}

/// Each waiter of a semaphore or a queue of Python has a lock of its own.
#[test]
fn threads_that_wait_for_others_without_an_end_are_not_too_few() {
    let diagnosis = told(&all_taken(calls(14, 14, 0)));
    assert_eq!((causes(&diagnosis), diagnosis.findings[0].confidence), (vec!["workers-wait-for-each-other"], Confidence::Medium));
    assert!(diagnosis.findings[0].title.contains("wait for other threads of it"), "{}", diagnosis.findings[0].title);
}

#[test]
fn threads_that_wait_for_a_time_of_their_own_or_for_sockets_are_too_few() {
    for (calls, why) in [
        (calls(0, 0, 0), "for sockets, disks, timers"),
        (calls(16, 0, 0), "until a time each (Java's Thread.sleep)"),
        (calls(6, 6, 6), "fewer than half"),
        (ThreadCalls::default(), "not looked at"),
    ] {
        assert_eq!(causes(&told(&all_taken(calls))), ["worker-pool-exhausted"], "{why}");
    }
}

/// Idle threads of a pool wait for work at one lock, too: as many as are not taken may be those.
#[test]
fn threads_that_may_wait_for_work_are_not_counted() {
    let mut obs = all_taken(calls(11, 11, 11));
    let process = obs.processes.get_mut(&42).unwrap();
    let used: Vec<_> = process.cpu.points().to_vec();
    process.cpu = Default::default();
    for (at, used) in used {
        process.cpu.push(at, Reading::Ok(CpuUse { threads: 65, ..used }));
    }
    assert_eq!(causes(&told(&obs)), ["worker-pool-exhausted"], "44 of 64 wait so, and 32 are not taken: 12 of 32 are too few");
    // All 64 do.
    let process = obs.processes.get_mut(&42).unwrap();
    process.syscall = Default::default();
    for second in 0..=11_u64 {
        let call = Syscall { call: Some("epoll_wait".to_owned()), threads: calls(16, 16, 16), ..Syscall::default() };
        process.syscall.push(second * 1_000_000, Reading::Ok(call));
    }
    assert_eq!(causes(&told(&obs)), ["workers-wait-for-each-other"]);
}
