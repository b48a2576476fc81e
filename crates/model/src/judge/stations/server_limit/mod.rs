//! Station `server-limit`: how many requests or connections the configuration of a server allows at once, for a server behind it, for a listener or for all of it. What exceeds it
//! waits: in a queue of the server itself, which no reading of the kernel shows, or in the accept queue.

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::pool::limits::Used;
use crate::facts::setting::changed_since_read;
use crate::facts::traffic::Statuses;
use crate::facts::traffic::out_of_service::COMMAND;
use crate::judge::finding::{Evidence, Finding};
use crate::judge::graph::{CouplingDef, Relation};
use crate::judge::id::{FindingId, StationId};
use crate::judge::location::Location;
use crate::judge::station::{StationDef, StationReading};
use crate::ledger::tenths;
use crate::observation::{LimitOf, LimitScope};
use crate::output::message::Message;
use crate::output::report::{Confidence, StationKind, StationState};

const REACHED: FindingId = FindingId::SERVER_LIMIT_REACHED;

pub(super) const STATION: StationDef = StationDef {
    remedies: &["raise-server-limit", "raise-server-limit-by-hand", "raise-server-limit-by-restart"],
    graph: &[
        CouplingDef::found(REACHED, FindingId::ACCEPTS_NONE, Relation::Tier, "coupling-server-limit-accepts"),
        CouplingDef::found(REACHED, FindingId::ACCEPTS_SLOWLY, Relation::Tier, "coupling-server-limit-accepts"),
        CouplingDef::found(REACHED, FindingId::ACCEPT_QUEUE_FULL, Relation::Tier, "coupling-server-limit-accepts"),
        CouplingDef::found(REACHED, FindingId::POOL_EXHAUSTED, Relation::Tier, "coupling-server-limit-pool"),
    ],
    ..StationDef::new(StationId("server-limit"), StationKind::Rate, &[REACHED], read, judge)
};

/// The limits of all tiers: of each tier those that hold requests, else the one that is used most.
fn shown<'c>(ctx: &'c Context<'_>) -> Vec<(&'c Tier, Used<'c>)> {
    let mut found = Vec::new();
    for tier in &ctx.path.tiers {
        let all = Used::of(ctx, tier);
        let share = |used: &Used<'_>| used.used / (used.limit.value as f64).max(1.0);
        let (holding, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|used| used.holds(ctx));
        if holding.is_empty() {
            found.extend(others.into_iter().max_by(|a, b| share(a).total_cmp(&share(b))).map(|used| (tier, used)));
        }
        found.extend(holding.into_iter().map(|used| (tier, used)));
    }
    found
}

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    shown(ctx).iter().map(|(tier, used)| reading(ctx, tier, used)).collect()
}

/// The place of a limit: the address behind it or of the listener.
fn at(tier: &Tier, used: &Used<'_>) -> Location {
    match used.limit.at.first() {
        Some(address) => Location::at_listener(tier.netns, address.clone()),
        None => Location::in_netns(tier.netns),
    }
}

/// The limit of a tier at the place of a reading.
pub(crate) fn limit_at<'c>(ctx: &'c Context<'_>, placed: &StationReading) -> Option<(&'c Tier, Used<'c>)> {
    let tier = ctx.path.tiers.get(ctx.only_tier(&placed.owner)?.id.0)?;
    Used::of(ctx, tier).into_iter().find(|used| used.holds(ctx) && at(tier, used) == placed.at).map(|used| (tier, used))
}

/// A message with everything known about a limit.
pub(crate) fn args(ctx: &Context<'_>, id: &'static str, tier: &Tier, used: &Used<'_>) -> Message {
    let limit = used.limit;
    let scope = match limit.scope {
        LimitScope::Upstream => "upstream",
        LimitScope::Listener => "listener",
        LimitScope::Server => "server",
    };
    let under_way = ctx.account().map_or(0.0, |account| account.under_way()).max(used.waiting.value);
    let behind = used.to.and_then(|to| ctx.path.tiers.get(to)).map(|tier| tier.name.as_str());
    Message::new(id)
        .with("tier", tier.name.as_str())
        .with("scope", scope)
        .with("counted", Message::new(counted(limit.of)))
        .with("limit", limit.value)
        .with("kept", limit.kept)
        .with("allowed", limit.allowed())
        .with("has_kept", yes_or_no(limit.kept > 0))
        .with("is_refused", yes_or_no(limit.is_refused))
        .with("setting", limit.setting.as_str())
        .with("owner", limit.owner.as_str())
        .with("is_named", yes_or_no(!limit.owner.is_empty()))
        .with("is_seen", yes_or_no(behind.is_some()))
        .with("place", limit.origin.to_string())
        .with("address", limit.at.first().map(ToString::to_string).unwrap_or_default())
        .with("behind", behind.unwrap_or_default())
        .with("used", tenths(used.used))
        .with("waiting", used.waiting.value.round())
        .with("range", Message::range(tenths(used.waiting.low), tenths(used.waiting.high.min(under_way))))
        .with("under_way", under_way.round())
}

/// What a limit counts.
fn unit(of: LimitOf) -> &'static str {
    match of {
        LimitOf::Requests => "requests",
        LimitOf::Connections => "connections",
        LimitOf::ConnectionRate => "connections/s",
    }
}

/// The id of the words for what a limit counts, and in which time.
fn counted(of: LimitOf) -> &'static str {
    match of {
        LimitOf::Requests => "counted-requests",
        LimitOf::Connections => "counted-connections",
        LimitOf::ConnectionRate => "counted-new-connections",
    }
}

fn yes_or_no(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

fn reading(ctx: &Context<'_>, tier: &Tier, used: &Used<'_>) -> StationReading {
    let mut station = STATION.reading(tier, at(tier, used), unit(used.limit.of));
    let limit = used.limit.allowed() as f64;
    // What is refused was accepted for a moment.
    let taken = if used.limit.is_refused { used.used.min(limit) } else { used.used };
    (station.limit, station.used, station.utilization) = (Some(limit), Some(taken), Some((used.used / limit.max(1.0)).min(1.0)));
    station.waiting = Some(used.waiting.value).filter(|_| used.is_reached);
    let (state, id) = match used {
        used if used.holds(ctx) => (StationState::Saturated, "state-server-limit-reached"),
        used if used.is_reached && used.is_slow_behind => (StationState::Near, "state-server-limit-slow"),
        used if used.is_reached => (StationState::Near, "state-server-limit-harmless"),
        _ => (StationState::Ok, "state-server-limit-ok"),
    };
    station.in_state(state, args(ctx, id, tier, used))
}

fn judge(ctx: &Context<'_>, _: &[StationReading]) -> Vec<Finding> {
    shown(ctx).iter().filter(|(_, used)| used.holds(ctx)).map(|(tier, used)| finding(ctx, tier, used)).collect()
}

fn finding(ctx: &Context<'_>, tier: &Tier, used: &Used<'_>) -> Finding {
    let args = |id: &'static str| args(ctx, id, tier, used);
    let (title, explanation) = match (used.limit.scope, used.limit.of) {
        (LimitScope::Upstream, _) => ("finding-server-limit-reached-title", "finding-server-limit-reached-explanation"),
        _ if used.limit.is_refused => ("finding-server-limit-reached-title-refused", "finding-server-limit-reached-explanation-refused"),
        (_, LimitOf::ConnectionRate) => ("finding-server-limit-reached-title-rate", "finding-server-limit-reached-explanation-rate"),
        _ => ("finding-server-limit-reached-title-connections", "finding-server-limit-reached-explanation-connections"),
    };
    let mut explanation = vec![args(explanation)];
    if let Some((count, requests, status)) = used.refused(ctx, tier) {
        let ms = used.limit.gives_up_ms.as_ref().map_or(0, |time| time.value);
        let refused = args("finding-server-limit-reached-refused").with("ms", ms).with("status", u64::from(status));
        explanation.push(refused.with("count", count).with("requests", requests));
    }
    if ctx.obs.load.is_none() && used.limit.scope == LimitScope::Upstream {
        explanation.push(args("finding-server-limit-reached-watched"));
    }
    let changed = changed_since_read(ctx, tier, used.pid, Some(&used.limit.origin.file));
    if changed.is_some() {
        explanation.push(args("finding-server-limit-reached-changed"));
    }
    let under_way = ctx.account().map_or(0.0, |account| account.under_way()).max(used.waiting.value);
    Finding {
        // Watching alone it is not known whether the server behind answers as fast with more.
        confidence: if ctx.obs.load.is_some() && changed.is_none() { Confidence::High } else { Confidence::Medium },
        lost_time: (!used.limit.is_refused).then(|| (used.waiting.value / under_way.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)),
        title: args(title),
        evidence: proofs(ctx, tier, used),
        explanation,
        ..STATION.finding(REACHED, tier, at(tier, used))
    }
}

fn proofs(ctx: &Context<'_>, tier: &Tier, used: &Used<'_>) -> Vec<Evidence> {
    let args = |id: &'static str| args(ctx, id, tier, used);
    let sockets = format!("sock_diag struct tcp_info ({})", ctx.netns_name(tier.netns));
    let stated = Evidence::new(args("evidence-server-limit-stated"), used.limit.origin.to_string(), Some(used.limit.value as f64));
    let (taken, waits) = match (used.limit.scope, used.limit.of) {
        (LimitScope::Upstream, _) => ("evidence-server-limit-calls", "evidence-server-limit-inside"),
        _ if used.limit.is_refused => ("evidence-server-limit-accepted", "evidence-server-limit-errors"),
        (_, LimitOf::ConnectionRate) => ("evidence-server-limit-rate", "evidence-server-limit-queued"),
        _ => ("evidence-server-limit-accepted", "evidence-server-limit-queued"),
    };
    let harm = match Statuses::of(ctx).filter(|_| used.limit.is_refused) {
        Some(seen) => {
            Evidence::new(args(waits).with("count", seen.errors()).with("requests", seen.requests), seen.source, Some(seen.errors() as f64))
        }
        None => Evidence::new(args(waits), sockets.as_str(), Some(tenths(used.waiting.value))),
    };
    let mut proofs = vec![stated, Evidence::new(args(taken), sockets.as_str(), Some(tenths(used.used))), harm];
    if let Some(queued) = used.queued_itself(ctx) {
        let text = args("evidence-server-limit-counted").with("queued", tenths(queued));
        proofs.push(Evidence::new(text, COMMAND, Some(tenths(queued))));
    }
    if let (Some(held_s), Some((alone_us, _))) = (used.held_s(ctx, tier), ctx.answer_us()) {
        let text = args("evidence-server-limit-held").with("held", tenths(1e3 * held_s)).with("alone", tenths(alone_us / 1e3));
        proofs.push(Evidence::new(text, "load", Some(tenths(1e3 * held_s))));
    }
    proofs
}
