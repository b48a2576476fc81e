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
        let taken = |ways: &[Way]| ways.iter().filter_map(|way| way.taken(ctx, view)).reduce(u64::saturating_add);
        let came = taken(&CAME).unwrap_or(0).saturating_sub(full);
        let found = Self { netns, came, sent: taken(&SENT).map(|sent| sent.saturating_sub(full)) };
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

/// Counters of one protocol and one direction (RFC 4293; net/ipv4/ip_input.c, ip_output.c, and those of net/ipv6): what begins there must end in one of the others, or a hook took it.
struct Way {
    /// Packets that begin.
    from: &'static str,
    /// More of them: those that are made of fragments or cut into them, or passed on for others.
    also: &'static [&'static str],
    /// Packets that arrive.
    to: &'static str,
    /// Packets that end otherwise, fragments that are merged, and packets that are cut.
    ends: &'static [&'static str],
}

const CAME: [Way; 2] = [
    Way {
        from: "Ip.InReceives",
        also: &["Ip.ReasmOKs"],
        to: "Ip.InDelivers",
        ends: &[
            "Ip.ReasmReqds",
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
    },
    Way {
        from: "Ip6.InReceives",
        also: &["Ip6.ReasmOKs"],
        to: "Ip6.InDelivers",
        ends: &[
            "Ip6.ReasmReqds",
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
    },
];

const SENT: [Way; 2] = [
    Way {
        from: "Ip.OutRequests",
        also: &["Ip.ForwDatagrams", "Ip.FragCreates"],
        to: "Ip.OutTransmits",
        ends: &["Ip.FragOKs", "Ip.OutDiscards", "Ip.OutNoRoutes", "Ip.FragFails"],
    },
    Way {
        from: "Ip6.OutRequests",
        also: &["Ip6.OutForwDatagrams", "Ip6.FragCreates"],
        to: "Ip6.OutTransmits",
        ends: &["Ip6.FragOKs", "Ip6.OutDiscards", "Ip6.OutNoRoutes", "Ip6.FragFails"],
    },
];

impl Way {
    /// Packets that began and did not end. `None` if the first or the last counter was not read.
    fn taken(&self, ctx: &Context<'_>, view: &NetnsView) -> Option<u64> {
        let grew = |name: &str| ctx.netstat_growth(view, name);
        let sum = |names: &[&str]| names.iter().filter_map(|name| grew(name)).fold(0, u64::saturating_add);
        let began = grew(self.from)?.saturating_add(sum(self.also));
        Some(began.saturating_sub(grew(self.to)?).saturating_sub(sum(self.ends)))
    }
}
