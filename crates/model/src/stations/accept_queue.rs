//! Station `accept-queue`: established connections that wait for a listener's process to accept them.

use std::collections::BTreeMap;

use super::{Context, Placed, StationDef, blank};
use crate::message::Message;
use crate::observation::{Listener, NetnsView};
use crate::path::PlacedListener;
use crate::report::{At, Station, StationKind, StationState};

pub(super) const STATION: StationDef =
    StationDef { id: "accept-queue", kind: StationKind::Cliff, findings: &[], read, judge: |_, _| Vec::new() };

/// Share of its limit from which a queue's headroom is told as small.
const NEAR_UTILIZATION: f64 = 0.80;

/// What one listener's queue did in the window.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Queue {
    limit: u32,
    peak: u32,
    mean: f64,
    drops: Option<u64>,
}

fn read(ctx: &Context<'_>) -> Vec<Placed> {
    let mut read = Vec::new();
    for tier in &ctx.path.tiers {
        for placed in &tier.listeners {
            let Some(view) = ctx.obs.netns.get(&placed.netns) else { continue };
            let station = match watch(ctx, view, placed) {
                Some(queue) => reading(ctx, &tier.name, placed, queue, overflows(ctx, view)),
                None => continue,
            };
            read.push(Placed { netns: Some(placed.netns), station });
        }
    }
    read
}

/// Follows the listener with this inode through the samples of the window.
fn watch(ctx: &Context<'_>, view: &NetnsView, placed: &PlacedListener) -> Option<Queue> {
    let own = |listeners: &Vec<Listener>| listeners.iter().find(|listener| listener.inode == placed.listener.inode).cloned();
    let inside: Vec<Listener> = ctx.in_window(&view.listeners).filter_map(|(_, listeners)| own(listeners)).collect();
    let last = inside.last().cloned().or_else(|| view.listeners.last().and_then(own))?;
    let by_inode: BTreeMap<u64, Option<u64>> = match ctx.around(&view.listeners) {
        Some((first, _, _)) => first.iter().map(|listener| (listener.inode, listener.drops)).collect(),
        None => BTreeMap::new(),
    };
    let end = ctx.around(&view.listeners).and_then(|(_, last, _)| own(last)).and_then(|listener| listener.drops).or(last.drops);
    // A listener that was not there at the beginning began to count at zero.
    let begin = by_inode.get(&placed.listener.inode).copied().unwrap_or(Some(0));
    let total: u64 = inside.iter().map(|listener| u64::from(listener.accept_queue)).sum();
    Some(Queue {
        limit: last.accept_queue_limit,
        peak: inside.iter().map(|listener| listener.accept_queue).max().unwrap_or(last.accept_queue),
        mean: if inside.is_empty() { 0.0 } else { total as f64 / inside.len() as f64 },
        drops: end.zip(begin).map(|(end, begin)| end.saturating_sub(begin)),
    })
}

/// Growth of TcpExt.ListenOverflows in the namespace: all of its TCP listeners together.
fn overflows(ctx: &Context<'_>, view: &NetnsView) -> Option<u64> {
    let (first, last, _) = ctx.around(&view.netstat)?;
    let count = |counters: &BTreeMap<String, i64>| counters.get("TcpExt.ListenOverflows").copied();
    Some(u64::try_from(count(last)?.saturating_sub(count(first)?)).unwrap_or(0))
}

fn reading(ctx: &Context<'_>, tier: &str, placed: &PlacedListener, queue: Queue, overflows: Option<u64>) -> Station {
    let name = placed.listener.address.to_string();
    let at = At { netns: Some(ctx.netns_name(placed.netns)), listener: Some(name.clone()), ..At::default() };
    let mut station = blank(&STATION, tier.to_owned(), at, "connections");
    let limit = f64::from(queue.limit);
    station.limit = Some(limit);
    station.used = Some(f64::from(queue.peak));
    station.waiting = Some(queue.mean);
    station.utilization = (queue.limit > 0).then(|| f64::from(queue.peak) / limit);
    // The kernel counts a listener's own drops; where it does not tell them, overflows of the namespace are this listener's only if its
    // queue was seen full.
    let full = queue.peak > queue.limit || (queue.peak == queue.limit && queue.limit > 0);
    let refused = queue.drops.or(if full { overflows } else { overflows.filter(|count| *count == 0) });
    station.refused_per_s = refused.map(|count| count as f64 / ctx.seconds().max(1e-6));
    let args = |id: &'static str| {
        Message::new(id)
            .with("listener", name.as_str())
            .with("peak", queue.peak)
            .with("limit", queue.limit)
            .with("count", refused.unwrap_or(0))
    };
    let (state, why) = if refused.is_some_and(|count| count > 0) {
        (StationState::Refusing, args("state-accept-queue-refusing"))
    } else if f64::from(queue.peak) >= NEAR_UTILIZATION * limit && queue.limit > 0 {
        (StationState::Near, args("state-accept-queue-near"))
    } else {
        (StationState::Ok, args("state-accept-queue-ok"))
    };
    station.state = state;
    station.why = ctx.text(why);
    station
}
