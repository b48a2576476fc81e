//! Finding `calls-repeated`: a server behind another one is asked again and again for the same request, because the calls fail.
//!
//! Deterministic: observations made up by the tests.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use chokepoint_model::observation::{Observation, RequestSocket, RequestTimes, SocketAddress, TcpState, WireAnswers};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Role};
use proptest::prelude::*;

use super::{FRONT, GOOD, proxied};
use crate::stage::pool::process;
use crate::stage::*;

const FOUND: &str = "calls-repeated";

/// The calling end of a connection of nginx (process 42): its request was sent last, and so many were answered.
fn calling(n: u64, (state, inode): (TcpState, u64), answered: u64) -> RequestSocket {
    let times = RequestTimes {
        last_data_sent_ms: 40,
        last_data_recv_ms: 44,
        data_segs_out: Some(answered + 1),
        data_segs_in: Some(answered),
        bytes_sent: Some(100 * (answered + 1)),
        bytes_received: Some(200 * answered),
        min_rtt_us: Some(20),
        rtt_us: Some(50),
        ..RequestTimes::default()
    };
    RequestSocket {
        address: SocketAddress::Tcp { local: (ip("127.0.0.1"), 31_000 + (n % 30_000) as u16), remote: (ip(GOOD.0), GOOD.1) },
        cookie: 50_000_000 + n,
        state,
        inode,
        receive_queue: 0,
        send_queue: 0,
        times: Some(times),
    }
}

/// nginx with 20 requests in each quarter of a second before a server that answers them so. `waiting` calls wait for an answer at once, and so many are found left in each sample, in
/// this state.
fn asked(front: &[(u16, u64)], behind: &[(u16, u64)], waiting: u64, (left, how): (u64, (TcpState, u64))) -> Observation {
    let mut obs = proxied(|number| {
        let open = (0..waiting).map(|n| calling(n, (TcpState::Established, 500), number));
        open.chain((0..left).map(|n| calling(1_000 + number * left + n, how, 0))).collect()
    });
    // The other server does other work.
    process(&mut obs, 51, 1, "redis", &[201, 9]);
    let counts = |all: &[(u16, u64)]| all.iter().copied().collect::<BTreeMap<u16, u64>>();
    let servers: BTreeMap<SocketAddr, BTreeMap<u16, u64>> =
        [(FRONT, front), (GOOD, behind)].into_iter().map(|((host, port), all)| (SocketAddr::new(ip(host), port), counts(all))).collect();
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for turn in 1..=40_u64 {
        let counted = WireAnswers { open_us: 250_000, servers: servers.clone(), ..WireAnswers::default() };
        view.answers.push(turn * 250_000, Reading::Ok(counted));
    }
    let load = obs.load.as_mut().unwrap();
    load.status = front.iter().map(|(status, number)| (*status, 40 * number)).collect();
    (load.requests, load.good) = (load.status.values().sum(), load.status.get(&200).copied().unwrap_or(0));
    obs
}

const OPEN: (u64, (TcpState, u64)) = (0, (TcpState::FinWait2, 0));

fn finds(obs: &Observation) -> bool {
    told(obs).findings.iter().any(|finding| finding.id == FOUND)
}

#[test]
fn errors_that_the_clients_do_not_see_are_told_with_the_number_of_calls() {
    let diagnosis = told(&asked(&[(200, 20)], &[(200, 20), (503, 40)], 40, OPEN));
    let found = diagnosis.findings.iter().find(|finding| finding.id == FOUND).unwrap();
    assert_eq!(found.title, "nginx asks node 3 times for each request: 66.7 % of these calls fail with an error");
    assert_eq!((found.role, found.confidence), (Role::Cause, Confidence::High));
    assert!(found.remedies[0].text.contains("proxy_next_upstream_tries 2"), "{}", found.remedies[0].text);
}

#[test]
fn calls_that_are_given_up_and_made_again_are_told() {
    // 80 requests a second, and 32 calls are left in a fifth of one.
    let diagnosis = told(&asked(&[(200, 20)], &[(200, 60)], 40, (32, (TcpState::FinWait2, 0))));
    let found = diagnosis.findings.iter().find(|finding| finding.id == FOUND).unwrap();
    assert!(found.title.contains("for each request: it gives up"), "{}", found.title);
    assert!(found.evidence[1].text.starts_with("node sent 3 responses for each request of nginx"), "{}", found.evidence[1].text);
    // What would not keep up if it were asked once is no matter of the calls.
    let slow = told(&asked(&[(504, 20)], &[(200, 5)], 40, (32, (TcpState::FinWait2, 0))));
    assert!(!slow.findings.iter().any(|finding| finding.id == FOUND));
    assert!(slow.warnings.iter().any(|note| note.contains("times for each request, at least")), "{:?}", slow.warnings);
}

#[test]
fn several_calls_that_are_answered_are_no_repetition() {
    assert!(!finds(&asked(&[(200, 20)], &[(200, 100)], 40, OPEN)), "a request asks five things");
    assert!(!finds(&asked(&[(200, 20)], &[(200, 80), (503, 20)], 40, OPEN)), "one of five always fails, and nobody needs it");
    assert!(!finds(&asked(&[(200, 6), (502, 14)], &[(200, 6), (503, 14)], 40, OPEN)), "a failed call fails its request");
    assert!(!finds(&asked(&[(200, 20)], &[(200, 6), (503, 14)], 40, OPEN)), "a failed call is done without");
    assert!(!finds(&asked(&[(200, 20)], &[(200, 20), (503, 40)], 120, OPEN)), "the calls of a request stand beside each other");
    assert!(!finds(&asked(&[(200, 20)], &[(200, 60)], 40, (32, (TcpState::FinWait2, 500)))), "what only says that it sends no more");
    assert!(!finds(&asked(&[(504, 20)], &[(200, 20)], 40, (16, (TcpState::FinWait2, 0)))), "each request gives up its only call");
}

#[test]
fn nothing_is_said_of_calls_that_were_not_read() {
    let mut unread = asked(&[(200, 20)], &[(200, 20), (503, 40)], 40, OPEN);
    unread.netns.get_mut(&SERVER).unwrap().answers = Default::default();
    assert!(!finds(&unread));
}

proptest! {
    #[test]
    fn it_is_told_from_a_quarter_more_calls_than_requests_on(bad in 0_u64..60) {
        // The number at the border is one that rounding decides.
        prop_assume!(bad != 5);
        prop_assert_eq!(finds(&asked(&[(200, 20)], &[(200, 20), (503, bad)], 40, OPEN)), bad > 5);
    }
}
