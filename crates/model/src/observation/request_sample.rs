//! Samples of the sockets that can hold a request, several times a second. They show where requests are.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::load::LoadExchange;
use super::{SocketAddress, TcpSample, TcpState};

/// The sockets of one namespace at one moment, or a random share of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestSample {
    /// Share of the TCP connections that was read, above 0 and at most 1. Each had the same chance. All unix sockets are read.
    pub share: f64,
    /// Share of the handshakes on the accepting side that was read.
    pub handshake_share: f64,
    /// Requests that the load generator had under way at that moment. `None` if no load of this process ran.
    pub under_way: Option<f64>,
    /// Requests of `under_way` with a partial answer.
    pub begun: Option<f64>,
    /// What a load over TLS says of its connections at that moment, by local port. Empty without such a load.
    pub exchanges: BTreeMap<u16, LoadExchange>,
    /// Number of polls of the load generator until it had a request under way. Zero for a sample that did not wait for a request.
    pub looks: u32,
    /// Delay of the sample behind its schedule, microseconds.
    pub late_us: u64,
    /// When the TCP sockets were read. `None` if the kernel's tick is not known.
    pub moment: Option<DumpMoment>,
    /// The sockets: all TCP sockets that can hold a request, and the accepted ends of unix sockets.
    pub sockets: Vec<RequestSocket>,
}

impl RequestSample {
    /// True for a sample that was taken at its time, whether a request was under way or not.
    pub(crate) fn is_at_any_time(&self) -> bool {
        self.looks == 0
    }

    /// Number of sockets that this sampled socket represents.
    pub(crate) fn weight(&self, socket: &RequestSocket) -> f64 {
        match (&socket.address, socket.state) {
            (SocketAddress::Unix { .. }, _) => 1.0,
            (_, state) if state.is_handshake() => 1.0 / self.handshake_share,
            _ => 1.0 / self.share,
        }
    }
}

/// When the sockets of a sample were read, one after the other, in terms of the kernel's clock tick, in which their times are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DumpMoment {
    /// Time from the last tick to the beginning, microseconds.
    pub since_tick_us: u64,
    /// How long it took, microseconds.
    pub took_us: u64,
    /// Number of sockets that were read in that time, those included that were not kept.
    pub count: u64,
    /// The length of a tick, microseconds, not zero.
    pub tick_us: u64,
}

impl DumpMoment {
    /// The most that the time since something happened on the socket that was read as the nth of a sample (from 0) can be, microseconds; it is less by at most a tick.
    /// `ms` is what the kernel says: the ticks since then. The kernel walks its table of sockets at an even pace, and they are spread in it evenly.
    pub(crate) fn at_most_us(&self, nth: usize, ms: u64) -> u64 {
        let part = (nth as f64 + 0.5) / (self.count as f64).max(1.0);
        let since_tick_us = (self.since_tick_us + (part.min(1.0) * self.took_us as f64) as u64) % self.tick_us;
        // Times are rounded to milliseconds where a tick is no whole number of them (jiffies_to_msecs).
        let ticks = ms.saturating_mul(1_000).saturating_add(self.tick_us / 2) / self.tick_us;
        ticks.saturating_mul(self.tick_us).saturating_add(since_tick_us)
    }
}

/// One socket of a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestSocket {
    /// Addresses.
    pub address: SocketAddress,
    /// A number unique to this socket (the inode for a unix socket).
    pub cookie: u64,
    /// TCP state. A connected unix socket counts as established while its peer may send, and as closed by the peer afterwards.
    pub state: TcpState,
    /// Inode, zero if no process holds it (not yet accepted).
    pub inode: u64,
    /// Bytes received and not yet read by the process.
    pub receive_queue: u32,
    /// Bytes sent and not yet acknowledged; for a unix socket, not yet read by the peer.
    pub send_queue: u32,
    /// The kernel's measurements. `None` for handshakes and unix sockets.
    pub times: Option<RequestTimes>,
}

/// Times and counters of struct tcp_info that show requests and answers on a connection (include/uapi/linux/tcp.h). The resolution of times is one clock tick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestTimes {
    /// Since data was last sent or retransmitted, or since the connection was made, milliseconds.
    pub last_data_sent_ms: u64,
    /// Since data was last received, or since the connection was made, milliseconds.
    pub last_data_recv_ms: u64,
    /// Since anything was last acknowledged by the other end, with or without data, milliseconds.
    pub last_ack_recv_ms: Option<u64>,
    /// Segments with data received (Linux 4.6).
    pub data_segs_in: Option<u64>,
    /// Segments with data sent (Linux 4.6).
    pub data_segs_out: Option<u64>,
    /// Bytes that the peer acknowledged, including one for the SYN (Linux 4.1).
    pub bytes_acked: Option<u64>,
    /// Bytes received (Linux 4.1).
    pub bytes_received: Option<u64>,
    /// Bytes sent, including retransmissions (Linux 4.19).
    pub bytes_sent: Option<u64>,
    /// Bytes in the send queue that were never sent (Linux 4.6).
    pub unsent: Option<u64>,
    /// Time that the peer's receive window blocked sending, microseconds (Linux 4.10).
    pub rwnd_limited_us: Option<u64>,
    /// Shortest round-trip time, microseconds (Linux 4.6).
    pub min_rtt_us: Option<u64>,
    /// Smoothed round-trip time, microseconds, including delays of acknowledgements.
    pub rtt_us: Option<u64>,
    /// Segments sent and not acknowledged.
    pub unacked: Option<u64>,
    /// Segments marked as lost or retransmitted, and not acknowledged.
    pub lost: Option<u64>,
    /// How its congestion control stands.
    pub flight: Option<Flight>,
}

/// What the congestion control of a connection allows, and whether it lost anything (struct tcp_info).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flight {
    /// Largest data size of a segment, bytes.
    pub mss: u32,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Segments retransmitted over the life of the connection.
    pub retransmitted: u32,
    /// True if a segment is assumed lost or reordered (`tcpi_ca_state` is not 0).
    pub is_recovering: bool,
}

impl RequestSocket {
    /// The same socket as a sample of one connection, without what this reading lacks. `None` for unix sockets and handshakes.
    pub(crate) fn sample(&self) -> Option<TcpSample> {
        let SocketAddress::Tcp { local, remote } = self.address else { return None };
        let (times, flight) = (self.times?, self.times?.flight?);
        Some(TcpSample {
            local,
            remote,
            cookie: self.cookie,
            state: self.state,
            send_queue: self.send_queue,
            send_buffer: None,
            loss_state: u64::from(flight.is_recovering),
            mss: u64::from(flight.mss),
            unacked: times.unacked?,
            cwnd: u64::from(flight.cwnd),
            retransmitted: u64::from(flight.retransmitted),
            last_data_sent_ms: times.last_data_sent_ms,
            rtt_us: times.rtt_us?,
            min_rtt_us: times.min_rtt_us,
            unsent: times.unsent,
            delivered: None,
            busy_us: None,
            rwnd_limited_us: times.rwnd_limited_us,
            sndbuf_limited_us: None,
            peer_window: None,
        })
    }
}

impl RequestTimes {
    /// True if data was received after data was last sent; false if not. `None` if both fall into one clock tick.
    pub(crate) fn received_last(&self) -> Option<bool> {
        if self.never_sent() {
            return Some(true);
        }
        match self.last_data_recv_ms.cmp(&self.last_data_sent_ms) {
            Ordering::Less => Some(true),
            Ordering::Greater => Some(false),
            Ordering::Equal => None,
        }
    }

    /// True if the other end acknowledged what this one sent last by a segment without data, some time after the last data in either direction. It delays such an
    /// acknowledgement (by 40 ms or more) to send it with data, and nothing was left to send. While a connection is young it does not delay it, and this is false.
    pub(crate) fn is_acknowledged_alone(&self) -> bool {
        self.last_ack_recv_ms.is_some_and(|ms| ms < self.last_data_recv_ms.min(self.last_data_sent_ms))
    }

    /// True if no data was ever received. The times alone do not show it: they are also set when a connection is made.
    pub(crate) fn never_received(&self) -> bool {
        self.data_segs_in.or(self.bytes_received) == Some(0)
    }

    /// True if no data was ever sent.
    pub(crate) fn never_sent(&self) -> bool {
        self.data_segs_out.or(self.bytes_sent) == Some(0)
    }

    /// Mean length of the segments with data that were received. `None` if nothing came, or the kernel does not count (before Linux 4.6).
    pub(crate) fn bytes_a_segment(&self) -> Option<u64> {
        self.bytes_received?.checked_div(self.data_segs_in?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_in_ticks_and_the_time_since_the_last_one_give_its_bound() {
        let moment = DumpMoment { since_tick_us: 3_000, took_us: 2_000, count: 10, tick_us: 4_000 };
        // The first socket was read 3.1 ms after a tick, the last one 0.9 ms after the next.
        assert_eq!((moment.at_most_us(0, 0), moment.at_most_us(0, 8), moment.at_most_us(9, 4)), (3_100, 11_100, 4_900));
        let of_300_hz = DumpMoment { since_tick_us: 100, took_us: 0, count: 1, tick_us: 3_333 };
        assert_eq!((of_300_hz.at_most_us(0, 3), of_300_hz.at_most_us(0, 7), of_300_hz.at_most_us(7, 10)), (3_433, 6_766, 10_099));
        let hostile = DumpMoment { since_tick_us: 0, took_us: u64::MAX, count: 0, tick_us: 1 };
        assert!(hostile.at_most_us(usize::MAX, u64::MAX) > 0);
    }
}
