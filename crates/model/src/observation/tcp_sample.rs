//! The kernel's measurements of single connections: a sample of a namespace's sockets, once a second.

use std::net::IpAddr;

use super::TcpState;

/// One end of a connection at one moment (struct tcp_info, linux/tcp.h; sock_diag(7)). Fields that older kernels lack are `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpSample {
    /// Local address and port.
    pub local: (IpAddr, u16),
    /// Address and port of the peer.
    pub remote: (IpAddr, u16),
    /// The kernel's number of the socket, unique while the host runs.
    pub cookie: u64,
    /// State.
    pub state: TcpState,
    /// Bytes not acknowledged by the peer, including unsent ones.
    pub send_queue: u32,
    /// Limit of the send buffer in bytes, including the kernel's overhead.
    pub send_buffer: Option<u32>,
    /// State of congestion control: 0 if no segment is assumed lost or reordered (`tcpi_ca_state`).
    pub loss_state: u64,
    /// Largest data size of a segment, bytes.
    pub mss: u64,
    /// Segments sent and not acknowledged.
    pub unacked: u64,
    /// Congestion window, segments.
    pub cwnd: u64,
    /// Segments retransmitted over the life of the connection.
    pub retransmitted: u64,
    /// Time since data were last sent, milliseconds.
    pub last_data_sent_ms: u64,
    /// Smoothed round trip, microseconds.
    pub rtt_us: u64,
    /// Shortest round trip of the last five minutes, microseconds; 2^32 - 1 if not yet measured.
    pub min_rtt_us: Option<u64>,
    /// Bytes in the send queue that were never sent.
    pub unsent: Option<u64>,
    /// Segments that the peer acknowledged, including the handshake's.
    pub delivered: Option<u64>,
    /// Time with data to send or not acknowledged, microseconds.
    pub busy_us: Option<u64>,
    /// Part of `busy_us` limited by the peer's receive window.
    pub rwnd_limited_us: Option<u64>,
    /// Part of `busy_us` limited by the send buffer: all that it held was sent.
    pub sndbuf_limited_us: Option<u64>,
    /// Free bytes in the peer's receive window.
    pub peer_window: Option<u64>,
}
