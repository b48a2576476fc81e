//! Station `waiting`: when requests waiting inside a program are the choke point, when that is unknown, and when nothing is wrong.
//!
//! Deterministic: observations made up by the tests.

use std::collections::BTreeMap;

use chokepoint_model::load::Loop;
use chokepoint_model::observation::{Observation, OpenFiles, RequestSample, RequestSocket, RequestTimes, SocketAddress, TcpState};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Diagnosis, LimitedBy, Role, Verdict};

use crate::stage::*;

const STEP_US: u64 = 200_000;
/// The inodes of connections that clients opened, and of connections that the server opened.
const ACCEPTED: u64 = 7;
const MADE: u64 = 8;

/// The sockets of the server's namespace in each sample, by its number.
type Sockets<'a> = &'a dyn Fn(u64) -> Vec<RequestSocket>;

/// A client's connection with a request of this age, or idle since the last answer.
fn client(number: u16, age_ms: u64, is_asked: bool) -> RequestSocket {
    let times = RequestTimes {
        last_data_recv_ms: age_ms,
        last_data_sent_ms: if is_asked { age_ms + 4 } else { age_ms.saturating_sub(4) },
        data_segs_in: Some(5),
        data_segs_out: Some(if is_asked { 4 } else { 5 }),
        bytes_received: Some(500),
        bytes_sent: Some(400),
        min_rtt_us: Some(20),
        ..RequestTimes::default()
    };
    RequestSocket {
        address: SocketAddress::Tcp { local: (ip(SERVER_IP), 80), remote: (ip("10.0.0.1"), 20_000 + number) },
        cookie: 1_000 + u64::from(number),
        state: TcpState::Established,
        inode: ACCEPTED,
        receive_queue: 0,
        send_queue: 0,
        times: Some(times),
    }
}

/// Clients whose requests came one after another, this many milliseconds apart.
fn evenly(count: u16, apart_ms: u64) -> Vec<RequestSocket> {
    (0..count).map(|n| client(n, 4 + u64::from(n) * apart_ms, true)).collect()
}

/// A number without a visible order (splitmix64).
fn mixed(seed: u64) -> u64 {
    let mut all = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    all = (all ^ (all >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    all = (all ^ (all >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    all ^ (all >> 31)
}

/// Clients whose requests came at random.
fn at_random(count: u16, most_ms: u64) -> Vec<RequestSocket> {
    (0..count).map(|n| client(n, mixed(n.into()) % most_ms / 4 * 4 + 4, true)).collect()
}

/// The same connection after this many more requests of one segment.
fn later(mut socket: RequestSocket, requests: u64) -> RequestSocket {
    let times = socket.times.as_mut().unwrap();
    let more = |count: &mut Option<u64>, each: u64| *count = count.map(|count| count + each * requests);
    more(&mut times.data_segs_in, 1);
    more(&mut times.data_segs_out, 1);
    more(&mut times.bytes_received, 100);
    more(&mut times.bytes_sent, 100);
    socket
}

/// A connection that the server opened to another host, with or without a request. This many segments arrived on it.
fn made(number: u16, is_in_use: bool, came: u64) -> RequestSocket {
    let mut socket = client(number, 20, !is_in_use);
    socket.address = SocketAddress::Tcp { local: (ip(SERVER_IP), 40_000 + number), remote: (ip("10.0.0.9"), 5_432) };
    (socket.cookie, socket.inode) = (9_000 + u64::from(number), MADE);
    let times = socket.times.as_mut().unwrap();
    (times.data_segs_in, times.data_segs_out) = (Some(came), Some(came + 1));
    if is_in_use {
        (times.last_data_sent_ms, times.last_data_recv_ms) = (20, 24);
    }
    socket
}

/// A stage with samples and an unchanged load.
fn sampled(mut obs: Observation, sockets: Sockets<'_>) -> Observation {
    cpu(&mut obs, 0.2);
    for number in 0..(WINDOW.1 - WINDOW.0) / STEP_US {
        let sample = RequestSample { share: 1.0, handshake_share: 1.0, sockets: sockets(number), ..RequestSample::default() };
        obs.netns.get_mut(&SERVER).unwrap().request_samples.push(WINDOW.0 + number * STEP_US, Reading::Ok(sample));
    }
    let files = &mut obs.processes.get_mut(&42).unwrap().files;
    files.push(1_000_000, Reading::Ok(OpenFiles { count: 99, sockets: vec![100, ACCEPTED, MADE] }));
    obs
}

fn watched(sockets: Sockets<'_>) -> Diagnosis {
    let mut obs = sampled(healthy(), sockets);
    (obs.load, obs.request.loaded) = (None, false);
    for (at, opens) in [(0, 10), (11_000_000, 500)] {
        let counters = BTreeMap::from([("Tcp.PassiveOpens".to_owned(), opens)]);
        obs.netns.get_mut(&SERVER).unwrap().netstat.push(at, Reading::Ok(counters.into_iter().collect()));
    }
    told(&obs)
}

/// A load of 100 connections whose answers took a second each, or this long alone.
fn loaded(alone_us: u64, sockets: Sockets<'_>) -> Diagnosis {
    let mut obs = sampled(healthy(), sockets);
    let load = obs.load.as_mut().unwrap();
    (load.requests, load.good, load.status) = (1_000, 1_000, BTreeMap::from([(200, 1_000)]));
    (load.latency_us.p50, load.latency_us.p99) = (1_000_000, 1_010_000);
    let mut few = load.clone();
    (few.requests, few.good, few.latency_us.p50) = (10, 10, alone_us);
    obs.unloaded = Some(few);
    told(&obs)
}

fn verdict(diagnosis: &Diagnosis) -> (Verdict, Option<LimitedBy>, Vec<&str>) {
    (diagnosis.verdict, diagnosis.limited_by, causes(diagnosis))
}

const CHOKED: (Verdict, Option<LimitedBy>, Vec<&str>) = (Verdict::Choked, None, Vec::new());

fn is_choked(diagnosis: &Diagnosis) -> bool {
    verdict(diagnosis) == (CHOKED.0, CHOKED.1, vec!["waits-inside"])
}

#[test]
fn requests_that_pass_one_by_one_are_choked_and_requests_that_wait_for_themselves_are_unknown() {
    let even = watched(&|_| evenly(100, 10));
    assert!(is_choked(&even), "{even:#?}");
    assert_eq!(even.findings[0].title, "100 of 100 requests wait inside nginx");
    let random = watched(&|_| at_random(100, 1_000));
    assert_eq!(verdict(&random), (Verdict::Unknown, None, Vec::new()));
    assert!(random.summary.contains("long polling"), "{}", random.summary);
    let together = watched(&|_| (0..100).map(|n| client(n, 400, true)).collect());
    assert_eq!(verdict(&together), (Verdict::Unknown, None, Vec::new()));
    let long = watched(&|_| at_random(100, 9_000));
    assert_eq!(verdict(&long), (Verdict::Unknown, None, Vec::new()), "as long as the watch: their number is always the same");
}

#[test]
fn clients_with_few_requests_are_demand() {
    let demand = (Verdict::Healthy, Some(LimitedBy::Demand), Vec::new());
    let idle = |all: Vec<RequestSocket>| [all, (200..320).map(|n| client(n, 400, false)).collect()].concat();
    assert_eq!(verdict(&watched(&|_| idle(evenly(100, 10)))), demand, "most connections are idle");
    assert_eq!(verdict(&watched(&|_| evenly(1, 10))), demand, "one request waits for nobody");
    // Twice the heads of sixteen coins: sixteen on average with a variance of sixteen, as in a Poisson process.
    let number = |n: u64| (0..16).filter(|throw| mixed(100 * n + throw).is_multiple_of(2)).count() as u16;
    assert_eq!(verdict(&watched(&|n| at_random(2 * number(n), 80))), demand, "they come and go by themselves");
}

#[test]
fn clients_with_their_own_pace_are_unknown() {
    let spare = |_| evenly(100, 10).into_iter().chain([client(150, 400, false)]).collect();
    assert_eq!(verdict(&watched(&spare)), (Verdict::Unknown, None, Vec::new()), "one connection is always free");
    let fresh = |mut socket: RequestSocket| {
        let times = socket.times.as_mut().unwrap();
        (times.data_segs_in, times.data_segs_out, times.bytes_sent) = (Some(1), Some(0), Some(0));
        socket
    };
    let each = |_| evenly(100, 10).into_iter().map(fresh).collect();
    assert_eq!(verdict(&watched(&each)), (Verdict::Unknown, None, Vec::new()), "a connection for each request");
}

#[test]
fn connections_that_are_all_in_use_show_the_limit() {
    let with = |connections: u16, in_use: u16, grows: u64| {
        watched(&move |n| {
            let calls = (0..connections).map(|number| made(number, number < in_use, 100 + n * grows));
            at_random(100, 1_000).into_iter().map(|socket| later(socket, n / 5)).chain(calls).collect()
        })
    };
    let full = with(4, 4, 12);
    assert!(is_choked(&full), "{full:#?}");
    assert_eq!(
        full.findings[0].title,
        "96 of 100 requests wait inside nginx, which uses all of its 4 connections to 10.0.0.9:5432 all the time"
    );
    assert_eq!(full.findings[0].remedies[0].id, "allow-more-connections");
    assert_eq!(verdict(&with(4, 1, 12)).0, Verdict::Unknown, "three are free");
    assert_eq!(verdict(&with(4, 4, 0)).0, Verdict::Unknown, "a log that is never answered");
    let away = with(100, 100, 12);
    assert_eq!(verdict(&away).0, Verdict::Unknown);
    assert!(away.summary.contains("10.0.0.9:5432"), "they wait for that server: {}", away.summary);
}

#[test]
fn with_load_the_time_of_a_single_request_shows_whether_requests_wait_for_each_other() {
    let queue = loaded(40_000, &|_| at_random(100, 1_000));
    assert!(is_choked(&queue), "{queue:#?}");
    assert!(queue.findings[0].evidence.iter().any(|proof| proof.text.contains("40 ms alone") || proof.text.contains("took 40 ms")));
    let slow = loaded(990_000, &|_| evenly(100, 10));
    assert_eq!(verdict(&slow), (Verdict::Healthy, Some(LimitedBy::Demand), Vec::new()), "an answer takes a second alone");
}

#[test]
fn findings_of_other_stations_come_first() {
    let mut obs = sampled(healthy(), &|_| evenly(100, 10));
    cpu(&mut obs, 0.99);
    let diagnosis = told(&obs);
    assert_eq!(verdict(&diagnosis), (Verdict::Healthy, Some(LimitedBy::Cpu), Vec::new()));
    assert_eq!(diagnosis.findings[0].role, Role::Symptom);
    let full = told(&sampled(table_full(200), &|_| evenly(100, 10)));
    assert_eq!(causes(&full), ["conntrack-table-full"]);
    let mut rate = sampled(healthy(), &|_| evenly(100, 10));
    rate.load.as_mut().unwrap().shape = Loop::Open { rate_per_s: 10_000.0, connections: 100 };
    assert_eq!(verdict(&told(&rate)), (Verdict::Healthy, Some(LimitedBy::Demand), Vec::new()), "the rate was met");
}

#[test]
fn multiplexed_connections_are_not_choked() {
    let frames = |n: u64| {
        let asked = |mut socket: RequestSocket| {
            let times = socket.times.as_mut().unwrap();
            (times.data_segs_in, times.bytes_received) = (Some(5 + n), Some(100 * (5 + n)));
            socket
        };
        evenly(100, 10).into_iter().map(asked).collect()
    };
    let diagnosis = watched(&frames);
    assert_eq!(verdict(&diagnosis), (Verdict::Unknown, None, Vec::new()), "{diagnosis:#?}");
    assert!(diagnosis.summary.contains("several requests at once"), "{}", diagnosis.summary);
}

/// A full core, with samples of the requests at the server.
fn busy(sockets: Sockets<'_>) -> Diagnosis {
    let mut obs = sampled(healthy(), sockets);
    cpu(&mut obs, 0.99);
    (obs.load, obs.request.loaded) = (None, false);
    for (at, opens) in [(0, 10), (11_000_000, 500)] {
        let counters = BTreeMap::from([("Tcp.PassiveOpens".to_owned(), opens)]);
        obs.netns.get_mut(&SERVER).unwrap().netstat.push(at, Reading::Ok(counters.into_iter().collect()));
    }
    told(&obs)
}

#[test]
fn a_busy_core_does_not_explain_clients_that_are_never_accepted() {
    let at_the_door = |number: u16| RequestSocket { inode: 0, receive_queue: 80, ..client(number, 3_000, true) };
    let answered = |n: u64| (0..4).map(move |number| later(client(number, 4, true), 1_000 * n));
    let starved = busy(&|n| answered(n).chain((10..46).map(at_the_door)).collect());
    assert_eq!(verdict(&starved), (Verdict::Unknown, None, Vec::new()));
    assert!(
        starved.summary.contains("36 connections with a request waited") && starved.summary.contains("while 4 others"),
        "{}",
        starved.summary
    );
    // All are accepted in turn: each sample has other clients in the queue.
    let turns = busy(&|n| answered(n).chain((10..46).map(|number| at_the_door(number + 50 * n as u16))).collect());
    assert_eq!(verdict(&turns), (Verdict::Healthy, Some(LimitedBy::Cpu), Vec::new()));
    // Nobody is answered twice: all wait equally long, as with a full core.
    let alike = busy(&|_| answered(0).chain((10..46).map(at_the_door)).collect());
    assert_eq!(verdict(&alike), (Verdict::Healthy, Some(LimitedBy::Cpu), Vec::new()));
    // Connections that were opened ahead and have no request.
    let ahead = |number: u16| RequestSocket { receive_queue: 0, ..at_the_door(number) };
    let early = busy(&|n| answered(n).chain((10..46).map(ahead)).collect());
    assert_eq!(verdict(&early), (Verdict::Healthy, Some(LimitedBy::Cpu), Vec::new()));
}

#[test]
fn without_samples_a_watched_server_is_not_reported_healthy() {
    let mut obs = healthy();
    (obs.load, obs.request.loaded) = (None, false);
    for (at, opens) in [(0, 10), (11_000_000, 500)] {
        let counters = BTreeMap::from([("Tcp.PassiveOpens".to_owned(), opens)]);
        obs.netns.get_mut(&SERVER).unwrap().netstat.push(at, Reading::Ok(counters.into_iter().collect()));
    }
    let diagnosis = told(&obs);
    assert_eq!(diagnosis.verdict, Verdict::Unknown);
    assert!(diagnosis.summary.contains("not sampled"), "{}", diagnosis.summary);
}
