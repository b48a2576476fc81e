//! Event loops that accept a limited number of connections before another server: it has no workers, and what holds its clients back is that number, unless the server behind
//! is seen at a limit.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{Observation, RequestSample, SocketAddress};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Role};

use crate::stage::blocked::{BEHIND, DATABASE, behind};
use crate::stage::held::exchanged;
use crate::stage::pool::{files, tcp, threads};
use crate::stage::*;

/// Watched: an event loop (the pool's only process, with four threads) that holds 40 connections at most, and has a request of each at a server behind. `queued` connections wait
/// to be accepted there.
fn passes_on(queued: u32) -> Observation {
    let mut obs = threads(4, 40, 0.3, 0.2);
    (obs.load, obs.request.loaded) = (None, false);
    behind(&mut obs, 1, 40, queued);
    let call = |n: u16| tcp(2_000 + u64::from(n), (ip("10.0.0.2"), 30_000 + n), (ip(BEHIND), 5432));
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.sockets.points().to_vec();
    view.sockets = Default::default();
    for (at, mut sockets) in points {
        sockets.extend((0..40).map(call));
        view.sockets.push(at, Reading::Ok(sockets));
    }
    let held: Vec<u64> = (1_000..1_040).chain(2_000..2_040).chain([200]).collect();
    files(&mut obs, 50, &held);
    let asked = |inode: u64, local, remote, turned: bool| {
        let (received_ms, sent_ms) = if turned { (400, 8) } else { (8, 400) };
        exchanged(SocketAddress::Tcp { local, remote }, inode, inode, received_ms, sent_ms)
    };
    for number in 0..48 {
        let at = WINDOW.0 + 100_000 + number * 200_000;
        let whole = |sockets| RequestSample { share: 1.0, handshake_share: 1.0, sockets, ..RequestSample::default() };
        let front = (0..40_u16).map(|n| asked(1_000 + u64::from(n), (ip("127.0.0.1"), 9000), (ip("127.0.0.1"), 40_000 + n), false));
        let calling = (0..40_u16).map(|n| asked(2_000 + u64::from(n), (ip("10.0.0.2"), 30_000 + n), (ip(BEHIND), 5432), true));
        let served = (0..40_u16).map(|n| asked(3_000 + u64::from(n), (ip(BEHIND), 5432), (ip("10.0.0.2"), 30_000 + n), false));
        obs.netns.get_mut(&SERVER).unwrap().request_samples.push(at, Reading::Ok(whole(front.chain(calling).collect())));
        obs.netns.get_mut(&DATABASE).unwrap().request_samples.push(at, Reading::Ok(whole(served.collect())));
    }
    obs
}

#[test]
fn a_limit_of_connections_before_a_server_that_shows_none_is_the_cause() {
    let diagnosis = told(&passes_on(0));
    assert_eq!(causes(&diagnosis), ["worker-pool-exhausted"]);
    let cause = &diagnosis.findings[0];
    assert!(cause.title.ends_with("accepts at most 40 connections at a time"), "{}", cause.title);
    assert_eq!(cause.confidence, Confidence::Medium, "the server behind may be at a limit that nothing shows");
    assert!(cause.explanation.contains("40 of these had a request at database: raise that limit if"), "{}", cause.explanation);
    let fix = &cause.remedies[0].text;
    assert!(fix.starts_with("If a single request to database") && fix.contains("instead of 40"), "{fix}");
    let words = format!("{} {}", cause.title, cause.explanation);
    assert!(!words.contains("worker"), "an event loop has none: {words}");
}

#[test]
fn a_server_behind_at_its_limit_is_the_place_to_look() {
    let diagnosis = told(&passes_on(3));
    let cause = &diagnosis.findings[0];
    assert_eq!((cause.id.as_str(), cause.role), ("workers-blocked-on-upstream", Role::Cause));
    let words = format!("{} {}", cause.title, cause.explanation);
    assert!(
        words.contains("the connections that php-fpm holds wait for database") && !words.contains("workers of php-fpm were taken"),
        "{words}"
    );
}
