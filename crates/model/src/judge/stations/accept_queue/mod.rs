//! Station `accept-queue`: established connections that wait until a listener's process accepts them.

mod slow;
mod stopped;
mod traced;
mod unforced;

use crate::facts::Context;
use crate::facts::harm::Cost;
use crate::facts::path::{PlacedListener, Tier};
use crate::facts::queue::accepting::{Lengths, holders, shares_address};
use crate::facts::queue::{OVERFLOWS, Queue, refused, retries, unix, watch};
use crate::facts::suffered::{self, in_flight_peak};
use crate::facts::{Logged, pool};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::graph::{Attribution, CouplingDef, Relation, Standing};
use crate::judge::id::FindingId;
use crate::judge::id::StationId;
use crate::judge::location::Location;
use crate::judge::station::{StationDef, StationReading};
use crate::observation::load::{INITIAL_RTO_S, INITIAL_RTO_US, Loop};
use crate::observation::{NetnsId, NetnsView};
use crate::output::message::Message;
use crate::output::report::{Confidence, StationKind, StationState};

pub(super) const STATION: StationDef = StationDef {
    remedies: &["raise-accept-backlog", "listen-again", "reload-configuration", "let-go-on", "let-it-detach", "look-inside"],
    graph: &[
        CouplingDef::found(FindingId::ACCEPTS_NONE, FindingId::ACCEPT_QUEUE_FULL, Relation::Behind, "coupling-queue-none"),
        CouplingDef::found(FindingId::ACCEPTS_SLOWLY, FindingId::ACCEPT_QUEUE_FULL, Relation::Behind, "coupling-queue-slowly"),
        CouplingDef::found(FindingId::ACCEPTS_NONE, FindingId::POOL_EXHAUSTED, Relation::Behind, "coupling-pool-none"),
        CouplingDef::found(FindingId::PROCESSES_STOPPED, FindingId::ACCEPT_QUEUE_FULL, Relation::Behind, "coupling-queue-stopped"),
        CouplingDef::found(FindingId::PROCESSES_STOPPED, FindingId::POOL_EXHAUSTED, Relation::Behind, "coupling-pool-stopped"),
        CouplingDef::found(FindingId::PROCESSES_TRACED, FindingId::ACCEPT_QUEUE_FULL, Relation::Behind, "coupling-queue-traced"),
        CouplingDef::found(FindingId::PROCESSES_TRACED, FindingId::POOL_EXHAUSTED, Relation::Behind, "coupling-pool-traced"),
        CouplingDef::found(FindingId::PROCESSES_TRACED, FindingId::POOL_TAKES_TURNS, Relation::Behind, "coupling-pool-traced"),
        CouplingDef::found(FindingId::POOL_EXHAUSTED, FindingId::ACCEPT_QUEUE_FULL, Relation::Tier, "coupling-queue-pool"),
        CouplingDef::found(FindingId::FILES_EXHAUSTED, FindingId::ACCEPT_QUEUE_FULL, Relation::Tier, "coupling-queue-files"),
        CouplingDef::judged(FindingId::CONNECTIONS_EXHAUSTED, FindingId::ACCEPT_QUEUE_FULL, Relation::Tier, "coupling-queue-connections"),
        CouplingDef::found(FindingId::THROTTLED, FindingId::ACCEPT_QUEUE_FULL, Relation::Tier, "coupling-queue-quota"),
        CouplingDef::found(FindingId::TIME_WAIT_SEARCH, FindingId::ACCEPT_QUEUE_FULL, Relation::Cores, "coupling-queue-search"),
        CouplingDef::found(FindingId::NOT_IN_FORCE, FindingId::ACCEPT_QUEUE_FULL, Relation::Station, "coupling-queue-unforced"),
        CouplingDef::station(StationId::CPU, FindingId::ACCEPT_QUEUE_FULL, Relation::Tier, Attribution::Judged, "coupling-queue-cores"),
        CouplingDef::found(FindingId::TIME_WAIT_SEARCH, FindingId::NOT_IN_FORCE, Relation::Cores, "coupling-queue-search"),
        CouplingDef::found(FindingId::FILES_EXHAUSTED, FindingId::NOT_IN_FORCE, Relation::Tier, "coupling-unforced-files"),
        CouplingDef::found(FindingId::THROTTLED, FindingId::NOT_IN_FORCE, Relation::Tier, "coupling-unforced-quota"),
    ],
    standing,
    ..StationDef::new(
        StationId("accept-queue"),
        StationKind::Cliff,
        &[
            FindingId::ACCEPT_QUEUE_FULL,
            FindingId::ACCEPTS_NONE,
            FindingId::PROCESSES_STOPPED,
            FindingId::PROCESSES_TRACED,
            FindingId::ACCEPTS_SLOWLY,
            FindingId::NOT_IN_FORCE,
        ],
        read,
        judge,
    )
};

pub(crate) use slow::{is_accepted_slowly, put_aside};
pub(crate) use stopped::named as stopped_processes;
pub(crate) use traced::{args as tracing_args, notes as tracing_notes};

/// Mean fill of a queue, as a share of its limit, from which it does more than overflow in bursts: the process cannot keep up.
const STANDING_SHARE: f64 = 0.5;
/// The sentence of a queue that overflowed at the start of a load alone.
pub(crate) const AT_START: &str = "state-accept-queue-start";
/// Share of its limit from which a queue's headroom is reported as small.
const NEAR_UTILIZATION: f64 = 0.80;

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    let mut read = Vec::new();
    for tier in &ctx.path.tiers {
        for placed in &tier.listeners {
            let Some(view) = ctx.obs.netns.get(&placed.netns) else { continue };
            let Some(queue) = watch(ctx, view, placed) else { continue };
            let refused = refused(ctx, tier, placed, view, queue);
            read.push(reading(ctx, tier, (placed, view), queue, refused));
        }
    }
    read
}

fn reading(
    ctx: &Context<'_>,
    tier: &Tier,
    (placed, view): (&PlacedListener, &NetnsView),
    queue: Queue,
    refused: Option<u64>,
) -> StationReading {
    let name = placed.listener.address.to_string();
    let mut at = Location::at_listener(placed.netns, placed.listener.address.clone());
    if shares_address(tier, placed) {
        at.socket = Some(placed.listener.inode);
        at.pid = Some(holders(ctx, tier, placed)).filter(|pids| pids.len() == 1).and_then(|pids| pids.first().copied());
    }
    let mut station = STATION.reading(tier, at, "connections");
    let limit = f64::from(queue.limit);
    station.limit = Some(limit);
    station.used = Some(f64::from(queue.peak));
    station.waiting = Some(queue.mean);
    station.utilization = (queue.limit > 0).then(|| f64::from(queue.peak) / limit);
    station.refused_per_s = refused.map(|count| count as f64 / ctx.seconds().max(1e-6));
    let args = |id: &'static str| {
        Message::new(id)
            .with("listener", name.as_str())
            .with("peak", queue.peak)
            .with("limit", queue.limit)
            .with("count", refused.unwrap_or(0))
    };
    let harmed = match unix::path_of(placed) {
        Some(path) => unix::harmed(ctx, placed.netns, path, refused.unwrap_or(0)),
        None => harmed(ctx, tier, (placed.netns, view), refused.unwrap_or(0)),
    };
    let (state, why) = if refused.is_some_and(|count| count > 0 && !cost_time(ctx, count)) && harmed && queue.only_began_with(ctx) {
        (StationState::Near, args(AT_START))
    } else if refused.is_some_and(|count| count > 0) && harmed {
        (StationState::Refusing, args("state-accept-queue-refusing"))
    } else if refused.is_some_and(|count| count > 0) {
        (StationState::Near, args("state-accept-queue-harmless"))
    } else if f64::from(queue.peak) >= NEAR_UTILIZATION * limit && queue.limit > 0 {
        (StationState::Near, args("state-accept-queue-near"))
    } else {
        (StationState::Ok, args("state-accept-queue-ok"))
    };
    station.in_state(state, why)
}

/// True if dropped connections cost clients that keep their connections too much time: each waited for at least one retry.
fn cost_time(ctx: &Context<'_>, refused: u64) -> bool {
    ctx.obs.load.as_ref().is_some_and(|load| suffered::of_time(load, refused as f64 * INITIAL_RTO_US as f64).hurts())
}

/// Share of the clients' time that they waited for the retry of dropped connections. `None` if it is not known how many clients there are.
fn lost_time(ctx: &Context<'_>, placed: &StationReading) -> Option<f64> {
    let load = ctx.obs.load.as_ref().filter(|load| matches!(load.shape, Loop::Closed { .. }))?;
    Some(suffered::of_time(load, placed.refused_per_s? * ctx.seconds() * INITIAL_RTO_US as f64).time)
}

/// True if this is a queue at a TCP listener that overflowed in the first burst of the load and not any more after that.
pub(crate) fn began_with_load(ctx: &Context<'_>, placed: &StationReading) -> bool {
    let listener = || listener_of(ctx, placed).filter(|(_, listener)| unix::path_of(listener).is_none());
    let queue = || watch(ctx, ctx.obs.netns.get(&placed.at.netns?)?, listener()?.1);
    placed.station == STATION.id && placed.state == StationState::Refusing && queue().is_some_and(|queue| queue.only_began_with(ctx))
}

fn judge(ctx: &Context<'_>, read: &[StationReading]) -> Vec<Finding> {
    let refusing = read.iter().filter(|placed| placed.state == StationState::Refusing);
    let full = refusing.flat_map(|placed| {
        let full = finding(ctx, placed);
        not_in_force(ctx, placed, &full).into_iter().chain([full])
    });
    let slow = slow::judge(ctx, read);
    let stopped = stopped::judge(ctx, read, &slow);
    full.chain(slow).chain(stopped).chain(traced::judge(ctx, read)).collect()
}

/// The cause of a full queue whose configured limit is higher and not in force. If all workers are busy, a longer queue would not help.
fn not_in_force(ctx: &Context<'_>, placed: &StationReading, full: &Finding) -> Option<Finding> {
    let (tier, listener) = listener_of(ctx, placed).filter(|_| !stands_behind(ctx, placed))?;
    if pool::is_exhausted(ctx, tier) { None } else { unforced::finding(ctx, tier, listener, placed.limit?, full) }
}

/// The tier and the listener of a reading.
fn listener_of<'a>(ctx: &Context<'a>, placed: &StationReading) -> Option<(&'a Tier, &'a PlacedListener)> {
    let tier = ctx.only_tier(&placed.owner)?;
    Some((tier, placed.at.listener_of(tier)?))
}

/// The longest of a tier's queues.
fn longest<'r>(ctx: &Context<'_>, read: &'r [StationReading], tier: &Tier) -> Option<&'r StationReading> {
    let own = read.iter().filter(|reading| ctx.only_tier(&reading.owner).is_some_and(|owner| owner.id == tier.id));
    own.max_by(|a, b| a.waiting.unwrap_or(0.0).total_cmp(&b.waiting.unwrap_or(0.0)))
}

/// True if enough clients found the queue full, each waiting until its retry, and the load's own requests suffered like requests whose SYN or last handshake
/// packet was dropped. Other failures, such as application errors, do not count.
fn harmed(ctx: &Context<'_>, tier: &Tier, (netns, view): (NetnsId, &NetnsView), refused: u64) -> bool {
    let Some(load) = &ctx.obs.load else { return suffered::dropped(ctx, netns, refused).hurts() };
    let waited = suffered::of_time(load, refused as f64 * INITIAL_RTO_US as f64);
    // The connections of others in the namespace say nothing about this server's.
    let is_shared = ctx.path.is_first(tier) && !ctx.others(netns).had_none();
    let accepted = if is_shared { Some(load.connections) } else { suffered::accepted(ctx, view) };
    let came = accepted.map(|accepted| Cost::of_requests(refused, accepted.saturating_add(refused)));
    if ctx.path.is_first(tier) && suffered::are_mostly_closed(load) {
        return false;
    }
    came.is_none_or(|came| came.or(waited).hurts()) && suffered::not_accepted(load, ctx.path.is_first(tier)).hurts()
}

/// Seconds that a connection would wait if all connections under way stood in one long queue, or the least that it waits now where nobody knows how many clients there are
/// (Little's law).
fn wait_s(ctx: &Context<'_>, placed: &StationReading) -> Option<f64> {
    match &ctx.obs.load {
        Some(load) => (load.goodput_rps() > 0.0).then(|| in_flight_peak(load) / load.goodput_rps()),
        None => ctx.account()?.rate_rps().filter(|rate| *rate > 0.0).map(|rate| placed.waiting.unwrap_or(0.0) / rate),
    }
}

/// True if a longer queue would not serve the refused clients: the process cannot keep up, and the wait would be longer than the client's retry.
fn stands_behind(ctx: &Context<'_>, placed: &StationReading) -> bool {
    let is_standing = placed.waiting.unwrap_or(0.0) >= STANDING_SHARE * placed.limit.unwrap_or(0.0).max(1.0);
    // A client that is refused at a unix socket does not retry, so any wait within its patience is better.
    let is_unix = listener_of(ctx, placed).is_some_and(|(_, listener)| unix::path_of(listener).is_some());
    // A client retries a dropped SYN. A longer queue is better only if the wait in it is shorter than that.
    let patience = if is_unix { unix::patience_s(ctx) } else { INITIAL_RTO_S };
    // Where the wait is not known, a queue that hardly ever has room shows that whoever accepts cannot keep up.
    let is_mostly_full =
        || listener_of(ctx, placed).and_then(|(_, listener)| Lengths::of(ctx, listener)).is_some_and(|lengths| lengths.is_mostly_full());
    is_standing && wait_s(ctx, placed).map_or_else(|| ctx.obs.load.is_none() && !is_unix && is_mostly_full(), |wait| wait >= patience)
}

/// If a longer queue would not help, its connections wait for something behind it. If it is not known who accepts them, that may be so.
fn standing(ctx: &Context<'_>, finding: &Finding, own: Option<&StationReading>) -> Standing {
    let of = own.and_then(|own| listener_of(ctx, own)).filter(|_| finding.id == FindingId::ACCEPT_QUEUE_FULL);
    if let Some((_, placed)) = of.filter(|(tier, _)| !tier.is_known()) {
        return Standing::Behind(Message::new("finding-accept-queue-full-unread").with("listener", placed.listener.address.to_string()));
    }
    match own.filter(|own| finding.id == FindingId::ACCEPT_QUEUE_FULL && stands_behind(ctx, own)) {
        Some(own) => {
            let why = Message::new("finding-accept-queue-full-symptom").with("tier", ctx.owner_name(&own.owner));
            Standing::Behind(why.with("listener", own.at.listener_name()))
        }
        None => Standing::Alone,
    }
}

fn finding(ctx: &Context<'_>, placed: &StationReading) -> Finding {
    let limit = placed.limit.unwrap_or(0.0);
    let at_unix = listener_of(ctx, placed).and_then(|(tier, listener)| Some((tier, unix::path_of(listener)?)));
    let (listener, tier) = (placed.at.listener_name(), ctx.owner_name(&placed.owner));
    let args = |id: &'static str| Message::new(id).with("listener", listener.as_str()).with("limit", limit).with("tier", tier.as_str());
    let logged = at_unix.and_then(|(tier, path)| unix::logged(ctx, tier, path, placed.used.unwrap_or(0.0) > limit));
    // The load's answers do not show who turned the connections away. A log line of the refused server does.
    let is_own = at_unix.is_some_and(|(_, path)| unix::own_refused(ctx, placed.at.netns, path).is_some());
    let is_sure = ctx.obs.load.is_some() && (at_unix.is_none() || is_own || logged.is_some());
    let how = if is_own { "evidence-accept-queue-own" } else { "evidence-accept-queue-gateway" };
    let was_full = placed.used.unwrap_or(0.0) >= limit;
    Finding {
        confidence: match is_counted(ctx, placed) || at_unix.is_some() {
            true if is_sure => Confidence::High,
            // A listener also drops connections for other reasons.
            false if !was_full => Confidence::Low,
            _ => Confidence::Medium,
        },
        title: args("finding-accept-queue-full-title"),
        evidence: proofs(ctx, placed, &listener, at_unix.map(|_| how), logged.as_ref()),
        explanation: vec![why_full(ctx, placed, args)],
        lost_time: lost_time(ctx, placed),
        ..placed.finding(FindingId::ACCEPT_QUEUE_FULL)
    }
}

/// Why a queue was full. One that is full most of the time is so however the connections are spread: they come in no bursts.
fn why_full(ctx: &Context<'_>, placed: &StationReading, args: impl Fn(&'static str) -> Message) -> Message {
    let of = listener_of(ctx, placed);
    let is_unix = of.is_some_and(|(_, listener)| unix::path_of(listener).is_some());
    let lengths = of.and_then(|(_, listener)| Lengths::of(ctx, listener));
    let is_slow = of.is_some_and(|(tier, _)| is_accepted_slowly(ctx, tier, placed));
    let id = match (lengths.as_ref().is_some_and(Lengths::is_mostly_full), is_unix) {
        _ if is_slow => "finding-accept-queue-full-slow",
        (true, true) => "finding-accept-queue-full-unix-mostly",
        (true, false) => "finding-accept-queue-full-mostly",
        (false, true) => "finding-accept-queue-full-unix",
        (false, false) => "finding-accept-queue-full-explanation",
    };
    let (full, samples) = lengths.map_or((0, 0), |lengths| (lengths.full, lengths.samples()));
    let text = args(id).with("full", full as f64).with("samples", samples as f64);
    text.with("again", retries::told(ctx, ctx.only_tier(&placed.owner)))
}

/// True if the kernel's count of overflows was read.
fn is_counted(ctx: &Context<'_>, placed: &StationReading) -> bool {
    placed.at.netns.and_then(|netns| ctx.netstat_growth(ctx.obs.netns.get(&netns)?, OVERFLOWS)).is_some()
}

fn proofs(
    ctx: &Context<'_>,
    placed: &StationReading,
    listener: &str,
    at_unix: Option<&'static str>,
    logged: Option<&Logged>,
) -> Vec<Evidence> {
    let netns = placed.at.netns.map(|netns| ctx.netns_name(netns)).unwrap_or_default();
    let refused = (placed.refused_per_s.unwrap_or(0.0) * ctx.seconds()).round();
    let args = |id: &'static str| Message::new(id).with("count", refused).with("listener", listener).with("seconds", ctx.seconds());
    let mut proofs = vec![match logged {
        Some(logged) => logged.proof(),
        None if let Some(how) = at_unix => Evidence::new(args(how), "load", Some(refused)),
        None => Evidence::new(args("evidence-accept-queue-drops"), format!("sock_diag SKMEMINFO ({netns})"), Some(refused)),
    }];
    let text = Message::new("evidence-accept-queue-limit").with("limit", placed.limit.unwrap_or(0.0));
    let text = text.with("peak", placed.used.unwrap_or(0.0)).with("mean", placed.waiting.unwrap_or(0.0));
    proofs.push(Evidence::new(text, format!("sock_diag ({netns})"), placed.limit));
    if let Some(load) = &ctx.obs.load {
        let text = Message::new("evidence-accept-queue-harm")
            .with("failed", load.ended_badly())
            .with("requests", load.ended())
            .with("p99", load.latency_us.p99 as f64 / 1e3);
        proofs.push(Evidence::new(text, "load", Some(load.latency_us.p99 as f64)));
    }
    // If most requests fail for another reason, the rate behind this wait is not the queue's.
    if let Some(wait) = wait_s(ctx, placed).filter(|_| ctx.can_divide_by_good()) {
        let text = Message::new("evidence-accept-queue-wait").with("ms", wait * 1e3);
        proofs.push(Evidence::new(text, "load", Some(wait)));
    }
    proofs
}
