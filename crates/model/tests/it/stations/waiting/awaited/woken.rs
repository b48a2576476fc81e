//! Sessions that wait until a time: those that are woken before wait for another thread, the others sleep.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{
    CpuUse, LookedThread, Observation, Syscall, ThreadAt, ThreadCalls, ThreadLook, ThreadTimes, TimedWait,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Diagnosis, Verdict};

use super::super::{ACCEPTED, at_random, evenly, is_choked, seen, under_load};
use crate::stage::*;

/// How the waits of threads end.
#[derive(Clone, Copy, PartialEq)]
enum Wait {
    /// Another thread wakes them, and they soon wait again until a time that is a minute away.
    Woken,
    /// Each is there until its time.
    Long,
    /// They sleep for 20 ms, again and again.
    Short,
}

/// A database with threads for its sessions: so many wait, so many for their clients, so many do nothing at all, and so many work.
struct Threads {
    wait: Wait,
    waiting: u32,
    at_clients: u32,
    still: u32,
    working: u32,
    /// True if the first look found all that wait at their clients.
    first_at_client: bool,
}

impl Threads {
    const SESSIONS: Self = Self { wait: Wait::Woken, waiting: 19, at_clients: 12, still: 8, working: 0, first_at_client: false };

    fn at(&self, id: u32, look: u64) -> ThreadAt {
        let (end, left_ms) = match self.wait {
            Wait::Woken => (look, 60_000 - u64::from(id)),
            Wait::Long => (0, 60_000 - 250 * look),
            Wait::Short => (look, 20 - u64::from(id) % 20),
        };
        match id - 43 {
            n if n < self.waiting && look == 0 && self.first_at_client => ThreadAt::Socket,
            n if n < self.waiting => ThreadAt::Until(TimedWait { place: 0x40, end: end as u32, left_ms }),
            n if n < self.waiting + self.at_clients => ThreadAt::Socket,
            n if n < self.waiting + self.at_clients + self.still => ThreadAt::Untimed,
            _ => ThreadAt::Other,
        }
    }

    fn of(&self, mut obs: Observation) -> Diagnosis {
        pool::process(&mut obs, 42, 1, "server", &[100, ACCEPTED]);
        let others = self.waiting + self.at_clients + self.still + self.working;
        let view = obs.processes.get_mut(&42).unwrap();
        view.cpu = Default::default();
        for second in 0..=11 {
            let is_still = |id: u32| (self.waiting + self.at_clients + 1..).contains(&(id - 42)) && id - 42 <= others - self.working;
            let times = |id: u32| ThreadTimes { id, run_ns: if is_still(id) { 0 } else { second * 100_000 }, delay_ns: 0 };
            let thread_times = (42..=42 + others).map(times).collect();
            view.cpu.push(second * 1_000_000, Reading::Ok(CpuUse { thread_times, threads: others + 1, ..CpuUse::default() }));
            let threads = ThreadCalls { looked: 16, ..ThreadCalls::default() };
            let call = Syscall { call: Some("poll".to_owned()), threads, ..Syscall::default() };
            view.syscall.push(second * 1_000_000, Reading::Ok(call));
        }
        for look in 0..=44 {
            let threads = (43..43 + others).map(|id| LookedThread { id, at: self.at(id, look) }).collect();
            let look = ThreadLook { clock_ms: 250 * look, others, threads };
            view.thread_looks.push(look.clock_ms * 1_000, Reading::Ok(look));
        }
        obs.netns.get_mut(&SERVER).unwrap().sockets.push(5_000_000, Reading::Ok(Vec::new()));
        told(&obs)
    }

    /// Watched, with twenty requests inside.
    fn watched(&self) -> Diagnosis {
        self.of(seen(&|_| evenly(20, 10)))
    }

    /// Under a load of a hundred connections, whose requests take much longer than one alone.
    fn loaded(&self) -> Diagnosis {
        self.of(under_load(40_000, &|_| at_random(100, 1_000)))
    }
}

const LOCK: &str = "for a lock that another session has";

#[test]
fn sessions_whose_waits_others_end_wait_for_a_lock() {
    let found = Threads::SESSIONS.watched();
    assert!(is_choked(&found), "{}", found.summary);
    let finding = &found.findings[0];
    assert!(finding.title.ends_with(LOCK), "{}", finding.title);
    assert!(
        finding.evidence.iter().any(|evidence| evidence.text.contains("another thread had ended their wait")),
        "{:?}",
        finding.evidence
    );
    assert!(finding.remedies[0].text.contains("SHOW FULL PROCESSLIST"), "{}", finding.remedies[0].text);
    let loaded = Threads { waiting: 99, ..Threads::SESSIONS }.loaded();
    assert!(is_choked(&loaded) && loaded.findings[0].title.ends_with(LOCK), "{}", loaded.summary);
}

#[test]
fn sessions_that_sleep_wait_for_no_lock() {
    for wait in [Wait::Long, Wait::Short] {
        let told = Threads { wait, ..Threads::SESSIONS }.watched();
        assert!(told.verdict == Verdict::Unknown && !told.summary.contains("lock that"), "{}", told.summary);
        let loaded = Threads { wait, waiting: 99, ..Threads::SESSIONS }.loaded();
        assert!(!loaded.findings[0].title.contains("lock"), "{}", loaded.findings[0].title);
    }
    // A few of many, beside requests that something else holds.
    let few = Threads { waiting: 4, ..Threads::SESSIONS }.watched();
    assert_eq!(few.verdict, Verdict::Unknown, "{}", few.summary);
}

/// Threads of the server's own are woken for work as well: as long as others may serve the requests, all that wait may be those.
#[test]
fn threads_that_may_serve_nobody_explain_nothing() {
    let with = |working: u32| Threads { waiting: 60, at_clients: 0, still: 0, working, ..Threads::SESSIONS }.watched();
    assert!(is_choked(&with(0)), "nobody else is there: {}", with(0).summary);
    assert_eq!(with(40).verdict, Verdict::Unknown, "{}", with(40).summary);
    // Each of them was seen to wait for a client.
    let served = Threads { waiting: 60, at_clients: 0, still: 0, working: 40, first_at_client: true, ..Threads::SESSIONS }.watched();
    assert!(is_choked(&served), "{}", served.summary);
}
