//! Findings `accepts-none` and `accepts-slowly`: connections wait because nobody accepts them, or because whoever does has no time for more.

use crate::facts::Context;
use crate::facts::cores::cores_are_spare;
use crate::facts::harm::Cost;
use crate::facts::owner::Owner;
use crate::facts::path::{PlacedListener, Tier};
use crate::facts::pool::WAITED_SHARE;
use crate::facts::pool::workers::{ended_proof, replaced};
use crate::facts::queue::accepting::{Idle, Lengths, at_same_address, idle, shares_address};
use crate::facts::queue::halted::{HaltedBy, halted_by, whole};
use crate::facts::queue::unix;
use crate::facts::suffered;
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::{FindingId, StationId};
use crate::judge::station::StationReading;
use crate::judge::unseen::stand_still;
use crate::ledger::{ThreadShares, tenths};
use crate::observation::ProcessView;
use crate::output::message::Message;
use crate::output::report::{Confidence, LedgerPlaceKind as Place, StationState};

use super::{listener_of, stands_behind};

/// Share of the requests under way that stand in an accept queue from which they wait there for most of their time.
const MOST: f64 = 0.5;
/// Share of the time that a tier's busiest thread runs or wants to from which the core may be what a single thread waits for.
const COMPUTES_SHARE: f64 = 0.5;

/// The finding of each listener whose connections nobody accepts, or too slowly. Of tiers that call each other only the innermost accepts slowly by itself.
pub(super) fn judge(ctx: &Context<'_>, read: &[StationReading]) -> Vec<Finding> {
    let placed: Vec<_> = read.iter().filter_map(|reading| Some((reading, listener_of(ctx, reading)?))).collect();
    let slow: Vec<bool> = placed.iter().map(|(reading, at)| is_slow(ctx, reading, *at)).collect();
    let waits_behind = |tier: &Tier| {
        let behind = ctx.behind(tier);
        let is_behind = |other: &Tier| other.id != tier.id && behind.iter().any(|tier| tier.id == other.id);
        placed.iter().zip(&slow).any(|((_, (other, _)), is_slow)| *is_slow && is_behind(other))
    };
    placed
        .iter()
        .zip(&slow)
        .filter_map(|((reading, (tier, listener)), is_slow)| match idle(ctx, tier, listener) {
            Some(why) => costs(ctx, reading, (tier, listener)).then(|| none(ctx, reading, (tier, listener), &why)),
            None => (*is_slow && !waits_behind(tier)).then(|| slowly(ctx, reading, (tier, listener))),
        })
        .collect()
}

/// Takes away `accepts-slowly` where another finding, at the same server or at one behind it, tells what those who accept wait for.
pub(crate) fn put_aside(ctx: &Context<'_>, stations: &[StationReading], findings: &mut Vec<Finding>) {
    const SAME: [FindingId; 4] =
        [FindingId::ACCEPTS_SLOWLY, FindingId::ACCEPT_QUEUE_FULL, FindingId::SYN_QUEUE_FULL, FindingId::WAITS_INSIDE];
    let link_is_full = stations.iter().any(|reading| reading.station == StationId::LINK && reading.state == StationState::Saturated);
    let others: Vec<Owner> = findings.iter().filter(|finding| !SAME.contains(&finding.id)).map(|finding| finding.owner.clone()).collect();
    let is_told = |finding: &Finding| {
        let Some(tier) = ctx.only_tier(&finding.owner) else { return false };
        let behind = ctx.behind(tier);
        let tells = |other: &Owner| other.tiers().is_empty() || other.has(tier.id) || behind.iter().any(|tier| other.has(tier.id));
        link_is_full || others.iter().any(tells)
    };
    findings.retain(|finding| finding.id != FindingId::ACCEPTS_SLOWLY || !is_told(finding));
}

/// True for a request that is being connected, or waits to be accepted.
fn waits_to_be_accepted(place: Place) -> bool {
    matches!(place, Place::Connecting | Place::Handshake | Place::AcceptQueue)
}

/// Mean number of requests that are being connected to a tier or wait to be accepted, and of all that are under way.
fn at_door(ctx: &Context<'_>, tier: &Tier, is_there: fn(Place) -> bool) -> Option<(f64, f64)> {
    let account = ctx.account()?;
    Some((account.at_places(tier.id.0, is_there), account.under_way()))
}

/// True if those who wait for nobody are many enough to hurt: by the time of the requests under way, by what the load's requests suffered, or by the connections that came.
fn costs(ctx: &Context<'_>, reading: &StationReading, (tier, listener): (&Tier, &PlacedListener)) -> bool {
    if let Some(came) = came_with_load(ctx, (tier, listener)) {
        return Cost::of_time(came).hurts();
    }
    let at_tier = at_door(ctx, tier, waits_to_be_accepted).map_or(0.0, |(there, all)| there / all.max(f64::MIN_POSITIVE));
    let share = (at_tier * share_of_queues(ctx, reading, tier)).min(1.0);
    let suffered = match &ctx.obs.load {
        Some(load) => {
            // A client on a kept connection that nobody accepts gets nothing, while the others make any number of requests.
            let got_nothing = load.keep_alive && load.errors.response_timeout + load.errors.connect_timeout > 0;
            let is_first = ctx.path.is_first(tier);
            Cost::share_of_requests(share).hurts() && (got_nothing || suffered::not_accepted(load, is_first).hurts())
        }
        None => {
            Lengths::of(ctx, listener).is_some_and(|lengths| suffered::dropped(ctx, listener.netns, u64::from(lengths.growth())).hurts())
        }
    };
    reading.state == StationState::Refusing || Cost::of_time(share).hurts() || suffered
}

/// The share of a load's requests that can stand before a queue behind the first tier of which most was there before the load and was never seen to leave: what came since, and
/// those that are being connected. `None` for other queues, and without load: what stood there before is of other clients, and perhaps of another frontend of the proxy.
fn came_with_load(ctx: &Context<'_>, (tier, listener): (&Tier, &PlacedListener)) -> Option<f64> {
    let load = ctx.obs.load.as_ref().filter(|_| !ctx.path.is_first(tier))?;
    let came = Lengths::of(ctx, listener)?.came_to_those_before()?;
    let (connecting, _) = at_door(ctx, tier, |place| matches!(place, Place::Connecting | Place::Handshake))?;
    Some((f64::from(came) + connecting) / suffered::in_flight_peak(load).max(1.0))
}

/// Share of the connections in the accept queues of a tier that wait in this one.
fn share_of_queues(ctx: &Context<'_>, reading: &StationReading, tier: &Tier) -> f64 {
    let all = ctx.queued_mean([tier]);
    if all > 0.0 { (reading.waiting.unwrap_or(0.0) / all).min(1.0) } else { 1.0 }
}

/// True if connections come faster than they are accepted, and the cores are not the reason.
fn is_slow(ctx: &Context<'_>, reading: &StationReading, (tier, listener): (&Tier, &PlacedListener)) -> bool {
    // What stops all answers for a while stops those that accept as well.
    if !tier.is_known() || idle(ctx, tier, listener).is_some() || stand_still(ctx) {
        return false;
    }
    let is_unix = unix::path_of(listener).is_some();
    let full = Lengths::of(ctx, listener).is_some_and(|lengths| lengths.is_mostly_full());
    // A client that is refused at a unix socket does not come again: there a longer queue helps unless the wait in it is too long.
    let overflows = full && reading.state == StationState::Refusing && (stands_behind(ctx, reading) || !is_unix);
    (overflows && cores_are_spare(ctx)) || stand_most(ctx, reading, (tier, listener))
}

/// True if requests stand in the queue for most of their time, all the time, although the cores are idle and no thread computes for long.
fn stand_most(ctx: &Context<'_>, reading: &StationReading, (tier, listener): (&Tier, &PlacedListener)) -> bool {
    let Some((there, all)) = at_door(ctx, tier, |place| place == Place::AcceptQueue) else { return false };
    let there = there * share_of_queues(ctx, reading, tier);
    let always = Lengths::of(ctx, listener).is_some_and(|lengths| lengths.waited() as f64 >= WAITED_SHARE * lengths.samples() as f64);
    let waits = always && reading.waiting.is_some_and(|waiting| waiting >= 1.0);
    let computes = ThreadShares::of(ctx, tier).busiest() >= COMPUTES_SHARE;
    waits && there >= 1.0 && there > MOST * all && !computes && cores_are_spare(ctx)
}

/// True if a longer queue only lets the connections of this listener wait longer.
pub(crate) fn is_accepted_slowly(ctx: &Context<'_>, tier: &Tier, reading: &StationReading) -> bool {
    let Some(listener) = reading.at.listener_of(tier) else { return false };
    idle(ctx, tier, listener).is_some() || is_slow(ctx, reading, (tier, listener))
}

fn none(ctx: &Context<'_>, reading: &StationReading, (tier, listener): (&Tier, &PlacedListener), why: &Idle) -> Finding {
    let is_one = shares_address(tier, listener);
    let (kind, pids) = match why {
        Idle::Stopped(pids) => (if is_one { "one-stopped" } else { "stopped" }, pids),
        Idle::Asleep(pids) => (if is_one { "one-asleep" } else { "asleep" }, pids),
    };
    let name = listener.listener.address.to_string();
    let list: Vec<String> = pids.iter().map(u32::to_string).collect();
    let sockets = at_same_address(tier, listener).count();
    let args = |id: &'static str| {
        let message = Message::new(id).with("tier", tier.name.as_str()).with("listener", name.as_str()).with("kind", kind);
        let message = message.with("pids", list.join(", ")).with("processes", pids.len() as f64).with("sockets", sockets as f64);
        message.with("seconds", ctx.seconds()).with("state", halted_words(halted_by(ctx, pids)))
    };
    let mut proofs = lengths(ctx, reading, listener, "evidence-accepts-none-queue");
    proofs.push(match why {
        Idle::Stopped(pids) => stopped_proof(ctx, pids),
        Idle::Asleep(_) => Evidence::new(args("evidence-accepts-none-ran"), "/proc/PID/task/TID/schedstat", Some(0.0)),
    });
    proofs.extend(stand(ctx, tier));
    Finding {
        confidence: Confidence::High,
        title: args("finding-accepts-none-title"),
        evidence: proofs,
        explanation: vec![args("finding-accepts-none-explanation")],
        ..reading.finding(FindingId::ACCEPTS_NONE)
    }
}

fn slowly(ctx: &Context<'_>, reading: &StationReading, (tier, listener): (&Tier, &PlacedListener)) -> Finding {
    let name = listener.listener.address.to_string();
    let waiting = tenths(reading.waiting.unwrap_or(0.0));
    let args =
        |id: &'static str| Message::new(id).with("tier", tier.name.as_str()).with("listener", name.as_str()).with("waiting", waiting);
    let shares = ThreadShares::of(ctx, tier);
    let mut proofs = lengths(ctx, reading, listener, "evidence-accepts-slowly-queue");
    proofs.extend(stand(ctx, tier));
    if !shares.shares.is_empty() {
        let share = 100.0 * shares.busiest();
        proofs.push(Evidence::new(args("evidence-accepts-slowly-ran").with("share", share), "/proc/PID/task/TID/schedstat", Some(share)));
    }
    let replaced = replaced(ctx, tier);
    if let Some((per_s, serving)) = replaced {
        let text = args("evidence-accepts-slowly-replaced").with("per_s", per_s).with("serving", serving as f64);
        proofs.insert(0, Evidence::new(text, "perf_event_open(2)", Some(per_s)));
    } else {
        proofs.extend(ended_proof(ctx, tier));
    }
    let id = if replaced.is_some() { "finding-accepts-slowly-explanation-replaced" } else { "finding-accepts-slowly-explanation" };
    Finding {
        // What was not read may be what they wait for: a core, or a descriptor.
        confidence: if shares.shares.is_empty() || !are_files_known(ctx, tier) { Confidence::Low } else { Confidence::High },
        title: args("finding-accepts-slowly-title"),
        evidence: proofs,
        explanation: vec![args(id)],
        ..reading.finding(FindingId::ACCEPTS_SLOWLY)
    }
}

/// The evidence that these processes were stopped.
pub(super) fn stopped_proof(ctx: &Context<'_>, pids: &[u32]) -> Evidence {
    let looks = pids.iter().filter_map(|pid| whole(ctx, *pid)).map(|halt| halt.looks).min().unwrap_or(0);
    let by = halted_by(ctx, pids);
    let list: Vec<String> = pids.iter().map(u32::to_string).collect();
    let text = Message::new("evidence-accepts-none-stopped").with("pids", list.join(", ")).with("processes", pids.len() as f64);
    Evidence::new(text.with("looks", looks as f64).with("state", halted_words(by)), state_file(by), Some(looks as f64))
}

/// The words for a process that something halts: "stopped (SIGSTOP or a debugger)".
pub(super) fn halted_words(by: HaltedBy<'_>) -> Message {
    match by {
        HaltedBy::Signal => Message::new("words-halted-signal"),
        HaltedBy::Freezer(id, _) => Message::new("words-halted-frozen").with("group", id.path.as_str()),
    }
}

/// What shows that it is halted.
pub(super) fn state_file(by: HaltedBy<'_>) -> &'static str {
    match by {
        HaltedBy::Signal => "/proc/PID/stat",
        HaltedBy::Freezer(..) => "cgroup",
    }
}

/// True if it is known of each process of a tier how many files it has open and may open.
fn are_files_known(ctx: &Context<'_>, tier: &Tier) -> bool {
    let is_known = |process: &ProcessView| {
        let counted = process.files.last().is_some() || process.fd_count.last().is_some();
        counted && process.limits.last().is_some()
    };
    tier.pids.iter().all(|pid| ctx.obs.processes.get(pid).is_some_and(is_known))
}

/// What the samples of the queue show.
fn lengths(ctx: &Context<'_>, reading: &StationReading, listener: &PlacedListener, id: &'static str) -> Vec<Evidence> {
    let Some(lengths) = Lengths::of(ctx, listener) else { return Vec::new() };
    let (least, most) = lengths.range();
    let text = Message::new(id).with("listener", listener.listener.address.to_string()).with("limit", reading.limit.unwrap_or(0.0));
    let text = text.with("full", lengths.full as f64).with("samples", lengths.samples() as f64).with("least", least).with("most", most);
    let text = text.with("waited", lengths.waited() as f64).with("spread", if least < most { "some" } else { "none" });
    let waiting = reading.waiting.unwrap_or(0.0);
    let text = text.with("waiting", tenths(waiting)).with("refused", (reading.refused_per_s.unwrap_or(0.0) * ctx.seconds()).round());
    vec![Evidence::new(text, format!("sock_diag ({})", ctx.netns_name(listener.netns)), Some(tenths(waiting)))]
}

/// How many requests stand before the tier, and how long each.
fn stand(ctx: &Context<'_>, tier: &Tier) -> Option<Evidence> {
    let (there, all) = at_door(ctx, tier, waits_to_be_accepted)?;
    let rate = ctx.account()?.rate_rps().filter(|rate| *rate > 0.0);
    let text =
        |id: &'static str| Message::new(id).with("number", tenths(there)).with("under_way", tenths(all)).with("tier", tier.name.as_str());
    let text = match rate {
        Some(rate) => text("evidence-accepts-stand-rated").with("rate", rate).with("ms", 1e3 * there / rate),
        None => text("evidence-accepts-stand"),
    };
    (there > 0.0).then(|| Evidence::new(text, "sock_diag", Some(tenths(there))))
}
