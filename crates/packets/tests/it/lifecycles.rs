//! Streams written segment by segment: each shows one effect, and its counterpart does not.
//!
//! Deterministic: captures in, facts out.

use chokepoint_model::edge::{ConnectionReuse, Reason, keepalive};
use chokepoint_packets::summary::{ConnectionEnd, FirstFlight, Manner, Moment, StreamSummary};
use chokepoint_packets::{Analyzer, Limits, Packet, Report};

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
const MS: i64 = 1_000_000;
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const ANSWER_CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";

/// A capture between one client and one server with a round trip of 20 ms, made at either side.
struct Wire {
    analyzer: Analyzer,
    streams: Vec<StreamSummary>,
    at_ns: i64,
    port: u16,
    next: [u32; 2],
    acked: [u32; 2],
}

impl Wire {
    fn new() -> Self {
        Self {
            analyzer: Analyzer::new(Limits::default()),
            streams: Vec::new(),
            at_ns: 1_700_000_000_000 * MS,
            port: 40_000,
            next: [0; 2],
            acked: [0; 2],
        }
    }

    /// A segment with an explicit sequence number.
    fn raw(&mut self, from_client: bool, flags: u8, sequence: u32, acknowledged: u32, payload: &[u8]) {
        let mss: &[u8] = if flags & SYN != 0 { &[2, 4, 5, 0xb4] } else { &[] };
        let mut bytes = vec![0x45, 0];
        bytes.extend_from_slice(&((40 + mss.len() + payload.len()) as u16).to_be_bytes());
        bytes.extend_from_slice(&[
            0,
            0,
            0,
            0,
            64,
            6,
            0,
            0,
            10,
            0,
            0,
            if from_client { 1 } else { 2 },
            10,
            0,
            0,
            if from_client { 2 } else { 1 },
        ]);
        let ports = if from_client { [self.port, 80] } else { [80, self.port] };
        ports.iter().for_each(|port| bytes.extend_from_slice(&port.to_be_bytes()));
        bytes.extend_from_slice(&sequence.to_be_bytes());
        bytes.extend_from_slice(&acknowledged.to_be_bytes());
        bytes.extend_from_slice(&[(5 + mss.len() as u8 / 4) << 4, flags, 0x40, 0, 0, 0, 0, 0]);
        bytes.extend_from_slice(mss);
        bytes.extend_from_slice(payload);
        let packet = Packet { at_ns: self.at_ns, link: 101, wire_bytes: bytes.len() as u32, bytes: &bytes };
        self.analyzer.packet(&packet, &mut |stream| self.streams.push(stream.clone()));
    }

    /// The next segment of a side. It acknowledges everything that the other side sent.
    fn send(&mut self, from_client: bool, flags: u8, payload: &[u8]) {
        let side = usize::from(!from_client);
        self.raw(from_client, flags | ACK, self.next[side], self.next[1 - side], payload);
        self.acked[1 - side] = self.next[1 - side];
        self.next[side] = self.next[side].wrapping_add(payload.len() as u32 + u32::from(flags & (SYN | FIN) != 0));
    }

    fn wait(&mut self, ms: i64) {
        self.at_ns += ms * MS;
    }

    /// A handshake as the client's side sees it.
    fn connect(&mut self) {
        self.port += 1;
        self.next = [u32::from(self.port) << 8, 0xffff_fff0];
        self.raw(true, SYN, self.next[0], 0, b"");
        self.next[0] = self.next[0].wrapping_add(1);
        self.wait(20);
        self.send(false, SYN, b"");
        self.send(true, 0, b"");
    }

    fn exchange(&mut self, answer: &[u8]) {
        self.send(true, 0, REQUEST);
        self.wait(25);
        self.send(false, 0, answer);
        self.send(true, 0, b"");
    }

    fn close(&mut self, client_first: bool) {
        self.send(client_first, FIN, b"");
        self.wait(1);
        self.send(!client_first, FIN, b"");
        self.send(client_first, 0, b"");
    }

    fn finish(mut self) -> (Vec<StreamSummary>, Report) {
        let mut streams = self.streams;
        let report = self.analyzer.finish(&mut |stream| streams.push(stream.clone()));
        streams.sort_by_key(|stream| stream.index);
        self.streams = Vec::new();
        (streams, report)
    }
}

#[test]
fn times_are_measured_on_the_wire() {
    let mut wire = Wire::new();
    wire.connect();
    wire.exchange(ANSWER);
    wire.wait(3000);
    wire.exchange(ANSWER);
    wire.close(true);
    let (streams, report) = wire.finish();
    let stream = &streams[0];
    assert_eq!((stream.requests, stream.answers, stream.setup_ns), (2, 2, Some(20_000_000)));
    assert_eq!((stream.first_byte_ns_mean, stream.idle_gaps), (Some(25_000_000), 1));
    assert!((report.edges[0].think_ns.mean().unwrap() - 5e6).abs() < 1.0, "25 ms less 20 on the way");
    let close = stream.close.unwrap();
    assert_eq!(
        (close.by, close.manner, close.moment, close.other),
        (ConnectionEnd::Client, Manner::Fin, Moment::AfterAnswer, Some(Manner::Fin))
    );
    assert!(!close.race);
}

#[test]
fn a_request_that_crosses_the_servers_close_is_a_race() {
    let mut wire = Wire::new();
    wire.connect();
    wire.exchange(ANSWER);
    wire.wait(5000);
    wire.send(false, FIN, b"");
    wire.send(true, 0, REQUEST);
    wire.wait(20);
    wire.raw(false, RST, wire.next[1], 0, b"");
    let port = wire.port;
    // The counterpart: the server closes when idle, and the client closes too.
    wire.connect();
    wire.exchange(ANSWER);
    wire.wait(5000);
    wire.close(false);
    assert_ne!(port, wire.port);
    let (streams, report) = wire.finish();
    let closes: Vec<_> = streams.iter().map(|stream| stream.close.unwrap()).collect();
    assert!(closes[0].race && !closes[1].race);
    assert!(closes.iter().all(|close| close.by == ConnectionEnd::Server && close.moment == Moment::Idle));
    assert_eq!((report.edges[0].races, &report.edges[0].race_streams[..]), (1, &[0][..]));
    assert!(keepalive(&report.edges[0].facts()).reasons.contains(&Reason::ServerIdle));
}

#[test]
fn a_request_limit_is_recognised_with_its_number() {
    let mut wire = Wire::new();
    for _ in 0..3 {
        wire.connect();
        (0..29).for_each(|_| wire.exchange(ANSWER));
        wire.exchange(ANSWER_CLOSE);
        wire.close(false);
    }
    let (_, report) = wire.finish();
    let facts = report.edges[0].facts();
    assert_eq!(facts.request_limit, Some((30, 3)));
    assert_eq!((keepalive(&facts).kept, keepalive(&facts).reasons), (ConnectionReuse::Partly, vec![Reason::RequestLimit]));
}

#[test]
fn ten_segments_are_the_first_flight_and_more_follow() {
    let mut wire = Wire::new();
    wire.connect();
    wire.send(true, 0, REQUEST);
    wire.wait(20);
    let mut answer = b"HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n".to_vec();
    answer.resize(1460 * 20, b'x');
    let pieces: Vec<&[u8]> = answer.chunks(1460).collect();
    for piece in &pieces[..10] {
        wire.send(false, 0, piece);
        // The acknowledgement leaves at once, but reaches the server 20 ms later.
        wire.send(true, 0, b"");
    }
    wire.wait(20);
    pieces[10..].iter().for_each(|piece| wire.send(false, 0, piece));
    let (streams, _) = wire.finish();
    assert_eq!(streams[0].server_sent.first_flight, Some(FirstFlight { segments: 10, bytes: 14_600, limited: true }));
    assert_eq!(streams[0].client_sent.first_flight.map(|flight| flight.limited), Some(false));
}

#[test]
fn retransmissions_are_classified_by_reason() {
    let mut wire = Wire::new();
    wire.connect();
    wire.exchange(ANSWER);
    let first = wire.next[1];
    let acked = wire.next[0];
    // Of three segments the first is lost. No acknowledgement comes, and it is retransmitted after the timeout.
    (0..3).for_each(|_| wire.send(false, 0, &[b'x'; 100]));
    wire.wait(5);
    wire.raw(false, ACK, first + 200, acked, &[b'x'; 100]);
    wire.wait(300);
    wire.raw(false, ACK, first, acked, &[b'x'; 100]);
    // Two duplicate acknowledgements cause its retransmission.
    (0..3).for_each(|_| wire.raw(true, ACK, acked, first, b""));
    wire.raw(false, ACK, first, acked, &[b'x'; 100]);
    wire.send(true, 0, b"");
    wire.raw(false, ACK, first, acked, &[b'x'; 100]);
    let (streams, _) = wire.finish();
    let sent = &streams[0].server_sent;
    assert_eq!(
        (sent.tail_retransmissions, sent.timeout_retransmissions, sent.fast_retransmissions, sent.spurious_retransmissions),
        (1, 1, 1, 1)
    );
    assert_eq!((sent.retransmissions, sent.out_of_order, sent.retransmitted_bytes), (4, 0, 400));
}

#[test]
fn a_hole_that_is_filled_at_once_was_only_reordering() {
    let mut wire = Wire::new();
    wire.connect();
    let (first, acked) = (wire.next[1], wire.next[0]);
    wire.raw(false, ACK, first.wrapping_add(100), acked, &[b'x'; 100]);
    wire.raw(false, ACK, first, acked, &[b'x'; 100]);
    let (streams, _) = wire.finish();
    let sent = &streams[0].server_sent;
    assert_eq!((sent.out_of_order, sent.retransmissions, sent.lost_segments, sent.bytes_delivered), (1, 0, 1, 200));
}

#[test]
fn a_wait_for_a_delayed_acknowledgement_is_counted_and_a_pause_is_not() {
    let mut wire = Wire::new();
    wire.connect();
    for (pause, then) in [(40, 0), (40, 500), (10, 0)] {
        wire.send(true, 0, b"half a request");
        wire.wait(pause);
        wire.send(false, 0, b"");
        wire.wait(then);
        wire.send(true, 0, b", and the rest of it");
        wire.wait(1);
        wire.send(false, 0, b"done");
        wire.wait(1);
        wire.send(true, 0, b"");
    }
    let (streams, _) = wire.finish();
    assert_eq!((streams[0].client_sent.delayed_ack_stalls, streams[0].client_sent.delayed_ack_stall_ns), (1, 40_000_000));
}

#[test]
fn reused_ports_are_another_stream_and_a_late_segment_is_not() {
    let mut wire = Wire::new();
    wire.connect();
    wire.exchange(ANSWER);
    wire.close(true);
    wire.wait(5000);
    // Another stream releases the first one; then a late segment of the first arrives.
    let (late, port) = (wire.next, wire.port);
    wire.connect();
    wire.port = port;
    wire.raw(false, ACK, late[1], late[0], b"");
    wire.raw(true, SYN, 77, 0, b"");
    let (streams, report) = wire.finish();
    assert_eq!((streams.len(), report.totals.late), (3, 1));
    assert_eq!((streams[0].client, streams[2].client.port()), (streams[2].client, port));
}

#[test]
fn without_a_handshake_the_payload_shows_which_side_is_the_client() {
    let mut wire = Wire::new();
    wire.port = 79;
    wire.next = [500, 900];
    wire.exchange(ANSWER);
    wire.exchange(ANSWER);
    let (streams, _) = wire.finish();
    assert_eq!((streams[0].client.port(), streams[0].requests, streams[0].from_begin), (79, 2, false));
}

/// A TLS record of this kind with this many bytes.
fn record(kind: u8, length: u8) -> Vec<u8> {
    // The first byte of a handshake record is the kind of hello.
    let first = if kind == 22 { 1 } else { 0xee };
    [&[kind, 3, 3, 0, length, first][..], &vec![0xee; usize::from(length) - 1]].concat()
}

#[test]
fn a_tls_handshake_is_measured_and_alerts_are_not_requests() {
    let mut wire = Wire::new();
    for _ in 0..10 {
        wire.connect();
        wire.send(true, 0, &record(22, 200));
        wire.wait(20);
        wire.send(false, 0, &[record(22, 90), record(23, 200)].concat());
        wire.send(true, 0, &[record(23, 52), record(23, 120)].concat());
        wire.wait(20);
        wire.send(false, 0, &[record(23, 200), record(23, 220)].concat());
        // In TLS 1.3 the closing alert looks like application data.
        wire.send(true, 0, &record(23, 19));
        wire.close(true);
    }
    let (streams, report) = wire.finish();
    let stream = &streams[0];
    assert_eq!((stream.requests, stream.answers, stream.tls_setup_ns), (1, 1, Some(20_000_000)));
    assert_eq!(stream.close.map(|close| (close.by, close.moment)), Some((ConnectionEnd::Client, Moment::AfterAnswer)));
    let (facts, verdict) = (report.edges[0].facts(), keepalive(&report.edges[0].facts()));
    assert_eq!((verdict.kept, verdict.reasons), (ConnectionReuse::Not, vec![Reason::ClientCloses]));
    // Both handshakes are saved: 40 ms of 60.
    assert_eq!(facts.setup_ms, Some(40.0));
    assert!(verdict.gain.is_some_and(|gain| (gain.factor - 3.0).abs() < 0.01));
}
