//! Sockets of a network namespace: listeners, connections, and those in TIME_WAIT.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// Where a listener listens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ListenerAddress {
    /// A TCP address. An unspecified one listens on all addresses of its family (`::` on both families unless IPV6_V6ONLY is set).
    Tcp(IpAddr, u16),
    /// Path of a unix socket, as bound. Abstract names begin with '@'.
    Unix(String),
}

impl fmt::Display for ListenerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenerAddress::Tcp(IpAddr::V4(ip), port) => write!(f, "{ip}:{port}"),
            ListenerAddress::Tcp(IpAddr::V6(ip), port) => write!(f, "[{ip}]:{port}"),
            ListenerAddress::Unix(path) => write!(f, "unix:{path}"),
        }
    }
}

/// One listening socket (sock_diag(7)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Where it listens.
    pub address: ListenerAddress,
    /// True if a listener on `::` takes no IPv4 connections (IPV6_V6ONLY).
    pub v6_only: bool,
    /// Inode of the socket, which identifies its processes.
    pub inode: u64,
    /// Connections in the accept queue now (Recv-Q).
    pub accept_queue: u32,
    /// The active limit of the queue: min(backlog, somaxconn) (Send-Q). The kernel refuses at limit + 1 waiting connections.
    pub accept_queue_limit: u32,
    /// Connections that this listener dropped since it was created (SKMEMINFO, ninth word), if the kernel reports it.
    pub drops: Option<u64>,
}

/// TCP states as the kernel numbers them (include/net/tcp_states.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum TcpState {
    Established = 1,
    SynSent = 2,
    SynRecv = 3,
    FinWait1 = 4,
    FinWait2 = 5,
    TimeWait = 6,
    Close = 7,
    CloseWait = 8,
    LastAck = 9,
    Listen = 10,
    Closing = 11,
    NewSynRecv = 12,
}

impl TcpState {
    /// True for the accepting side before the handshake is complete: request sockets, and sockets of a simultaneous open or of fast open.
    pub fn is_handshake(self) -> bool {
        matches!(self, Self::SynRecv | Self::NewSynRecv)
    }
}

/// Addresses of a socket that does not listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocketAddress {
    /// TCP: local and remote address and port.
    Tcp {
        /// Local address and port.
        local: (IpAddr, u16),
        /// Remote address and port.
        remote: (IpAddr, u16),
    },
    /// A connected unix stream socket.
    Unix {
        /// Path that it is bound to: an accepted socket has the listener's path.
        path: Option<String>,
        /// Its peer.
        peer: UnixPeer,
    },
}

/// The peer of a unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnixPeer {
    /// Inode of the peer's socket.
    Inode(u64),
    /// The kernel does not report it.
    Unknown,
}

/// Sockets in TIME_WAIT of one namespace. The port that many sockets share shows which side of the connection they were on. Groups of one socket are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeWaits {
    /// Number of all sockets in TIME_WAIT.
    pub total: u64,
    /// Groups on the connecting side, largest first. Each socket occupies an ephemeral port towards that remote address and port.
    pub dialled: Vec<TimeWaitDialled>,
    /// Groups on the accepting side, largest first. They are harmless.
    pub accepted: Vec<TimeWaitAccepted>,
}

/// Sockets in TIME_WAIT from one local address to one remote address and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeWaitDialled {
    /// Local address.
    pub local: IpAddr,
    /// Remote address and port.
    pub remote: (IpAddr, u16),
    /// How many.
    pub count: u64,
}

/// Sockets in TIME_WAIT at one local address and port, from one remote address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeWaitAccepted {
    /// Local address and port.
    pub local: (IpAddr, u16),
    /// Remote address.
    pub remote: IpAddr,
    /// How many.
    pub count: u64,
}

/// The timer of a socket, for example in TIME_WAIT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Milliseconds left.
    pub left_ms: u32,
}

/// One socket that does not listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Socket {
    /// Addresses.
    pub address: SocketAddress,
    /// TCP state; connected unix sockets count as established.
    pub state: TcpState,
    /// Inode, zero if no process holds it (TIME_WAIT, not yet accepted).
    pub inode: u64,
    /// User id of the process that created it, if the kernel reports it (TCP).
    pub uid: Option<u32>,
    /// Bytes received and not yet read by the process.
    pub receive_queue: u32,
    /// Bytes sent and not yet acknowledged.
    pub send_queue: u32,
    /// The running timer, if reported (TIME_WAIT: time until the socket is gone).
    pub wait: Option<Wait>,
}
