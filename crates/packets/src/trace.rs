//! One stream followed packet by packet, for diagrams. If it grows too long, every second ordinary point is dropped.

use serde::Serialize;

use crate::decode::tcp::Segment;
use crate::stream::{Effect, Sent};
use crate::summary::Resent;

/// Most points of one stream: about 7 MB.
const POINTS_MAX: usize = 100_000;

/// The kind of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// Data, sent for the first time.
    Data,
    /// An acknowledgement without data.
    Ack,
    /// A retransmission.
    Again(Resent),
    /// Overtaken by later segments.
    Reordered,
    /// SYN, FIN or RST.
    Control,
}

/// One segment of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TracePoint {
    /// Time, nanoseconds since 1970-01-01 UTC.
    pub at_ns: i64,
    /// Whether the client sent it.
    pub from_client: bool,
    /// Its kind.
    pub mark: Mark,
    /// Position of its first byte. The first byte of a stream is at 1.
    pub start: i64,
    /// Payload, bytes.
    pub bytes: u32,
    /// Position up to which it acknowledges the other side.
    pub acked: i64,
    /// Bytes that its sender has in flight, this segment included.
    pub in_flight: u64,
    /// Window that its sender advertises, bytes.
    pub window: u32,
}

/// The segments of one stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Trace {
    /// Its number.
    #[serde(rename = "tcp.stream")]
    pub index: u64,
    /// Its segments in order.
    pub points: Vec<TracePoint>,
    /// One in this many ordinary segments was kept.
    pub one_in: u32,
    skipped: u32,
}

impl Trace {
    pub(crate) fn new(index: u64) -> Self {
        Self { index, points: Vec::new(), one_in: 1, skipped: 0 }
    }

    pub(crate) fn add(&mut self, segment: &Segment<'_>, effect: &Effect, at_ns: i64) {
        let mark = match effect.sent {
            Sent::Again(kind) => Mark::Again(kind),
            Sent::Reordered => Mark::Reordered,
            _ if segment.flags & 7 != 0 => Mark::Control,
            Sent::New => Mark::Data,
            Sent::Nothing | Sent::Probe => Mark::Ack,
        };
        let ordinary = matches!(mark, Mark::Data | Mark::Ack);
        if ordinary {
            self.skipped += 1;
            if self.skipped < self.one_in {
                return;
            }
            self.skipped = 0;
        }
        if self.points.len() >= POINTS_MAX {
            let mut place = 0_u32;
            self.points.retain(|point| {
                place += u32::from(matches!(point.mark, Mark::Data | Mark::Ack));
                !matches!(point.mark, Mark::Data | Mark::Ack) || place.is_multiple_of(2)
            });
            self.one_in = self.one_in.saturating_mul(2);
            if self.points.len() >= POINTS_MAX {
                return;
            }
        }
        self.points.push(TracePoint {
            at_ns,
            from_client: effect.from_client,
            mark,
            start: effect.start,
            bytes: segment.payload_bytes,
            acked: effect.acked,
            in_flight: effect.in_flight,
            window: effect.window,
        });
    }
}
