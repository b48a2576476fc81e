//! Station `waiting`: requests that wait inside a program that neither computes nor waits for anything observable: for a lock, an inner limit, a connection
//! from its pool, a timer.

mod collector;
mod errors;
mod silent;

use crate::facts::Context;
use crate::facts::TierId;
use crate::facts::cores::limiting::perhaps_for_cores;
use crate::facts::cores::{QUICK_TIMES, group_of, limiting};
use crate::facts::harm::Cost;
use crate::facts::path::Tier;
use crate::facts::pool::awaited::Awaited;
use crate::facts::pool::{looks, worker_pids};
use crate::facts::traffic::errors::ServerErrors;
use crate::judge::finding::{Evidence, Finding};
use crate::judge::graph::{Attribution, CouplingDef, Relation, Standing};
use crate::judge::id::FindingId;
use crate::judge::id::StationId;
use crate::judge::location::Location;
use crate::judge::station::{StationDef, StationReading};
use crate::ledger::{HeldUp, Inside, Levels, WaitEvidence, going_on, tenths};
use crate::observation::ListenerAddress;
use crate::output::message::Message;
use crate::output::report::{Confidence, LedgerPlaceKind, StationKind, StationState};

const FINDINGS: [FindingId; 4] = [FindingId::WAITS_INSIDE, FindingId::ANSWERS_NONE, FindingId::ANSWERS_ERRORS, FindingId::COLLECTS_GARBAGE];

pub(super) const STATION: StationDef = StationDef {
    remedies: &["allow-more-connections", "look-inside", "read-its-log", "give-more-heap"],
    graph: &[
        CouplingDef::found(FindingId::PROCESSES_STOPPED, FindingId::ANSWERS_NONE, Relation::Behind, "coupling-silent-found"),
        CouplingDef::found(FindingId::ACCEPTS_NONE, FindingId::ANSWERS_NONE, Relation::Behind, "coupling-silent-found"),
        CouplingDef::found(FindingId::THROTTLED, FindingId::ANSWERS_NONE, Relation::Behind, "coupling-silent-found"),
        CouplingDef::found(FindingId::FILES_EXHAUSTED, FindingId::ANSWERS_NONE, Relation::Behind, "coupling-silent-found"),
        CouplingDef::found(FindingId::POOL_EXHAUSTED, FindingId::ANSWERS_NONE, Relation::Behind, "coupling-silent-found"),
        CouplingDef::found(FindingId::POOL_TAKES_TURNS, FindingId::ANSWERS_NONE, Relation::Behind, "coupling-silent-found"),
        CouplingDef::found(FindingId::PACKET_LOSS, FindingId::ANSWERS_NONE, Relation::Behind, "coupling-silent-found"),
        CouplingDef::found(FindingId::PACKETS_FILTERED, FindingId::ANSWERS_NONE, Relation::Path, "coupling-silent-found"),
        CouplingDef::found(FindingId::UNREACHABLE, FindingId::ANSWERS_NONE, Relation::Behind, "coupling-silent-found"),
        CouplingDef::found(FindingId::THROTTLED, FindingId::COLLECTS_GARBAGE, Relation::Tier, "coupling-collector-quota"),
        CouplingDef::found(FindingId::COLLECTS_GARBAGE, FindingId::POOL_EXHAUSTED, Relation::Behind, "coupling-collector-pool"),
        CouplingDef::found(FindingId::COLLECTS_GARBAGE, FindingId::POOL_TAKES_TURNS, Relation::Behind, "coupling-collector-pool"),
        CouplingDef::found(FindingId::COLLECTS_GARBAGE, FindingId::ACCEPT_QUEUE_FULL, Relation::Behind, "coupling-collector-pool"),
        CouplingDef::any(FindingId::ANSWERS_ERRORS, Relation::Behind, "coupling-errors-found"),
        CouplingDef::any_but(FindingId::ANSWERS_ERRORS, FindingId::WAITS_INSIDE, Relation::Behind, "coupling-inside-found"),
        CouplingDef::station(StationId::CPU, FindingId::WAITS_INSIDE, Relation::Path, Attribution::Judged, "coupling-inside-cores"),
        CouplingDef::station(StationId::LINK, FindingId::WAITS_INSIDE, Relation::Path, Attribution::Found, "coupling-inside-link"),
    ],
    // Collectors take the time of cores; whoever waits for these as well waits for them. A server that is said to answer nothing had cores.
    standing: |ctx, finding, _| match finding.owner.tiers().iter().find_map(|tier| perhaps_starved(ctx, *tier)) {
        _ if [FindingId::COLLECTS_GARBAGE, FindingId::ANSWERS_NONE].contains(&finding.id) => Standing::Alone,
        Some(why) => Standing::Behind(why),
        None if want_cores(ctx) => Standing::Perhaps,
        None => Standing::Alone,
    },
    ..StationDef::new(StationId("waiting"), StationKind::Rate, &FINDINGS, read, judge)
};

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    let (found, errors) = (found(ctx), ServerErrors::of(ctx));
    let mut readings: Vec<StationReading> = Vec::new();
    for tier in &ctx.path.tiers {
        let errors = errors.as_ref().filter(|errors| errors.tier.id == tier.id);
        let waits = found.as_ref().is_some_and(|found| found.tier == tier.id.0);
        readings.extend(reading(ctx, tier, errors, waits));
    }
    readings
}

/// `None` if neither where requests stand is known nor that the tier answers with errors.
fn reading(ctx: &Context<'_>, tier: &Tier, errors: Option<&ServerErrors<'_>>, waits: bool) -> Option<StationReading> {
    let account = ctx.account();
    let mut reading = STATION.reading(tier, Location::in_netns(tier.netns), "requests");
    reading.waiting = account.map(|account| account.inside(tier.id.0).value);
    if let Some(errors) = errors {
        reading.refused_per_s = Some(errors.per_s);
        return Some(reading.in_state(StationState::Refusing, errors::args(errors, "state-waiting-errors")));
    }
    let account = account?;
    let (state, id) = if waits { (StationState::Saturated, "state-waiting-most") } else { (StationState::Ok, "state-waiting-ok") };
    let why = Message::new(id).with("tier", tier.name.as_str()).with("number", tenths(account.inside(tier.id.0).value));
    Some(reading.in_state(state, why.with("under_way", tenths(account.under_way()))))
}

/// The place where most requests wait for each other.
pub(crate) fn found(ctx: &Context<'_>) -> Option<Inside> {
    ctx.account()?.most_inside(ctx).filter(|inside| inside.evidence.is_some())
}

fn judge(ctx: &Context<'_>, _: &[StationReading]) -> Vec<Finding> {
    let judged = found(ctx).and_then(|inside| Some((inside.evidence.clone()?, inside)));
    judged
        .map(|(shown, inside)| finding(ctx, &inside, &shown))
        .into_iter()
        .chain(silent::judge(ctx))
        .chain(errors::judge(ctx))
        .chain(collector::judge(ctx))
        .collect()
}

/// A message with the arguments of the sentences.
pub(crate) fn args(ctx: &Context<'_>, id: &'static str, inside: &Inside) -> Message {
    let under_way = ctx.account().map_or(0.0, |account| account.under_way());
    let message = Message::new(id).with("tier", ctx.path.tiers[inside.tier].name.as_str());
    let message = message.with("number", inside.mean.value.round()).with("under_way", under_way.round());
    match &inside.evidence {
        Some(WaitEvidence::SlowerThanPeers(slower)) => {
            let caller = ctx.path.tiers[slower.caller].name.as_str();
            let listener = ctx.path.tiers[inside.tier].listeners.first().map(|placed| placed.listener.address.to_string());
            let message =
                message.with("caller", caller).with("others", slower.others as f64).with("listener", listener.unwrap_or_default());
            message.with("own_ms", tenths(slower.own_ms)).with("others_ms", tenths(slower.others_ms))
        }
        Some(WaitEvidence::FullCalls(calls)) => {
            let (ip, port) = calls.remote;
            let message = message.with("kind", if calls.are_all_in_use() { "all" } else { "at-once" });
            let message = message.with("remote", std::net::SocketAddr::new(ip, port).to_string()).with("all", calls.usual().round());
            message.with("connections", calls.limit().unwrap_or(0.0).round())
        }
        _ => message,
    }
}

fn finding(ctx: &Context<'_>, inside: &Inside, shown: &WaitEvidence) -> Finding {
    let tier = &ctx.path.tiers[inside.tier];
    let held_at = held_by_call(ctx, inside);
    let awaited = Awaited::of(ctx, tier, inside.mean.value).filter(|_| shown.leaves_open() && held_at.is_none());
    // What they wait for, and whose wait it is.
    let waits_for = held_at.map(|what| (what, "only")).or_else(|| awaited.as_ref().map(|awaited| (awaited.what(), awaited.thread())));
    let (title, explanation, confidence) = match shown {
        WaitEvidence::SlowerThanAlone(_) | WaitEvidence::FullCalls(_) if waits_for.is_some() => {
            ("finding-waits-inside-title-for", "finding-waits-inside-explanation-for", Confidence::High)
        }
        WaitEvidence::Grows(_) | WaitEvidence::Seen | WaitEvidence::HeldUp(_) if waits_for.is_some() => {
            ("finding-waits-inside-title-for", "finding-waits-inside-explanation-for", Confidence::Medium)
        }
        WaitEvidence::SlowerThanPeers(_) => {
            ("finding-waits-inside-title-peers", "finding-waits-inside-explanation-peers", Confidence::High)
        }
        WaitEvidence::FullCalls(_) => ("finding-waits-inside-title-calls", "finding-waits-inside-explanation-calls", Confidence::High),
        WaitEvidence::SlowerThanAlone(_) if is_late(inside) => {
            ("finding-waits-inside-title-late", "finding-waits-inside-explanation-late", Confidence::High)
        }
        WaitEvidence::SlowerThanAlone(_) => ("finding-waits-inside-title", "finding-waits-inside-explanation-alone", Confidence::High),
        WaitEvidence::HeldUp(_) => ("finding-waits-inside-title-late", "finding-waits-inside-explanation-held-up", Confidence::Medium),
        WaitEvidence::Grows(_) if is_late(inside) => {
            ("finding-waits-inside-title-late", "finding-waits-inside-explanation-held-up", Confidence::Medium)
        }
        WaitEvidence::Grows(_) | WaitEvidence::Seen => {
            ("finding-waits-inside-title", "finding-waits-inside-explanation-grows", Confidence::Medium)
        }
    };
    let alone = if let WaitEvidence::SlowerThanAlone(alone) = shown { *alone } else { 0.0 };
    let under_way = ctx.account().map_or(f64::INFINITY, |account| account.under_way());
    let args = |id: &'static str| {
        let message = args(ctx, id, inside);
        waits_for.iter().fold(message, |message, (what, thread)| message.with("what", what.clone()).with("thread", *thread))
    };
    Finding {
        confidence,
        lost_time: Some(((inside.mean.value - alone) / under_way).clamp(0.0, 1.0)),
        title: awaited.iter().fold(args(title), |title, awaited| title.with("what", awaited.chain())),
        evidence: awaited.iter().flat_map(Awaited::proofs).chain(proofs(ctx, inside, shown)).collect(),
        explanation: vec![args(explanation)],
        ..STATION.finding(FindingId::WAITS_INSIDE, tier, Location::in_netns(tier.netns))
    }
}

/// Largest gain that is shown as a number: beyond it next to nothing of a request's time passes elsewhere, and the next limit decides.
const GAIN_TOLD_MAX: f64 = 20.0;

/// What the only serving thread of a tier waits for in a call, if that is the answer of a server while requests stand unread: an event loop that asks without letting go. It was found there,
/// or it has a single connection, always in use, and leaves requests unread: one that waits for a free connection of a pool reads them meanwhile.
pub(crate) fn held_by_call(ctx: &Context<'_>, inside: &Inside) -> Option<Message> {
    let tier = &ctx.path.tiers[inside.tier];
    let by_calls = || match &inside.evidence {
        Some(WaitEvidence::FullCalls(calls)) if calls.limit() == Some(1.0) => {
            let (ip, port) = calls.remote;
            (worker_pids(ctx, tier).len() == 1).then_some(ListenerAddress::Tcp(ip, port))
        }
        _ => None,
    };
    if matches!(inside.evidence, Some(WaitEvidence::SlowerThanPeers(_))) || !is_late(inside) {
        return None;
    }
    let address = looks::held_at(ctx, tier).or_else(by_calls)?;
    Some(Message::new("awaited-answer").with("remote", address.to_string()))
}

/// True if more of the requests are not even read than can be a chance of the samples: an event loop that is held up.
fn is_late(inside: &Inside) -> bool {
    Cost::of_time(inside.unread / inside.mean.value.max(f64::MIN_POSITIVE)).hurts()
}

/// True if full cores explain the wait: nothing would be gained without it, because the cores have no time for more requests; or the requests that are being worked on
/// spend half of that time or more at the cores. Their number is what it would be if each took as long as one alone. If that is not known, full cores explain any wait.
fn want_cores(ctx: &Context<'_>) -> bool {
    if !limiting(ctx).is_empty() {
        return true;
    }
    let Some((account, alone)) = ctx.account().and_then(|account| Some((account, account.alone(ctx)?))) else { return true };
    2.0 * account.at(|place| matches!(place, LedgerPlaceKind::Cpu | LedgerPlaceKind::Ready)) >= alone
}

/// Why it is not known whether requests wait inside a tier for each other or for cores.
fn perhaps_starved(ctx: &Context<'_>, tier: TierId) -> Option<Message> {
    let tier = ctx.path.tiers.get(tier.0)?;
    perhaps_for_cores(ctx, group_of(ctx, tier)?)?;
    Some(Message::new("finding-waits-inside-untold").with("tier", tier.name.as_str()))
}

/// The number that goes through at once, if each takes as long as one alone (Little's law): that of the places, connections or threads which the others wait for. `None` if it is none: then they
/// do not wait for one another.
fn at_a_time(ctx: &Context<'_>, inside: &Inside) -> Option<Evidence> {
    let (alone_us, _) = ctx.answer_us()?;
    let rate_rps = ctx.account()?.rate_rps()?;
    let number = going_on(rate_rps * alone_us / 1e6);
    let text = args(ctx, "evidence-waits-inside-little", inside).with("rate", rate_rps).with("ms", alone_us / 1e3).with("at_once", number);
    (number.round() >= 1.0).then(|| Evidence::new(text, "load", Some(number)))
}

fn proofs(ctx: &Context<'_>, inside: &Inside, shown: &WaitEvidence) -> Vec<Evidence> {
    let Some(account) = ctx.account() else { return Vec::new() };
    let sockets = format!("sock_diag struct tcp_info ({})", ctx.netns_name(ctx.path.tiers[inside.tier].netns));
    let under_way = account.under_way();
    let mean = inside.mean;
    let id = if is_late(inside) { "evidence-waits-inside-late" } else { "evidence-waits-inside" };
    let stands = args(ctx, id, inside).with("range", Message::range(tenths(mean.low), tenths(mean.high.min(under_way))));
    let stands = stands.with("unread", tenths(inside.unread));
    let mut proofs = vec![Evidence::new(stands, format!("{sockets}, /proc/PID/task/TID/schedstat"), Some(tenths(mean.value)))];
    match shown {
        WaitEvidence::SlowerThanPeers(slower) => {
            let text = args(ctx, "evidence-waits-inside-peers", inside);
            proofs.push(Evidence::new(text, format!("{sockets}, packet(7)"), Some(tenths(slower.own_ms))));
        }
        WaitEvidence::FullCalls(calls) => {
            let used = calls.in_use(ctx.window_us);
            let text = args(ctx, "evidence-waits-inside-calls", inside).with("used", tenths(used));
            proofs.push(Evidence::new(text, sockets.as_str(), Some(tenths(used))));
        }
        WaitEvidence::Seen => {}
        WaitEvidence::HeldUp(HeldUp { samples, seen, busy }) => {
            let text = args(ctx, "evidence-waits-inside-held-up", inside).with("seen", *seen as f64).with("samples", *samples as f64);
            let text = text.with("busy", 100.0 * busy);
            proofs.push(Evidence::new(text, format!("{sockets}, /proc/PID/task/TID/schedstat"), Some(*seen as f64 / *samples as f64)));
        }
        WaitEvidence::SlowerThanAlone(_) => proofs.extend(at_a_time(ctx, inside)),
        WaitEvidence::Grows(Levels { few, many }) => {
            let text =
                args(ctx, "evidence-waits-inside-grows", inside).with("few", tenths(few.under_way)).with("many", tenths(many.under_way));
            let text = text.with("few_ms", tenths(few.age_ms)).with("many_ms", tenths(many.age_ms));
            proofs.push(Evidence::new(text, sockets.as_str(), Some(tenths(many.age_ms))));
        }
    }
    for calls in account.calls().iter().filter(|calls| calls.tier == inside.tier && calls.are_unanswered()) {
        let (ip, port) = calls.remote;
        let text = args(ctx, "evidence-waits-inside-unanswered", inside).with("count", calls.usual().round());
        let text = text.with("address", std::net::SocketAddr::new(ip, port).to_string());
        proofs.push(Evidence::new(text, sockets.as_str(), Some(calls.usual().round())));
    }
    if let Some((alone_us, loaded_us)) = ctx.answer_us() {
        // Where half of the requests are quick, the others take so much longer.
        let mean_us = account.response_s().map(|seconds| 1e6 * seconds).filter(|_| loaded_us < QUICK_TIMES * alone_us);
        let id = if mean_us.is_some() { "evidence-waits-inside-alone-mean" } else { "evidence-waits-inside-alone" };
        let text = args(ctx, id, inside).with("alone", alone_us / 1e3).with("loaded", mean_us.unwrap_or(loaded_us) / 1e3);
        proofs.push(Evidence::new(text, "load", Some(alone_us / 1e3)));
    }
    // The part that waits there even without a queue remains.
    let alone = if let WaitEvidence::SlowerThanAlone(alone) = shown { *alone } else { 0.0 };
    let gain = |number: f64| (number - alone < under_way).then(|| tenths(under_way / (under_way - (number - alone).max(0.0))));
    // If all of a request's time may pass there, the gain has no bound.
    if let (Some(low), Some(high)) = (gain(mean.low), gain(mean.high)) {
        let id = match () {
            () if low > GAIN_TOLD_MAX => "evidence-waits-inside-bound-none",
            () if low < high => "evidence-waits-inside-bound",
            () => "evidence-waits-inside-bound-exact",
        };
        let text = args(ctx, id, inside).with("low", low).with("high", high);
        proofs.push(Evidence::new(text, "1 / (1 - share of the response time)", gain(mean.value)));
    }
    proofs
}
