//! What the kernel measures of single connections: a sample of a namespace's sockets, taken once a second.

use std::net::IpAddr;

use super::TcpState;

/// One connection's end as seen once (struct tcp_info, linux/tcp.h; sock_diag(7)). What older kernels do not tell is nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpSample {
    /// Address and port here.
    pub local: (IpAddr, u16),
    /// Address and port of the peer.
    pub remote: (IpAddr, u16),
    /// The kernel's number of the socket: no other has it while the host runs.
    pub cookie: u64,
    /// State.
    pub state: TcpState,
    /// Bytes that the peer has not acknowledged, unsent ones included.
    pub send_queue: u32,
    /// Bytes that the send buffer may hold, with the kernel's overhead.
    pub send_buffer: Option<u32>,
    /// State of congestion control: 0 where nothing is held to be lost or reordered (`tcpi_ca_state`).
    pub loss_state: u64,
    /// Bytes of a segment's data.
    pub mss: u64,
    /// Segments that were sent and are not acknowledged.
    pub unacked: u64,
    /// Congestion window, segments.
    pub cwnd: u64,
    /// Segments sent again over the connection's life.
    pub retransmitted: u64,
    /// Time since data were last sent, milliseconds.
    pub last_data_sent_ms: u64,
    /// Smoothed round trip, microseconds.
    pub rtt_us: u64,
    /// Shortest round trip of the last five minutes, microseconds; 2^32 - 1 while none was measured.
    pub min_rtt_us: Option<u64>,
    /// Bytes in the send queue that were never sent.
    pub unsent: Option<u64>,
    /// Segments that the peer acknowledged; the handshake's counts.
    pub delivered: Option<u64>,
    /// Time with something to send or not acknowledged, microseconds.
    pub busy_us: Option<u64>,
    /// Of that, time in which the peer's window allowed no more.
    pub rwnd_limited_us: Option<u64>,
    /// Of that, time in which all was sent that the full send buffer held.
    pub sndbuf_limited_us: Option<u64>,
    /// Bytes that the peer has room for.
    pub peer_window: Option<u64>,
}
