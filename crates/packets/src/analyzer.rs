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
    /// Streams tracked at once. Each takes about 2.7 KB with its payload state, and 32 KiB more for each direction with data out of order.
    /// Above this, the streams that were silent longest are summarised and dropped.
    pub streams: usize,
    /// Edges tracked separately: about 12 KB each. At most twice as many exist.
    pub edges: usize,
    /// Streams kept as the most troubled.
    pub notable: usize,
}

impl Default for Limits {
    /// Less than 190 MB in total.
    fn default() -> Self {
        Self { streams: 60_000, edges: 512, notable: 20 }
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
        if !closed && stream.is_closed() {
            self.flows.linger(slot, at_ns);
        }
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
