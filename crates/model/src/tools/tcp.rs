//! What limits the sender of a TCP connection, and what that cost so far, from the kernel's measurements of its socket (struct tcp_info).

use serde::Serialize;

/// What the next byte of a sender waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limiter {
    /// The application: all that it wrote is sent.
    Application,
    /// The congestion window is full.
    Cwnd,
    /// The peer's receive window is full.
    Rwnd,
    /// The send buffer: it is full of unacknowledged data, nothing in it is unsent, and the application may not write.
    Sndbuf,
    /// Data waits although both windows have room: for pacing, or for more data to fill a segment.
    Pacing,
}

impl Limiter {
    /// All of them, in the order of the report.
    pub const ALL: [Limiter; 5] = [Limiter::Application, Limiter::Cwnd, Limiter::Rwnd, Limiter::Sndbuf, Limiter::Pacing];

    /// Its name in the JSON form.
    pub fn name(self) -> &'static str {
        match self {
            Limiter::Application => "application",
            Limiter::Cwnd => "cwnd",
            Limiter::Rwnd => "rwnd",
            Limiter::Sndbuf => "sndbuf",
            Limiter::Pacing => "pacing",
        }
    }
}

/// The sending side of a connection at one moment. Fields as in struct tcp_info; `None` if the kernel does not report them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sender {
    /// Segments sent and not acknowledged.
    pub unacked: u64,
    /// Segments of `unacked` that were acknowledged selectively or are assumed lost.
    pub left: u64,
    /// Segments retransmitted and not acknowledged.
    pub retrans: u64,
    /// Consecutive timeouts of the currently unacknowledged data.
    pub retransmits: u64,
    /// Congestion window, segments.
    pub cwnd: u64,
    /// Payload of a full segment, bytes.
    pub mss: u64,
    /// Round-trip time, us.
    pub rtt_us: u64,
    /// Time since the last acknowledgement, ms.
    pub last_ack_ms: u64,
    /// Written and not sent, bytes.
    pub notsent: Option<u64>,
    /// The peer's receive window, bytes.
    pub window: Option<u64>,
    /// Bytes sent, retransmitted, and acknowledged.
    pub bytes: Option<(u64, u64, u64)>,
    /// Limit of the send buffer, and its use, bytes.
    pub buffer: Option<(u64, u64)>,
    /// Segments retransmitted since the connection began.
    pub total_retrans: u64,
    /// Time limited by the peer's receive window, us.
    pub rwnd_limited_us: Option<u64>,
    /// Time limited by the send buffer, us.
    pub sndbuf_limited_us: Option<u64>,
    /// Time spent recovering from timeouts, ms.
    pub rto_time_ms: Option<u64>,
}

impl Sender {
    /// Segments in the network (include/net/tcp.h, tcp_packets_in_flight).
    pub fn in_flight(&self) -> u64 {
        self.unacked.saturating_sub(self.left) + self.retrans
    }

    /// Bytes sent and not acknowledged. Exact up to the SYN if the kernel counts bytes, else estimated from full segments.
    pub fn bytes_in_flight(&self) -> u64 {
        match self.bytes {
            Some((sent, again, acknowledged)) if self.unacked > 0 => sent.saturating_sub(again).saturating_sub(acknowledged),
            Some(_) => 0,
            None => self.unacked.saturating_mul(self.mss),
        }
    }

    /// What the next byte waits for, checked in the kernel's order (net/ipv4/tcp_output.c, tcp_write_xmit).
    pub fn limiter(&self) -> Limiter {
        let unsent = self.notsent.is_some_and(|bytes| bytes > 0);
        if !unsent {
            let is_full = self.unacked > 0 && self.buffer.is_some_and(|(limit, held)| held >= limit);
            return if is_full { Limiter::Sndbuf } else { Limiter::Application };
        }
        if self.window == Some(0) {
            Limiter::Rwnd
        } else if self.in_flight() >= self.cwnd {
            Limiter::Cwnd
        } else if self.window.is_some_and(|window| self.bytes_in_flight() + self.mss.min(self.notsent.unwrap_or(0)) > window) {
            Limiter::Rwnd
        } else {
            Limiter::Pacing
        }
    }

    /// Time that the connection has lost since it began, us: limited by windows and buffers, and timeouts (one round trip for each retransmitted segment if
    /// the kernel does not count their time). If it waits for a timeout now, the current silence is included.
    pub fn lost_us(&self) -> u64 {
        let trips = self.total_retrans.saturating_mul(self.rtt_us);
        let again = self.rto_time_ms.map_or(trips, |ms| trips.max(ms.saturating_mul(1000)));
        let waiting = if self.retransmits > 0 { self.last_ack_ms.saturating_mul(1000) } else { 0 };
        let held = self.rwnd_limited_us.unwrap_or(0).saturating_add(self.sndbuf_limited_us.unwrap_or(0));
        held.saturating_add(again).saturating_add(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sending() -> Sender {
        Sender {
            unacked: 5,
            cwnd: 10,
            mss: 1000,
            rtt_us: 200,
            notsent: Some(90_000),
            window: Some(60_000),
            bytes: Some((25_000, 0, 20_000)),
            buffer: Some((500_000, 95_000)),
            ..Sender::default()
        }
    }

    #[test]
    fn each_limit_is_told_and_the_case_beside_it_is_not() {
        assert_eq!(sending().limiter(), Limiter::Pacing, "both windows have room");
        assert_eq!(Sender { unacked: 10, ..sending() }.limiter(), Limiter::Cwnd);
        // Selectively acknowledged segments have left the network; retransmitted ones are in it.
        assert_eq!(Sender { unacked: 10, left: 1, ..sending() }.limiter(), Limiter::Pacing);
        assert_eq!(Sender { unacked: 10, left: 1, retrans: 1, ..sending() }.limiter(), Limiter::Cwnd);
        assert_eq!(Sender { window: Some(5_500), ..sending() }.limiter(), Limiter::Rwnd);
        assert_eq!(
            Sender { window: Some(5_500), notsent: Some(500), ..sending() }.limiter(),
            Limiter::Pacing,
            "a short segment still fits"
        );
        assert_eq!(Sender { window: Some(0), unacked: 0, cwnd: 0, ..sending() }.limiter(), Limiter::Rwnd, "a closed window");
        assert_eq!(Sender { notsent: Some(0), ..sending() }.limiter(), Limiter::Application);
        assert_eq!(Sender { notsent: Some(0), buffer: Some((95_000, 95_000)), ..sending() }.limiter(), Limiter::Sndbuf);
        assert_eq!(Sender { notsent: Some(0), unacked: 0, buffer: Some((0, 0)), ..sending() }.limiter(), Limiter::Application, "idle");
        assert_eq!(Sender::default().limiter(), Limiter::Application, "a kernel that tells nothing");
    }

    #[test]
    fn bytes_in_flight_are_counted_or_taken_for_full_segments() {
        assert_eq!(sending().bytes_in_flight(), 5_000);
        assert_eq!(Sender { bytes: Some((25_000, 4_000, 20_000)), ..sending() }.bytes_in_flight(), 1_000);
        assert_eq!(Sender { bytes: None, ..sending() }.bytes_in_flight(), 5_000);
        assert_eq!(Sender { unacked: 0, ..sending() }.bytes_in_flight(), 0, "a SYN counts as acknowledged, not as sent");
        assert_eq!(Sender { bytes: Some((1, 2, u64::MAX)), ..sending() }.bytes_in_flight(), 0);
    }

    #[test]
    fn lost_time_is_what_held_back_and_what_went_twice() {
        assert_eq!(sending().lost_us(), 0);
        let held = Sender { rwnd_limited_us: Some(10), sndbuf_limited_us: Some(5), total_retrans: 2, ..sending() };
        assert_eq!(held.lost_us(), 415);
        assert_eq!(Sender { rto_time_ms: Some(3), ..held }.lost_us(), 3_015);
        assert_eq!(Sender { retransmits: 1, last_ack_ms: 7, ..held }.lost_us(), 7_415);
        assert_eq!(Sender { last_ack_ms: 7, ..held }.lost_us(), 415, "silence alone loses nothing");
        assert_eq!(Sender { rtt_us: u64::MAX, total_retrans: 9, last_ack_ms: u64::MAX, retransmits: 1, ..held }.lost_us(), u64::MAX);
    }
}
