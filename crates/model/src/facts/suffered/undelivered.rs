//! Packets that a hook of netfilter took: they reached the host and were handed to no protocol, or were sent and handed to no interface, and nothing else counts them.

use crate::facts::{Context, table};
use crate::observation::{NetnsId, NetnsView, TcpSample, TcpState};

/// Fewest packets: one or two may be a stranger's, which a filter is there to drop.
const TAKEN_MIN: u64 = 10;

/// Age from which unsent data stays, milliseconds: a tick of the kernel's clock is up to 10 ms long.
const KEPT_MS: u64 = 20;

/// Packets of a namespace that netfilter took in the window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Undelivered {
    /// The namespace.
    pub(crate) netns: NetnsId,
    /// Those that had arrived. Without those for which the table of tracked connections was full.
    pub(crate) came: u64,
    /// Those that were sent; `None` if this kernel does not count what it hands to interfaces (before Linux 6.6).
    pub(crate) sent: Option<u64>,
}

impl Undelivered {
    /// Those of a namespace. `None` if hardly any are, or if the counters were not read.
    pub(crate) fn of(ctx: &Context<'_>, netns: NetnsId, view: &NetnsView) -> Option<Self> {
        let full = table::counter_growth(ctx, view, table::DROPS).unwrap_or(0);
        let came: u64 = VERSIONS.iter().filter_map(|version| version.came(ctx, view)).sum();
        let sent = VERSIONS.iter().filter_map(|version| version.sent(ctx, view)).reduce(u64::saturating_add);
        let found = Self { netns, came: came.saturating_sub(full), sent: sent.map(|sent| sent.saturating_sub(full)) };
        (found.all() >= TAKEN_MIN).then_some(found)
    }

    /// Both kinds.
    pub(crate) fn all(&self) -> u64 {
        self.came.saturating_add(self.sent.unwrap_or(0))
    }
}

/// True if the kernel keeps data that could go: so many bytes or more are to be sent, nothing is on its way, so that neither the congestion window nor Nagle's algorithm holds them back,
/// and the other end has room for a segment. TCP stops there when the network below it refuses a packet, and tries again by a timer of 200 ms or more; it counts no retransmission
/// (tcp_write_xmit and tcp_check_probe_timer, net/ipv4/tcp_output.c). So do rules that drop packets in the output path.
pub(crate) fn is_kept(sample: &TcpSample, least: u64) -> bool {
    let has = |bytes: Option<u64>, least: u64| bytes.is_some_and(|bytes| bytes >= least.max(1));
    let is_open = sample.unacked == 0 && sample.cwnd > 0 && has(sample.peer_window, sample.mss);
    sample.state == TcpState::Established && is_open && has(sample.unsent, least) && sample.last_data_sent_ms >= KEPT_MS
}

/// A protocol's counters of packets (RFC 4293; net/ipv4/ip_input.c, ip_output.c, and those of net/ipv6).
struct Version {
    /// Received.
    received: &'static str,
    /// Of these, handed to a protocol above.
    delivered: &'static str,
    /// Received, and ended otherwise.
    counted: &'static [&'static str],
    /// Fragments, and the packets that were made of them.
    merged: (&'static str, &'static str),
    /// Handed down by protocols above, and passed on for others.
    sent: [&'static str; 2],
    /// Of these, handed to an interface.
    transmitted: &'static str,
    /// Sent, and ended otherwise.
    discarded: [&'static str; 3],
    /// Fragments that were made, and the packets that they were made of.
    split: (&'static str, &'static str),
}

const VERSIONS: [Version; 2] = [
    Version {
        received: "Ip.InReceives",
        delivered: "Ip.InDelivers",
        counted: &[
            "Ip.ForwDatagrams",
            "Ip.InHdrErrors",
            "Ip.InAddrErrors",
            "Ip.InUnknownProtos",
            "Ip.InDiscards",
            "IpExt.InNoRoutes",
            "IpExt.InTruncatedPkts",
            "IpExt.InMcastPkts",
            "IpExt.InBcastPkts",
            "IpExt.InCsumErrors",
            "TcpExt.IPReversePathFilter",
        ],
        merged: ("Ip.ReasmReqds", "Ip.ReasmOKs"),
        sent: ["Ip.OutRequests", "Ip.ForwDatagrams"],
        transmitted: "Ip.OutTransmits",
        discarded: ["Ip.OutDiscards", "Ip.OutNoRoutes", "Ip.FragFails"],
        split: ("Ip.FragCreates", "Ip.FragOKs"),
    },
    Version {
        received: "Ip6.InReceives",
        delivered: "Ip6.InDelivers",
        counted: &[
            "Ip6.OutForwDatagrams",
            "Ip6.InHdrErrors",
            "Ip6.InTooBigErrors",
            "Ip6.InNoRoutes",
            "Ip6.InAddrErrors",
            "Ip6.InUnknownProtos",
            "Ip6.InTruncatedPkts",
            "Ip6.InDiscards",
            "Ip6.InMcastPkts",
        ],
        merged: ("Ip6.ReasmReqds", "Ip6.ReasmOKs"),
        sent: ["Ip6.OutRequests", "Ip6.OutForwDatagrams"],
        transmitted: "Ip6.OutTransmits",
        discarded: ["Ip6.OutDiscards", "Ip6.OutNoRoutes", "Ip6.FragFails"],
        split: ("Ip6.FragCreates", "Ip6.FragOKs"),
    },
];

impl Version {
    fn came(&self, ctx: &Context<'_>, view: &NetnsView) -> Option<u64> {
        let grew = |name: &str| ctx.netstat_growth(view, name);
        let (fragments, packets) = self.merged;
        let merged = grew(fragments).unwrap_or(0).saturating_sub(grew(packets).unwrap_or(0));
        let known = self.counted.iter().filter_map(|name| grew(name)).fold(merged, u64::saturating_add);
        Some(grew(self.received)?.saturating_sub(grew(self.delivered)?).saturating_sub(known))
    }

    fn sent(&self, ctx: &Context<'_>, view: &NetnsView) -> Option<u64> {
        let grew = |name: &str| ctx.netstat_growth(view, name);
        let (fragments, packets) = self.split;
        let split = grew(fragments).unwrap_or(0).saturating_sub(grew(packets).unwrap_or(0));
        let [own, others] = self.sent.map(grew);
        let sent = own?.saturating_add(others.unwrap_or(0)).saturating_add(split);
        let known = self.discarded.iter().filter_map(|name| grew(name)).fold(0, u64::saturating_add);
        Some(sent.saturating_sub(grew(self.transmitted)?).saturating_sub(known))
    }
}
