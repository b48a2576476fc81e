//! Readings of one network namespace.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::socket::{Listener, Socket, TcpState, TimeWaits};
use super::{Counters, FilterRules, RequestSample, TcpSample, WireAnswers};
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
    /// The user who made it in a user namespace of their own, if that is neither root nor the user of this program. Its addresses are whatever that user says, and lead to it from
    /// nowhere else. `None` for all others, and in recordings of older versions.
    pub made_by: Option<u32>,
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
    /// Statuses of the responses that left the servers of this namespace, as packets showed them.
    pub answers: Series<WireAnswers>,
    /// Network interfaces with their counters.
    pub links: Series<Vec<Link>>,
    /// Queueing disciplines.
    pub qdiscs: Series<Vec<Qdisc>>,
    /// Local addresses of this namespace.
    pub addresses: Series<Vec<Address>>,
    /// Rules of its packet filters that may take packets.
    pub filter_rules: Series<FilterRules>,
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
    /// Shaping rate, bits a second (tbf's rate; the root class's rate for htb). For a class of htb, the most that it may send.
    pub rate_bits_per_s: Option<u64>,
    /// Classes of htb, in the kernel's order, with their handles as class ids. The kernel counts a queue at classes without children only.
    pub classes: Vec<Qdisc>,
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
