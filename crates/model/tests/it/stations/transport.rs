//! Packet loss: a cause if requests wait for lost packets. No finding if something else loses them, if they only seemed lost, or if
//! they hardly matter.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::load::{Loop, Percentiles};
use chokepoint_model::observation::{
    Counters, Observation, Qdisc, RequestSample, RequestSocket, RequestTimes, SocketAddress, SoftnetRow, TcpSample, TcpState,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, StationState, Verdict};

use crate::stage::*;

mod filtered;

const LOSS: &str = "packet-loss";

/// Changes of both ends' counters in the window.
#[derive(Clone)]
struct Line {
    segments: i64,
    again: i64,
    syns: i64,
    twice: i64,
    timeouts: i64,
    probes: i64,
    more: Vec<(&'static str, i64)>,
}

/// Of 20,000 requests, 400 were lost on the path and waited for a probe or a timeout.
fn lossy() -> Line {
    Line { segments: 40_000, again: 420, syns: 10, twice: 10, timeouts: 50, probes: 380, more: Vec::new() }
}

impl Line {
    fn observed(&self) -> Observation {
        let mut obs = healthy();
        cpu(&mut obs, 0.2);
        let quiet = Line { again: 3, syns: 0, twice: 0, timeouts: 0, probes: 3, more: Vec::new(), ..self.clone() };
        for (id, line) in [(CLIENT, self), (SERVER, &quiet)] {
            let grown = [
                ("Tcp.OutSegs", line.segments),
                ("Tcp.RetransSegs", line.again),
                ("TcpExt.TCPSynRetrans", line.syns),
                ("TcpExt.TCPDSACKRecvSegs", line.twice),
                ("TcpExt.TCPTimeouts", line.timeouts),
                ("TcpExt.TCPLossProbes", line.probes),
            ];
            let view = obs.netns.get_mut(&id).unwrap();
            for (at, times) in [(0, 0), (11_000_000, 1)] {
                let counters = grown.iter().chain(&line.more).map(|(name, value)| ((*name).to_owned(), 5 + value * times));
                view.netstat.push(at, Reading::Ok(Counters::from_iter(counters)));
            }
        }
        for view in obs.netns.values_mut() {
            [0, 11_000_000].into_iter().for_each(|at| view.qdiscs.push(at, Reading::Ok(Vec::new())));
        }
        let load = obs.load.as_mut().unwrap();
        load.shape = Loop::Closed { connections: 20 };
        (load.requests, load.good) = (20_000, 20_000);
        load.status = [(200, 20_000)].into();
        load.latency_us = Percentiles { p50: 2_000, p75: 2_500, p90: 3_000, p95: 4_000, p99: 207_000, p999: 420_000, max: 900_000 };
        obs
    }
}

fn told_of(obs: &Observation) -> Vec<String> {
    causes(&told(obs)).into_iter().map(str::to_owned).collect()
}

#[test]
fn requests_that_wait_for_lost_packets_name_the_namespace_that_sent_them() {
    let diagnosis = told(&lossy().observed());
    assert_eq!((causes(&diagnosis), diagnosis.verdict), (vec![LOSS], Verdict::Choked));
    let finding = &diagnosis.findings[0];
    assert_eq!((finding.confidence, finding.tier.as_str(), finding.at.netns.as_deref()), (Confidence::High, "nginx", Some("client")));
    assert_eq!(finding.remedies.iter().map(|remedy| remedy.id.as_str()).collect::<Vec<_>>(), ["find-lossy-link"]);
    // A queue that was not read may be the reason.
    let mut unread = lossy().observed();
    unread.netns.get_mut(&SERVER).unwrap().qdiscs = Default::default();
    assert_eq!(told(&unread).findings[0].confidence, Confidence::Low);
    let proofs: Vec<Option<f64>> = finding.evidence.iter().map(|proof| proof.value).collect();
    assert_eq!(proofs, [Some(3.0), Some(400.0), Some(205_000.0)], "{:?}", finding.evidence);
    let readings: Vec<(Option<&str>, StationState)> = (diagnosis.path.iter())
        .filter(|station| station.station == "transport")
        .map(|station| (station.at.netns.as_deref(), station.state))
        .collect();
    assert_eq!(readings, [(Some("server"), StationState::Ok), (Some("client"), StationState::Refusing)]);
}

#[test]
fn an_open_loop_suffers_if_one_request_in_a_hundred_waits() {
    let mut obs = lossy().observed();
    obs.load.as_mut().unwrap().shape = Loop::Open { rate_per_s: 2000.0, connections: 50 };
    assert_eq!(told_of(&obs), [LOSS]);
    let mut obs = Line { again: 120, probes: 70, ..lossy() }.observed();
    obs.load.as_mut().unwrap().shape = Loop::Open { rate_per_s: 2000.0, connections: 50 };
    assert_eq!(told_of(&obs), [""; 0], "half a request of a hundred");
}

#[test]
fn packets_that_were_not_lost_or_did_no_harm_are_no_finding() {
    let silent = |line: Line, why: &str| assert_eq!(told_of(&line.observed()), [""; 0], "{why}");
    silent(Line { twice: 410, ..lossy() }, "the peer had all of it already: it was slow to say so");
    silent(Line { syns: 420, timeouts: 420, probes: 0, ..lossy() }, "only SYNs were sent again");
    silent(Line { again: 15, timeouts: 2, probes: 3, syns: 0, twice: 0, ..lossy() }, "a few packets");
    let quick = Percentiles { p50: 2_000, p99: 12_000, p999: 30_000, max: 50_000, ..Percentiles::default() };
    let mut obs = lossy().observed();
    obs.load.as_mut().unwrap().latency_us = quick;
    assert_eq!(told_of(&obs), [""; 0], "no request waited for a timeout");
    let mut obs = lossy().observed();
    cpu(&mut obs, 1.0);
    assert_eq!(told_of(&obs), [""; 0], "the cores are full");
    let mut obs = lossy().observed();
    obs.load = None;
    assert_eq!(told_of(&obs), [""; 0], "nobody knows who suffers");
    // A kernel that does not distinguish lost packets from packets sent twice.
    let mut obs = lossy().observed();
    for id in [CLIENT, SERVER] {
        let view = obs.netns.get_mut(&id).unwrap();
        let without =
            |counters: &Counters| counters.iter().filter(|(name, _)| !name.contains("DSACK")).map(|(k, v)| (k.to_owned(), *v)).collect();
        let points: Vec<(u64, Counters)> = view.netstat.points().iter().map(|(at, counters)| (*at, without(counters))).collect();
        view.netstat = Default::default();
        points.into_iter().for_each(|(at, counters)| view.netstat.push(at, Reading::Ok(counters)));
    }
    assert_eq!(told_of(&obs), [""; 0]);
}

#[test]
fn drops_within_this_host_are_no_loss_on_the_path() {
    for counter in ["TcpExt.ListenDrops", "TcpExt.TCPBacklogDrop", "TcpExt.RcvPruned"] {
        let obs = Line { more: vec![(counter, 60)], ..lossy() }.observed();
        assert!(!told_of(&obs).contains(&LOSS.to_owned()), "{counter}");
        let obs = Line { more: vec![(counter, 5)], ..lossy() }.observed();
        assert!(told_of(&obs).contains(&LOSS.to_owned()), "{counter}: too few to explain it");
    }
    let mut obs = lossy().observed();
    for at in [0, 11_000_000] {
        let dropped = if at == 0 { 7 } else { 300 };
        obs.softnet.push(at, Reading::Ok(vec![SoftnetRow { dropped, ..SoftnetRow::default() }]));
    }
    assert_eq!(told_of(&obs), [""; 0], "backlogs of busy cores");
}

/// A shaper of 100 Mbit/s that passed this share of its rate and dropped packets.
fn shaped(share: f64) -> Observation {
    let mut obs = lossy().observed();
    let view = obs.netns.get_mut(&SERVER).unwrap();
    view.qdiscs = Default::default();
    for second in [0, 11_u64] {
        let qdisc = Qdisc {
            link: 2,
            kind: "tbf".into(),
            handle: 1 << 16,
            parent: u32::MAX,
            bytes: (share * 12.5e6 * second as f64) as u64,
            drops: 30 * second,
            rate_bits_per_s: Some(100_000_000),
            ..Qdisc::default()
        };
        view.qdiscs.push(second * 1_000_000, Reading::Ok(vec![qdisc]));
    }
    obs
}

#[test]
fn drops_of_a_full_shaper_are_explained_by_its_rate_and_a_short_queue_is_reported() {
    assert!(!told_of(&shaped(0.9)).contains(&LOSS.to_owned()));
    let diagnosis = told(&shaped(0.4));
    assert_eq!(causes(&diagnosis), [LOSS]);
    assert!(diagnosis.findings[0].evidence.iter().any(|proof| proof.source.contains("TCA_STATS2") && proof.value == Some(330.0)));
}

/// Answers of a megabyte, with this many of 690,000 segments lost, over a path with this round-trip time.
fn long_answers(lost: i64, trip_us: u64) -> Observation {
    let mut obs = Line { again: 3, twice: 0, syns: 0, timeouts: 0, probes: 3, ..lossy() }.observed();
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.netstat.points().to_vec();
    view.netstat = Default::default();
    for (at, counters) in points {
        let counters = counters.iter().map(|(name, value)| (name.to_owned(), *value));
        // If a name occurs twice, the last one counts.
        let more = [("Tcp.OutSegs", 690_000), ("Tcp.RetransSegs", lost)].map(|(name, grown)| (name.to_owned(), 5 + grown));
        view.netstat.push(at, Reading::Ok(counters.chain(more.into_iter().filter(|_| at > 0)).collect()));
    }
    let load = obs.load.as_mut().unwrap();
    (load.requests, load.good, load.received_bytes) = (1_000, 1_000, 1_000_000_000);
    load.status = [(200, 1_000)].into();
    load.connect_us = Percentiles { p50: trip_us, ..Percentiles::default() };
    load.latency_us = Percentiles { p50: 200_000, p75: 210_000, p90: 220_000, p95: 230_000, p99: 250_000, p999: 300_000, max: 300_000 };
    obs
}

#[test]
fn long_answers_over_a_long_path_suffer_from_a_small_window() {
    let diagnosis = told(&long_answers(6_900, 2_000));
    assert_eq!(causes(&diagnosis), [LOSS]);
    assert_eq!((diagnosis.findings[0].confidence, diagnosis.findings[0].at.netns.as_deref()), (Confidence::Medium, Some("server")));
    assert_eq!(told_of(&long_answers(6_900, 200)), [""; 0], "round trips are short");
    assert_eq!(told_of(&long_answers(300, 2_000)), [""; 0], "the window stays large");
}

/// Watched: an answer of 64 kB is under way on each of twenty connections of the server, whose namespace lost this many of 700,000 segments. At each look this many of the
/// connections send lost segments again.
fn watched(lost: i64, recovering: u16) -> Observation {
    let mut obs = long_answers(lost, 200);
    (obs.load, obs.request.loaded) = (None, false);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for tenth in 6..=104_u64 {
        let answer = |n: u16| {
            let sent = 1_000 * tenth;
            let times = RequestTimes {
                last_data_sent_ms: 0,
                last_data_recv_ms: 8,
                data_segs_in: Some(sent / 45),
                data_segs_out: Some(sent),
                bytes_received: Some(100 * (sent / 45)),
                bytes_sent: Some(1_448 * sent),
                unsent: Some(20_000),
                unacked: Some(6),
                min_rtt_us: Some(60),
                rtt_us: Some(90),
                ..RequestTimes::default()
            };
            let address = SocketAddress::Tcp { local: (ip(SERVER_IP), 80), remote: (ip("10.0.0.1"), 20_000 + n) };
            let (cookie, inode) = (u64::from(n), 900 + u64::from(n));
            RequestSocket { address, cookie, state: TcpState::Established, inode, receive_queue: 0, send_queue: 30_000, times: Some(times) }
        };
        let sockets = (0..20).map(answer).collect();
        let sample = RequestSample { share: 1.0, handshake_share: 1.0, sockets, ..RequestSample::default() };
        view.request_samples.push(tenth * 100_000, Reading::Ok(sample));
    }
    for second in 1..=10_u64 {
        let sample = |n: u16| TcpSample {
            local: (ip(SERVER_IP), 80),
            remote: (ip("10.0.0.1"), 20_000 + n),
            cookie: u64::from(n),
            state: TcpState::Established,
            send_queue: 30_000,
            send_buffer: None,
            loss_state: if n < recovering { 3 } else { 0 },
            mss: 1448,
            unacked: 6,
            cwnd: 6,
            retransmitted: 30 * second,
            last_data_sent_ms: 0,
            rtt_us: 90,
            min_rtt_us: Some(60),
            unsent: Some(20_000),
            delivered: None,
            busy_us: None,
            rwnd_limited_us: None,
            sndbuf_limited_us: None,
            peer_window: None,
        };
        view.tcp_samples.push(second * 1_000_000, Reading::Ok((0..20).map(sample).collect()));
    }
    obs
}

#[test]
fn watched_connections_that_send_again_what_was_lost_name_the_loss() {
    let diagnosis = told(&watched(21_000, 9));
    assert_eq!((causes(&diagnosis), diagnosis.verdict), (vec![LOSS], Verdict::Choked), "{}", diagnosis.summary);
    let finding = &diagnosis.findings[0];
    assert_eq!((finding.confidence, finding.at.netns.as_deref()), (Confidence::Medium, Some("server")));
    assert!(finding.evidence.iter().any(|proof| proof.text.contains("9 of 20 requests")), "{:?}", finding.evidence);
    assert_eq!(told_of(&watched(21_000, 1)), [""; 0], "each client meets a loss now and then");
    assert_eq!(told_of(&watched(300, 9)), [""; 0], "the counters show next to no loss");
    let mut obs = watched(21_000, 9);
    cpu(&mut obs, 1.0);
    assert!(!told_of(&obs).contains(&LOSS.to_owned()), "the cores are full");
}

/// The same connections with nothing on its way: this many have data that the kernel does not let out, and the others have what this changes.
fn unsent(kept: u64, others: impl Fn(&mut TcpSample)) -> Observation {
    let mut obs = watched(6, 0);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.tcp_samples.points().to_vec();
    view.tcp_samples = Default::default();
    for (at_us, mut samples) in points {
        for sample in &mut samples {
            (sample.unacked, sample.peer_window, sample.last_data_sent_ms) = (0, Some(8_000_000), 120);
            if sample.cookie >= kept {
                others(sample);
            }
        }
        view.tcp_samples.push(at_us, Reading::Ok(samples));
    }
    obs
}

/// What a rule in the host's own output path drops is no retransmission: TCP stops at the error and tries again by a timer.
#[test]
fn data_that_the_host_does_not_let_out_is_never_healthy() {
    let moves = |sample: &mut TcpSample| (sample.unacked, sample.last_data_sent_ms) = (6, 0);
    let found = told(&unsent(15, moves));
    assert_eq!((found.verdict, causes(&found)), (Verdict::Unknown, vec![]), "{}", found.summary);
    assert!(["15 of 20 requests", "75 %", "output"].iter().all(|told| found.summary.contains(told)), "{}", found.summary);
    let fine = |others: &dyn Fn(&mut TcpSample), why: &str| {
        let found = told(&unsent(0, others));
        assert_eq!(found.verdict, Verdict::Healthy, "{why}: {}", found.summary);
    };
    fine(&moves, "data is on its way");
    fine(&|sample| sample.unsent = Some(600), "less than a segment: the program may want to add to it");
    fine(&|sample| sample.peer_window = Some(0), "the other end has no room");
    fine(&|sample| sample.peer_window = None, "the window was not read");
    fine(&|sample| sample.last_data_sent_ms = 4, "it was just written");
}

/// Packets that a filter drops before they reach a socket: no server on the path counts them, and the clients wait.
#[test]
fn packets_that_reach_the_host_and_no_socket_are_never_healthy() {
    let watched = |grown: &[(&str, u64)]| {
        let mut obs = unsent(0, |sample| (sample.unacked, sample.last_data_sent_ms) = (6, 0));
        protocol_counters(&mut obs, SERVER, grown);
        told(&obs)
    };
    let came = [("Ip.InReceives", 4_800), ("Tcp.InSegs", 2_200)];
    let found = watched(&[came[0], came[1], ("Ip.InDelivers", 2_200)]);
    assert_eq!((found.verdict, causes(&found)), (Verdict::Unknown, vec![]), "{}", found.summary);
    assert!(["2,600 packets", "54.2 %", "packet filter"].iter().all(|told| found.summary.contains(told)), "{}", found.summary);
    let same = |grown: &[(&str, u64)], why: &str| {
        let (found, without) = (watched(grown), watched(&[]));
        assert_eq!((found.verdict, &found.summary), (without.verdict, &without.summary), "{why}");
    };
    same(&[came[0], came[1], ("Ip.InDelivers", 4_800)], "all were delivered");
    same(&[came[0], came[1], ("Ip.InDelivers", 2_200), ("Ip.ForwDatagrams", 2_600)], "they were for others");
    same(&[came[0], came[1], ("Ip.InDelivers", 2_200), ("IpExt.InMcastPkts", 2_600)], "nobody asked for them");
    same(&[came[0], came[1], ("Ip.InDelivers", 2_200), ("Ip.ReasmReqds", 4_000), ("Ip.ReasmOKs", 1_400)], "they were parts of others");
    same(&[("Ip.InReceives", 2_205), came[1], ("Ip.InDelivers", 2_200)], "a few may be a stranger's");
    same(&came, "it was not read what was delivered");
    // What fails with load has its reason.
    let mut obs = healthy();
    protocol_counters(&mut obs, SERVER, &[came[0], came[1], ("Ip.InDelivers", 2_200)]);
    let load = obs.load.as_mut().unwrap();
    load.errors.connect_timeout = load.requests / 2;
    load.good -= load.requests / 2;
    let found = told(&obs);
    assert!(found.verdict == Verdict::Unknown && found.summary.contains("handed to no socket"), "{}", found.summary);
}

/// A server that ends and is started again refuses every connection meanwhile.
#[test]
fn a_server_that_ends_again_and_again_is_not_healthy() {
    let gone = |is_gone: &dyn Fn(u64) -> bool| {
        let mut obs = unsent(0, |sample| (sample.unacked, sample.last_data_sent_ms) = (6, 0));
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let points = view.listeners.points().to_vec();
        view.listeners = Default::default();
        for (at_us, mut listeners) in points {
            if is_gone(at_us) {
                listeners.clear();
            }
            view.listeners.push(at_us, Reading::Ok(listeners));
        }
        told(&obs)
    };
    let found = gone(&|at_us| at_us > WINDOW.0 && at_us % 4_000_000 > 3_000_000);
    assert_eq!((found.verdict, causes(&found)), (Verdict::Unknown, vec![]), "{}", found.summary);
    assert!(found.summary.contains("nothing listened on port 80") && found.summary.contains("% of the time"), "{}", found.summary);
    let restarted = gone(&|at_us| (5_000_000..5_300_000).contains(&at_us));
    assert_eq!(restarted.verdict, Verdict::Healthy, "it was started again once: {}", restarted.summary);
}

/// What clients of responses that do not arrive do meanwhile.
#[derive(Clone, Copy)]
struct Clients {
    /// How many of the twenty connections stand.
    standing: u64,
    /// True if each of them gives up after a second and asks on a new connection.
    ask_again: bool,
    /// Bytes of each segment that they acknowledge.
    acknowledged: u64,
    /// Bytes of the segments that are out.
    out: u32,
}

/// Watched: responses of which the first packets were sent again after a timeout, and lost again.
fn standing(clients: Clients) -> Observation {
    let mut obs = watched(100, 0);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for (at_us, mut samples) in std::mem::take(&mut view.tcp_samples).points().to_vec() {
        for sample in samples.iter_mut().filter(|sample| sample.cookie < clients.standing) {
            (sample.loss_state, sample.last_data_sent_ms) = (4, 500);
            (sample.send_queue, sample.unsent) = (20_000 + clients.out, Some(20_000));
        }
        view.tcp_samples.push(at_us, Reading::Ok(samples));
    }
    for (at_us, mut sample) in std::mem::take(&mut view.request_samples).points().to_vec() {
        for socket in sample.sockets.iter_mut().filter(|socket| socket.cookie < clients.standing) {
            let times = socket.times.as_mut().unwrap();
            let turn = if clients.ask_again { at_us / 1_000_000 } else { 0 };
            socket.cookie += 100 * turn;
            (times.data_segs_in, times.bytes_received, times.last_data_recv_ms) = (Some(1), Some(80), 900);
            let segments = at_us / 100_000 % 10;
            (times.data_segs_out, times.bytes_acked) = (Some(segments), Some(clients.acknowledged * segments));
        }
        view.request_samples.push(at_us, Reading::Ok(sample));
    }
    obs
}

#[test]
fn packets_that_are_too_large_for_the_way_are_told_from_other_loss() {
    let clients = Clients { standing: 20, ask_again: true, acknowledged: 0, out: 14_480 };
    for standing_number in [20, 12, 6] {
        let found = told(&standing(Clients { standing: standing_number, ..clients }));
        assert_eq!(causes(&found), [LOSS], "{standing_number}: {}", found.summary);
        let first = &found.findings[0];
        assert!(first.title.starts_with("full-size packets that server sends"), "{}", first.title);
        assert!(first.remedies[0].text.contains("tracepath"), "{:?}", first.remedies);
    }
    // Small responses arrive on the same connections: that only confirms it.
    assert_eq!(causes(&told(&standing(Clients { acknowledged: 300, ..clients }))), [LOSS]);
    // Full cores have nothing to do with it.
    let mut busy = standing(clients);
    cpu(&mut busy, 1.0);
    assert!(causes(&told(&busy)).contains(&LOSS));
    // Neither have connections of another server of the namespace, whose clients are gone.
    let mut beside = standing(clients);
    let view = beside.netns.get_mut(&SERVER).unwrap();
    for (at_us, mut samples) in std::mem::take(&mut view.tcp_samples).points().to_vec() {
        let (local, remote) = ((ip(SERVER_IP), 9_999), (ip("10.0.0.77"), 4_000));
        samples.push(TcpSample { local, remote, cookie: 77, send_queue: 100, unsent: Some(0), ..samples[0].clone() });
        view.tcp_samples.push(at_us, Reading::Ok(samples));
    }
    assert_eq!(causes(&told(&beside)), [LOSS]);
    let silent = |clients: Clients, why: &str| {
        let found = told(&standing(clients));
        assert!(!found.findings.iter().any(|finding| finding.title.contains("full-size")), "{why}: {:#?}", found.findings);
        found
    };
    silent(Clients { acknowledged: 1_448, ..clients }, "full packets of the same clients arrive");
    silent(Clients { out: 300, ..clients }, "small packets are lost as well");
    silent(Clients { standing: 1, ..clients }, "one client in twenty");
    let gone = silent(Clients { ask_again: false, ..clients }, "they may be gone");
    assert_eq!(gone.verdict, Verdict::Unknown, "nothing is answered: {}", gone.summary);
    assert!(gone.summary.contains("20 of 20 responses under way stand"), "{}", gone.summary);
    let some_gone = silent(Clients { ask_again: false, standing: 8, ..clients }, "some are gone");
    assert_eq!(some_gone.verdict, Verdict::Healthy, "the others are answered: {}", some_gone.summary);
}

/// Clients that gave up long ago: the kernel still sends the rest of what they had asked, and nobody waits for it.
#[test]
fn what_clients_have_closed_is_waited_for_by_nobody() {
    let mut obs = watched(21_000, 9);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.tcp_samples.points().to_vec();
    view.tcp_samples = Default::default();
    for (at, mut samples) in points {
        samples.iter_mut().filter(|sample| sample.loss_state == 3).for_each(|sample| {
            (sample.local, sample.remote, sample.state) = (sample.remote, sample.local, TcpState::FinWait1);
        });
        view.tcp_samples.push(at, Reading::Ok(samples));
    }
    assert!(!told_of(&obs).contains(&LOSS.to_owned()));
}
