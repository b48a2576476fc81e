//! Takes packets and produces closed streams and edges.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::Serialize;

use crate::capture::Packet;
use crate::decode::decode;
use crate::decode::fragment::Fragments;
use crate::decode::packet::Decoded;
use crate::decode::tcp::{ACK, SYN, Segment};
use crate::edge::Edge;
use crate::edges::Edges;
use crate::flows::Flows;
use crate::stream::Stream;
use crate::summary::StreamSummary;
use crate::trace::Trace;
use crate::traffic::Traffic;

/// Limits of the memory that an analysis takes, independent of the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Streams tracked at once. Each takes about 2.7 KB with its payload state, without what it holds.
    /// Above this, the streams that were silent longest are summarised and dropped.
    pub streams: usize,
    /// Edges tracked separately: about 12 KB each. At most twice as many exist.
    pub edges: usize,
    /// Streams kept as the most troubled.
    pub notable: usize,
    /// Bytes that all streams together hold of data out of order, at most 32 KiB for each direction, and of heads that did not end, at most 64 KiB. Above this, streams that
    /// held some for long go on without it.
    pub held_bytes: usize,
}

impl Default for Limits {
    /// Less than 460 MB in total, and less than 190 MB where little is out of order.
    fn default() -> Self {
        Self { streams: 60_000, edges: 512, notable: 20, held_bytes: 256 << 20 }
    }
}

/// Counts over the whole capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Packets of any kind.
    pub packets: u64,
    /// Bytes of these packets on the wire.
    pub wire_bytes: u64,
    /// TCP segments.
    pub segments: u64,
    /// Streams.
    pub streams: u64,
    /// Packets other than TCP.
    pub other: u64,
    /// IP fragments that never formed a whole datagram.
    pub fragments: u64,
    /// Packets that could not be decoded: malformed, or too few bytes were captured.
    pub unreadable: u64,
    /// Packets of an unknown link layer.
    pub unknown_link: u64,
    /// TCP segments that came two seconds or more after their stream was closed.
    pub late: u64,
    /// Streams that were dropped to make room for others.
    pub dropped_for_room: u64,
    /// Streams that gave up data out of order, or a head that did not end, to make room for others; each as often as it did. What did not come yet counted as
    /// lost by the capture.
    pub given_up_for_room: u64,
    /// Packets that were captured only in part.
    pub snapped: u64,
    /// Time of the first packet, nanoseconds since 1970-01-01 UTC.
    pub begin_ns: i64,
    /// Time of the last packet.
    pub end_ns: i64,
}

/// The result of an analysis.
#[derive(Debug, Clone)]
pub struct Report {
    /// Totals of the capture.
    pub totals: Totals,
    /// The edges, the busiest first.
    pub edges: Vec<Edge>,
    /// The most troubled streams, by lost time.
    pub notable: Vec<StreamSummary>,
    /// The stream that was followed.
    pub trace: Option<Trace>,
    /// What was carried over time.
    pub traffic: Traffic,
}

/// A stream, ordered by its lost time.
struct Troubled(u64, StreamSummary);

impl PartialEq for Troubled {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Troubled {}
impl PartialOrd for Troubled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Troubled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}
impl Troubled {
    fn key(&self) -> (u64, Reverse<u64>) {
        (self.0, Reverse(self.1.index))
    }
}

/// Receives each stream when it ends, in the order of the ends.
pub type Sink<'s> = &'s mut dyn FnMut(&StreamSummary);

/// An analysis in progress.
pub struct Analyzer {
    fragments: Fragments,
    streams: Streams,
}

/// The analysis without the fragments, because the current segment may borrow from them.
struct Streams {
    flows: Flows,
    edges: Edges,
    totals: Totals,
    notable_max: usize,
    notable: BinaryHeap<Reverse<Troubled>>,
    held_max: usize,
    /// What all streams hold, bytes.
    held: usize,
    trace: Option<Trace>,
    traffic: Traffic,
}

impl Analyzer {
    /// An analysis within these limits.
    pub fn new(limits: Limits) -> Self {
        let streams = Streams {
            flows: Flows::new(limits.streams),
            edges: Edges::new(limits.edges),
            totals: Totals::default(),
            notable_max: limits.notable,
            notable: BinaryHeap::new(),
            held_max: limits.held_bytes,
            held: 0,
            trace: None,
            traffic: Traffic::default(),
        };
        Self { fragments: Fragments::default(), streams }
    }

    /// Follows the stream with this number packet by packet.
    pub fn follow(&mut self, index: u64) {
        self.streams.trace = Some(Trace::new(index));
    }

    /// The counts so far.
    pub fn totals(&self) -> &Totals {
        &self.streams.totals
    }

    /// Processes the next packet.
    pub fn packet(&mut self, packet: &Packet<'_>, sink: Sink<'_>) {
        let totals = &mut self.streams.totals;
        if totals.packets == 0 {
            (totals.begin_ns, totals.end_ns) = (packet.at_ns, packet.at_ns);
        }
        totals.packets += 1;
        totals.wire_bytes += u64::from(packet.wire_bytes);
        totals.snapped += u64::from(packet.bytes.len() < packet.wire_bytes as usize);
        totals.begin_ns = totals.begin_ns.min(packet.at_ns);
        totals.end_ns = totals.end_ns.max(packet.at_ns);
        match decode(packet, &mut self.fragments) {
            Decoded::Tcp(segment) => {
                totals.segments += 1;
                self.streams.segment(&segment, packet.at_ns, sink);
            }
            Decoded::Other => totals.other += 1,
            Decoded::Fragment => totals.fragments += 1,
            Decoded::Unreadable => totals.unreadable += 1,
            Decoded::UnknownLink => totals.unknown_link += 1,
        }
    }

    /// Ends the capture and summarises all open streams.
    pub fn finish(mut self, sink: Sink<'_>) -> Report {
        for stream in self.streams.flows.drain() {
            self.streams.summarise(stream, sink);
        }
        let Streams { edges, totals, notable, trace, traffic, .. } = self.streams;
        let mut notable: Vec<Troubled> = notable.into_iter().map(|Reverse(troubled)| troubled).collect();
        notable.sort_by(|a, b| b.cmp(a));
        let notable = notable.into_iter().map(|Troubled(_, summary)| summary).collect();
        Report { totals, edges: edges.finish(), notable, trace, traffic }
    }
}

impl Streams {
    fn segment(&mut self, segment: &Segment<'_>, at_ns: i64, sink: Sink<'_>) {
        while let Some(slot) = self.flows.lingered(at_ns, false) {
            self.retire(slot, true, sink);
        }
        let (from, to) = (segment.ends.from, segment.ends.to);
        let side = usize::from(from > to);
        let key = if side == 0 { [from, to] } else { [to, from] };
        let slot = match self.flows.find(&key) {
            Some(slot) => {
                if self.flows.get(slot).is_some_and(|stream| stream.is_ended_by(side, segment)) {
                    self.retire(slot, false, sink);
                    self.begin(key, side, segment, at_ns, sink)
                } else {
                    slot
                }
            }
            None if (segment.has(ACK) || !segment.has(SYN)) && self.flows.is_over(&key) => {
                self.totals.late += 1;
                return;
            }
            None => self.begin(key, side, segment, at_ns, sink),
        };
        let Some(stream) = self.flows.get(slot) else { return };
        let closed = stream.is_closed();
        let effect = stream.segment(side, segment, at_ns);
        self.traffic.add(segment.flags, segment.payload_bytes, &effect, at_ns);
        let index = stream.index;
        if let Some(trace) = &mut self.trace
            && trace.index == index
        {
            trace.add(segment, &effect, at_ns);
        }
        Self::collect(stream, &mut self.edges);
        let held = stream.holds();
        self.held = self.held + held - std::mem::replace(&mut stream.held, held);
        if !closed && stream.is_closed() {
            self.flows.linger(slot, at_ns);
        }
        while self.held > self.held_max && self.give_up_held() {}
    }

    /// Makes room: one stream gives up what it holds. False if none holds anything.
    fn give_up_held(&mut self) -> bool {
        let Some(slot) = self.flows.longest_holding() else { return false };
        let Some(stream) = self.flows.get(slot) else { return false };
        stream.give_up_held();
        Self::collect(stream, &mut self.edges);
        self.held -= std::mem::take(&mut stream.held);
        self.totals.given_up_for_room += 1;
        true
    }

    fn begin(&mut self, key: [(u128, u16); 2], side: usize, segment: &Segment<'_>, at_ns: i64, sink: Sink<'_>) -> u32 {
        while self.flows.is_full() {
            let closed = self.flows.lingered(at_ns, true);
            let Some(slot) = closed.or_else(|| self.flows.longest_silent()) else { break };
            if closed.is_none()
                && let Some(stream) = self.flows.get(slot)
            {
                stream.dropped_for_room = true;
                self.totals.dropped_for_room += 1;
            }
            self.retire(slot, true, sink);
        }
        let stream = Stream::new(self.totals.streams, key, side, segment, at_ns);
        self.totals.streams += 1;
        self.flows.insert(stream)
    }

    /// Adds the measurements of a stream to its edge.
    fn collect(stream: &mut Stream, edges: &mut Edges) {
        let (mut place, (client, server)) = (stream.edge, stream.roles());
        let rtt_ns = stream.server_rtt_ns();
        stream.collect(|sample| {
            let place = *place.get_or_insert_with(|| edges.place(client, server));
            if let Some(edge) = edges.get(place) {
                edge.sample(sample, rtt_ns);
            }
        });
        stream.edge = place;
    }

    fn retire(&mut self, slot: u32, remember: bool, sink: Sink<'_>) {
        if let Some(stream) = self.flows.remove(slot, remember) {
            self.held -= stream.held;
            self.summarise(stream, sink);
        }
    }

    fn summarise(&mut self, mut stream: Stream, sink: Sink<'_>) {
        stream.finish();
        Self::collect(&mut stream, &mut self.edges);
        let (client, server) = stream.roles();
        let place = stream.edge.unwrap_or_else(|| self.edges.place(client, server));
        let summary = stream.summary();
        if let Some(edge) = self.edges.get(place) {
            edge.add(&summary, &stream.spoken());
        }
        sink(&summary);
        let lost_ns = summary.lost_ns();
        if lost_ns > 0 && self.notable_max > 0 {
            self.notable.push(Reverse(Troubled(lost_ns, summary)));
            if self.notable.len() > self.notable_max {
                self.notable.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A segment between client number `stream` and a server, as a packet of raw IP.
    fn segment(stream: u16, from_client: bool, position: u32, payload: &[u8]) -> Vec<u8> {
        let (client, server) = (([10, 0, 0, 1], 10_000 + stream), ([10, 0, 0, 2], 80));
        let (from, to) = if from_client { (client, server) } else { (server, client) };
        let length = (40 + payload.len() as u16).to_be_bytes();
        let mut bytes = vec![0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, 6, 0, 0];
        bytes.extend([from.0, to.0].concat());
        bytes.extend([from.1.to_be_bytes(), to.1.to_be_bytes()].concat());
        bytes.extend(position.to_be_bytes());
        bytes.extend([0, 0, 0, 1, 0x50, 0x18, 255, 255, 0, 0, 0, 0]);
        bytes.extend(payload);
        bytes
    }

    /// Adds a segment and checks what is held. Returns that.
    fn add(analyzer: &mut Analyzer, bytes: &[u8], at_ns: i64) -> usize {
        let packet = Packet { at_ns, link: 101, wire_bytes: bytes.len() as u32, bytes };
        analyzer.packet(&packet, &mut |_| ());
        let streams = &mut analyzer.streams;
        let held = (0..1_000).filter_map(|slot| streams.flows.get(slot).map(|stream| stream.holds())).sum::<usize>();
        assert_eq!(streams.held, held);
        assert!(held <= streams.held_max, "{held}");
        held
    }

    #[test]
    fn what_all_streams_hold_is_bounded_and_what_was_given_up_is_counted() {
        const ASKED: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n";
        let mut analyzer = Analyzer::new(Limits { held_bytes: 256 << 10, ..Limits::default() });
        let mut held_max = 0;
        for number in 0..200 {
            let at_ns = i64::from(number);
            // Heads without an end, and answers after a piece that does not come.
            add(&mut analyzer, &segment(number, true, 100, ASKED), at_ns);
            add(&mut analyzer, &segment(number, false, 100, b"HTTP/1.1 200 OK\r\n"), at_ns);
            held_max = held_max.max(add(&mut analyzer, &segment(number, false, 300, &[b'x'; 9_000]), at_ns));
        }
        assert!(held_max > 200 << 10, "the room is used: {held_max}");
        let report = analyzer.finish(&mut |_| ());
        assert!((150..200).contains(&report.totals.given_up_for_room), "{:?}", report.totals);
        assert_eq!((report.totals.streams, report.totals.dropped_for_room), (200, 0));
    }

    #[test]
    fn a_stream_that_gave_up_goes_on_with_the_next_message() {
        let mut analyzer = Analyzer::new(Limits { held_bytes: 2_000, ..Limits::default() });
        add(&mut analyzer, &segment(1, true, 100, b"GET / HTTP/1.1\r\n"), 1);
        add(&mut analyzer, &segment(1, true, 400, &[b'x'; 4_000]), 2);
        add(&mut analyzer, &segment(1, true, 4_400, b"GET / HTTP/1.1\r\n\r\n"), 3);
        let mut requests = 0;
        let report = analyzer.finish(&mut |stream| requests += stream.requests);
        assert_eq!((requests, report.totals.given_up_for_room), (2, 1));
    }

    proptest! {
        #[test]
        fn what_is_held_is_counted_for_any_segments(
            segments in prop::collection::vec((0_u16..6, any::<bool>(), 0_u32..4_000, 0_usize..1_500), 1..200),
            held_bytes in 0_usize..20_000,
            limit in 1_usize..6,
        ) {
            let mut analyzer = Analyzer::new(Limits { held_bytes, streams: limit, ..Limits::default() });
            for (at_ns, (stream, from_client, position, length)) in segments.into_iter().enumerate() {
                let text = b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n".iter().cycle().take(length).copied();
                let bytes = segment(stream, from_client, position, &text.collect::<Vec<u8>>());
                add(&mut analyzer, &bytes, at_ns as i64);
            }
        }
    }
}
