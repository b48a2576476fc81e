//! Station `worker-pool`: processes that serve one connection at a time (php-fpm, prefork servers). When all are busy, other connections wait in the accept
//! queue, even if cores are idle.

mod blocked;
mod clients;
mod hanging;
mod kept;
mod taking_turns;
mod unforced;

use crate::facts::Context;
use crate::facts::ceiling::ceiling_between;
use crate::facts::path::Tier;
use crate::facts::pool::awaited::Awaited;
use crate::facts::pool::workers::ended_proof;
use crate::facts::pool::{
    EndsAwaited, IdleEvidence, IdleHeld, MOST, Pool, PoolKind, Service, configured, exhausted, held_s, looks, loops, process_max,
};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::graph::{Attribution, CouplingDef, Relation};
use crate::judge::id::FindingId;
use crate::judge::id::StationId;
use crate::judge::location::Location;
use crate::judge::station::{StationDef, StationReading};
use crate::judge::unseen::stand_still;
use crate::ledger::{Account, tenths};
use crate::observation::{PhpFpmPool, ServerStatus};
use crate::output::message::Message;
use crate::output::report::{Ceiling, Confidence, LedgerPlaceKind, StationKind, StationState};

use blocked::Blocked;
pub(crate) use blocked::{room_unknown, untold as room_untold, waited_for, waits_at};

pub(super) const STATION: StationDef = StationDef {
    remedies: &["raise-max-children", "listen-again", "reload-configuration", "end-lingering", "let-idle-connections-go", "look-inside"],
    graph: &[
        CouplingDef::found(FindingId::THROTTLED, FindingId::POOL_EXHAUSTED, Relation::Tier, "coupling-pool-quota"),
        CouplingDef::found(FindingId::POOL_BLOCKED, FindingId::POOL_EXHAUSTED, Relation::Tier, "coupling-pool-blocked"),
        CouplingDef::found(FindingId::POOL_TAKES_TURNS, FindingId::POOL_EXHAUSTED, Relation::Tier, "coupling-pool-turns"),
        CouplingDef::found(FindingId::REQUESTS_HANG, FindingId::POOL_EXHAUSTED, Relation::Tier, "coupling-pool-hang"),
        CouplingDef::found(FindingId::REQUESTS_HANG, FindingId::ACCEPT_QUEUE_FULL, Relation::Tier, "coupling-pool-hang"),
        CouplingDef::found(FindingId::WAITS_FOR_CLIENTS, FindingId::POOL_EXHAUSTED, Relation::Tier, "coupling-pool-clients"),
        CouplingDef::found(FindingId::WAITS_FOR_CLIENTS, FindingId::ACCEPT_QUEUE_FULL, Relation::Tier, "coupling-queue-clients"),
        CouplingDef::found(FindingId::WAITS_FOR_CLIENTS, FindingId::ACCEPTS_NONE, Relation::Tier, "coupling-queue-clients"),
        CouplingDef::found(FindingId::FILES_EXHAUSTED, FindingId::POOL_EXHAUSTED, Relation::Tier, "coupling-pool-files"),
        CouplingDef::found(FindingId::NOT_IN_FORCE, FindingId::POOL_EXHAUSTED, Relation::Station, "coupling-pool-unforced"),
        CouplingDef::station(StationId::LINK, FindingId::POOL_EXHAUSTED, Relation::Tier, Attribution::Found, "coupling-pool-link"),
        CouplingDef::found(FindingId::PACKET_LOSS, FindingId::POOL_EXHAUSTED, Relation::Tier, "coupling-pool-loss"),
        CouplingDef::found(FindingId::BUFFER_LIMITED, FindingId::POOL_EXHAUSTED, Relation::Tier, "coupling-pool-buffer"),
        CouplingDef::found(FindingId::RECEIVER_LIMITED, FindingId::POOL_EXHAUSTED, Relation::Path, "coupling-pool-receiver"),
        CouplingDef::found(FindingId::SMALL_WINDOW, FindingId::POOL_EXHAUSTED, Relation::Tier, "coupling-pool-first-window"),
        CouplingDef::found(FindingId::TABLE_FULL, FindingId::POOL_BLOCKED, Relation::Edge, "coupling-blocked-table"),
        CouplingDef::found(FindingId::PACKET_LOSS, FindingId::POOL_BLOCKED, Relation::Edge, "coupling-blocked-loss"),
        CouplingDef::any(FindingId::POOL_BLOCKED, Relation::Awaited, "coupling-blocked-awaited"),
        CouplingDef::station(StationId::CPU, FindingId::POOL_BLOCKED, Relation::Awaited, Attribution::Judged, "coupling-blocked-cores"),
    ],
    standing: blocked::standing,
    ..StationDef::new(
        StationId("worker-pool"),
        StationKind::Rate,
        &[
            FindingId::POOL_EXHAUSTED,
            FindingId::POOL_BLOCKED,
            FindingId::POOL_TAKES_TURNS,
            FindingId::REQUESTS_HANG,
            FindingId::WAITS_FOR_CLIENTS,
            FindingId::NOT_IN_FORCE,
        ],
        read,
        judge,
    )
};

/// Evidence from the pool's own status page: that all its workers were active, and that it wanted more. If a worker of the pool answers the page, it cannot
/// be read while all are busy, so such a page never shows the first.
fn told_by_page(ctx: &Context<'_>, tier: &Tier, pool: &PhpFpmPool) -> Vec<Evidence> {
    let Some((page, _)) = tier.pids.iter().find_map(|pid| ctx.obs.servers.get(pid)?.pool_status(&pool.name)) else { return Vec::new() };
    let counts = |status: &ServerStatus| match status {
        ServerStatus::PhpFpm(counts) => Some((counts.active, counts.max_children_reached)),
        _ => None,
    };
    let limit = u64::from(pool.max_children.value);
    let looks: Vec<u64> = ctx.in_window(page).filter_map(|(_, status)| counts(status)).map(|(active, _)| active).collect();
    let full = looks.iter().filter(|active| **active >= limit).count();
    // The counter may also have risen at a start, long before the window (a reload sets it to zero).
    let ends = ctx.around(page).and_then(|(first, last, _)| counts(last)?.1.checked_sub(counts(first)?.1));
    let args = |id: &'static str| Message::new(id).with("pool", pool.name.as_str()).with("workers", limit);
    let source = format!("pm.status_path ({})", pool.name);
    let active = (full > 0).then(|| args("evidence-worker-pool-active").with("full", full as f64).with("looks", looks.len() as f64));
    let reached = ends.filter(|reached| *reached > 0).map(|reached| (args("evidence-worker-pool-reached").with("times", reached), reached));
    let active = active.map(|text| Evidence::new(text, source.as_str(), Some(full as f64)));
    let reached = reached.map(|(text, times)| Evidence::new(text, source.as_str(), Some(times as f64)));
    active.into_iter().chain(reached).collect()
}

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    let of_tier = |tier: &Tier| match Pool::of(ctx, tier) {
        Some(pool) => Some(reading(ctx, tier, &pool)),
        None => EndsAwaited::of(ctx, tier).map(|awaited| clients::reading(tier, &awaited)),
    };
    ctx.path.tiers.iter().filter_map(of_tier).collect()
}

fn reading(ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> StationReading {
    let at = Location::in_netns(tier.netns);
    let mut station = STATION.reading(tier, at, pool.unit());
    let limit = pool.workers as f64;
    station.limit = Some(limit);
    station.used = pool.busy.iter().max().map(|busy| *busy as f64);
    station.waiting = Some(pool.waiting);
    station.utilization = Some(pool.busy_mean() / limit);
    station.ceiling_rps = ceiling(ctx, tier, pool);
    let args = |id: &'static str| {
        let message = Message::new(id).with("workers", limit).with("busy", pool.busy_mean()).with("waiting", pool.waiting);
        message.with("share", pool.waited_share * 100.0).with("tier", tier.name.as_str()).with("unit", pool.unit())
    };
    let (state, why) = if pool.is_full() {
        (StationState::Saturated, args(if pool.unread { "state-worker-pool-unread" } else { "state-worker-pool-full" }))
    } else if pool.busy_mean() >= 0.8 * limit {
        (StationState::Near, args("state-worker-pool-near"))
    } else {
        (StationState::Ok, args("state-worker-pool-ok"))
    };
    station.in_state(state, why)
}

/// Workers over the time that a request holds one. At its limit a pool returns just the measured rate, which proves nothing, but the rate with another number
/// of workers can then be calculated. `None` where workers are held by connections without a request: these bound the connections, and no rate.
fn ceiling(ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> Option<Ceiling> {
    let are_held_idle = |account: &Account| account.under_way() < MOST * pool.busy_mean();
    if ctx.account().is_some_and(are_held_idle) {
        return None;
    }
    let service = Service::of(ctx, tier, pool)?;
    let rate = |held_s: f64| pool.workers as f64 / held_s;
    ceiling_between(rate(service.held_s), rate(service.held_s_most), rate(service.held_s_least))
}

fn judge(ctx: &Context<'_>, _: &[StationReading]) -> Vec<Finding> {
    ctx.path.tiers.iter().flat_map(|tier| judged(ctx, tier)).collect()
}

fn judged(ctx: &Context<'_>, tier: &Tier) -> Vec<Finding> {
    let awaited = EndsAwaited::of(ctx, tier).map(|awaited| clients::finding(ctx, tier, &awaited));
    let Some((pool, idle)) = exhausted(ctx, tier) else { return awaited.into_iter().collect() };
    let full = finding(ctx, tier, &pool, &idle);
    // If workers wait for clients, for another server or for each other, the configured number of workers would wait too.
    let blocked = Blocked::of(ctx, tier);
    let waits = |is_sure: bool| {
        let told = blocked.as_ref().filter(|blocked| blocked.is_sure(ctx) == is_sure)?;
        Some(told.finding(&STATION, ctx, tier, &pool))
    };
    let kept = || IdleHeld::of(ctx, tier).map(|held| kept::finding(ctx, tier, &held));
    let turns = || taking_turns::of(ctx, tier, &pool);
    let unforced = || unforced::finding(ctx, tier, pool.workers as f64, pool.waiting, &full);
    let hang = || hanging::of(ctx, tier, &pool);
    // A setting that is not in force is a fact; that the server behind is at its limit may be a guess.
    let cause = awaited.or_else(kept).or_else(|| waits(true)).or_else(turns).or_else(hang).or_else(unforced).or_else(|| waits(false));
    let wait = matches!(idle, IdleEvidence::Workers(_) | IdleEvidence::Cores(_));
    // What stops all of them at times, and is not known, would stop more of them as well.
    if cause.is_none() && wait && stand_still(ctx) && Awaited::of(ctx, tier, pool.busy_mean()).is_none() {
        return Vec::new();
    }
    std::iter::once(full).chain(cause).collect()
}

fn finding(ctx: &Context<'_>, tier: &Tier, pool: &Pool, idle: &IdleEvidence) -> Finding {
    let behind = blocked::untold(ctx, tier, pool);
    let kind = match (pool.kind, idle) {
        (PoolKind::Loops, IdleEvidence::Left) => "left",
        (PoolKind::Loops, _) if behind.is_some() => "loops-behind",
        (PoolKind::Loops, _) => "loops",
        (PoolKind::Threads, IdleEvidence::Beside(_)) if pool.unread => "unread-compute",
        (PoolKind::Threads, IdleEvidence::Beside(_)) => "threads-compute",
        (PoolKind::Threads, _) if pool.unread => "unread",
        (PoolKind::Threads, _) => "threads",
        (PoolKind::Processes, IdleEvidence::Beside(_)) => "compute",
        (PoolKind::Processes, IdleEvidence::Workers(_) | IdleEvidence::Cores(_) | IdleEvidence::Left) => "wait",
    };
    let kind = if kind == "wait" && send_to_slow_readers(ctx, tier, pool) { "readers" } else { kind };
    let awaited = Awaited::of(ctx, tier, pool.busy_mean()).filter(|_| kind != "readers");
    let because = awaited
        .iter()
        .map(|awaited| Message::new("finding-worker-pool-exhausted-awaited").with("what", awaited.what()).with("unit", pool.unit()));
    let held_at = || blocked::held_at(ctx, tier).map(|name| Message::new("awaited-server").with("name", name));
    let waits_for = awaited.as_ref().map(Awaited::what).or_else(held_at);
    let (upstream, number) = behind.as_ref().map_or(("", 0.0), |(upstream, number)| (upstream.as_str(), *number));
    let args = |id: &'static str| {
        let message = Message::new(id).with("tier", tier.name.as_str()).with("workers", pool.workers as f64).with("kind", kind);
        message.with("upstream", upstream).with("number", tenths(number)).with("streaming", pool.streaming as f64)
    };
    Finding {
        confidence: match idle {
            // A server behind may be at a limit that nothing shows, and so may the workers together.
            IdleEvidence::Workers(_) if behind.is_some() || may_take_turns(ctx, pool, idle) => Confidence::Medium,
            IdleEvidence::Workers(_) | IdleEvidence::Beside(_) | IdleEvidence::Left => Confidence::High,
            // Idle cores may be withheld from the workers. Whether the workers wait for a core could not be read.
            IdleEvidence::Cores(_) => Confidence::Low,
        },
        title: match waits_for {
            _ if pool.streaming > 0 => {
                args("finding-worker-pool-exhausted-title-streaming").with("all", (pool.workers + pool.streaming) as f64)
            }
            Some(what) if matches!(kind, "wait" | "unread") => args("finding-worker-pool-exhausted-title-for").with("what", what),
            _ => args("finding-worker-pool-exhausted-title"),
        },
        evidence: awaited.iter().flat_map(Awaited::proofs).chain(proofs(ctx, tier, pool, idle)).collect(),
        explanation: std::iter::once(args("finding-worker-pool-exhausted-explanation"))
            .chain((pool.streaming > 0).then(|| args("finding-worker-pool-exhausted-streaming")))
            .chain(because)
            .chain(untold(ctx, tier, pool, idle).filter(|_| kind != "readers"))
            .collect(),
        ..STATION.finding(FindingId::POOL_EXHAUSTED, tier, Location::in_netns(tier.netns))
    }
}

/// True if most of the workers wait at their clients' connections for responses to leave, which these, or the network to them, take slowly. A response that leaves while its worker does
/// something else holds none.
fn send_to_slow_readers(ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> bool {
    let leaving = ctx.account().map_or(0.0, |account| account.at_places(tier.id.0, |place| place == LedgerPlaceKind::Sending));
    let looks = looks::at_busy(ctx, tier);
    let at_clients = looks.iter().filter(|peer| **peer == Some(looks::Peer::Client)).count();
    leaving >= MOST * pool.busy_mean() && at_clients as f64 > MOST * looks.len() as f64
}

/// True if the workers may wait for each other: watching does not tell.
fn may_take_turns(ctx: &Context<'_>, pool: &Pool, idle: &IdleEvidence) -> bool {
    ctx.obs.load.is_none() && pool.kind != PoolKind::Loops && !matches!(idle, IdleEvidence::Beside(_))
}

/// What watching does not tell of workers that wait, and what would.
fn untold(ctx: &Context<'_>, tier: &Tier, pool: &Pool, idle: &IdleEvidence) -> Option<Message> {
    let held_s = may_take_turns(ctx, pool, idle).then(|| held_s(ctx, tier, pool)).flatten()?;
    Some(Message::new("finding-worker-pool-exhausted-untold").with("ms", 1e3 * held_s))
}

fn proofs(ctx: &Context<'_>, tier: &Tier, pool: &Pool, idle: &IdleEvidence) -> Vec<Evidence> {
    let netns = ctx.netns_name(tier.netns);
    let busy = Message::new("evidence-worker-pool-busy")
        .with("unit", pool.unit())
        .with("workers", pool.workers as f64)
        .with("busy", pool.busy_mean())
        .with("full", pool.busy.iter().filter(|busy| **busy >= pool.workers).count() as f64)
        .with("samples", pool.busy.len() as f64);
    let mut proofs = vec![Evidence::new(busy, format!("sock_diag, /proc/PID ({netns})"), Some(pool.busy_mean()))];
    if pool.streaming > 0 {
        let text = Message::new("evidence-worker-pool-streaming").with("threads", pool.streaming as f64).with("tier", tier.name.as_str());
        proofs.insert(0, Evidence::new(text, "sock_diag struct tcp_info", Some(pool.streaming as f64)));
    }
    proofs.extend(pool.reached.as_ref().map(|logged| logged.proof()));
    proofs.extend(ended_proof(ctx, tier));
    for configured in configured(ctx, tier) {
        let origin = &configured.max_children.origin;
        let text = Message::new("evidence-worker-pool-configured").with("pool", configured.name.as_str());
        let text = text.with("limit", configured.max_children.value).with("pm", configured.pm.value.as_str());
        let limit = f64::from(configured.max_children.value);
        proofs.push(Evidence::new(text, origin.to_string(), Some(limit)));
        proofs.extend(told_by_page(ctx, tier, configured));
    }
    if let Some(most) = process_max(ctx, tier) {
        let text = Message::new("evidence-worker-pool-process-max").with("limit", most.value);
        proofs.push(Evidence::new(text, most.origin.to_string(), Some(f64::from(most.value))));
    }
    let waiting = if pool.unread { "evidence-worker-pool-unread" } else { "evidence-worker-pool-waiting" };
    let waiting = Message::new(waiting).with("waiting", pool.waiting);
    proofs.push(Evidence::new(waiting, format!("sock_diag ({netns})"), Some(pool.waiting)));
    proofs.push(match idle {
        IdleEvidence::Left => left(ctx, tier),
        IdleEvidence::Workers(share) => {
            let text = Message::new("evidence-worker-pool-ready").with("share", share * 100.0).with("unit", pool.unit());
            Evidence::new(text, "/proc/PID/schedstat", Some(*share))
        }
        IdleEvidence::Cores(share) | IdleEvidence::Beside(share) => {
            Evidence::new(Message::new("evidence-worker-pool-cpu").with("share", share * 100.0), "/proc/stat", Some(*share))
        }
    });
    if let Some(answers_rps) = ctx.answers_rps().filter(|rate| *rate > 0.0) {
        let ms = |count: f64| 1e3 * count / answers_rps;
        let times = Message::new("evidence-worker-pool-times").with("service", ms(pool.workers as f64)).with("wait", ms(pool.waiting));
        proofs.push(Evidence::new(times, "load", Some(ms(pool.waiting))));
    }
    proofs
}

/// The evidence that connections are never accepted.
fn left(ctx: &Context<'_>, tier: &Tier) -> Evidence {
    if let Some(starved) = loops::starves(ctx, tier) {
        let text = Message::new("evidence-worker-pool-left-watched").with("waiting", starved.waiting.round());
        return Evidence::new(text.with("served", starved.served.round()), "sock_diag struct tcp_info", Some(starved.waiting));
    }
    let share = loops::lost_share(ctx).unwrap_or(0.0);
    let text = Message::new("evidence-worker-pool-left").with("share", share * 100.0);
    Evidence::new(text, "sock_diag, load", Some(share))
}
