//! Reasons on this host itself for lost packets or retransmissions: queues that overflow, shapers that are full, sockets that are not read.

use crate::facts::Context;
use crate::facts::table;
use crate::judge::finding::Evidence;
use crate::observation::{NetnsId, NetnsView, Qdisc};
use crate::output::message::Message;

/// Share of the lost segments from which another reason counts as the explanation.
const EXPLAINED_SHARE_MIN: f64 = 0.1;
/// Share of its rate from which a shaper that drops is simply full.
const FULL_SHARE: f64 = 0.8;
/// Counters of packets that this host drops for its own reasons: a connection that finds the accept queue full, the acknowledgements and data of a connection
/// that only the client believes established, and data for sockets that are full or busy.
const DROPPED: &[&str] = &[
    "TcpExt.ListenDrops",
    "TcpExt.ListenOverflows",
    "TcpExt.TCPReqQFullDrop",
    "TcpExt.TCPBacklogDrop",
    "TcpExt.TCPRcvQDrop",
    "TcpExt.TCPZeroWindowDrop",
    "TcpExt.TCPOFODrop",
    "TcpExt.RcvPruned",
    "TcpExt.PruneCalled",
    "TcpExt.PFMemallocDrop",
];

/// True if a known reason explains much of the loss.
pub(super) fn explains(ctx: &Context<'_>, senders: impl Iterator<Item = NetnsId>, lost: u64) -> bool {
    let on_path = ctx.netns_on_path();
    let other = senders.filter_map(|id| Some((id, ctx.obs.netns.get(&id)?)));
    let views: Vec<&NetnsView> = other.chain(on_path).map(|(_, view)| view).collect();
    let counted = |view: &&NetnsView| DROPPED.iter().filter_map(|name| ctx.netstat_growth(view, name)).max().unwrap_or(0);
    let tables = |view: &&NetnsView| table::counter_growth(ctx, view, table::DROPS).unwrap_or(0);
    let here: u64 = views.iter().map(counted).chain(views.iter().map(tables)).chain([backlog_drops(ctx)]).max().unwrap_or(0);
    here as f64 >= EXPLAINED_SHARE_MIN * lost as f64 || views.iter().any(|view| is_full(ctx, view))
}

/// Packets dropped because the cores did not take them from their backlogs in time.
fn backlog_drops(ctx: &Context<'_>) -> u64 {
    ctx.growth(&ctx.obs.softnet, |rows| Some(rows.iter().map(|row| row.dropped).sum())).unwrap_or(0)
}

/// True if a shaper of this namespace passes nearly its full rate. Its drops are how TCP learns that rate.
fn is_full(ctx: &Context<'_>, view: &NetnsView) -> bool {
    changed(ctx, view).any(|(first, last, seconds)| {
        let bits = last.bytes.saturating_sub(first.bytes) as f64 * 8.0 / seconds;
        last.rate_bits_per_s.is_some_and(|rate| bits >= FULL_SHARE * rate as f64)
    })
}

/// True if no shaper of this host can be the reason: the queues of all these namespaces and of the path's were read, and no namespace beside the path has a full
/// shaper. A server whose listeners could not be read is missing from the path, and its packets may leave through such a shaper.
pub(super) fn are_shapers_excluded(ctx: &Context<'_>, senders: impl Iterator<Item = NetnsId>) -> bool {
    let mut views = senders.map(|id| ctx.obs.netns.get(&id)).chain(ctx.netns_on_path().into_iter().map(|(_, view)| Some(view)));
    let are_read = views.all(|view| view.is_some_and(|view| ctx.around(&view.qdiscs).is_some()));
    are_read && !ctx.obs.netns.values().any(|view| is_full(ctx, view))
}

/// Queueing disciplines at both ends of the window, with the seconds between.
fn changed<'a>(ctx: &Context<'_>, view: &'a NetnsView) -> impl Iterator<Item = (&'a Qdisc, &'a Qdisc, f64)> {
    let around = ctx.around(&view.qdiscs);
    around.into_iter().flat_map(|(first, last, elapsed_us)| {
        last.iter().filter_map(move |after| {
            let same = |before: &&Qdisc| (before.link, before.handle, &before.kind) == (after.link, after.handle, &after.kind);
            Some((first.iter().find(same)?, after, elapsed_us as f64 / 1e6))
        })
    })
}

/// Where packets were dropped on this host, as far as interfaces and their queues count it. This is the first place to look.
pub(super) fn dropped_here(ctx: &Context<'_>, senders: impl Iterator<Item = NetnsId>) -> Vec<Evidence> {
    let mut proofs = Vec::new();
    for (id, view) in senders.filter_map(|id| Some((id, ctx.obs.netns.get(&id)?))) {
        let link_name = |index: u32| {
            let links = view.links.last()?;
            links.iter().find(|link| link.index == index).map(|link| link.name.clone())
        };
        for (first, last, _) in changed(ctx, view) {
            let dropped = last.drops.saturating_sub(first.drops);
            if let Some(name) = link_name(last.link).filter(|_| dropped > 0) {
                let text = Message::new("evidence-loss-qdisc").with("kind", last.kind.as_str()).with("link", name).with("count", dropped);
                proofs.push(Evidence::new(text, format!("rtnetlink TCA_STATS2 ({})", ctx.netns_name(id)), Some(dropped as f64)));
            }
        }
        let Some((first, last, _)) = ctx.around(&view.links) else { continue };
        for link in last {
            let Some(before) = first.iter().find(|before| before.index == link.index) else { continue };
            let bad = |link: &crate::observation::Link| link.rx_errors + link.tx_errors + link.rx_dropped + link.tx_dropped;
            let count = bad(link).saturating_sub(bad(before));
            if count > 0 {
                let text = Message::new("evidence-loss-link").with("link", link.name.as_str()).with("count", count);
                proofs.push(Evidence::new(text, format!("rtnetlink IFLA_STATS64 ({})", ctx.netns_name(id)), Some(count as f64)));
            }
        }
    }
    proofs
}
