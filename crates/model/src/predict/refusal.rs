//! The reasons to refuse a prediction of goodput (DESIGN.md, "The idea").

use super::{COUNTED, Remaining, Scene, lowest};
use crate::facts::GOOD_MIN;
use crate::facts::cores::{few_threads, other_tenants};
use crate::facts::harm::Cost;
use crate::facts::pool::{CONNECTIONS, as_quick_as_alone};
use crate::judge::finding::Finding;
use crate::judge::id::{FindingId, StationId};
use crate::judge::station::StationReading;
use crate::judge::stations::room_unknown;
use crate::judge::unseen::waits_unseen;
use crate::ledger::Account;
use crate::observation::load::{LoadResult, Loop};
use crate::output::message::Message;
use crate::output::report::{Role, StationKind, StationState};

/// Findings that hide the cost of an answer: sleeping or rate-limited time counts as service time.
const HIDING: &[FindingId] = &[FindingId::THROTTLED, FindingId::EGRESS_SHAPED];
/// Statuses of refusals by a server: no worker, no port, or over its limit of requests.
const TURNED_AWAY: &[u16] = &[429, 500, 502, 503, 504];

/// The load that a prediction starts from.
pub(super) fn measured<'a>(scene: &Scene<'_, 'a>) -> Result<&'a LoadResult, Message> {
    let load = scene.ctx.obs.load.as_ref().ok_or_else(|| Message::new("prediction-refused-passive"))?;
    if load.good < GOOD_MIN {
        return Err(Message::new("prediction-refused-few").with("good", load.good));
    }
    // What is gained serves other clients as well, and how they share it is not known.
    match scene.ctx.account().and_then(Account::others) {
        Some((_, times)) => Err(Message::new("prediction-refused-others").with("share", 100.0 * (1.0 - 1.0 / times))),
        None => Ok(load),
    }
}

/// Refuses if another fault remains, or if requests fail in a way that lifting this station does not end.
pub(super) fn failing(scene: &Scene<'_, '_>, finding: &Finding, placed: &StationReading, load: &LoadResult) -> Result<(), Message> {
    // The load generator is not fixed. With the same load it reaches its ceiling again, which is one of the remaining ones.
    let generator_full =
        scene.stations.iter().any(|read| read.station == StationId::LOAD_GENERATOR && read.state == StationState::Saturated);
    let is_own = |other: &Finding| {
        let is_generator = other.id == FindingId::GENERATOR_LIMITED && generator_full;
        std::ptr::eq(other, finding) || other.symptom_of.contains(&finding.id) || is_generator
    };
    let other = |why: &str| Err(Message::new("prediction-refused-other").with("what", why));
    if let Some(cause) = scene.findings.iter().find(|other| other.role == Role::Cause && !is_own(other)) {
        return other(cause.id.0);
    }
    let symptom = |read: &StationReading| {
        let here = |other: &&Finding| other.station == read.station && other.at == read.at;
        scene.findings.iter().filter(|other| is_own(other)).any(|other| here(&other))
    };
    let refuses = |read: &&StationReading| read.state == StationState::Refusing && !read.is_same(placed) && !symptom(read);
    if let Some(refusing) = scene.stations.iter().find(refuses) {
        return other(refusing.station.0);
    }
    let failed = load.requests.saturating_sub(load.good);
    let count = failed.saturating_sub(explained(load, placed));
    if Cost::of_requests(count, load.requests).hurts() {
        let why = Message::new("prediction-refused-losses").with("count", count).with("requests", load.requests);
        return Err(why.with("station", placed.station.0));
    }
    Ok(())
}

/// Refuses if it is not known that more workers would do more: under load a request holds one for longer than a whole answer takes alone, so that they wait for each
/// other or for something at its limit; or, where that was not measured, its requests stand at another server of which it is not known that it has room.
pub(super) fn waiting_behind(scene: &Scene<'_, '_>, lifted: &StationReading) -> Result<(), Message> {
    let ctx = scene.ctx;
    let is_pool = lifted.station == StationId::WORKER_POOL && lifted.unit != CONNECTIONS;
    let Some(tier) = ctx.only_tier(&lifted.owner).filter(|_| is_pool) else { return Ok(()) };
    let args = |id: &'static str| Message::new(id).with("tier", tier.name.as_str());
    match as_quick_as_alone(ctx, tier) {
        Some(true) => Ok(()),
        Some(false) => Err(args("prediction-refused-held").with("alone", ctx.alone_us().unwrap_or(0.0) / 1e3)),
        None => match room_unknown(ctx, tier) {
            Some((upstream, share)) => Err(args("prediction-refused-behind").with("upstream", upstream).with("share", share * 100.0)),
            None => Ok(()),
        },
    }
}

/// Failures caused by this station itself. A cliff refuses, resets, or lets requests wait until they time out.
fn explained(load: &LoadResult, placed: &StationReading) -> u64 {
    let errors = &load.errors;
    let turned_away: u64 = TURNED_AWAY.iter().filter_map(|status| load.status.get(status)).sum();
    let given_up = errors.response_timeout + errors.connect_timeout;
    let refused = errors.connect_refused + errors.connect_failed + errors.reset + errors.closed_before_answer + errors.never_sent;
    match (placed.kind, placed.station) {
        (StationKind::Cliff, _) => turned_away + given_up + refused,
        (_, StationId::WORKER_POOL | StationId::CPU_QUOTA) => turned_away + given_up,
        _ => turned_away,
    }
}

/// Refuses if the cost at the next limit, `next`, is unknown. Nothing needs to be known about the `lifted` station if its limit disappears.
pub(super) fn untold(
    scene: &Scene<'_, '_>,
    lifted: Option<&StationReading>,
    remaining: &[Remaining],
    next: Option<StationId>,
    load: &LoadResult,
) -> Result<(), Message> {
    let has = |station: StationId| remaining.iter().any(|other| other.station == station);
    let needed = lifted.map_or(StationId::CPU, |placed| placed.station);
    if !has(needed) || !has(StationId::CPU) {
        let lacking = if has(StationId::CPU) { needed } else { StationId::CPU };
        return Err(if is_hidden(load) { hidden(load) } else { Message::new("prediction-refused-unread").with("station", lacking.0) });
    }
    let closed = matches!(load.shape, Loop::Closed { .. });
    if closed && !has(StationId::CLIENTS) {
        return Err(Message::new("prediction-refused-service"));
    }
    // Requests behind a cliff never arrived so far: it must be known that more of them can run at once.
    if lifted.is_none() && waits_unseen(scene.ctx).is_some() {
        return Err(Message::new("prediction-refused-unseen"));
    }
    if let Some((tier, threads, cores)) = few_threads(scene.ctx).filter(|_| lifted.is_none()) {
        let why = Message::new("prediction-refused-threads").with("tier", tier).with("threads", threads as f64);
        return Err(why.with("cores", cores as f64));
    }
    let Some(least) = lowest(remaining.iter()) else { return Err(hidden(load)) };
    let cores_low =
        remaining.iter().filter(|other| other.station == StationId::CPU).map(|other| other.ceiling.low).fold(f64::INFINITY, f64::min);
    // The cores limit next, or could.
    let by_cores = next == Some(StationId::CPU) || cores_low < least.ceiling.value;
    if by_cores && is_hidden(load) {
        return Err(hidden(load));
    }
    if by_cores && let Some((_, share)) = other_tenants(scene.ctx).into_iter().max_by(|a, b| a.1.total_cmp(&b.1)) {
        return Err(Message::new("prediction-refused-tenants").with("share", share * 100.0));
    }
    // Requests that are held up take longer, and so do all that wait for them.
    if (by_cores || (closed && next.is_some_and(|next| COUNTED.contains(&next))))
        && let Some(by) = hiding(scene)
    {
        return Err(Message::new("prediction-refused-slept").with("station", by.0));
    }
    Ok(())
}

/// A finding that limits answers by a rate, so that their real cost does not show.
fn hiding(scene: &Scene<'_, '_>) -> Option<FindingId> {
    scene.findings.iter().map(|finding| finding.id).find(|id| HIDING.contains(id))
}

/// Refuses if a conntrack table, other than the lifted one, would be full at the predicted rate: its entries grow with the rate.
pub(super) fn fills(scene: &Scene<'_, '_>, lifted: &StationReading, goodput_rps: f64) -> Result<(), Message> {
    let Some(load) = &scene.ctx.obs.load else { return Ok(()) };
    let times = goodput_rps / load.throughput_rps();
    let would = |read: &&StationReading| {
        read.station == StationId::CONNTRACK_TABLE
            && !read.is_same(lifted)
            && read.used.zip(read.limit).is_some_and(|(used, limit)| used * times > limit)
    };
    match scene.stations.iter().find(would) {
        Some(read) => Err(Message::new("prediction-refused-fills").with("station", read.station.0).with("rate", goodput_rps)),
        None => Ok(()),
    }
}

/// True if less than half of the answers are good: failures use time and CPU that the answers do not show.
fn is_hidden(load: &LoadResult) -> bool {
    load.good * 2 < load.requests
}

fn hidden(load: &LoadResult) -> Message {
    Message::new("prediction-refused-hidden").with("share", 100.0 * load.good as f64 / load.requests.max(1) as f64)
}
