//! Packets that reach the host and are handed to no socket: a packet filter drops them, and no server on the path counts them.

use crate::facts::Context;
use crate::facts::harm::Cost;
use crate::observation::{NetnsId, NetnsView};
use crate::output::message::Message;

/// Fewest packets: one or two may be a stranger's, which a filter is there to drop.
const DROPPED_MIN: u64 = 10;

/// A protocol's counters of received packets: all, those handed to a protocol above, and those whose other end is counted (RFC 4293; net/ipv4/ip_input.c and
/// net/ipv6/ip6_input.c). What is missing was dropped or taken by a hook of netfilter.
struct Received {
    all: &'static str,
    delivered: &'static str,
    counted: &'static [&'static str],
    /// Fragments, and the packets that were made of them.
    fragments: (&'static str, &'static str),
}

const VERSIONS: [Received; 2] = [
    Received {
        all: "Ip.InReceives",
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
        fragments: ("Ip.ReasmReqds", "Ip.ReasmOKs"),
    },
    Received {
        all: "Ip6.InReceives",
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
        fragments: ("Ip6.ReasmReqds", "Ip6.ReasmOKs"),
    },
];

/// Why nothing is known of the clients whose packets are handed to no socket. `None` if hardly any are, or if the counters were not read.
pub(crate) fn undelivered(ctx: &Context<'_>) -> Option<Message> {
    let of = |(netns, view): (NetnsId, &NetnsView)| {
        let dropped: u64 = VERSIONS.iter().filter_map(|version| dropped(ctx, view, version)).sum();
        let cost = Cost::of_requests(dropped, dropped.saturating_add(ctx.netstat_growth(view, "Tcp.InSegs")?));
        (dropped >= DROPPED_MIN && cost.hurts()).then_some((netns, dropped, cost.requests))
    };
    let (netns, dropped, share) = ctx.netns_on_path().into_iter().filter_map(of).max_by_key(|(_, dropped, _)| *dropped)?;
    let message = Message::new("verdict-unknown-undelivered").with("dropped", dropped).with("share", 100.0 * share);
    Some(message.with("netns", ctx.netns_name(netns)))
}

fn dropped(ctx: &Context<'_>, view: &NetnsView, version: &Received) -> Option<u64> {
    let grew = |name: &str| ctx.netstat_growth(view, name);
    let (fragments, packets) = version.fragments;
    let merged = grew(fragments).unwrap_or(0).saturating_sub(grew(packets).unwrap_or(0));
    let known = version.counted.iter().filter_map(|name| grew(name)).fold(merged, u64::saturating_add);
    Some(grew(version.all)?.saturating_sub(grew(version.delivered)?).saturating_sub(known))
}
