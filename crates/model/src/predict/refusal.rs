//! When no goodput may be predicted (DESIGN.md, "The idea"), each with its reason.

use super::{Remaining, Scene, is_same, lowest};
use crate::load::{LoadResult, Loop};
use crate::message::Message;
use crate::report::{Finding, Role, StationState};
use crate::stations::{GOOD_MIN, Placed, cpu_quota, other_tenants};

/// Share of the requests that may fail in a way that the lifted station does not explain.
const UNEXPLAINED_MAX: f64 = 0.01;
/// Findings that hide what an answer costs: what is put to sleep or held up by a rate is counted into the time of service.
const HIDING: &[&str] = &[cpu_quota::ID, "egress-shaped"];
/// Statuses with which a server turns away what finds no worker or no port, or passes its own limit of requests.
const TURNED_AWAY: &[u16] = &[429, 500, 502, 503, 504];

/// The load from which a prediction can start.
pub(super) fn measured<'a>(scene: &Scene<'a>) -> Result<&'a LoadResult, Message> {
    let load = scene.ctx.obs.load.as_ref().ok_or_else(|| Message::new("prediction-refused-passive"))?;
    if load.good < GOOD_MIN { Err(Message::new("prediction-refused-few").with("good", load.good)) } else { Ok(load) }
}

/// A cliff turns away what it turns away at no rate: all that can be told is what the rest would pass at the most.
pub(super) fn cliff(load: &LoadResult, remaining: &[Remaining<'_>], station: &str) -> Message {
    let most = remaining.iter().min_by(|a, b| a.ceiling.high.total_cmp(&b.ceiling.high));
    match most.filter(|_| !is_hidden(load)) {
        Some(next) => {
            let why = Message::new("prediction-refused-cliff").with("station", station).with("high", next.ceiling.high);
            why.with("next", next.station)
        }
        None => hidden(load),
    }
}

/// Another fault remains, or requests fail in a way that lifting this station does not end.
pub(super) fn failing(scene: &Scene<'_>, finding: &Finding, placed: &Placed, load: &LoadResult) -> Result<(), Message> {
    let is_own = |other: &Finding| std::ptr::eq(other, finding) || other.symptom_of.contains(&finding.id);
    let other = |why: &str| Err(Message::new("prediction-refused-other").with("what", why));
    if let Some(cause) = scene.findings.iter().find(|other| other.role == Role::Cause && !is_own(other)) {
        return other(&cause.id);
    }
    let symptom = |read: &Placed| {
        let here = |other: &&Finding| other.station == read.station.station && other.at == read.station.at;
        scene.findings.iter().filter(|other| is_own(other)).any(|other| here(&other))
    };
    let refuses = |read: &&Placed| read.station.state == StationState::Refusing && !is_same(read, placed) && !symptom(read);
    if let Some(refusing) = scene.stations.iter().find(refuses) {
        return other(&refusing.station.station);
    }
    let failed = load.requests.saturating_sub(load.good);
    let count = failed.saturating_sub(explained(load, &placed.station.station));
    if count as f64 > UNEXPLAINED_MAX * load.requests as f64 {
        let why = Message::new("prediction-refused-losses").with("count", count).with("requests", load.requests);
        return Err(why.with("station", placed.station.station.as_str()));
    }
    Ok(())
}

/// Failures that this station brings about by itself.
fn explained(load: &LoadResult, station: &str) -> u64 {
    let turned_away: u64 = TURNED_AWAY.iter().filter_map(|status| load.status.get(status)).sum();
    let waited_too_long = load.errors.response_timeout + load.errors.connect_timeout;
    turned_away + if matches!(station, "worker-pool" | "cpu-quota") { waited_too_long } else { 0 }
}

/// What limits next, or why that cannot be told.
pub(super) fn untold<'a>(scene: &Scene<'_>, placed: &Placed, remaining: &[Remaining<'a>], load: &LoadResult) -> Result<&'a str, Message> {
    let has = |station: &str| remaining.iter().any(|other| other.station == station);
    if !has(&placed.station.station) || !has("cpu") {
        let lacking = if has("cpu") { placed.station.station.as_str() } else { "cpu" };
        return Err(if is_hidden(load) { hidden(load) } else { Message::new("prediction-refused-unread").with("station", lacking) });
    }
    if matches!(load.shape, Loop::Closed { .. }) && !has("clients") {
        return Err(Message::new("prediction-refused-service"));
    }
    let Some(next) = lowest(remaining.iter()) else { return Err(hidden(load)) };
    let cores_low = remaining.iter().filter(|other| other.station == "cpu").map(|other| other.ceiling.low).fold(f64::INFINITY, f64::min);
    // The cores limit next, or may as well as not.
    if next.station == "cpu" || cores_low < next.ceiling.value {
        if is_hidden(load) {
            return Err(hidden(load));
        }
        if let Some((_, share)) = other_tenants(scene.ctx).into_iter().max_by(|a, b| a.1.total_cmp(&b.1)) {
            return Err(Message::new("prediction-refused-tenants").with("share", share * 100.0));
        }
        if let Some(by) = hiding(scene) {
            return Err(Message::new("prediction-refused-slept").with("station", by));
        }
    }
    Ok(next.station)
}

/// What holds answers up by a rate, so that their cost at speed is not seen.
fn hiding<'a>(scene: &Scene<'a>) -> Option<&'a str> {
    scene.findings.iter().map(|finding| finding.id.as_str()).find(|id| HIDING.contains(id))
}

/// A table of connections that is not full yet would be at the rate to come: its entries grow with it.
pub(super) fn fills(scene: &Scene<'_>, goodput_rps: f64) -> Result<(), Message> {
    let Some(load) = &scene.ctx.obs.load else { return Ok(()) };
    let times = goodput_rps / load.throughput_rps();
    let would = |read: &&Placed| {
        let station = &read.station;
        station.station == "conntrack-table" && station.used.zip(station.limit).is_some_and(|(used, limit)| used * times > limit)
    };
    match scene.stations.iter().find(would) {
        Some(read) => {
            Err(Message::new("prediction-refused-fills").with("station", read.station.station.as_str()).with("rate", goodput_rps))
        }
        None => Ok(()),
    }
}

/// Good answers under half of all: what fails takes time and CPU that they do not tell.
fn is_hidden(load: &LoadResult) -> bool {
    load.good * 2 < load.requests
}

fn hidden(load: &LoadResult) -> Message {
    Message::new("prediction-refused-hidden").with("share", 100.0 * load.good as f64 / load.requests.max(1) as f64)
}
