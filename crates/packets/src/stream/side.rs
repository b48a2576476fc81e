//! One direction of a stream: sent data, retransmissions and their reasons, acknowledgements, and windows.

use crate::decode::tcp::{Options, Segment};
use crate::summary::{Direction, Resent};

/// Holes of one direction that are remembered. The oldest is dropped to make room.
const GAPS_MAX: usize = 8;
/// Up to this long after the data behind it, a late segment may be reordering. Used if the round-trip time is unknown, nanoseconds (Wireshark's
/// value).
const REORDERED_NS_MAX: i64 = 3_000_000;
/// The smallest retransmission timeout of Linux, nanoseconds (TCP_RTO_MIN, include/net/tcp.h). A retransmission that is sooner, and not because
/// of duplicate acknowledgements, is a tail loss probe (RFC 8985, 7).
const TIMEOUT_NS_MIN: i64 = 200_000_000;
/// Duplicate acknowledgements that cause a fast retransmission. RFC 5681 says three, and a capture may lack one.
const DUPLICATES_MIN: u32 = 2;
/// A delayed acknowledgement comes after 40 ms on Linux (TCP_DELACK_MIN), with the granularity of its timers, nanoseconds.
const DELAYED_ACK_NS: std::ops::RangeInclusive<i64> = 36_000_000..=60_000_000;
/// Data sent within this time after an acknowledgement had waited for it, nanoseconds beyond the round-trip time.
const RESUMED_NS_MAX: i64 = 5_000_000;

/// A hole: its start, the position after its end, and the time when data beyond it came.
#[derive(Debug, Clone, Copy)]
struct Gap {
    from: i64,
    to: i64,
    opened_ns: i64,
}

/// The first flight: the data sent before any of it is acknowledged.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flight {
    pub(super) bytes: u64,
    pub(super) segments: u32,
    begin: Option<i64>,
    over_ns: Option<i64>,
    /// The flight is over: this side sent more, or the other side sent data.
    pub(super) settled: bool,
    /// More data was sent right after the first acknowledgement: the congestion window was the limit.
    pub(super) more: bool,
}

impl Flight {
    /// The other side sent data. What this side sends from now on may be the answer.
    pub(super) fn answered(&mut self) {
        self.settled |= self.over_ns.is_some();
    }
}

/// The path between the two ends, as far as the handshake showed it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    /// Round-trip time, nanoseconds.
    pub(super) rtt_ns: Option<i64>,
    /// The part of it between the capture point and the sender, nanoseconds; 0 if unknown.
    pub(super) to_sender_ns: i64,
}

/// The kind of a segment, for callers that follow the stream further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It takes no sequence numbers.
    Nothing,
    /// Sent for the first time, as far as the capture shows.
    New,
    /// Sent for the first time, but overtaken by later segments.
    Reordered,
    /// Retransmitted.
    Again(Resent),
    /// A probe: asks whether the other side is still there or has room again.
    Probe,
}

/// One direction. Positions count from the initial sequence number: SYN is at 0 and the first byte at 1.
#[derive(Debug, Clone)]
pub(super) struct Side {
    known: bool,
    base: u32,
    /// Position after the last byte sent.
    pub(super) high: i64,
    high_ns: i64,
    /// Position after the last byte that the other side acknowledged.
    pub(super) acked: i64,
    /// The bytes in flight are known: the capture lacks nothing since the last acknowledgement.
    flight_known: bool,
    /// Position after the last block that the other side acknowledged selectively.
    sacked: i64,
    /// Bytes that the last acknowledgement acknowledged selectively.
    sacked_bytes: i64,
    gaps: Vec<Gap>,
    sent_ns: i64,
    pub(super) window: u32,
    window_raw: Option<u16>,
    /// Consecutive duplicate acknowledgements that this side sent.
    duplicates: u32,
    zero_since_ns: Option<i64>,
    pub(super) options: Options,
    pub(super) flight: Flight,
    /// Time of an acknowledgement that the other side delayed, and how long this side had waited for it.
    put_off: Option<(i64, i64)>,
    pub(super) counts: Direction,
}

impl Side {
    pub(super) fn new() -> Self {
        Self {
            known: false,
            base: 0,
            high: 0,
            high_ns: 0,
            acked: 0,
            flight_known: true,
            sacked: 0,
            sacked_bytes: 0,
            gaps: Vec::new(),
            sent_ns: 0,
            window: 0,
            window_raw: None,
            duplicates: 0,
            zero_since_ns: None,
            options: Options::default(),
            flight: Flight::default(),
            put_off: None,
            counts: Direction::default(),
        }
    }

    /// True if this initial sequence number belongs to another stream.
    pub(super) fn begins_another(&self, sequence: u32) -> bool {
        self.known && self.base != sequence
    }

    /// The position of a sequence number: the one nearest to the last data sent.
    pub(super) fn position(&self, sequence: u32) -> i64 {
        let at_high = self.base.wrapping_add(self.high as u32);
        self.high + i64::from(sequence.wrapping_sub(at_high) as i32)
    }

    /// Bytes sent and not acknowledged, not even selectively.
    pub(super) fn in_flight(&self) -> u64 {
        u64::try_from(self.high - self.acked - self.sacked_bytes).unwrap_or(0)
    }

    /// The bytes in flight are known after the first acknowledgement.
    fn begin(&mut self, first: u32, position: i64) {
        if !self.known {
            self.known = true;
            self.base = first.wrapping_sub(position as u32);
            (self.high, self.acked, self.sacked) = (position, position, position);
        }
    }

    /// Records a segment of this side. Returns its kind and its position.
    pub(super) fn send(&mut self, segment: &Segment<'_>, syn: bool, fin: bool, other: &Side, at_ns: i64, way: Way) -> (Sent, i64) {
        self.begin(segment.sequence, if syn { 0 } else { 1 });
        let length = i64::from(segment.payload_bytes);
        let start = self.position(segment.sequence);
        let end = start + length + i64::from(syn) + i64::from(fin);
        self.counts.packets += 1;
        if length > 0 {
            self.counts.data_packets += 1;
            self.counts.bytes += u64::from(segment.payload_bytes);
        }
        if end == start && !self.is_keepalive(start, length, syn || fin) {
            return (Sent::Nothing, start);
        }
        if self.is_keepalive(start, length, syn || fin) {
            self.counts.keepalives += 1;
            return (Sent::Probe, start);
        }
        if length == 1 && start == self.high && other.window == 0 && other.window_raw == Some(0) && !fin {
            self.counts.window_probes += 1;
            return (Sent::Probe, start);
        }
        let sent = self.place(start, end, other, at_ns, way.rtt_ns);
        match sent {
            Sent::Again(kind) => self.counts.again(kind, segment.payload_bytes),
            Sent::Reordered => self.counts.out_of_order += 1,
            _ => {}
        }
        if length > 0 {
            self.data_sent(segment, start, end, other, at_ns, way);
        }
        self.sent_ns = at_ns;
        (sent, start)
    }

    /// A keep-alive repeats the last byte, or carries none before it, to provoke an answer (RFC 1122, 4.2.3.6).
    fn is_keepalive(&self, start: i64, length: i64, control: bool) -> bool {
        !control && length <= 1 && start == self.high - 1 && self.high > 1 && start < self.acked
    }

    /// Adds a range to the data seen.
    fn place(&mut self, start: i64, end: i64, other: &Side, at_ns: i64, rtt_ns: Option<i64>) -> Sent {
        if start >= self.high {
            if start > self.high {
                self.counts.lost_segments += 1;
                self.flight_known = false;
                self.open_gap(Gap { from: self.high, to: start, opened_ns: at_ns });
            }
            (self.high, self.high_ns) = (end, at_ns);
            return Sent::New;
        }
        let gap = self.close_gap(start, end);
        let sent = match gap {
            // A fast retransmission answers duplicate acknowledgements that call for this very segment.
            Some(gap)
                if at_ns.saturating_sub(gap.opened_ns) < rtt_ns.unwrap_or(REORDERED_NS_MAX).max(1)
                    && (other.duplicates < DUPLICATES_MIN || start != self.acked) =>
            {
                Sent::Reordered
            }
            _ => Sent::Again(self.why_again(start, end, other, at_ns)),
        };
        if end > self.high {
            (self.high, self.high_ns) = (end, at_ns);
        }
        sent
    }

    fn why_again(&self, start: i64, end: i64, other: &Side, at_ns: i64) -> Resent {
        if end <= self.acked {
            return Resent::Spurious;
        }
        if self.sacked > start || other.duplicates >= DUPLICATES_MIN {
            return Resent::Fast;
        }
        let soon = at_ns.saturating_sub(self.sent_ns) < TIMEOUT_NS_MIN;
        let last_of_several = end >= self.high && start > self.acked;
        if start > 0 && (soon && end >= self.high || last_of_several) { Resent::Tail } else { Resent::Timeout }
    }

    fn open_gap(&mut self, gap: Gap) {
        if self.gaps.len() >= GAPS_MAX {
            self.gaps.remove(0);
        }
        self.gaps.push(gap);
    }

    /// Removes a range from the hole that it lies in or touches.
    fn close_gap(&mut self, start: i64, end: i64) -> Option<Gap> {
        let place = self.gaps.iter().position(|gap| start < gap.to && end > gap.from)?;
        let gap = self.gaps.remove(place);
        if gap.from < start {
            self.open_gap(Gap { to: start, ..gap });
        }
        if end < gap.to {
            self.open_gap(Gap { from: end, ..gap });
        }
        Some(gap)
    }

    fn data_sent(&mut self, segment: &Segment<'_>, start: i64, end: i64, other: &Side, at_ns: i64, way: Way) {
        let rtt_ns = way.rtt_ns.unwrap_or(0);
        if let Some((acked_ns, waited_ns)) = self.put_off.take()
            && at_ns.saturating_sub(acked_ns) <= RESUMED_NS_MAX.saturating_add(rtt_ns)
        {
            self.counts.delayed_ack_stalls += 1;
            self.counts.delayed_ack_stall_ns += u64::try_from(waited_ns).unwrap_or(0);
        }
        if self.flight_known {
            self.counts.bytes_in_flight_max = self.counts.bytes_in_flight_max.max(self.in_flight());
        }
        if other.window > 0 && i64::from(other.window) == end - self.acked && other.window_raw.is_some() {
            self.counts.window_full += 1;
        }
        // An acknowledgement that was just captured is still on its way to the sender. What comes before it can have an effect belongs to the
        // first flight.
        let there_ns = self.flight.over_ns.map(|over_ns| over_ns.saturating_add(way.to_sender_ns / 10 * 9));
        if there_ns.is_some_and(|there_ns| at_ns >= there_ns || self.flight.settled) {
            let soon = there_ns.is_some_and(|there_ns| at_ns.saturating_sub(there_ns) <= RESUMED_NS_MAX.saturating_add(rtt_ns));
            self.flight.more |= soon && !self.flight.settled;
            self.flight.settled = true;
        } else if start >= *self.flight.begin.get_or_insert(start) {
            let mss = u32::from(self.segment_bytes(other));
            self.flight.bytes += u64::from(segment.payload_bytes);
            self.flight.segments = self.flight.segments.saturating_add(segment.payload_bytes.div_ceil(mss.max(1)));
        }
    }

    /// Payload bytes of a full segment of this side: the other side's MSS (536 without one, RFC 9293 3.7.1) less twelve bytes of
    /// timestamps if both sides use them.
    pub(super) fn segment_bytes(&self, other: &Side) -> u16 {
        let mss = other.options.mss.unwrap_or(536);
        let stamps = if self.options.timestamps && other.options.timestamps { 12 } else { 0 };
        mss.saturating_sub(stamps).max(1)
    }

    /// Records this side's acknowledgement of the other side's data, and its window.
    pub(super) fn acknowledge(&mut self, segment: &Segment<'_>, other: &mut Side, at_ns: i64, bare: bool) {
        other.begin(segment.acknowledged, 1);
        let acked = other.position(segment.acknowledged);
        if acked > other.high {
            // The capture lacks the acknowledged data.
            other.counts.ack_lost_segments += 1;
            other.high = acked;
        }
        let blocks = segment.options.sack();
        other.flight_known = true;
        other.sacked_bytes = 0;
        for (place, (from, to)) in blocks.iter().enumerate() {
            let (from, to) = (other.position(*from), other.position(*to));
            if place == 0 && to <= acked {
                self.counts.duplicate_sacks += 1;
            } else if from < to && from >= acked && to <= other.high {
                other.sacked = other.sacked.max(to);
                other.sacked_bytes += to - from;
            }
        }
        // A change of the window alone is not a duplicate. With a block that was received out of order it is (RFC 6675, 2).
        let same_window = self.window_raw == Some(segment.window) || !blocks.is_empty();
        if acked > other.acked {
            self.duplicates = 0;
            other.acknowledged(acked, at_ns, bare);
        } else if acked == other.acked && bare && same_window && segment.window != 0 && other.high > acked {
            self.duplicates += 1;
            self.counts.duplicate_acks += 1;
        }
    }

    /// The other side acknowledged everything up to here.
    fn acknowledged(&mut self, acked: i64, at_ns: i64, bare: bool) {
        let all = acked >= self.high;
        self.acked = acked;
        if !self.gaps.is_empty() {
            self.gaps.retain(|gap| gap.to > acked);
        }
        if self.flight.over_ns.is_none() && self.flight.begin.is_some_and(|begin| acked > begin) {
            self.flight.over_ns = Some(at_ns);
        }
        let waited_ns = at_ns.saturating_sub(self.sent_ns);
        self.put_off = (bare && all && DELAYED_ACK_NS.contains(&waited_ns)).then_some((at_ns, waited_ns));
    }

    /// Records the window that this side advertises. `scale` is its shift; `None` if the capture lacks the handshake.
    pub(super) fn offer(&mut self, window: u16, scale: u8, control: bool, at_ns: i64) {
        self.window_raw = Some(window);
        self.window = u32::from(window) << scale;
        if window == 0 && !control {
            self.counts.zero_windows += 1;
            self.zero_since_ns.get_or_insert(at_ns);
        } else if let Some(since_ns) = self.zero_since_ns.take() {
            self.counts.zero_window_ns += u64::try_from(at_ns.saturating_sub(since_ns)).unwrap_or(0);
        }
    }

    /// Bytes of this side that the other side can have received, without SYN and FIN.
    pub(super) fn delivered(&self, fin: bool) -> u64 {
        u64::try_from(self.high - 1 - i64::from(fin)).unwrap_or(0)
    }
}
