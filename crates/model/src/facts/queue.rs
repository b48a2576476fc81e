//! Accept queues: how many connections waited in each, and how many were refused.

pub(crate) mod accepting;
pub(crate) mod halted;
pub(crate) mod retries;
pub(crate) mod unix;

use std::collections::BTreeMap;

use super::Context;
use crate::facts::path::{PlacedListener, Tier};
use crate::observation::{Listener, NetnsView};

/// Length of the initial burst of a load, which opens all its connections at once, microseconds. It includes the first retry of the refused connections and
/// some margin.
pub(crate) const START_US: u64 = 2_000_000;
/// Least length of a load, as a multiple of that burst, for the burst to be separated from the rest.
pub(crate) const START_TIMES: u64 = 2;
/// Sysctl of SYN cookies: 0 off, 1 if the queue is full, 2 always.
pub(crate) const KEY_COOKIES: &str = "net.ipv4.tcp_syncookies";
/// Counter of a namespace's connections refused by a full accept queue.
pub(crate) const OVERFLOWS: &str = "TcpExt.ListenOverflows";

/// Counter of a namespace's packets that end a handshake and are dropped, since the listener wants a connection only with its first data (TCP_DEFER_ACCEPT, tcp(7)).
const DEFERRED: &str = "TcpExt.TCPDeferAcceptDrop";

/// One listener's queue in the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Queue {
    pub(crate) limit: u32,
    pub(crate) peak: u32,
    pub(crate) mean: f64,
    /// SYNs and connections that the listener itself dropped, for any reason.
    pub(crate) drops: Option<u64>,
    /// Drops after the initial burst of the load.
    pub(crate) drops_later: Option<u64>,
}

/// Follows a listener, by inode, through the samples of the window.
pub(crate) fn watch(ctx: &Context<'_>, view: &NetnsView, placed: &PlacedListener) -> Option<Queue> {
    let own = |listeners: &Vec<Listener>| listeners.iter().find(|listener| listener.inode == placed.listener.inode).cloned();
    let inside: Vec<Listener> = ctx.in_window(&view.listeners).filter_map(|(_, listeners)| own(listeners)).collect();
    let last = inside.last().cloned().or_else(|| view.listeners.last().and_then(own))?;
    let by_inode: BTreeMap<u64, Option<u64>> = match ctx.around(&view.listeners) {
        Some((first, _, _)) => first.iter().map(|listener| (listener.inode, listener.drops)).collect(),
        None => BTreeMap::new(),
    };
    let end = ctx.around(&view.listeners).and_then(|(_, last, _)| own(last)).and_then(|listener| listener.drops).or(last.drops);
    // A listener that did not exist at the beginning started to count at zero.
    let begin = by_inode.get(&placed.listener.inode).copied().unwrap_or(Some(0));
    let settled_us = ctx.window_us.0.saturating_add(START_US);
    let settled = ctx.in_window(&view.listeners).find(|(at, _)| *at >= settled_us).and_then(|(_, all)| own(all)?.drops);
    let total: u64 = inside.iter().map(|listener| u64::from(listener.accept_queue)).sum();
    Some(Queue {
        limit: last.accept_queue_limit,
        peak: inside.iter().map(|listener| listener.accept_queue).max().unwrap_or(last.accept_queue),
        mean: if inside.is_empty() { 0.0 } else { total as f64 / inside.len() as f64 },
        drops: end.zip(begin).map(|(end, begin)| end.saturating_sub(begin)),
        drops_later: end.zip(settled).map(|(end, settled)| end.saturating_sub(settled)),
    })
}

impl Queue {
    /// True if all its drops belong to the initial burst of the load. Afterwards the clients keep their connections, or the queue has room for single ones.
    pub(crate) fn only_began_with(self, ctx: &Context<'_>) -> bool {
        let is_long = ctx.window_us.1.saturating_sub(ctx.window_us.0) >= START_TIMES * START_US;
        ctx.obs.load.is_some() && is_long && self.drops_later == Some(0)
    }

    /// True if it was seen at its limit, where it refuses the next connection or the one after it.
    pub(crate) fn is_full(self) -> bool {
        self.peak > self.limit || (self.peak == self.limit && self.limit > 0)
    }
}

/// Connections refused in the window. `None` if unknown.
pub(crate) fn refused(ctx: &Context<'_>, tier: &Tier, placed: &PlacedListener, view: &NetnsView, queue: Queue) -> Option<u64> {
    if let Some(path) = unix::path_of(placed) {
        return unix::refused(ctx, tier, placed.netns, path, queue);
    }
    // The kernel counts drops per listener. If it does not report them, overflows of the namespace count as this listener's only if its queue was seen full.
    let overflows = ctx.netstat_growth(view, OVERFLOWS);
    // Where others had connections, their queues may have overflowed as well.
    let Some(drops) = queue.drops else {
        let is_own = queue.is_full() && ctx.others(placed.netns).had_none();
        return overflows.filter(|count| is_own || *count == 0);
    };
    let Some(overflows) = overflows else {
        // Without cookies the drops may as well be SYNs that found the SYN queue full.
        let may_be_syns = view.sysctl(KEY_COOKIES) == Some("0") && !queue.is_full();
        return Some(drops).filter(|drops| *drops == 0 || !may_be_syns);
    };
    // The drops include SYNs that found the SYN queue full: those that the namespace dropped without an overflow of an accept queue.
    let others = ctx.netstat_growth(view, "TcpExt.ListenDrops").map_or(0, |all| all.saturating_sub(overflows));
    if queue.is_full() {
        return Some(overflows.min(drops));
    }
    // A listener drops packets for other reasons, too, such as those of handshakes that are over by then (`sk_drops`), and with TCP_DEFER_ACCEPT the last one of each handshake
    // (tcp_check_req in net/ipv4/tcp_minisocks.c). Each overflow is one listener's: of a queue that was never seen full are only those that the drops of the others cannot be.
    let deferred = ctx.netstat_growth(view, DEFERRED).unwrap_or(0);
    let left = overflows.saturating_sub(dropped_by_others(ctx, view, &[placed.listener.inode]));
    Some(left.min(drops.saturating_sub(others).saturating_sub(deferred)))
}

/// What the listeners of a namespace dropped, without these, while its counters grew: those are read more seldom, and so for longer than the window. Of one that ended meanwhile, what it
/// had dropped when it was last read.
pub(crate) fn dropped_by_others(ctx: &Context<'_>, view: &NetnsView, own: &[u64]) -> u64 {
    let dropped = |listener: &Listener| Some((listener.inode, listener.drops?));
    let mut readings = ctx.around_those(&view.listeners, &view.netstat).iter().map(|(_, listeners)| listeners);
    let begin: BTreeMap<u64, u64> = readings.next().into_iter().flatten().filter_map(dropped).collect();
    let mut end = begin.clone();
    end.extend(readings.flatten().filter_map(dropped));
    let others = end.iter().filter(|(inode, _)| !own.contains(inode));
    others.map(|(inode, drops)| drops.saturating_sub(begin.get(inode).copied().unwrap_or(0))).sum()
}
