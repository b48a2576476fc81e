//! Few threads or sockets that ask a name server, before which many requests wait: pools of threads that ask, and look-ups that serve all who ask for the same name.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{CpuUse, Syscall, ThreadCalls, ThreadTimes, ThreadWait, WaitKind};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::Diagnosis;
use proptest::prelude::*;

use super::{at_random, is_choked, under_load};
use crate::stage::*;

const LOOKS: u64 = 9;
const NAME_SERVER: &str = "192.0.2.53:53";

/// A server with a hundred requests inside, each answered after a second as a single one is, and what is seen of its questions.
struct Case<'a> {
    kind: WaitKind,
    /// How many ask at each look, and the inode of the first of their sockets; 0 where it is not told.
    asking: &'a dyn Fn(u64) -> (u32, u32),
    /// Datagrams that its namespace sends and gets in a second, in hundredths.
    sent: i64,
    answered: i64,
}

impl Case<'_> {
    fn told(&self) -> Diagnosis {
        let mut obs = under_load(995_000, &|_| at_random(100, 1_000));
        let process = obs.processes.get_mut(&42).unwrap();
        process.cpu = Default::default();
        for second in 0..=11 {
            let times = vec![ThreadTimes { id: 42, run_ns: second * 20_000_000, delay_ns: 0 }];
            process.cpu.push(second * 1_000_000, Reading::Ok(CpuUse { thread_times: times, threads: 21, ..CpuUse::default() }));
        }
        for look in 0..LOOKS {
            let (number, first) = (self.asking)(look);
            let wait = |threads: u32, other: Option<u32>| ThreadWait {
                kind: self.kind,
                is_main: false,
                threads,
                other,
                object: Some(NAME_SERVER.to_owned()),
            };
            let waits = if first > 0 {
                (0..number).map(|n| wait(1, Some(first + n))).collect()
            } else {
                (number > 0).then(|| wait(number, None)).into_iter().collect()
            };
            let threads = ThreadCalls { looked: 20, ..ThreadCalls::default() };
            let call = Syscall { call: Some("epoll_wait".into()), threads, waits, ..Syscall::default() };
            process.syscall.push(2_000_000 + look * 900_000, Reading::Ok(call));
        }
        let view = obs.netns.get_mut(&SERVER).unwrap();
        view.sockets.push(5_000_000, Reading::Ok(Vec::new()));
        view.netstat = Default::default();
        for second in 0..=11 {
            let counters = [("Udp.OutDatagrams", self.sent), ("Udp.InDatagrams", self.answered), ("Tcp.PassiveOpens", 0)];
            let counters = counters.map(|(name, of_second)| (name.to_owned(), of_second * second as i64 / 100));
            view.netstat.push(second * 1_000_000, Reading::Ok(counters.into_iter().collect()));
        }
        told(&obs)
    }
}

fn names_it(told: &Diagnosis) -> bool {
    is_choked(told) && told.findings[0].title.contains(NAME_SERVER)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A pool of threads (libuv: two of four, an executor) asks for all: each of a hundred requests a second sends its questions, slow or lost ones.
    #[test]
    fn a_pool_that_asks_holds_up_those_that_wait_for_their_turn(threads in 1..20_u32, each in 1..4_i64, is_lost in any::<bool>(), missed in 0..LOOKS) {
        let sent = 100 * 100 * each + 500;
        let asking = |look: u64| if look == missed { (threads / 2, 0) } else { (threads, 0) };
        let told = Case { kind: WaitKind::NameServer, asking: &asking, sent, answered: if is_lost { 0 } else { sent } }.told();
        prop_assert!(names_it(&told), "{} {:?}", told.summary, told.findings);
    }

    /// One look-up at a time for all who ask for the name: a question lasts for as long as requests take, and is sent from a new socket.
    #[test]
    fn a_shared_question_holds_up_all_who_ask_for_the_name(number in 1..4_u32, questions in 1..5_u32, lasts_ms in 500..1_800_u32) {
        let sent = i64::from(number * questions) * 100_000 / i64::from(lasts_ms);
        // A look-up of six questions takes a request's second.
        prop_assume!(1_000 * questions < 5_500 * lasts_ms / 1_000);
        let asking = |look: u64| (number, 1_000 + 50 * look as u32);
        let told = Case { kind: WaitKind::NameQuestion, asking: &asking, sent, answered: sent }.told();
        prop_assert!(names_it(&told), "{} {:?}", told.summary, told.findings);
    }

    /// Sockets that a resolver keeps for its next question (nginx, HAProxy, c-ares): every look finds them.
    #[test]
    fn kept_sockets_ask_nothing(number in 1..4_u32, sent in 0..20_000_i64, lost in 0..20_000_i64) {
        let told = Case { kind: WaitKind::NameQuestion, asking: &|_| (number, 77), sent, answered: (sent - lost).max(0) }.told();
        prop_assert!(!is_choked(&told), "{} {:?}", told.summary, told.findings);
    }

    /// Each request asks, is answered within milliseconds, and waits for something else.
    #[test]
    fn quick_questions_are_not_what_requests_wait_for(seed in 0..1_000_u64, each in 2..5_i64) {
        let asking = |look: u64| (super::mixed(seed * 100 + look) as u32 % 3, 1_000 + 50 * look as u32);
        let sent = 100 * 100 * each;
        // A look-up that lasts no time is seen by chance, not as often as the most at once.
        prop_assume!((0..LOOKS).filter(|look| asking(*look).0 == 2).count() < 4);
        prop_assume!((0..LOOKS).any(|look| asking(look).0 == 2));
        let told = Case { kind: WaitKind::NameQuestion, asking: &asking, sent, answered: sent }.told();
        prop_assert!(!is_choked(&told), "{} {:?}", told.summary, told.findings);
    }

    /// A thread of its own asks for something that no request needs, now and then.
    #[test]
    fn a_question_now_and_then_is_not_what_requests_wait_for(every in 3..9_u64, is_lost in any::<bool>()) {
        let asking = |look: u64| (u32::from(look.is_multiple_of(every)), 0);
        let told = Case { kind: WaitKind::NameServer, asking: &asking, sent: 100, answered: if is_lost { 0 } else { 100 } }.told();
        prop_assert!(!is_choked(&told), "{} {:?}", told.summary, told.findings);
    }
}

#[test]
fn without_the_counters_of_datagrams_nothing_is_said() {
    let mut obs = under_load(995_000, &|_| at_random(100, 1_000));
    obs.netns.get_mut(&SERVER).unwrap().netstat = Default::default();
    assert!(!is_choked(&told(&obs)));
    let full = Case { kind: WaitKind::NameServer, asking: &|_| (4, 0), sent: -1, answered: -1 };
    assert!(!is_choked(&full.told()));
}
