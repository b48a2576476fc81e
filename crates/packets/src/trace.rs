//! One stream followed packet by packet, for diagrams. If it grows too long, every second ordinary point is dropped.

use serde::Serialize;

use crate::decode::tcp::Segment;
use crate::stream::{Effect, Sent};
use crate::summary::Resent;

/// Most points of one stream: about 7 MB.
const POINTS_MAX: usize = 100_000;
/// Ordinary points are thinned out while they are at least one in this many.
const THINNED_PART_MIN: usize = 16;

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
    /// Number of ordinary points.
    #[serde(skip)]
    ordinary: usize,
}

impl Mark {
    /// True for a segment of which a diagram needs not each.
    fn is_ordinary(self) -> bool {
        matches!(self, Self::Data | Self::Ack)
    }
}

impl Trace {
    pub(crate) fn new(index: u64) -> Self {
        Self { index, points: Vec::new(), one_in: 1, skipped: 0, ordinary: 0 }
    }

    pub(crate) fn add(&mut self, segment: &Segment<'_>, effect: &Effect, at_ns: i64) {
        let mark = match effect.sent {
            Sent::Again(kind) => Mark::Again(kind),
            Sent::Reordered => Mark::Reordered,
            _ if segment.flags & 7 != 0 => Mark::Control,
            Sent::New => Mark::Data,
            Sent::Nothing | Sent::Probe => Mark::Ack,
        };
        let ordinary = mark.is_ordinary();
        if ordinary {
            self.skipped += 1;
            if self.skipped < self.one_in {
                return;
            }
            self.skipped = 0;
        }
        if self.points.len() >= POINTS_MAX {
            // Where hardly any can be dropped, each further segment would cost a walk through all.
            if self.ordinary < POINTS_MAX / THINNED_PART_MIN {
                return;
            }
            let mut place = 0_u32;
            self.points.retain(|point| {
                place += u32::from(point.mark.is_ordinary());
                !point.mark.is_ordinary() || place.is_multiple_of(2)
            });
            self.ordinary /= 2;
            self.one_in = self.one_in.saturating_mul(2);
        }
        self.ordinary += usize::from(ordinary);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::tcp::{Ends, Options};

    fn effect(sent: Sent, start: i64) -> Effect {
        Effect { from_client: true, sent, start, acked: 0, in_flight: 0, window: 0 }
    }

    /// Thinning walks through all points. Where none can be dropped, it would for each segment.
    #[test]
    fn points_that_cannot_be_dropped_end_the_trace_and_ordinary_ones_are_thinned() {
        let end = (1, 80);
        let ends = Ends { from: end, to: end };
        let (payload, options) = (&[][..], Options::default());
        let segment = Segment { ends, sequence: 1, acknowledged: 1, flags: 16, window: 9, options, payload, payload_bytes: 1 };
        for (sent, kept) in [(Sent::Reordered, POINTS_MAX..=POINTS_MAX), (Sent::New, POINTS_MAX / 2..=POINTS_MAX)] {
            let mut trace = Trace::new(1);
            for number in 0..5 * POINTS_MAX as i64 {
                trace.add(&segment, &effect(sent, number), number);
            }
            assert!(kept.contains(&trace.points.len()), "{sent:?}: {}", trace.points.len());
            assert_eq!(trace.ordinary, trace.points.iter().filter(|point| point.mark.is_ordinary()).count(), "{sent:?}");
        }
    }
}
