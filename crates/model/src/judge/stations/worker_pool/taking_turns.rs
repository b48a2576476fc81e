//! Finding `workers-wait-for-each-other`: of a full pool's workers only a few go on at a time, and more of them would wait as well.

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::pool::awaited::Awaited;
use crate::facts::pool::{LockAwaited, Pool, PoolKind, TakingTurns};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::FindingId;
use crate::judge::location::Location;
use crate::ledger::{going_on, tenths};
use crate::output::message::Message;
use crate::output::report::Confidence;

use super::STATION;

/// The finding, by the time of a single request, or by what the threads were seen to wait for.
pub(super) fn of(ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> Option<Finding> {
    let awaited = LockAwaited::of(ctx, tier, pool);
    let seen = awaited.as_ref().map(|awaited| looked(pool, awaited));
    let fault = Awaited::of(ctx, tier, pool.busy_mean()).filter(|awaited| pool.kind != PoolKind::Loops && awaited.is_fault());
    let by_fault = |awaited: &Awaited| by_fault(tier, pool, awaited);
    // Who waits for whoever reads the output, or for a name server, does not wait for the others.
    if let Some(failed) = fault.as_ref().filter(|awaited| !awaited.is_lock()) {
        return Some(by_fault(failed));
    }
    let by_time = TakingTurns::of(ctx, tier, pool).map(|held| {
        let mut finding = finding(ctx, tier, pool, &held);
        finding.evidence.extend(seen.clone());
        finding
    });
    by_time.or_else(|| Some(by_threads(ctx, tier, pool, &awaited?))).or_else(|| fault.as_ref().map(by_fault))
}

/// Workers that were found waiting for a lock, a semaphore, output that nobody reads in time or a name server, with or without load.
fn by_fault(tier: &Tier, pool: &Pool, awaited: &Awaited) -> Finding {
    let args = |id: &'static str| {
        let message = Message::new(id).with("tier", tier.name.as_str()).with("workers", pool.workers as f64).with("unit", pool.unit());
        message.with("what", awaited.what()).with("waiting", tenths(pool.waiting)).with("kind", awaited.word())
    };
    let taken = args("evidence-each-other-taken").with("busy", tenths(pool.busy_mean()));
    Finding {
        confidence: Confidence::High,
        title: args("finding-workers-wait-for-each-other-title-lock"),
        evidence: awaited.proofs().into_iter().chain([Evidence::new(taken, "sock_diag", Some(tenths(pool.busy_mean())))]).collect(),
        explanation: vec![args("finding-workers-wait-for-each-other-explanation-lock")],
        ..STATION.finding(FindingId::POOL_TAKES_TURNS, tier, Location::in_netns(tier.netns))
    }
}

/// What the looks at threads showed.
fn looked(pool: &Pool, awaited: &LockAwaited) -> Evidence {
    let text = lock_args("evidence-each-other-threads", pool, awaited).with("looks", awaited.looks as f64);
    let text = text.with("looked", tenths(awaited.looked)).with("seen", tenths(awaited.seen));
    Evidence::new(text, "/proc/PID/task/TID/syscall", Some(tenths(awaited.seen)))
}

fn lock_args(id: &'static str, pool: &Pool, awaited: &LockAwaited) -> Message {
    let message = Message::new(id).with("workers", pool.workers as f64).with("waiting", tenths(awaited.waiting));
    message.with("kind", if awaited.at_one { "one" } else { "other" })
}

fn by_threads(ctx: &Context<'_>, tier: &Tier, pool: &Pool, awaited: &LockAwaited) -> Finding {
    let args = |id: &'static str| lock_args(id, pool, awaited).with("tier", tier.name.as_str());
    let busy = pool.busy_mean();
    // Both are means of samples of their own.
    let inside = ctx.account().map_or(0.0, |account| account.inside(tier.id.0).value).min(busy);
    let stands = args("evidence-each-other-stand").with("inside", tenths(inside)).with("busy", tenths(busy));
    let netns = ctx.netns_name(tier.netns);
    Finding {
        confidence: if awaited.at_one { Confidence::High } else { Confidence::Medium },
        title: args("finding-workers-wait-for-each-other-title-threads"),
        evidence: vec![looked(pool, awaited), Evidence::new(stands, format!("sock_diag struct tcp_info ({netns})"), Some(tenths(inside)))],
        explanation: vec![args("finding-workers-wait-for-each-other-explanation-threads")],
        ..STATION.finding(FindingId::POOL_TAKES_TURNS, tier, Location::in_netns(tier.netns))
    }
}

fn finding(ctx: &Context<'_>, tier: &Tier, pool: &Pool, held: &TakingTurns) -> Finding {
    let awaited = Awaited::of(ctx, tier, held.waiting);
    let held_ms = 1e3 * pool.busy_mean() / held.rate_rps;
    let args = |id: &'static str| {
        let message = Message::new(id).with("tier", tier.name.as_str()).with("workers", pool.workers as f64);
        let message = message.with("waiting", tenths(held.waiting)).with("at_once", going_on(held.at_once)).with("rate", held.rate_rps);
        let message = message.with("few", if held.at_once < 1.0 { "yes" } else { "no" });
        let message = message.with("alone", held.alone_us / 1e3).with("held", held_ms);
        awaited.iter().fold(message, |message, awaited| message.with("what", awaited.what()))
    };
    let netns = ctx.netns_name(tier.netns);
    let sockets = format!("sock_diag struct tcp_info ({netns}), /proc/PID/task/TID/schedstat");
    let (title, explanation) = match &awaited {
        Some(awaited) if awaited.is_sleep() => {
            ("finding-workers-wait-for-each-other-title-sleep", "finding-workers-wait-for-each-other-explanation-sleep")
        }
        Some(_) => ("finding-workers-wait-for-each-other-title-for", "finding-workers-wait-for-each-other-explanation-for"),
        None => ("finding-workers-wait-for-each-other-title", "finding-workers-wait-for-each-other-explanation"),
    };
    Finding {
        confidence: Confidence::High,
        title: args(title),
        evidence: vec![
            Evidence::new(args("evidence-each-other-little"), "load", Some(going_on(held.at_once))),
            Evidence::new(args("evidence-each-other-held"), "load, sock_diag", Some(held_ms)),
            Evidence::new(args("evidence-each-other-inside"), sockets, Some(tenths(held.waiting))),
        ]
        .into_iter()
        .chain(awaited.iter().flat_map(Awaited::proofs))
        .collect(),
        explanation: vec![args(explanation)],
        ..STATION.finding(FindingId::POOL_TAKES_TURNS, tier, Location::in_netns(tier.netns))
    }
}
