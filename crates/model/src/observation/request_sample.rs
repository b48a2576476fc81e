//! Samples of the sockets that can hold a request, taken several times a second: what tells where requests stand.

use super::{SocketAddress, TcpState};

/// The sockets of one namespace at one moment, or a random share of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestSample {
    /// The share of the TCP connections that was read, above 0 and at most 1: each had the same chance. Unix sockets are all read.
    pub share: f64,
    /// The same of handshakes at the side that accepts.
    pub handshake_share: f64,
    /// Requests that the load generator had under way at that moment; nothing where no load of this process ran.
    pub under_way: Option<f64>,
    /// Those of them of whose answer the load generator had a part, and not the whole.
    pub begun: Option<f64>,
    /// How often the load generator was looked at until it had a request under way: more than none for a sample that waited for one.
    pub looks: u32,
    /// How much later than its turn the sample was taken, microseconds.
    pub late_us: u64,
    /// The sockets: of TCP all that can hold a request, of unix sockets the accepted ends.
    pub sockets: Vec<RequestSocket>,
}

impl RequestSample {
    /// How many sockets this one of the sample stands for.
    pub(crate) fn weight(&self, socket: &RequestSocket) -> f64 {
        match (&socket.address, socket.state) {
            (SocketAddress::Unix { .. }, _) => 1.0,
            (_, state) if state.is_handshake() => 1.0 / self.handshake_share,
            _ => 1.0 / self.share,
        }
    }
}

/// One socket of a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestSocket {
    /// Addresses.
    pub address: SocketAddress,
    /// A number that no other socket has (of a unix socket its inode).
    pub cookie: u64,
    /// TCP state; connected unix sockets count as established while they may send, then as closed by the other side.
    pub state: TcpState,
    /// Inode, zero where no process holds it (not yet accepted).
    pub inode: u64,
    /// Bytes received and not yet read by the process.
    pub receive_queue: u32,
    /// Bytes sent and not yet acknowledged; of a unix socket not yet read by the peer.
    pub send_queue: u32,
    /// What the kernel measured; nothing for handshakes and unix sockets.
    pub times: Option<RequestTimes>,
}

/// What struct tcp_info tells of requests and answers on a connection (include/uapi/linux/tcp.h). Times have the length of a clock tick as their grain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestTimes {
    /// Since data was sent last, retransmissions too, or since the connection was made, milliseconds.
    pub last_data_sent_ms: u64,
    /// Since data came in last, or since the connection was made, milliseconds.
    pub last_data_recv_ms: u64,
    /// Segments with data that came (Linux 4.6).
    pub data_segs_in: Option<u64>,
    /// Segments with data that were sent (Linux 4.6).
    pub data_segs_out: Option<u64>,
    /// Bytes that the peer acknowledged, the SYN as one (Linux 4.1).
    pub bytes_acked: Option<u64>,
    /// Bytes that came (Linux 4.1).
    pub bytes_received: Option<u64>,
    /// Bytes that were sent, retransmissions too (Linux 4.19).
    pub bytes_sent: Option<u64>,
    /// Bytes in the send queue that were never sent (Linux 4.6).
    pub unsent: Option<u64>,
    /// Time for which the peer's window kept from sending, microseconds (Linux 4.10).
    pub rwnd_limited_us: Option<u64>,
    /// Shortest round trip, microseconds (Linux 4.6).
    pub min_rtt_us: Option<u64>,
    /// Smoothed round-trip time, microseconds: with what acknowledgements are delayed.
    pub rtt_us: Option<u64>,
    /// Segments sent and not acknowledged.
    pub unacked: Option<u64>,
    /// Segments that are taken for lost or were sent again, and are not acknowledged.
    pub lost: Option<u64>,
}
