//! What the kernel counts for a whole network namespace, where another server has connections in it as well: it is this server's only as far as the others cannot have had it.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{
    ListenerAddress, Observation, OpenFiles, RequestSample, RequestSocket, RequestTimes, SocketAddress, TcpSample, TcpState,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Diagnosis, Verdict};

use crate::stage::limits::nginx;
use crate::stage::pool::{files, tcp};
use crate::stage::queue::at_times;
use crate::stage::*;

/// A connection that the listener at this port accepted, with a request that came this long ago.
fn accepted(port: u16, cookie: u64, requests: u64, recv_ms: u64) -> RequestSocket {
    let times = RequestTimes {
        last_data_recv_ms: recv_ms,
        last_data_sent_ms: recv_ms + 1,
        data_segs_in: Some(requests),
        data_segs_out: Some(requests.saturating_sub(1)),
        ..RequestTimes::default()
    };
    RequestSocket {
        address: SocketAddress::Tcp { local: (ip(SERVER_IP), port), remote: (ip("10.0.0.1"), 20_000 + (cookie % 40_000) as u16) },
        cookie,
        state: TcpState::Established,
        inode: cookie,
        receive_queue: 0,
        send_queue: 0,
        times: Some(times),
    }
}

/// Watched: of its one kept connection this server has a request under way in every second sample. In as many samples as `seen`, another server of its namespace
/// has a new connection.
fn watched(mut obs: Observation, seen: u64, own: bool) -> Observation {
    (obs.load, obs.request.loaded) = (None, false);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at_us, mut listeners) in points {
        listeners.push(listener(ListenerAddress::Tcp(ip("0.0.0.0"), 8081), 777, 0, 0));
        view.listeners.push(at_us, Reading::Ok(listeners));
    }
    for tick in 0..50_u64 {
        let at_us = 500_000 + tick * 200_000;
        let mut sockets = Vec::new();
        if own {
            let mut kept = accepted(80, 5, 100 + tick, if tick % 2 == 0 { 4 } else { 40 });
            if tick % 2 == 1 {
                kept.times.as_mut().unwrap().last_data_sent_ms = 36;
            }
            sockets.push(kept);
        }
        if tick < seen {
            sockets.push(accepted(8081, 1_000 + tick, 1, 0));
        }
        // A client of the other server that is always there.
        sockets.push(accepted(8081, 9, 500, 900));
        let sample = RequestSample { share: 1.0, handshake_share: 1.0, sockets, ..RequestSample::default() };
        view.request_samples.push(at_us, Reading::Ok(sample));
    }
    obs
}

/// What the server's namespace counted meanwhile.
fn counted(mut obs: Observation, counters: &[(&str, i64)]) -> Observation {
    for (at_us, times) in [(0, 0), (5_500_000, 1), (11_000_000, 2)] {
        let counters = counters.iter().map(|(name, grown)| ((*name).to_owned(), 7 + times * grown / 2)).collect();
        obs.netns.get_mut(&SERVER).unwrap().netstat.push(at_us, Reading::Ok(counters));
    }
    obs
}

const OPENED: &str = "Tcp.PassiveOpens";
const CUT: &str = "TcpExt.TCPAbortOnClose";

fn tells(diagnosis: &Diagnosis, what: &str) -> bool {
    diagnosis.warnings.iter().any(|warning| warning.contains(what))
}

#[test]
fn what_was_cut_off_elsewhere_in_the_namespace_makes_no_healthy_server_unknown() {
    let cut = [(OPENED, 30_000), (CUT, 9_000)];
    let beside = told(&counted(watched(healthy(), 40, true), &cut));
    assert_eq!(beside.verdict, Verdict::Healthy, "{}", beside.summary);
    assert!(tells(&beside, "it is not known whose they were"), "{:?}", beside.warnings);
    // Nobody else had new connections.
    let alone = told(&counted(watched(healthy(), 0, true), &cut));
    assert_eq!(alone.verdict, Verdict::Unknown);
    assert!(alone.summary.contains("got no answer") && !tells(&alone, "not known whose"), "{}", alone.summary);
    // The other listener is this server's own, for its status page, which is asked once a second: those are no other's connections.
    let mut own = counted(watched(healthy(), 40, true), &cut);
    files(&mut own, 42, &[100, 7, 777]);
    assert!(told(&own).summary.contains("got no answer"), "{}", told(&own).summary);
    // Nothing was cut off: nothing is told.
    assert!(!tells(&told(&counted(watched(healthy(), 40, true), &[(OPENED, 30_000), (CUT, 0)])), "not known whose"));
}

/// The one that cuts them off is named: its own sockets hold requests that nobody reads, and never an answer.
#[test]
fn a_server_that_reads_and_answers_nothing_has_cut_them_off() {
    let told_of = |answers: bool| {
        let mut obs = counted(watched(healthy(), 40, false), &[(OPENED, 30_000), (CUT, 9_000)]);
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let points = view.request_samples.points().to_vec();
        view.request_samples = Default::default();
        for (nth, (at_us, mut sample)) in points.into_iter().enumerate() {
            if nth % 5 == 0 {
                sample.sockets.push(RequestSocket { receive_queue: 100, ..accepted(80, 3_000 + nth as u64, 1, 0) });
            }
            if answers && nth == 7 {
                sample.sockets.push(accepted(80, 4_000, 2, 0));
            }
            view.request_samples.push(at_us, Reading::Ok(sample));
        }
        told(&obs)
    };
    let found = told_of(false);
    assert_eq!(found.verdict, Verdict::Unknown);
    assert!(found.summary.contains("got no answer"), "{}", found.summary);
    assert!(!told_of(true).summary.contains("got no answer"));
}

/// A proxy resets its connections to the servers behind it when it needs them no more: 20 a second, both ends in this namespace.
#[test]
fn connections_that_a_proxy_resets_on_purpose_are_no_loss_of_its_clients() {
    let told_of = |data: i64, unread: i64, reset: i64| {
        let counters = [(OPENED, 400), ("TcpExt.TCPAbortOnData", data), (CUT, unread), ("Tcp.EstabResets", reset)];
        let found = told(&counted(watched(healthy(), 0, true), &counters));
        (found.verdict, found.summary.contains("got no answer"))
    };
    assert_eq!(told_of(200, 0, 400), (Verdict::Healthy, false));
    assert_eq!(told_of(200, 0, 200), (Verdict::Healthy, false), "the servers are on other hosts");
    // What was sent to connections that were closed before, and what was not read.
    assert_eq!(told_of(200, 0, 0), (Verdict::Unknown, true));
    assert_eq!(told_of(0, 200, 400), (Verdict::Unknown, true));
}

#[test]
fn what_others_cannot_have_had_is_this_servers_loss() {
    // 24,000 a second, and a client of the other server now and then.
    let found = told(&counted(watched(healthy(), 2, true), &[(OPENED, 260_000), (CUT, 240_000)]));
    assert_eq!(found.verdict, Verdict::Unknown);
    assert!(found.summary.contains("got no answer"), "{}", found.summary);
    // Another one that accepted no more than this cannot have cut off more.
    let few = told(&counted(watched(healthy(), 40, true), &[(OPENED, 2_000), (CUT, 9_000)]));
    assert!(few.summary.contains("got no answer"), "{}", few.summary);
}

#[test]
fn traffic_of_others_is_none_of_a_server_that_has_none() {
    let counters = [(OPENED, 30_000), ("Tcp.InSegs", 90_000)];
    let idle = told(&counted(watched(healthy(), 40, false), &counters));
    assert_eq!(idle.verdict, Verdict::Unknown, "{}", idle.summary);
    assert!(idle.summary.contains("no connection reached"), "{}", idle.summary);
    assert_ne!(told(&counted(watched(healthy(), 40, true), &counters)).summary, idle.summary);
}

#[test]
fn a_full_worker_is_no_cause_for_what_others_lost() {
    let full = |seen: u64| {
        let mut obs = counted(watched(nginx(58, 1_024, false, Vec::new()), seen, true), &[(OPENED, 5_000), (CUT, 1_500)]);
        let files = &mut obs.processes.get_mut(&43).unwrap().files;
        *files = Default::default();
        for (at, sockets) in [(2_000_000, 40), (4_000_000, 58), (6_000_000, 44)] {
            files.push(at, Reading::Ok(OpenFiles { count: sockets, sockets: (100..100 + u64::from(sockets)).collect() }));
        }
        causes(&told(&obs)).len()
    };
    assert_eq!((full(0), full(40)), (1, 0));
}

#[test]
fn refusals_are_a_share_of_the_requests_of_their_own_server() {
    // 60 of its own 600 or so; the other one accepted thousands.
    let refusing = |seen: u64| {
        let mut obs = watched(healthy(), seen, true);
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let points = view.listeners.points().to_vec();
        view.listeners = Default::default();
        for (at_us, mut listeners) in points {
            let dropped = if at_us < WINDOW.0 { 0 } else { 60 * (at_us.min(WINDOW.1) - WINDOW.0) / (WINDOW.1 - WINDOW.0) };
            listeners[0].drops = Some(dropped);
            (listeners[0].accept_queue_limit, listeners[0].accept_queue) = (5, 6);
            view.listeners.push(at_us, Reading::Ok(listeners));
        }
        at_times(&mut obs);
        let counters = [(OPENED, 30_000), ("TcpExt.ListenOverflows", 60), ("TcpExt.ListenDrops", 60)];
        causes(&told(&counted(obs, &counters))).contains(&"accept-queue-full")
    };
    assert!(refusing(40));
}

#[test]
fn packets_that_others_lost_are_not_this_servers() {
    // `seen`: the second at which the others' connection is first sampled, and whether the namespace's first list of connections has it.
    let first_seen = |own: u64, others: u64, (second, is_old): (u64, bool)| {
        let mut obs = healthy();
        cpu(&mut obs, 0.2);
        let load = obs.load.as_mut().unwrap();
        load.shape = chokepoint_model::load::Loop::Closed { connections: 20 };
        (load.requests, load.good) = (20_000, 20_000);
        (load.latency_us.p50, load.latency_us.p99, load.latency_us.p999) = (2_000, 207_000, 420_000);
        let view = obs.netns.get_mut(&SERVER).unwrap();
        for (at_us, times) in [(1_000_000, 0), (9_000_000, 1)] {
            let one = |port: u16, cookie: u64, again: u64| TcpSample {
                local: (ip(SERVER_IP), port),
                remote: (ip("10.0.0.1"), 40_000),
                cookie,
                state: TcpState::Established,
                send_queue: 0,
                send_buffer: None,
                loss_state: 0,
                mss: 1448,
                unacked: 0,
                cwnd: 10,
                retransmitted: 3 + times * again,
                last_data_sent_ms: 0,
                rtt_us: 100,
                min_rtt_us: None,
                unsent: None,
                delivered: None,
                busy_us: None,
                rwnd_limited_us: None,
                sndbuf_limited_us: None,
                peer_window: None,
            };
            let seen = [one(80, 1, own), one(8081, 2, others)].into_iter().take(if at_us >= second * 1_000_000 { 2 } else { 1 });
            view.tcp_samples.push(at_us, Reading::Ok(seen.collect()));
        }
        let connected = |port| tcp(u64::from(port), (ip(SERVER_IP), port), (ip("10.0.0.1"), 40_000));
        view.sockets.push(0, Reading::Ok(if is_old { vec![connected(80), connected(8081)] } else { vec![connected(80)] }));
        for id in [CLIENT, HOST] {
            obs.netns.get_mut(&id).unwrap().netstat.push(0, Reading::Ok([("Tcp.OutSegs".to_owned(), 0)].into_iter().collect()));
        }
        let grown = [
            ("Tcp.OutSegs", 40_000),
            ("Tcp.RetransSegs", 420),
            ("TcpExt.TCPSynRetrans", 10),
            ("TcpExt.TCPDSACKRecvSegs", 10),
            ("TcpExt.TCPTimeouts", 50),
            ("TcpExt.TCPLossProbes", 380),
        ];
        causes(&told(&counted(obs, &grown))).contains(&"packet-loss")
    };
    let again = |own, others| first_seen(own, others, (1, true));
    assert_eq!((again(400, 0), again(0, 400), again(0, 0)), (true, false, true));
    // What a connection lost before it was sampled is of the window only if it came in it.
    assert_eq!([true, false].map(|is_old| first_seen(400, 40_000, (9, is_old))), [true, false]);
}

/// Requests of the other server at the same port of another address are not this one's.
#[test]
fn the_same_port_at_another_address_is_another_server() {
    let under_way = |other: bool| {
        let mut obs = watched(healthy(), 0, true);
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let listeners = view.listeners.points().to_vec();
        view.listeners = Default::default();
        for (at_us, mut all) in listeners {
            if other {
                all.push(listener(ListenerAddress::Tcp(ip("127.0.0.5"), 80), 778, 0, 0));
            }
            view.listeners.push(at_us, Reading::Ok(all));
        }
        let samples = view.request_samples.points().to_vec();
        view.request_samples = Default::default();
        for (at_us, mut sample) in samples {
            for cookie in 50..70 {
                let mut socket = accepted(80, cookie, 1, 0);
                socket.address = SocketAddress::Tcp { local: (ip("127.0.0.5"), 80), remote: (ip("127.0.0.1"), 40_000 + cookie as u16) };
                sample.sockets.push(socket);
            }
            view.request_samples.push(at_us, Reading::Ok(sample));
        }
        told(&obs).ledger.unwrap().under_way
    };
    assert!(under_way(false) > 19.0, "a listener on all addresses has them: {}", under_way(false));
    assert!(under_way(true) < 2.0, "{}", under_way(true));
}

/// What a few sightings of others cannot account for is not known to be theirs, however short a connection may live.
#[test]
fn a_few_connections_of_others_do_not_explain_what_was_cut_off() {
    let beside = |seen: u64, opened: i64, cut: i64| told(&counted(watched(healthy(), seen, true), &[(OPENED, opened), (CUT, cut)]));
    for few in [beside(2, 30_000, 20_000), beside(5, 30_000, 29_000)] {
        assert_eq!(few.verdict, Verdict::Unknown, "{}", few.summary);
        assert!(few.summary.contains("surely had") && !few.summary.contains("at least"), "{}", few.summary);
        assert!(!tells(&few, "it is not known whose they were"), "said once: {:?}", few.warnings);
    }
    // The same two, where they make a third of what was opened for more than chance.
    assert_eq!(beside(2, 30_000, 9_000).verdict, Verdict::Healthy);
    assert_eq!(beside(40, 30_000, 20_000).verdict, Verdict::Healthy);
    // This server's own new connections were met as often, or one connection of another server in all samples.
    let also = |change: &dyn Fn(u64, &mut Vec<RequestSocket>)| {
        let mut obs = counted(watched(healthy(), 40, true), &[(OPENED, 30_000), (CUT, 20_000)]);
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let points = view.request_samples.points().to_vec();
        view.request_samples = Default::default();
        for (nth, (at_us, mut sample)) in points.into_iter().enumerate() {
            change(nth as u64, &mut sample.sockets);
            view.request_samples.push(at_us, Reading::Ok(sample));
        }
        told(&obs).verdict
    };
    assert_eq!(also(&|nth, sockets| sockets.extend((nth < 40).then(|| accepted(80, 3_000 + nth, 1, 0)))), Verdict::Unknown);
    assert_eq!(also(&|_, sockets| sockets.iter_mut().for_each(|one| one.cookie = one.cookie.min(1_000))), Verdict::Unknown);
}

/// The rate of connections with one request each is the namespace's where hardly any is another listener's: one that was there before the window was not accepted in it.
#[test]
fn an_old_connection_of_another_server_hides_no_rate() {
    let rate = |came_ms: Option<u64>| {
        let mut obs = counted(watched(healthy(), 0, false), &[(OPENED, 2_530)]);
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let points = view.request_samples.points().to_vec();
        view.request_samples = Default::default();
        for (nth, (at_us, mut sample)) in points.into_iter().enumerate() {
            sample.sockets = (0..4).map(|n| accepted(80, 3_000 + 4 * nth as u64 + n, 1, 40 * n)).collect();
            sample.sockets.push(accepted(8081, 9, 1, came_ms.map_or(60_000, |came_ms| (at_us / 1_000).saturating_sub(came_ms))));
            view.request_samples.push(at_us, Reading::Ok(sample));
        }
        told(&obs).ledger.unwrap().rate_rps
    };
    assert_eq!(rate(None), Some(230.0));
    assert_ne!(rate(Some(600)), Some(230.0), "as many of theirs may have come as were seen, and more");
}
