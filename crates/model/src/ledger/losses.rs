//! What was lost: requests a second by kind, and the place that refused them where a counter tells it.

use crate::facts::Context;
use crate::observation::load::LoadResult;
use crate::output::report::{LedgerLoss, LedgerLossKind};

/// The losses of the load, those of which the place is known first; where traffic is only watched, what counters tell.
pub(crate) fn of(ctx: &Context<'_>) -> Vec<LedgerLoss> {
    let Some(load) = &ctx.obs.load else { return super::watched::of(ctx) };
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
    LedgerLoss { tier, place, kind, per_s: super::rounded(count as f64 * 1e6 / load.duration_us.max(1) as f64) }
}

/// A refusal is the host's own where nobody listens, or a unix listener's whose queue is full.
fn refused(ctx: &Context<'_>) -> Option<(String, String)> {
    let first = ctx.path.tiers.first().filter(|_| !ctx.obs.request.unix.is_empty())?;
    Some((first.name.clone(), "accept-queue".to_owned()))
}

/// First packets that were dropped: by a full conntrack table, or by a listener that counted so.
fn dropped(ctx: &Context<'_>) -> Option<(String, String)> {
    for (id, view) in ctx.netns_on_path() {
        let count = |rows: &Vec<crate::observation::ConntrackCpu>| -> u64 { rows.iter().filter_map(|row| row.counters.get("drop")).sum() };
        if ctx.around(&view.conntrack_cpus).is_some_and(|(first, last, _)| count(last) > count(first)) {
            return Some((ctx.tier_of(id), "conntrack-table".to_owned()));
        }
    }
    let first = ctx.path.tiers.first()?;
    let view = ctx.obs.netns.get(&first.netns)?;
    let grew = |name: &str| ctx.counted(view, name).is_some_and(|count| count > 0);
    if grew("TcpExt.ListenOverflows") {
        return Some((first.name.clone(), "accept-queue".to_owned()));
    }
    grew("TcpExt.TCPReqQFullDrop").then(|| (first.name.clone(), "syn-queue".to_owned()))
}

/// Connections that were closed with a request in them: by a server that has no connection left, as it logs or counts.
fn cut_off(ctx: &Context<'_>, reset: u64) -> Option<(String, String)> {
    let first = ctx.path.tiers.first().filter(|_| reset > 0)?;
    let counted = ctx.dropped_accepts(first).is_some_and(|count| count > 0);
    let is_told = counted || ctx.logged(first, "worker_connections").is_some() || ctx.logged(first, "worker_connections reused").is_some();
    is_told.then(|| (first.name.clone(), "worker-connections".to_owned()))
}

/// Answers with an error: what the servers of the path logged most often.
pub(super) fn wrongly_answered(ctx: &Context<'_>) -> Option<(String, String)> {
    const KINDS: [(&str, &str); 5] = [
        ("connect 99", "ephemeral-ports"),
        ("limiting ", "rate-limit"),
        ("worker_connections", "worker-connections"),
        ("accept 24", "file-descriptors"),
        ("upstream timed out", "upstream-connect"),
    ];
    let mut most: Option<(u64, String, &str)> = None;
    for tier in &ctx.path.tiers {
        let logs = tier.pids.iter().filter_map(|pid| ctx.obs.servers.get(pid)).flat_map(|view| view.error_logs.values());
        for (kind, count) in logs.filter_map(|log| log.last()).flat_map(|log| &log.kinds) {
            let place = KINDS.iter().find(|(begins, _)| kind.starts_with(begins)).map(|(_, place)| *place);
            if let Some(place) = place.filter(|_| most.as_ref().is_none_or(|(largest, ..)| count > largest)) {
                most = Some((*count, tier.name.clone(), place));
            }
        }
    }
    most.map(|(_, tier, place)| (tier, place.to_owned()))
}
