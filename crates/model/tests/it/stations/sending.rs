//! Answers held back in a server's sockets. A send buffer or a delayed acknowledgement is a cause if it takes much of the requests' time, and no
//! finding if something else explains it or nobody waits for it.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::load::{Loop, Lost, Percentiles};
use chokepoint_model::observation::{Flight, Observation, RequestSample, RequestSocket, RequestTimes, SocketAddress, TcpSample, TcpState};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Diagnosis, StationState, Verdict};

use crate::stage::pool::serves_by_threads;
use crate::stage::*;

const BUFFER: &str = "send-buffer-limited";
const STALL: &str = "delayed-ack-stall";
const FIRST_WINDOW: &str = "small-initial-window";
const RECEIVER: &str = "receiver-limited";
const CONNECTIONS: u64 = 20;

/// An idle accepted connection of the server.
fn idle(number: u64) -> TcpSample {
    TcpSample {
        local: (ip(SERVER_IP), 80),
        remote: (ip("10.0.0.1"), 20_000 + number as u16),
        cookie: number,
        state: TcpState::Established,
        send_queue: 0,
        send_buffer: Some(87_040),
        loss_state: 0,
        mss: 1448,
        unacked: 0,
        cwnd: 10,
        retransmitted: 0,
        last_data_sent_ms: 20,
        rtt_us: 21_000,
        min_rtt_us: Some(20_000),
        unsent: Some(0),
        delivered: Some(2),
        busy_us: Some(0),
        rwnd_limited_us: Some(0),
        sndbuf_limited_us: Some(0),
        peer_window: Some(65_535),
    }
}

/// A connection that has filled its send buffer nearly all of the time since the observation began.
fn full(number: u64, second: u64) -> TcpSample {
    let busy = second * 1_000_000;
    TcpSample {
        send_queue: 8_000,
        send_buffer: Some(16_384),
        unacked: 6,
        busy_us: Some(busy),
        sndbuf_limited_us: Some(busy * 9 / 10),
        ..idle(number)
    }
}

/// A connection that holds back the end of an answer.
fn stalled(number: u64, _: u64) -> TcpSample {
    TcpSample { send_queue: 300, unacked: 1, unsent: Some(200), rtt_us: 40_000, min_rtt_us: Some(90), ..idle(number) }
}

/// The healthy server with idle time on its cores, in a closed loop, with these connections in each second.
fn observed(sample: impl Fn(u64, u64) -> TcpSample) -> Observation {
    let mut obs = healthy();
    cpu(&mut obs, 0.2);
    let load = obs.load.as_mut().unwrap();
    load.shape = Loop::Closed { connections: CONNECTIONS as u32 };
    load.latency_us = Percentiles { p50: 44_000, p75: 44_000, p90: 45_000, p95: 46_000, p99: 50_000, p999: 60_000, max: 70_000 };
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for second in 1..=10_u64 {
        let samples = (0..CONNECTIONS).map(|number| sample(number, second)).collect();
        view.tcp_samples.push(second * 1_000_000, Reading::Ok(samples));
    }
    set_wmem(&mut obs, "4096\t16384\t16384\n");
    obs
}

fn set_wmem(obs: &mut Observation, sizes: &str) {
    let series = obs.netns.get_mut(&SERVER).unwrap().sysctls.entry("net.ipv4.tcp_wmem".to_owned()).or_default();
    *series = Default::default();
    series.push(0, Reading::Ok(sizes.to_owned()));
}

fn causes_of(obs: &Observation) -> Vec<String> {
    causes(&told(obs)).into_iter().map(str::to_owned).collect()
}

fn is_silent(obs: &Observation, why: &str) {
    assert_eq!(causes_of(obs), [""; 0], "{why}");
}

#[test]
fn full_send_buffers_on_a_long_path_are_reported_with_the_setting_that_lets_them_grow() {
    let diagnosis = told(&observed(full));
    assert_eq!((causes(&diagnosis), diagnosis.verdict), (vec![BUFFER], Verdict::Choked));
    let finding = &diagnosis.findings[0];
    assert_eq!(
        (finding.confidence, finding.tier.as_str(), finding.at.listener.as_deref()),
        (Confidence::High, "nginx", Some("0.0.0.0:80"))
    );
    let remedies: Vec<_> = finding.remedies.iter().map(|remedy| (remedy.id.as_str(), remedy.runtime[0].command.clone().unwrap())).collect();
    assert_eq!(remedies.len(), 1, "{remedies:?}");
    assert!(remedies[0].0 == "raise-send-buffer" && remedies[0].1.contains("4096 16384 4194304"), "{remedies:?}");
    let station = diagnosis.path.iter().find(|station| station.station == "sending").unwrap();
    assert_eq!((station.state, station.used), (StationState::Saturated, Some(20.0)));
}

#[test]
fn a_buffer_set_by_the_program_is_reported_and_not_changed() {
    let mut obs = observed(full);
    set_wmem(&mut obs, "4096\t16384\t4194304\n");
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), [BUFFER]);
    let remedies: Vec<&str> = diagnosis.findings[0].remedies.iter().map(|remedy| remedy.id.as_str()).collect();
    assert_eq!(remedies, ["free-send-buffer"]);
}

#[test]
fn a_full_buffer_that_is_not_the_limit_is_no_cause() {
    is_silent(&observed(|number, second| TcpSample { min_rtt_us: Some(80), rtt_us: 120, ..full(number, second) }), "the receiver is near");
    is_silent(&observed(|number, second| TcpSample { rtt_us: 90_000, ..full(number, second) }), "a queue on the way is full");
    let window = |number, second: u64| TcpSample {
        rwnd_limited_us: Some(second * 500_000),
        sndbuf_limited_us: Some(second * 400_000),
        ..full(number, second)
    };
    assert_eq!(causes_of(&observed(window)), [RECEIVER], "the peer's window holds back more");
    is_silent(&observed(|number, second| if number < 2 { full(number, second) } else { idle(number) }), "a tenth of the time, and chance");
    is_silent(
        &observed(|number, second| TcpSample { sndbuf_limited_us: Some(second * 80_000), ..full(number, second) }),
        "a twelfth of the time",
    );
    let mut obs = observed(full);
    cpu(&mut obs, 1.0);
    is_silent(&obs, "the cores are full");
    let mut obs = observed(full);
    obs.load = None;
    is_silent(&obs, "nobody knows who waits");
    is_silent(&observed(|number, second| TcpSample { busy_us: None, sndbuf_limited_us: None, ..full(number, second) }), "an old kernel");
    // Time before the window does not count.
    is_silent(&observed(|number, _| full(number, 10)), "nothing grew while it was watched");
}

#[test]
fn a_connection_seen_once_counts_with_its_whole_lifetime() {
    let new_each_time = |number, second: u64| TcpSample {
        cookie: 1000 * second + number,
        busy_us: Some(200_000),
        sndbuf_limited_us: Some(180_000),
        ..full(number, second)
    };
    assert_eq!(causes_of(&observed(new_each_time)), [BUFFER]);
}

#[test]
fn ends_of_answers_that_wait_for_an_acknowledgement_are_reported() {
    let diagnosis = told(&observed(stalled));
    assert_eq!((causes(&diagnosis), diagnosis.verdict), (vec![STALL], Verdict::Choked));
    let finding = &diagnosis.findings[0];
    assert_eq!((finding.confidence, finding.station.as_str()), (Confidence::High, "sending"));
    assert_eq!(finding.evidence[0].value, Some(200.0));
    assert_eq!(finding.remedies.iter().map(|remedy| remedy.id.as_str()).collect::<Vec<_>>(), ["send-at-once"]);
}

/// Answers whose ends wait for an acknowledgement.
pub(crate) fn stalls() -> Observation {
    observed(stalled)
}

/// The same requests, only watched: of these connections this many have the end of an answer in their queue.
fn watched(sample: impl Fn(u64, u64) -> TcpSample, sending: u64) -> Observation {
    let mut obs = observed(sample);
    (obs.load, obs.request.loaded) = (None, false);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for tick in 0..50 {
        let connection = |number: u64| {
            let is_sending = number < sending;
            let times = RequestTimes {
                last_data_recv_ms: 24,
                last_data_sent_ms: 20,
                unsent: Some(if is_sending { 200 } else { 0 }),
                data_segs_in: Some(9),
                data_segs_out: Some(9),
                ..RequestTimes::default()
            };
            RequestSocket {
                address: SocketAddress::Tcp { local: (ip(SERVER_IP), 80), remote: (ip("10.0.0.1"), 20_000 + number as u16) },
                cookie: number + 1,
                state: TcpState::Established,
                inode: 900 + number,
                receive_queue: 0,
                send_queue: if is_sending { 300 } else { 0 },
                times: Some(times),
            }
        };
        let sockets = (0..CONNECTIONS).map(connection).collect();
        let sample = RequestSample { share: 1.0, handshake_share: 1.0, sockets, ..RequestSample::default() };
        view.request_samples.push(WINDOW.0 + tick * 180_000, Reading::Ok(sample));
    }
    obs
}

#[test]
fn a_stall_is_found_by_watching_too() {
    let diagnosis = told(&watched(stalled, CONNECTIONS));
    assert_eq!((causes(&diagnosis), diagnosis.verdict), (vec![STALL], Verdict::Choked));
    let told_old = |diagnosis: &Diagnosis| diagnosis.findings[0].evidence.iter().any(|proof| proof.text.contains("20 ms"));
    assert!(told_old(&diagnosis), "{:?}", diagnosis.findings[0].evidence);
    let short = |number, second| TcpSample { last_data_sent_ms: 9, ..stalled(number, second) };
    is_silent(&watched(short, CONNECTIONS), "acknowledged sooner than a delay lasts");
    is_silent(&watched(|number, _| idle(number), 0), "nothing is on its way");
}

/// The same where no connection was there for a second look, as one for a single request is not: only the requests' sockets show them, `held` of them with the end of an answer.
fn seen_once(loaded: bool, held: u64, end: RequestTimes, flight: Flight) -> Observation {
    let mut obs = if loaded { observed(stalled) } else { watched(stalled, CONNECTIONS) };
    let view = obs.netns.get_mut(&SERVER).unwrap();
    view.tcp_samples = Default::default();
    view.request_samples = Default::default();
    for tick in 0..50 {
        let connection = |number: u64| RequestSocket {
            address: SocketAddress::Tcp { local: (ip(SERVER_IP), 80), remote: (ip("10.0.0.1"), 20_000 + (tick * 20 + number) as u16) },
            cookie: tick * 20 + number + 1,
            state: TcpState::Established,
            inode: 900 + number,
            receive_queue: 0,
            send_queue: if number < held { 300 } else { 0 },
            times: Some(if number < held { RequestTimes { flight: Some(flight), ..end } } else { RequestTimes { unsent: Some(0), ..end } }),
        };
        let sockets = (0..held.max(1)).map(connection).collect();
        let sample = RequestSample { share: 1.0, handshake_share: 1.0, sockets, ..RequestSample::default() };
        view.request_samples.push(WINDOW.0 + tick * 180_000, Reading::Ok(sample));
    }
    obs
}

/// The end of an answer that waits for an acknowledgement, and what the kernel says of its connection.
const END: RequestTimes = RequestTimes {
    last_data_recv_ms: 24,
    last_data_sent_ms: 20,
    last_ack_recv_ms: None,
    data_segs_in: Some(9),
    data_segs_out: Some(9),
    bytes_acked: None,
    bytes_received: None,
    bytes_sent: None,
    unsent: Some(200),
    rwnd_limited_us: None,
    min_rtt_us: Some(90),
    rtt_us: Some(40_000),
    unacked: Some(1),
    lost: Some(0),
    flight: None,
};
const FLIGHT: Flight = Flight { mss: 1_448, cwnd: 10, retransmitted: 0, is_recovering: false };

#[test]
fn a_stall_of_connections_that_are_seen_once_is_found() {
    for held in [1, 3, 20] {
        for loaded in [true, false] {
            let diagnosis = told(&seen_once(loaded, held, END, FLIGHT));
            assert_eq!(causes(&diagnosis), [STALL], "{held} {loaded}: {}", diagnosis.summary);
        }
        let silent = |end: RequestTimes, flight: Flight, why: &str| is_silent(&seen_once(true, held, end, flight), why);
        silent(RequestTimes { unsent: Some(1_448), ..END }, FLIGHT, "a whole segment waits for something else");
        silent(RequestTimes { unacked: Some(0), ..END }, FLIGHT, "nothing is on its way");
        silent(RequestTimes { last_data_sent_ms: 2, ..END }, FLIGHT, "it was just sent");
        silent(RequestTimes { min_rtt_us: Some(30_000), ..END }, FLIGHT, "a long path");
        silent(END, Flight { cwnd: 1, ..FLIGHT }, "the congestion window is full");
        silent(END, Flight { retransmitted: 1, ..FLIGHT }, "something was lost");
        silent(END, Flight { is_recovering: true, ..FLIGHT }, "something may be lost");
    }
}

/// Without the stall, clients would only wait longer before the server.
#[test]
fn a_stall_beside_a_longer_queue_is_no_cause() {
    // Six of twenty are stalled, and so many others are not read by the server.
    let with = |unread: u64, inside: u64| {
        let mut obs = observed(|number, second| if number < 6 { stalled(number, second) } else { idle(number) });
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let client = |n: u64| RequestSocket {
            address: SocketAddress::Tcp { local: (ip(SERVER_IP), 80), remote: (ip("10.0.0.1"), 20_000 + n as u16) },
            cookie: n,
            state: TcpState::Established,
            inode: 7,
            receive_queue: if n >= 20 - unread { 80 } else { 0 },
            send_queue: if n < 6 { 300 } else { 0 },
            times: Some(RequestTimes {
                last_data_sent_ms: 20,
                last_data_recv_ms: if (6..6 + inside).contains(&n) { 8 } else { 24 },
                min_rtt_us: Some(90),
                ..RequestTimes::default()
            }),
        };
        for number in 0..20 {
            let sockets = (0..CONNECTIONS).map(client).collect();
            let sample = RequestSample { share: 1.0, handshake_share: 1.0, sockets, ..RequestSample::default() };
            view.request_samples.push(WINDOW.0 + number * 500_000, Reading::Ok(sample));
        }
        told(&obs)
    };
    assert_eq!(causes(&with(3, 0)), [STALL]);
    // What waits inside may be a queue.
    let beside = with(0, 12);
    let says = |text: &str| beside.findings[0].evidence.iter().any(|proof| proof.text.contains(text));
    assert_eq!((causes(&beside), beside.findings[0].confidence), (vec![STALL], Confidence::Medium));
    assert!(says("wait inside nginx") && says("nothing is gained"), "{:?}", beside.findings[0].evidence);
    let queue = with(12, 0);
    let found = queue.findings.iter().find(|finding| finding.id == STALL).unwrap_or_else(|| panic!("{queue:#?}"));
    assert!(causes(&queue).is_empty() && found.explanation.contains("12 wait until nginx reads them"), "{queue:#?}");
}

#[test]
fn readings_similar_to_a_stall_are_no_stall() {
    let with = |change: fn(&mut TcpSample)| {
        observed(move |number, second| {
            let mut sample = stalled(number, second);
            change(&mut sample);
            sample
        })
    };
    is_silent(&with(|sample| sample.min_rtt_us = Some(40_000)), "the way takes as long");
    is_silent(&with(|sample| sample.last_data_sent_ms = 1), "it was sent just now");
    is_silent(&with(|sample| sample.unacked = 0), "the program holds it back (TCP_CORK)");
    is_silent(&with(|sample| sample.unsent = Some(0)), "nothing is left to send");
    is_silent(&with(|sample| sample.unsent = Some(100_000)), "more than a segment waits for something else");
    is_silent(&with(|sample| sample.cwnd = 1), "the congestion window is full");
    is_silent(&with(|sample| sample.peer_window = Some(0)), "the peer has no room");
    is_silent(&with(|sample| sample.loss_state = 4), "a packet was lost");
    is_silent(&with(|sample| sample.retransmitted = 1), "a packet was lost before");
    is_silent(&with(|sample| sample.unsent = None), "an old kernel");
    is_silent(
        &observed(|number, second| if number < 2 { stalled(number, second) } else { idle(number) }),
        "a tenth of the time, and chance",
    );
    let mut obs = observed(stalled);
    obs.load.as_mut().unwrap().latency_us = Percentiles { p50: 9_000, p75: 9_000, p99: 20_000, ..Percentiles::default() };
    is_silent(&obs, "no answer takes so long");
}

/// New connections, 20 ms away. A third of them has sent a first flight of one segment, and the others have sent more.
fn young(number: u64, _: u64) -> TcpSample {
    let (cwnd, delivered) = [(1, 1), (4, 2), (16, 14)][number as usize % 3];
    TcpSample { send_queue: 9_000, unacked: 1, cwnd, delivered: Some(delivered), ..idle(number) }
}

fn new_connections(sample: impl Fn(u64, u64) -> TcpSample) -> Observation {
    let mut obs = observed(sample);
    let load = obs.load.as_mut().unwrap();
    load.received_bytes = load.requests * 33_000;
    load.latency_us = Percentiles { p50: 100_000, p75: 101_000, p99: 130_000, ..Percentiles::default() };
    obs
}

#[test]
fn a_first_flight_smaller_than_usual_is_reported_if_it_costs_round_trips() {
    let diagnosis = told(&new_connections(young));
    assert_eq!((causes(&diagnosis), diagnosis.verdict), (vec![FIRST_WINDOW], Verdict::Choked));
    let finding = &diagnosis.findings[0];
    assert_eq!((finding.confidence, finding.evidence[0].value), (Confidence::Medium, Some(1.0)));
    assert_eq!(finding.evidence[1].value, Some(40_000.0), "four round trips instead of two");
    assert_eq!(finding.remedies.iter().map(|remedy| remedy.id.as_str()).collect::<Vec<_>>(), ["widen-first-window"]);
}

#[test]
fn a_usual_first_flight_and_one_without_cost_are_no_finding() {
    is_silent(
        &new_connections(|number, second| TcpSample { cwnd: young(number, second).cwnd + 9, ..young(number, second) }),
        "ten segments",
    );
    is_silent(&new_connections(|number, second| TcpSample { min_rtt_us: Some(200), ..young(number, second) }), "the way is short");
    is_silent(&new_connections(|number, second| TcpSample { retransmitted: 1, ..young(number, second) }), "a loss made the window small");
    is_silent(&new_connections(|number, second| TcpSample { unacked: 0, send_queue: 0, ..young(number, second) }), "nothing was sent yet");
    is_silent(&new_connections(|number, second| TcpSample { delivered: None, ..young(number, second) }), "an old kernel");
    let mut obs = new_connections(young);
    obs.load.as_mut().unwrap().connections = CONNECTIONS;
    is_silent(&obs, "kept connections");
    let mut obs = new_connections(young);
    obs.load.as_mut().unwrap().received_bytes = 100_000 * 1_000;
    is_silent(&obs, "short answers");
    let mut obs = new_connections(young);
    obs.load.as_mut().unwrap().latency_us = Percentiles { p50: 900_000, p75: 900_000, p99: 990_000, ..Percentiles::default() };
    is_silent(&obs, "the answer itself takes long");
}

/// A connection whose peer's window is full nearly all of the time.
fn unread(number: u64, second: u64) -> TcpSample {
    let busy = second * 1_000_000;
    let (window, buffer) = (Some(busy * 9 / 10), Some(busy / 100));
    TcpSample { unsent: Some(90_000), peer_window: Some(8_192), rwnd_limited_us: window, sndbuf_limited_us: buffer, ..full(number, second) }
}

#[test]
fn clients_that_do_not_read_are_blamed_and_not_the_server() {
    let diagnosis = told(&observed(unread));
    assert_eq!((causes(&diagnosis), diagnosis.verdict), (vec![RECEIVER], Verdict::ClientLimited));
    let finding = &diagnosis.findings[0];
    assert_eq!((finding.tier.as_str(), finding.evidence[1].value), ("client", Some(8_192.0)));
    assert_eq!(finding.remedies.iter().map(|remedy| remedy.id.as_str()).collect::<Vec<_>>(), ["ask-clients"]);
    is_silent(&observed(|number, second| TcpSample { min_rtt_us: Some(80), ..unread(number, second) }), "at hand");
    is_silent(
        &observed(|number, second| TcpSample { rwnd_limited_us: Some(second * 80_000), ..unread(number, second) }),
        "a twelfth of the time",
    );
    let mut obs = observed(unread);
    cpu(&mut obs, 1.0);
    is_silent(&obs, "the cores are full");
}

#[test]
fn without_samples_there_is_no_statement() {
    let mut obs = observed(stalled);
    obs.netns.get_mut(&SERVER).unwrap().tcp_samples = Default::default();
    let diagnosis = told(&obs);
    assert!(diagnosis.path.iter().all(|station| station.station != "sending"));
    is_silent(&obs, "a recording of before");
}

/// The listener dropped these connections in the first second of the load, and later ones in the rest of it. Each waited for a second.
fn dropped(obs: &mut Observation, first: u64, later: u64) {
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in points {
        let grown = |from: u64, until: u64, drops: u64| drops * at.clamp(from, until).saturating_sub(from) / (until - from);
        let settled = WINDOW.0 + 1_000_000;
        listeners[0].drops = Some(grown(WINDOW.0, settled, first) + grown(settled, WINDOW.1, later));
        listeners[0].accept_queue_limit = 5;
        view.listeners.push(at, Reading::Ok(listeners));
    }
    let load = obs.load.as_mut().unwrap();
    let time_us = (first + later) * 1_000_000;
    load.lost = Some(Lost { patience_us: 1_000_000, late: first + later, time_us, of_us: CONNECTIONS * load.duration_us });
    load.latency_us.max = 1_050_000;
}

/// Twenty clients for ten seconds, of which 26 drops cost an eighth. The stall holds most of the connections, or a quarter.
#[test]
fn what_only_the_start_of_the_load_did_is_a_note_beside_what_costs_more() {
    const QUEUE: &str = "accept-queue-full";
    let with = |stalled_of_8: u64, first: u64, later: u64| {
        let held = move |number, second| if number % 8 < stalled_of_8 { stalled(number, second) } else { idle(number) };
        let mut obs = observed(held);
        dropped(&mut obs, first, later);
        told(&obs)
    };
    let found = with(6, 26, 0);
    assert_eq!(causes(&found), [STALL], "{found:#?}");
    assert_eq!(found.findings.len(), 1, "{found:#?}");
    let queue = found.path.iter().find(|station| station.station == "accept-queue").unwrap();
    assert!(queue.state == StationState::Near && queue.why.contains("at the start of the load"), "{queue:?}");
    let note = found.warnings.iter().find(|warning| warning.contains("at the start of the load"));
    assert!(
        note.is_some_and(|note| note.starts_with("26 connections") && note.contains("13 % of the clients' time")),
        "{:?}",
        found.warnings
    );
    // What goes on through the load is no matter of its start; and alone the start is what costs, as it is where it costs more.
    assert!(causes(&with(6, 26, 26)).contains(&QUEUE));
    assert_eq!(causes(&with(0, 26, 0)), [QUEUE]);
    assert!(causes(&with(2, 90, 0)).contains(&QUEUE));
}

/// Ten of twenty are stalled, six are served by threads of which there are no more, and four wait for one: fewer than are stalled, but the stall takes no thread.
#[test]
fn a_stall_beside_threads_that_are_all_taken_says_so() {
    let mut obs = observed(|number, second| if number < 10 { stalled(number, second) } else { idle(number) });
    serves_by_threads(&mut obs);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let client = |n: u64| {
        let (recv_ms, sent_ms) = if n < 10 { (24, 20) } else { (12, 40) };
        RequestSocket {
            address: SocketAddress::Tcp { local: (ip(SERVER_IP), 80), remote: (ip("10.0.0.1"), 20_000 + n as u16) },
            cookie: n + 1,
            state: TcpState::Established,
            inode: 7,
            receive_queue: if n >= 16 { 80 } else { 0 },
            send_queue: if n < 10 { 300 } else { 0 },
            times: Some(RequestTimes {
                last_data_sent_ms: sent_ms,
                last_data_recv_ms: recv_ms,
                min_rtt_us: Some(90),
                ..RequestTimes::default()
            }),
        }
    };
    for number in 0..20 {
        let sockets = (0..CONNECTIONS).map(client).collect();
        let sample = RequestSample { share: 1.0, handshake_share: 1.0, sockets, ..RequestSample::default() };
        view.request_samples.push(WINDOW.0 + number * 500_000, Reading::Ok(sample));
    }
    let diagnosis = told(&obs);
    let found = diagnosis.findings.iter().find(|finding| finding.id == STALL).unwrap_or_else(|| panic!("{diagnosis:#?}"));
    assert_eq!(causes(&diagnosis), ["worker-pool-exhausted"], "{diagnosis:#?}");
    assert!(
        found.explanation.contains("All 6 threads of server") && found.explanation.contains("4 wait until one reads them"),
        "{}",
        found.explanation
    );
    assert!(!found.explanation.contains("More requests wait"), "four of them, and ten are stalled: {}", found.explanation);
}
