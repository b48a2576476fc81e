//! What counters and access logs tell of losses where traffic is only watched: packets of new connections that were dropped, connections that were closed at once,
//! and errors that were answered. A client tries again after each, so that they count tries, not clients.

use crate::facts::Context;
use crate::facts::path::{PlacedListener, Tier};
use crate::facts::queue::{self, Queue};
use crate::facts::traffic;
use crate::observation::{ConntrackCpu, NetnsId};
use crate::output::report::{LedgerLoss, LedgerLossKind};

/// The losses of the window, in the order of the path.
pub(super) fn of(ctx: &Context<'_>) -> Vec<LedgerLoss> {
    let mut losses: Vec<LedgerLoss> = ctx.netns_on_path().into_iter().filter_map(|(id, _)| untracked(ctx, id)).collect();
    losses.extend(ctx.path.tiers.iter().filter_map(|tier| unqueued(ctx, tier)));
    losses.extend(ctx.path.tiers.first().and_then(|tier| unserved(ctx, tier)));
    losses.extend(answered_wrong(ctx));
    losses
}

/// Answered with an error of the server, as its access log tells.
fn answered_wrong(ctx: &Context<'_>) -> Option<LedgerLoss> {
    let (failed, _) = traffic::server_errors(ctx)?;
    let per_s = super::rounded(failed as f64 / ctx.seconds().max(1e-6));
    let (tier, place) = super::losses::wrongly_answered(ctx).unzip();
    (per_s > 0.0).then_some(LedgerLoss { tier, place, kind: LedgerLossKind::Wrong, per_s })
}

fn loss(tier: &str, place: &str, kind: LedgerLossKind, per_s: f64) -> Option<LedgerLoss> {
    let per_s = super::rounded(per_s);
    (per_s > 0.0).then(|| LedgerLoss { tier: Some(tier.to_owned()), place: Some(place.to_owned()), kind, per_s })
}

/// Dropped for want of an entry in a namespace's conntrack table (`drop` of /proc/net/stat/nf_conntrack).
fn untracked(ctx: &Context<'_>, id: NetnsId) -> Option<LedgerLoss> {
    let (first, last, elapsed_us) = ctx.around(&ctx.obs.netns.get(&id)?.conntrack_cpus)?;
    let count = |rows: &Vec<ConntrackCpu>| -> u64 { rows.iter().filter_map(|row| row.counters.get("drop")).sum() };
    let per_s = count(last).saturating_sub(count(first)) as f64 * 1e6 / elapsed_us as f64;
    loss(&ctx.tier_of(id), "conntrack-table", LedgerLossKind::Dropped, per_s)
}

/// Dropped by a tier's listeners because a queue was full: that of connections which wait to be accepted, else that of handshakes. What they dropped for other reasons, such
/// as the bare acknowledgements that TCP_DEFER_ACCEPT does not take, nobody lost.
fn unqueued(ctx: &Context<'_>, tier: &Tier) -> Option<LedgerLoss> {
    let view = ctx.obs.netns.get(&tier.netns)?;
    let watched: Vec<(&PlacedListener, Queue)> =
        tier.listeners.iter().filter_map(|placed| Some((placed, queue::watch(ctx, ctx.obs.netns.get(&placed.netns)?, placed)?))).collect();
    let refused: u64 = watched.iter().filter_map(|(placed, queue)| queue::refused(ctx, tier, placed, view, *queue)).sum();
    let per_s = |count: u64| count as f64 / ctx.seconds().max(1e-6);
    loss(&tier.name, "accept-queue", LedgerLossKind::Dropped, per_s(refused)).or_else(|| {
        let dropped: u64 = watched.iter().filter_map(|(_, queue)| queue.drops).sum();
        let handshakes = ctx.counted(view, "TcpExt.TCPReqQFullDrop")?.min(dropped);
        loss(&tier.name, "syn-queue", LedgerLossKind::Dropped, per_s(handshakes))
    })
}

/// Accepted and closed at once, for the server had no free connection to serve them with, as its status page counts.
fn unserved(ctx: &Context<'_>, tier: &Tier) -> Option<LedgerLoss> {
    let closed = ctx.dropped_accepts(tier)? as f64;
    loss(&tier.name, "worker-connections", LedgerLossKind::Reset, closed / ctx.seconds().max(1e-6))
}
