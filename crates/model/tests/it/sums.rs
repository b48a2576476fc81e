//! Numbers that stand in one report agree with each other, and no line says what another one denies.
//!
//! Deterministic: observations made up by the tests.

use std::collections::BTreeMap;

use chokepoint_model::observation::{
    CpuUse, ListenerAddress, Observation, RequestSample, RequestSocket, RequestTimes, SocketAddress, TcpState, ThreadTimes,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::Verdict;

use crate::stage::pool::{cores, pool, tcp};
use crate::stage::quota::throttled;
use crate::stage::*;

/// The client's end of a connection, with an answer that it does not read.
fn unread_by_client(number: u16) -> RequestSocket {
    let ends = SocketAddress::Tcp { local: (ip("10.0.0.1"), 20_000 + number), remote: (ip(SERVER_IP), 80) };
    RequestSocket { address: ends, cookie: 50_000 + u64::from(number), inode: 9, receive_queue: 400, ..accepted(number, 0, 1) }
}

/// The server's end of a connection that is idle, or that was asked on this long ago.
fn accepted(number: u16, asked_ms: u64, requests: u64) -> RequestSocket {
    let times = RequestTimes {
        last_data_recv_ms: if asked_ms > 0 { asked_ms } else { 60_000 },
        last_data_sent_ms: if asked_ms > 0 { asked_ms + 4 } else { 59_000 },
        data_segs_in: Some(requests),
        data_segs_out: Some(requests - u64::from(asked_ms > 0)),
        bytes_received: Some(100 * requests),
        bytes_sent: Some(100 * requests),
        min_rtt_us: Some(20),
        ..RequestTimes::default()
    };
    RequestSocket {
        address: SocketAddress::Tcp { local: (ip(SERVER_IP), 80), remote: (ip("10.0.0.1"), 20_000 + number) },
        cookie: 1_000 + u64::from(number),
        state: TcpState::Established,
        inode: 7,
        receive_queue: 0,
        send_queue: 0,
        times: Some(times),
    }
}

/// A watched server with these sockets in each sample of its namespace and of the clients'. Its namespace accepted this many connections.
fn watched(opened: i64, at_server: impl Fn(u64) -> Vec<RequestSocket>, at_client: impl Fn() -> Vec<RequestSocket>) -> Observation {
    let mut obs = healthy();
    cpu(&mut obs, 0.2);
    (obs.load, obs.request.loaded) = (None, false);
    for number in 0..50 {
        for (netns, sockets) in [(SERVER, at_server(number)), (CLIENT, at_client())] {
            let sample = RequestSample { share: 1.0, handshake_share: 1.0, sockets, ..RequestSample::default() };
            obs.netns.get_mut(&netns).unwrap().request_samples.push(WINDOW.0 + number * 200_000, Reading::Ok(sample));
        }
    }
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for (at, opens, segments) in [(0, 10, 100), (11_000_000, 10 + opened, 900)] {
        let counters = [("Tcp.PassiveOpens", opens), ("Tcp.InSegs", segments)].map(|(name, count): (&str, i64)| (name.to_owned(), count));
        view.netstat.push(at, Reading::Ok(BTreeMap::from(counters).into_iter().collect()));
    }
    let held = tcp(7, (ip(SERVER_IP), 80), (ip("10.0.0.1"), 20_000));
    (0..=11).for_each(|second| view.sockets.push(second * 1_000_000, Reading::Ok(vec![held.clone()])));
    obs
}

#[test]
fn an_average_and_the_share_of_samples_without_a_request_are_of_the_same_requests() {
    // Three hundred clients hold an answer that they do not read. Others have four requests in every fifth sample.
    let asked = |n: u64| (0..300).map(move |number| accepted(number, if n.is_multiple_of(5) && number < 4 { 8 } else { 0 }, 5 + n));
    let diagnosis = told(&watched(490, |n| asked(n).collect(), || (0..300).map(unread_by_client).collect()));
    assert_eq!(diagnosis.verdict, Verdict::Healthy, "{}", diagnosis.summary);
    for said in ["0.8 requests at the server on average", "at most 4", "none in 80 % of the samples"] {
        assert!(diagnosis.summary.contains(said), "{said}: {}", diagnosis.summary);
    }
}

#[test]
fn a_time_longer_than_was_watched_is_no_time_of_a_request() {
    // One request in ten seconds on all of these.
    let rare = |n: u64| (0..300).map(move |number| accepted(number, 0, if number == 0 && n > 20 { 6 } else { 5 }));
    let diagnosis = told(&watched(0, |n| rare(n).collect(), || (0..300).map(unread_by_client).collect()));
    let ledger = diagnosis.ledger.unwrap();
    assert!(ledger.response_time_ms.is_none_or(|ms| ms <= 10_000.0), "{:?}", ledger.response_time_ms);
    assert!(!diagnosis.summary.contains("ms each"), "{}", diagnosis.summary);
}

#[test]
fn a_server_that_nobody_asks_is_not_healthy() {
    // Connections that are kept alive, and the kernel's probes on them.
    let idle = told(&watched(0, |_| (0..5).map(|number| accepted(number, 0, 5)).collect(), Vec::new));
    assert_eq!(idle.verdict, Verdict::Unknown, "{}", idle.summary);
    assert!(idle.summary.contains("no request was seen in 10 s") && idle.summary.contains("-c"), "{}", idle.summary);
    // Some came, and were answered between two samples.
    let quick = told(&watched(490, |_| (0..5).map(|number| accepted(number, 0, 5)).collect(), Vec::new));
    assert_eq!(quick.verdict, Verdict::Healthy, "{}", quick.summary);
    // They may have come to another server of this namespace.
    let mut shared = watched(490, |_| (0..5).map(|number| accepted(number, 0, 5)).collect(), Vec::new);
    let view = shared.netns.get_mut(&SERVER).unwrap();
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at_us, mut listeners) in points {
        listeners.push(listener(ListenerAddress::Tcp(ip("0.0.0.0"), 22), 900, 0, 0));
        view.listeners.push(at_us, Reading::Ok(listeners));
    }
    let shared = told(&shared);
    assert_eq!(shared.verdict, Verdict::Unknown, "{}", shared.summary);
}

#[test]
fn a_quota_throttles_while_cores_are_idle_only_if_some_are() {
    let title = |busy: f64| {
        let mut obs = throttled("v2:/php");
        cpu(&mut obs, busy);
        told(&obs).findings.into_iter().find(|finding| finding.id == "cgroup-cpu-throttled").unwrap().title
    };
    assert!(title(0.5).contains("while cores are idle"), "{}", title(0.5));
    assert!(!title(1.0).contains("idle") && title(1.0).contains("other programs use"), "{}", title(1.0));
}

#[test]
fn the_share_and_the_ceiling_of_a_single_thread_give_the_rate_that_is_served() {
    // It has a core for half of its time, and waits for one for the rest: alone on its core, or beside other programs.
    for (ran, busy) in [(0.99, 0.55), (0.48, 1.0)] {
        let mut obs = healthy();
        cores(&mut obs, 2, busy);
        for second in 0..=11_u64 {
            let (run_ns, delay_ns) = ((second as f64 * 1e9 * ran) as u64, (second as f64 * 1e9 * (1.0 - ran)) as u64);
            let thread_times = vec![ThreadTimes { id: 42, run_ns, delay_ns }];
            let times = CpuUse { run_ns: Some(run_ns), run_delay_ns: Some(delay_ns), thread_times, threads: 1, ..CpuUse::default() };
            obs.processes.get_mut(&42).unwrap().cpu.push(second * 1_000_000, Reading::Ok(times));
        }
        let cpu = told(&obs).path.into_iter().find(|station| station.station == "cpu").unwrap();
        let rate = cpu.utilization.unwrap() * cpu.ceiling_rps.unwrap().value;
        assert!((rate / 10_000.0 - 1.0).abs() < 0.02, "{ran}: {rate} of {:?}", cpu.ceiling_rps);
    }
}

/// What a station of this name passes by its share and its ceiling: at least, at most.
fn passes(obs: &Observation, name: &str) -> Option<(f64, f64)> {
    let station = told(obs).path.into_iter().find(|station| station.station == name).unwrap();
    let share = station.utilization.unwrap();
    station.ceiling_rps.map(|ceiling| (share * ceiling.low, share * ceiling.high))
}

#[test]
fn the_share_of_cores_that_others_use_too_and_their_ceiling_give_the_rate_that_is_served() {
    let mut obs = healthy();
    cpu(&mut obs, 1.0);
    for second in 0..=11_u64 {
        let half = Some(second * 500_000_000);
        let used = CpuUse { user_ticks: second * 50, run_ns: half, run_delay_ns: half, threads: 4, ..CpuUse::default() };
        obs.processes.get_mut(&42).unwrap().cpu.push(second * 1_000_000, Reading::Ok(used));
    }
    let diagnosis = told(&obs);
    assert!(diagnosis.summary.contains("100 % busy"), "what is said of the cores is of all who use them: {}", diagnosis.summary);
    let (low, high) = passes(&obs, "cpu").unwrap();
    assert!(low <= 10_000.0 && high >= 10_000.0, "{low} to {high}");
}

#[test]
fn a_pool_whose_workers_wait_for_cores_has_no_ceiling_without_these_waits() {
    let with = |share: f64| {
        let mut obs = pool(5, 5, 60);
        cpu(&mut obs, if share > 0.5 { 1.0 } else { 0.2 });
        for pid in 50..56 {
            let half = |second: u64| Some((second as f64 * 5e8 * share) as u64);
            let view = obs.processes.get_mut(&pid).unwrap();
            for second in 0..=11_u64 {
                let used = CpuUse { run_ns: half(second), run_delay_ns: half(second), ..CpuUse::default() };
                view.cpu.push(second * 1_000_000, Reading::Ok(used));
            }
        }
        passes(&obs, "worker-pool")
    };
    assert_eq!(with(0.95), None, "twice as much without the wait for a core, and there is no other core");
    let (low, high) = with(0.02).unwrap();
    assert!(low <= 250.0 && high >= 250.0, "{low} to {high}");
}
