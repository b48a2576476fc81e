//! Lost requests: their rate by kind, and the place that refused them if a counter shows it.

use crate::facts::path::{PlacedListener, Tier};
use crate::facts::queue::{self, Queue};
use crate::facts::{Context, table, traffic};
use crate::observation::load::LoadResult;
use crate::observation::{LogEvent, NetnsId};
use crate::output::report::{LedgerLoss, LedgerLossKind};

use super::rounded;

/// The losses of the load, those at a known place first. For watched traffic, the losses that counters show.
pub(crate) fn of(ctx: &Context<'_>) -> Vec<LedgerLoss> {
    let Some(load) = &ctx.obs.load else { return watched(ctx) };
    let errors = load.errors;
    let answered: u64 = load.status.values().sum();
    let failed = errors.total();
    let wrong = load.requests.saturating_sub(load.good).saturating_sub(failed).min(answered);
    let reset = errors.reset + errors.closed_before_answer;
    let kinds = [
        (LedgerLossKind::Refused, errors.connect_refused, refused(ctx)),
        (LedgerLossKind::ConnectTimeout, errors.connect_timeout + errors.connect_failed, dropped(ctx)),
        (LedgerLossKind::Reset, reset, cut_off(ctx, reset)),
        (LedgerLossKind::ResponseTimeout, errors.response_timeout, None),
        (LedgerLossKind::Wrong, wrong, wrongly_answered(ctx)),
        (LedgerLossKind::Tls, errors.tls_failed, None),
        (LedgerLossKind::BadResponse, errors.bad_response, None),
        (LedgerLossKind::Client, errors.local(), Some(("client".to_owned(), "client".to_owned()))),
    ];
    let mut losses: Vec<LedgerLoss> =
        kinds.into_iter().filter(|(_, count, _)| *count > 0).map(|(kind, count, at)| loss(load, kind, count, at)).collect();
    losses.sort_by(|a, b| b.place.is_some().cmp(&a.place.is_some()).then(b.per_s.total_cmp(&a.per_s)));
    losses
}

fn loss(load: &LoadResult, kind: LedgerLossKind, count: u64, at: Option<(String, String)>) -> LedgerLoss {
    let (tier, place) = at.unzip();
    LedgerLoss { tier, place, kind, per_s: rounded(count as f64 * 1e6 / load.duration_us.max(1) as f64) }
}

/// The place of refused connections. With TCP nobody listens; at a unix socket the queue is full.
fn refused(ctx: &Context<'_>) -> Option<(String, String)> {
    let first = ctx.path.tiers.first().filter(|_| !ctx.obs.request.unix.is_empty())?;
    Some((first.name.clone(), "accept-queue".to_owned()))
}

/// The place of dropped SYNs: a full conntrack table, or a listener whose counter shows it.
fn dropped(ctx: &Context<'_>) -> Option<(String, String)> {
    for (id, view) in ctx.netns_on_path() {
        if table::counter_growth(ctx, view, table::DROPS).is_some_and(|count| count > 0) {
            return Some((ctx.owner_name(&ctx.owner_of(id)), "conntrack-table".to_owned()));
        }
    }
    unqueued(ctx, ctx.path.tiers.first()?).and_then(|loss| loss.tier.zip(loss.place))
}

/// The place of connections closed with a request in them: a server without a free connection, according to its log or status page.
fn cut_off(ctx: &Context<'_>, reset: u64) -> Option<(String, String)> {
    let first = ctx.path.tiers.first().filter(|_| reset > 0)?;
    let counted = ctx.dropped_accepts(first).is_some_and(|count| count > 0);
    let is_told =
        counted || [LogEvent::ConnectionsExhausted, LogEvent::ConnectionsReused].iter().any(|event| ctx.logged(first, event).is_some());
    is_told.then(|| (first.name.clone(), "worker-connections".to_owned()))
}

/// The place of error answers: what the servers of the path logged most often.
fn wrongly_answered(ctx: &Context<'_>) -> Option<(String, String)> {
    let mut most: Option<(u64, String, &str)> = None;
    for tier in &ctx.path.tiers {
        for event in ctx.logged_events(tier) {
            let Some(place) = place_of(event) else { continue };
            let count = ctx.logged(tier, event).map_or(0, |logged| logged.count);
            if count > most.as_ref().map_or(0, |(largest, ..)| *largest) {
                most = Some((count, tier.name.clone(), place));
            }
        }
    }
    most.map(|(_, tier, place)| (tier, place.to_owned()))
}

/// The station at which a request is lost that gets an error for this reason.
fn place_of(event: &LogEvent) -> Option<&'static str> {
    match event {
        LogEvent::ConnectFailed(Some(99)) => Some("ephemeral-ports"),
        LogEvent::RateLimited(_) | LogEvent::ConnectionsLimited(_) => Some("rate-limit"),
        LogEvent::ConnectionsExhausted | LogEvent::ConnectionsReused => Some("worker-connections"),
        LogEvent::AcceptFailed(Some(24)) => Some("file-descriptors"),
        LogEvent::UpstreamTimedOut => Some("upstream-connect"),
        _ => None,
    }
}

/// The losses of watched traffic, in the order of the path. Clients try again after a loss, so these are tries and not clients.
fn watched(ctx: &Context<'_>) -> Vec<LedgerLoss> {
    let mut losses: Vec<LedgerLoss> = ctx.netns_on_path().into_iter().filter_map(|(id, _)| untracked(ctx, id)).collect();
    losses.extend(ctx.path.tiers.iter().filter_map(|tier| unqueued(ctx, tier)));
    losses.extend(ctx.path.tiers.first().and_then(|tier| unserved(ctx, tier)));
    losses.extend(answered_wrong(ctx));
    losses
}

/// Server errors, from the access log or on the wire.
fn answered_wrong(ctx: &Context<'_>) -> Option<LedgerLoss> {
    let statuses = traffic::server_errors(ctx)?;
    let per_s = rounded(statuses.errors() as f64 / statuses.seconds.max(1e-6));
    let (tier, place) = wrongly_answered(ctx).unzip();
    (per_s > 0.0).then_some(LedgerLoss { tier, place, kind: LedgerLossKind::Wrong, per_s })
}

fn loss_at(tier: &str, place: &str, kind: LedgerLossKind, per_s: f64) -> Option<LedgerLoss> {
    let per_s = rounded(per_s);
    (per_s > 0.0).then(|| LedgerLoss { tier: Some(tier.to_owned()), place: Some(place.to_owned()), kind, per_s })
}

/// Packets dropped because a namespace's conntrack table had no free entry (`drop` of /proc/net/stat/nf_conntrack).
fn untracked(ctx: &Context<'_>, id: NetnsId) -> Option<LedgerLoss> {
    let view = ctx.obs.netns.get(&id)?;
    let (_, _, elapsed_us) = ctx.around(&view.conntrack_cpus)?;
    let per_s = table::counter_growth(ctx, view, table::DROPS)? as f64 * 1e6 / elapsed_us as f64;
    loss_at(&ctx.owner_name(&ctx.owner_of(id)), "conntrack-table", LedgerLossKind::Dropped, per_s)
}

/// Connections that a tier's listeners dropped because a queue was full: the accept queue, else the SYN queue. Drops for other reasons, such as bare
/// acknowledgements under TCP_DEFER_ACCEPT, are no losses.
fn unqueued(ctx: &Context<'_>, tier: &Tier) -> Option<LedgerLoss> {
    let view = ctx.obs.netns.get(&tier.netns)?;
    let watched: Vec<(&PlacedListener, Queue)> =
        tier.listeners.iter().filter_map(|placed| Some((placed, queue::watch(ctx, ctx.obs.netns.get(&placed.netns)?, placed)?))).collect();
    let refused: u64 = watched.iter().filter_map(|(placed, queue)| queue::refused(ctx, tier, placed, view, *queue)).sum();
    let per_s = |count: u64| count as f64 / ctx.seconds().max(1e-6);
    loss_at(&tier.name, "accept-queue", LedgerLossKind::Dropped, per_s(refused)).or_else(|| {
        let dropped: u64 = watched.iter().filter_map(|(_, queue)| queue.drops).sum();
        let handshakes = ctx.netstat_growth(view, "TcpExt.TCPReqQFullDrop")?.min(dropped);
        loss_at(&tier.name, "syn-queue", LedgerLossKind::Dropped, per_s(handshakes))
    })
}

/// Connections closed right after accept because the server had no free connection, from its status page.
fn unserved(ctx: &Context<'_>, tier: &Tier) -> Option<LedgerLoss> {
    let closed = ctx.dropped_accepts(tier)? as f64;
    loss_at(&tier.name, "worker-connections", LedgerLossKind::Reset, closed / ctx.seconds().max(1e-6))
}
