//! Watched requests that come in bursts: what is idle between them is of no use to those who come in one.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::RequestSocket;
use chokepoint_model::report::Verdict;
use proptest::prelude::*;

use super::{client, evenly, mixed, watched};

/// So many connections: all with a request that is not read, or one with a request and the others idle.
fn burst(number: u16, is_now: bool) -> Vec<RequestSocket> {
    if is_now {
        return evenly(number, 10).into_iter().map(|socket| RequestSocket { receive_queue: 100, ..socket }).collect();
    }
    evenly(1, 10).into_iter().chain((1..number).map(|other| client(other, 60, false))).collect()
}

#[test]
fn connections_that_are_idle_between_bursts_do_not_make_a_server_healthy() {
    for (every, number) in [(2, 20), (3, 40), (4, 64)] {
        let bursts = watched(&|n| burst(number, n % every == 0));
        let told = bursts.summary.contains("spare") || bursts.summary.contains("asked for nothing");
        assert!(bursts.verdict != Verdict::Healthy && !told, "{number}: {}", bursts.summary);
    }
    // A single burst is over.
    let once = watched(&|n| burst(40, (20..22).contains(&n)));
    assert_eq!(once.verdict, Verdict::Healthy, "{}", once.summary);
}

/// Clients whose requests came at once: the first are worked on, and the others not read.
fn at_once(served: u16, unread: u16) -> Vec<RequestSocket> {
    let all = (0..served + unread).map(|n| client(n, 8 + u64::from(n % 3) * 4, true));
    all.enumerate().map(|(n, socket)| RequestSocket { receive_queue: if n < served.into() { 0 } else { 100 }, ..socket }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// As many are worked on whenever others wait, and more of them wait: these are all that there are.
    #[test]
    fn threads_that_are_all_taken_by_bursts_are_counted(threads in 2_u16..24, more in 2_u16..60, every in 2_u64..6) {
        let told = watched(&|n| if n.is_multiple_of(every) { at_once(threads, threads + more) } else { Vec::new() });
        let expected = format!("works on {threads} requests at once");
        prop_assert!(told.verdict == Verdict::Unknown && told.summary.contains(&expected), "{}", told.summary);
    }

    /// Any number that changes from one burst to the next is no number of threads, and few that wait are those of a place that is used.
    #[test]
    fn a_number_that_varies_is_no_number_of_threads(most in 8_u16..24, every in 2_u64..6, seed in 0_u64..1_000, few in 1_u16..4) {
        let served = |n: u64| 1 + (mixed(seed + n) % u64::from(most)) as u16;
        let varies = watched(&|n| if n.is_multiple_of(every) { at_once(served(n), most + 9) } else { Vec::new() });
        // By chance three quarters of so many numbers are near the highest now and then: none are in the draws below it.
        let near = (0..50_u64).filter(|n| n.is_multiple_of(every) && 4 * served(*n) >= 3 * most).count();
        prop_assume!(2 * near < 50 / every as usize);
        prop_assert!(!varies.summary.contains("requests at once and on no more"), "{}", varies.summary);
        let used = watched(&|n| if n.is_multiple_of(every) { at_once(most, few) } else { Vec::new() });
        prop_assert!(!used.summary.contains("requests at once and on no more"), "{}", used.summary);
    }
}
