//! Watched requests that come in bursts: what is idle between them is of no use to those who come in one.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::RequestSocket;
use chokepoint_model::report::Verdict;

use super::{client, evenly, watched};

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
