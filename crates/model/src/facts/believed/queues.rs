//! "connect() to unix:... failed (11: Resource temporarily unavailable)": the queues of the unix sockets behind a tier.

use super::Belief;
use super::looks::{at_once_most, came, longest_gap_s};
use crate::facts::Context;
use crate::facts::path::{PlacedListener, Tier};
use crate::facts::queue;
use crate::observation::ListenerAddress;
use crate::output::message::Message;

pub(super) fn of(ctx: &Context<'_>, tier: &Tier) -> Belief {
    let listeners = tier.upstreams.iter().flat_map(|index| &ctx.path.tiers[*index].listeners);
    let unix: Vec<&PlacedListener> = listeners.filter(|placed| matches!(placed.listener.address, ListenerAddress::Unix(_))).collect();
    let mut why = None;
    for placed in unix {
        let Some(view) = ctx.obs.netns.get(&placed.netns) else { return Belief::Alone };
        let own = |all: &Vec<crate::observation::Listener>| {
            all.iter().find(|one| one.inode == placed.listener.inode).map(|one| (one.accept_queue, one.accept_queue_limit))
        };
        let looks: Vec<(u64, (u32, u32))> = view.listeners.points().iter().filter_map(|(at, all)| Some((*at, own(all)?))).collect();
        let Some(limit) = looks.iter().map(|(_, (_, limit))| *limit).min() else { return Belief::Alone };
        let peak = looks.iter().map(|(_, (waiting, _))| *waiting).max().unwrap_or(0);
        let is_full = queue::watch(ctx, view, placed).is_some_and(queue::Queue::is_full);
        if is_full || peak > limit {
            return Belief::Shown;
        }
        let gap_s = longest_gap_s(ctx, looks.iter().map(|(at, _)| *at));
        let by_rate = gap_s.and_then(|gap_s| came(ctx, tier, gap_s));
        // A request dials once at a time.
        let Some(more) = by_rate.into_iter().chain(at_once_most(ctx, tier)).reduce(f64::min) else { return Belief::Alone };
        if f64::from(peak) + more > f64::from(limit) {
            return Belief::Alone;
        }
        why = Some(Message::new("log-but-queue").with("peak", peak).with("limit", limit).with("more", more.ceil()));
    }
    why.map_or(Belief::Alone, Belief::Against)
}
