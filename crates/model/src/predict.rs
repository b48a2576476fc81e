//! What a remedy should give, from what it lifts: the one place where goodput is predicted, or where that is refused with its reason.
//!
//! The prediction is the lowest ceiling of what remains once the station's limit is the new one (operational analysis, Denning & Buzen 1978). A
//! ceiling that agrees with what was measured in the same run proves nothing; only the measurement after the change does.

mod bound;
mod network;
mod refusal;

use crate::facts::Context;
use crate::judge::stations::StationReading;
use crate::observation::load::{LoadResult, Loop};
use crate::output::message::Message;
use crate::output::report::{Ceiling, Finding, Prediction, StationKind};

/// Times that the upper bound of a prediction may be the lower one: beyond, nothing that is measured could contradict it.
const WIDTH_MAX: f64 = 2.5;
/// Squared coefficient of variation of what the cores are asked for at once: usual, least and most of it. One event loop hands over all that came while it
/// was busy, and workers that were begun together end together: 1 to 8 where it was measured, on a page that waits (docs/measuring.md), the middle of which
/// as factors go is the square root of 8.
const BURSTS: (f64, f64, f64) = (2.8, 1.0, 8.0);
/// Share of the cores from which the wait for them, and no longer the number of requests, decides.
const CORES_DECIDE: f64 = 0.8;
/// Stations whose limit is a number of requests under way: the rest of the path is a delay to them, and the cores a queue.
const COUNTED: &[&str] = &["clients", "ephemeral-ports", "worker-pool"];

/// Stations whose limit is a number of cores: a queue for those requests.
const CORES: &[&str] = &["cpu", "cpu-quota"];

/// What a remedy lifts at the station of its finding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lift {
    /// The station's limit becomes this, in the station's own unit: workers, ports, requests a second.
    Limit(f64),
    /// A limit goes away, or so far off that all that this load asks for has room: a table, a queue, file descriptors.
    Away,
    /// A cliff moves further off, and nothing tells whether far enough.
    Further,
    /// Each request becomes cheaper by an amount that the readings do not tell: a search, a connection less.
    Cost,
}

impl Lift {
    /// A limit that is raised to where this load has room, or not.
    pub fn to_room(has_room: bool) -> Self {
        if has_room { Lift::Away } else { Lift::Further }
    }

    /// The new limit, or none at all; an error where what remains cannot be told.
    fn limit(self, placed: &StationReading) -> Result<Option<f64>, Message> {
        match self {
            Lift::Limit(limit) => Ok(Some(limit)),
            Lift::Away => Ok(None),
            Lift::Further => Err(Message::new("prediction-refused-further").with("station", placed.station.station.as_str())),
            Lift::Cost => Err(Message::new("prediction-refused-search")),
        }
    }
}

/// All that was read and judged of one observation: what a prediction follows from.
pub struct Scene<'s, 'a> {
    /// What the stations read from.
    pub ctx: &'s Context<'a>,
    /// Every station's reading, in the order of the path.
    pub stations: &'s [StationReading],
    /// Every finding, causes first.
    pub findings: &'s [Finding],
}

/// The most requests a second that a station will pass after the change.
#[derive(Debug, Clone, Copy)]
struct Remaining<'a> {
    station: &'a str,
    /// Its limit after the change, in its own unit.
    limit: f64,
    ceiling: Ceiling,
}

/// The goodput that lifting this finding's station should give.
pub fn predict(scene: &Scene<'_, '_>, finding: &Finding, placed: &StationReading, lift: Lift) -> Prediction {
    let refused = |why| Prediction::Refused {
        refused: scene.ctx.text(why),
        at_most: bound::at_most(scene, finding, placed, lift),
        unsaid: unsaid(scene, placed, lift),
    };
    outlook(scene, finding, placed, lift).unwrap_or_else(refused)
}

/// What would have been predicted where that is refused.
fn unsaid(scene: &Scene<'_, '_>, placed: &StationReading, lift: Lift) -> Option<Ceiling> {
    let load = refusal::measured(scene).ok()?;
    let limit = match lift {
        Lift::Further => None,
        lift => lift.limit(placed).ok()?,
    };
    let remaining = remaining(scene, placed, limit);
    (!remaining.is_empty()).then(|| expected(&remaining, load).0)
}

fn outlook(scene: &Scene<'_, '_>, finding: &Finding, placed: &StationReading, lift: Lift) -> Result<Prediction, Message> {
    let load = refusal::measured(scene)?;
    let limit = lift.limit(placed)?;
    refusal::failing(scene, finding, placed, load)?;
    let remaining = remaining(scene, placed, limit);
    let (goodput, next) = expected(&remaining, load);
    refusal::untold(scene, limit.map(|_| placed), &remaining, next, load)?;
    refusal::fills(scene, placed, goodput.value)?;
    if goodput.high > WIDTH_MAX * goodput.low {
        let why = Message::new("prediction-refused-wide").with("low", goodput.low).with("high", goodput.high);
        return Err(why.with("station", next));
    }
    let Ceiling { value, low, high } = goodput;
    Ok(Prediction::Goodput { goodput_rps: value, low, high, next_station: next.to_owned() })
}

/// The ceilings of every rate station that has one, with that of the lifted station at its new limit, or without it where it has none any more.
fn remaining<'a>(scene: &Scene<'a, '_>, lifted: &StationReading, new_limit: Option<f64>) -> Vec<Remaining<'a>> {
    let rates = scene.stations.iter().filter(|placed| placed.station.kind == StationKind::Rate);
    let after = |placed: &'a StationReading| {
        let station = &placed.station;
        let (ceiling, limit) = (station.ceiling_rps?, station.limit?);
        let times = if is_same(placed, lifted) { new_limit? / limit } else { 1.0 };
        let ceiling = Ceiling { value: ceiling.value * times, low: ceiling.low * times, high: ceiling.high * times };
        ceiling.value.is_finite().then_some(Remaining { station: station.station.as_str(), limit: limit * times, ceiling })
    };
    rates.filter_map(after).collect()
}

fn is_same(placed: &StationReading, other: &StationReading) -> bool {
    let (a, b) = (&placed.station, &other.station);
    a.station == b.station && a.at == b.at && a.tier == b.tier
}

/// The one with the lowest of these.
fn lowest<'r, 'a>(remaining: impl Iterator<Item = &'r Remaining<'a>>) -> Option<&'r Remaining<'a>>
where
    'a: 'r,
{
    remaining.min_by(|a, b| a.ceiling.value.total_cmp(&b.ceiling.value))
}

/// The lowest ceiling, and whose it is. Where requests under way are counted and the cores come near their limit together, less gets through than
/// either would pass alone: some wait for a core while others, that could use it, wait for their turn to be under way. From four fifths of the cores on
/// it is they that decide.
fn expected<'a>(remaining: &[Remaining<'a>], load: &LoadResult) -> (Ceiling, &'a str) {
    let mut next = lowest(remaining.iter()).map_or("", |station| station.station);
    let least = |part: fn(&Ceiling) -> f64| remaining.iter().map(|station| part(&station.ceiling)).fold(f64::INFINITY, f64::min);
    let (mut value, mut low, mut high) = (least(|c| c.value), least(|c| c.low), least(|c| c.high));
    let closed = matches!(load.shape, Loop::Closed { .. });
    let is_counted = |station: &&Remaining<'_>| COUNTED.contains(&station.station) && (closed || station.station != "clients");
    let fewest = lowest(remaining.iter().filter(is_counted));
    let cores = lowest(remaining.iter().filter(|station| CORES.contains(&station.station)));
    if let (Some(fewest), Some(cores)) = (fewest, cores) {
        // A part of a core is a slower one.
        let number = cores.limit.max(1.0);
        let together = |counted_rps: f64, cores_rps: f64, bursts: f64| {
            network::throughput(fewest.limit, fewest.limit / counted_rps, number, number / cores_rps, bursts)
        };
        let (counted, cores, cores_name) = (fewest.ceiling, cores.ceiling, cores.station);
        let (usual, least_bursts, most_bursts) = BURSTS;
        let joint = together(counted.value, cores.value, usual);
        if joint < value && joint >= CORES_DECIDE * cores.value {
            next = cores_name;
        }
        value = value.min(joint);
        // That two of them are as low or as high as may be is much less likely than that one of them is.
        let lower = [(counted.low, cores.value, usual), (counted.value, cores.low, usual), (counted.value, cores.value, most_bursts)];
        let higher = [(counted.high, cores.value, usual), (counted.value, cores.high, usual), (counted.value, cores.value, least_bursts)];
        low = lower.into_iter().map(|(counted, cores, bursts)| together(counted, cores, bursts)).fold(low, f64::min);
        high = high.min(higher.into_iter().map(|(counted, cores, bursts)| together(counted, cores, bursts)).fold(0.0, f64::max));
    }
    (Ceiling { value, low: low.min(value), high: high.max(value) }, next)
}
