//! Readings of one network namespace.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{Counters, RequestSample, TcpSample};
use crate::observation::series::Series;

/// A network namespace by the inode number of its `/proc/PID/ns/net`, unique on a host while the namespace exists (namespaces(7)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NetnsId(pub u64);

impl fmt::Display for NetnsId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "net:[{}]", self.0)
    }
}

/// Everything read of one network namespace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetnsView {
    /// Its name under `/run/netns`, or "host" for the namespace of process 1.
    pub name: Option<String>,
    /// True for the namespace of process 1, where host-only sysctls are set.
    pub is_host: bool,
    /// `/proc/net/netstat` and `/proc/net/snmp`, merged: "TcpExt.ListenOverflows", "Tcp.RetransSegs", ...
    pub netstat: Series<Counters>,
    /// `/proc/net/sockstat` and `sockstat6`: "TCP.tw", "TCP.alloc", "sockets.used", "TCP6.inuse", ...
    pub sockstat: Series<Counters>,
    /// Conntrack entries of this namespace (`nf_conntrack_count`), at 20 Hz.
    pub conntrack_count: Series<u64>,
    /// `/proc/net/stat/nf_conntrack`, one row per possible CPU.
    pub conntrack_cpus: Series<Vec<ConntrackCpu>>,
    /// Conntrack entries by protocol and state ("tcp ESTABLISHED", "tcp TIME_WAIT", "udp"). The count is bounded.
    pub conntrack_states: Series<BTreeMap<String, u64>>,
    /// Destination NAT that conntrack entries of this namespace show. Bounded.
    pub conntrack_translations: Series<Vec<Translation>>,
    /// Sysctls by dotted name ("net.core.somaxconn") as this namespace sees them.
    pub sysctls: BTreeMap<String, Series<String>>,
    /// Listening sockets, TCP and unix, at 20 Hz.
    pub listeners: Series<Vec<Listener>>,
    /// Sockets in TIME_WAIT, grouped by the port that they occupy.
    pub time_waits: Series<TimeWaits>,
    /// All other TCP sockets and the connected unix stream sockets, at a lower rate.
    pub sockets: Series<Vec<Socket>>,
    /// Sockets beyond the limit of one read of `sockets`, by state. Unread if there were none.
    pub sockets_left_out: Series<BTreeMap<TcpState, u64>>,
    /// A bounded sample of TCP sockets with the kernel's measurements.
    pub tcp_samples: Series<Vec<TcpSample>>,
    /// The sockets that can hold a request, about five times a second.
    pub request_samples: Series<RequestSample>,
    /// More of them, taken when the load generator was first seen with a request under way, after a sample with none.
    pub awaited_samples: Series<RequestSample>,
    /// Network interfaces with their counters.
    pub links: Series<Vec<Link>>,
    /// Queueing disciplines.
    pub qdiscs: Series<Vec<Qdisc>>,
    /// Local addresses of this namespace.
    pub addresses: Series<Vec<Address>>,
}

impl NetnsView {
    /// A sysctl as last read, without surrounding white space.
    pub fn sysctl(&self, key: &str) -> Option<&str> {
        Some(self.sysctls.get(key)?.last()?.trim())
    }

    /// A sysctl with one number.
    pub fn sysctl_number(&self, key: &str) -> Option<u64> {
        self.sysctl(key)?.parse().ok()
    }
}

/// One CPU's row of `/proc/net/stat/nf_conntrack`, by the names in its header (columns differ by kernel).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConntrackCpu {
    /// Counter by column name: "drop", "early_drop", "insert_failed", "clashres", ...
    pub counters: Counters<u64>,
}

/// A destination NAT of a namespace: connections to one TCP address and port are redirected to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Translation {
    /// Address and port that the client connected to.
    pub original: (IpAddr, u16),
    /// Address and port that the connection was redirected to.
    pub translated: (IpAddr, u16),
    /// Conntrack entries with this translation.
    pub count: u64,
}

/// An address of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub ip: IpAddr,
    /// Length of its prefix in bits.
    pub prefix_bits: u8,
    /// Index of the interface.
    pub link: u32,
}

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

/// One network interface with its counters since it was created (rtnetlink(7), IFLA_STATS64).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    /// Index.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Kind of a virtual interface: "veth", "bridge", "tun", ...
    pub kind: Option<String>,
    /// True if it is administratively up.
    pub up: bool,
    /// Maximum transmission unit, bytes.
    pub mtu: u32,
    /// Speed, bits a second, if the driver reports one. It is not always a limit: see [`Link::rate_bits_per_s`].
    pub speed_bits_per_s: Option<u64>,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets received.
    pub rx_packets: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Packets dropped on receive.
    pub rx_dropped: u64,
    /// Packets dropped on send.
    pub tx_dropped: u64,
    /// Receive errors.
    pub rx_errors: u64,
    /// Send errors.
    pub tx_errors: u64,
}

/// Kinds of virtual interface that send through another interface and report its speed (ip-link(8)).
const SEND_THROUGH_OTHERS: [&str; 6] = ["bond", "team", "vlan", "macvlan", "macvtap", "ipvlan"];

impl Link {
    /// The rate at which it can send, bits a second. `None` if unknown. A virtual interface that only passes packets on has no rate: its driver reports an
    /// invented one (10 Gbit/s for a veth, drivers/net/veth.c, and for a tun, drivers/net/tun.c), and a bridge repeats it (net/bridge/br_device.c).
    pub fn rate_bits_per_s(&self) -> Option<u64> {
        let has_one = self.kind.as_deref().is_none_or(|kind| SEND_THROUGH_OTHERS.contains(&kind));
        self.speed_bits_per_s.filter(|_| has_one)
    }
}

/// One queueing discipline with its counters (tc(8)).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Qdisc {
    /// Index of the interface.
    pub link: u32,
    /// Kind: "fq_codel", "tbf", "htb", "noqueue", ...
    pub kind: String,
    /// Handle, `major << 16 | minor`.
    pub handle: u32,
    /// Parent; `0xffff_ffff` is the root of the interface.
    pub parent: u32,
    /// Bytes passed.
    pub bytes: u64,
    /// Packets passed.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Times that sending was deferred because the rate was used up.
    pub overlimits: u64,
    /// Packets waiting now.
    pub queue_length: u32,
    /// Bytes waiting now.
    pub backlog_bytes: u32,
    /// Shaping rate, bits a second (tbf's rate; the root class's rate for htb).
    pub rate_bits_per_s: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_sends_by_wire_has_a_rate() {
        let rate = |kind: Option<&str>| {
            let link = Link { kind: kind.map(str::to_owned), speed_bits_per_s: Some(10_000_000_000), ..Link::default() };
            link.rate_bits_per_s()
        };
        assert_eq!([None, Some("bond"), Some("vlan")].map(rate), [Some(10_000_000_000); 3]);
        assert_eq!(["veth", "tun", "bridge", "vxlan", "dummy"].map(|kind| rate(Some(kind))), [None; 5]);
        assert_eq!(Link::default().rate_bits_per_s(), None);
    }
}
