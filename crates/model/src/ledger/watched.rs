//! What counters tell of losses where traffic is only watched: packets of new connections that were dropped, and connections that were closed at once.
//! A client tries again after each, so that they count tries, not clients.

use crate::facts::Context;
use crate::observation::{ConntrackCpu, Listener, NetnsId};
use crate::path::{PlacedListener, Tier};
use crate::report::{LedgerLoss, LedgerLossKind};

/// The losses of the window, in the order of the path.
pub(super) fn of(ctx: &Context<'_>) -> Vec<LedgerLoss> {
    let mut losses: Vec<LedgerLoss> = ctx.netns_on_path().into_iter().filter_map(|(id, _)| untracked(ctx, id)).collect();
    losses.extend(ctx.path.tiers.iter().filter_map(|tier| unqueued(ctx, tier)));
    losses.extend(ctx.path.tiers.first().and_then(|tier| unserved(ctx, tier)));
    losses
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

/// Dropped by a tier's listeners (`sk_drops`): their accept queue was full, or that of handshakes where the namespace counted such alone.
fn unqueued(ctx: &Context<'_>, tier: &Tier) -> Option<LedgerLoss> {
    let per_s: f64 = tier.listeners.iter().filter_map(|placed| dropped_per_s(ctx, placed)).sum();
    let view = ctx.obs.netns.get(&tier.netns)?;
    let grew = |name: &str| ctx.counted(view, name).is_some_and(|count| count > 0);
    let is_handshakes = grew("TcpExt.TCPReqQFullDrop") && !grew("TcpExt.ListenOverflows");
    loss(&tier.name, if is_handshakes { "syn-queue" } else { "accept-queue" }, LedgerLossKind::Dropped, per_s)
}

fn dropped_per_s(ctx: &Context<'_>, placed: &PlacedListener) -> Option<f64> {
    let (first, last, elapsed_us) = ctx.around(&ctx.obs.netns.get(&placed.netns)?.listeners)?;
    let drops = |all: &Vec<Listener>| all.iter().find(|one| one.inode == placed.listener.inode)?.drops;
    Some(drops(last)?.checked_sub(drops(first)?)? as f64 * 1e6 / elapsed_us as f64)
}

/// Accepted and closed at once, for the server had no free connection to serve them with, as its status page counts.
fn unserved(ctx: &Context<'_>, tier: &Tier) -> Option<LedgerLoss> {
    let closed = ctx.dropped_accepts(tier)? as f64;
    loss(&tier.name, "worker-connections", LedgerLossKind::Reset, closed / ctx.seconds().max(1e-6))
}
