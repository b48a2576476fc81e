//! Dropped packets: by kind, and as counted by the sockets themselves.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use serde::Serialize;

/// Name and version of the JSON form of [`Drops`].
pub const DROPS_SCHEMA: &str = "chokepoint/drops/1";

/// Dropped packets of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drop {
    /// The kernel's name for the reason (enum skb_drop_reason), or its number if it has no name.
    pub reason: String,
    /// What the reason means, if known.
    pub meaning: Option<&'static str>,
    /// The kernel function that dropped them.
    pub location: String,
    /// IPv4, IPv6, ARP, or the number in hexadecimal.
    pub protocol: String,
    /// Whether the packet had found its socket; none if the kernel does not say.
    pub for_socket: Option<bool>,
    /// The program that ran at that moment. If both ends are on this host it is mostly the sender, else whatever was interrupted.
    pub program: String,
    /// The network namespace of that program: its name below /run/netns, or its number.
    pub namespace: Option<String>,
    /// The socket's address and port, or the packets' destination. With samples it is known only if another tracepoint reported the same packets.
    pub local: Option<SocketAddr>,
    /// The socket's other end. If many connections share one end, only that end is given.
    pub remote: Option<SocketAddr>,
    /// Number of connections in this line; 0 if no end is known.
    pub ends: u64,
    /// "tcp" or "udp", if an end is known.
    pub transport: Option<&'static str>,
    /// The state of a TCP socket, as include/net/tcp_states.h names it.
    pub state: Option<&'static str>,
    /// The network namespace of the socket, or of the interface if no socket is known.
    pub socket_namespace: Option<String>,
    /// The programs that hold the socket, added by the caller, which knows the host's sockets. Several if several namespaces have such a socket.
    pub holders: Vec<Holder>,
    /// The sockets' inode numbers, by which the caller finds the holders; empty if unknown.
    #[serde(skip)]
    pub inodes: BTreeSet<u64>,
    /// Number of packets.
    pub count: u64,
}

/// A program that holds a socket.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Holder {
    /// Its name.
    pub program: String,
    /// The network namespace of the socket.
    pub namespace: Option<String>,
}

/// Packets that a socket itself counted as dropped: by a listener with a full queue or a UDP socket with a full buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SocketDrops {
    /// "tcp" or "udp".
    pub protocol: &'static str,
    /// The socket's address.
    pub local: SocketAddr,
    /// The program that holds it.
    pub holder: Holder,
    /// Packets dropped while counting.
    pub count: u64,
}

/// How drops are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// A BPF program in the kernel counts them with their sockets.
    Bpf,
    /// Samples of the tracepoint, which do not contain sockets.
    Tracepoint,
}

/// The result of counting drops.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drops {
    /// `DROPS_SCHEMA`.
    pub schema: &'static str,
    /// How they were counted.
    pub means: Means,
    /// Time counted, seconds.
    pub duration_s: f64,
    /// Packets dropped, without the reasons in `left_out`.
    pub packets: u64,
    /// Drops that were not counted for lack of room, or because there were too many kinds.
    pub lost: u64,
    /// Reasons that are no loss. The kernel already leaves them out.
    pub left_out: Vec<String>,
    /// By kind, most packets first.
    pub drops: Vec<Drop>,
    /// By socket, most packets first, from the sockets' own counters. The caller adds them, since it knows the host's sockets. Some are in `drops` too, but not
    /// the connections that a full queue turned away.
    pub sockets: Vec<SocketDrops>,
    /// What is not known, in sentences.
    pub notes: Vec<String>,
    /// CPU time that counting took in this program, seconds.
    pub cost_cpu_s: f64,
}
