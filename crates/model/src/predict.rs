//! Predictions: the goodput that a remedy should give, from what it lifts, or the reason why none is made. The only place that predicts goodput.
//!
//! The prediction is the lowest remaining ceiling once the station has its new limit (operational analysis, Denning & Buzen 1978). A ceiling that agrees with
//! a measurement of the same run proves nothing; only the measurement after the change does.

mod bound;
mod network;
mod refusal;

use crate::facts::Context;
use crate::fix::remedy::Prediction;
use crate::judge::finding::Finding;
use crate::judge::id::StationId;
use crate::judge::station::StationReading;
use crate::observation::load::{LoadResult, Loop};
use crate::output::message::Message;
use crate::output::report::{Ceiling, StationKind};

/// Largest ratio of a prediction's upper to its lower bound. No measurement could contradict a wider one.
const WIDTH_MAX: f64 = 2.5;
/// Squared coefficient of variation of the work offered to the cores at once: usual, smallest and largest. An event loop hands over all that came while it was
/// busy, and workers that started together end together: 1 to 8 as measured on a page that waits (docs/measuring.md). The geometric mean of these is the
/// square root of 8.
const BURSTS: (f64, f64, f64) = (2.8, 1.0, 8.0);
/// Share of the cores' capacity from which the wait for cores is the limit and no longer the number of requests.
const CORES_DECIDE: f64 = 0.8;
/// Stations whose limit is a number of requests under way. The rest of the path is a delay for them, and the cores are a queue.
const COUNTED: &[StationId] = &[StationId::CLIENTS, StationId::EPHEMERAL_PORTS, StationId::WORKER_POOL];

/// Stations whose limit is a number of cores: a queue for those requests.
const CORES: &[StationId] = &[StationId::CPU, StationId::CPU_QUOTA];

/// What a remedy lifts at the station of its finding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lift {
    /// The station gets this limit, in its own unit: workers, ports, requests a second.
    Limit(f64),
    /// The limit disappears, or is far enough for all that this load asks for: a table, a queue, file descriptors.
    Away,
    /// A cliff moves further away; whether far enough is unknown.
    Further,
    /// Each request becomes cheaper by an unknown amount: a port search or a connection less.
    Cost,
}

impl Lift {
    /// A limit raised to a value that has room for this load, or not.
    pub fn to_room(has_room: bool) -> Self {
        if has_room { Lift::Away } else { Lift::Further }
    }

    /// The new limit, or `None` for no limit. An error if the remaining limits cannot be known.
    fn limit(self, placed: &StationReading) -> Result<Option<f64>, Message> {
        match self {
            Lift::Limit(limit) => Ok(Some(limit)),
            Lift::Away => Ok(None),
            Lift::Further => Err(Message::new("prediction-refused-further").with("station", placed.station.0)),
            Lift::Cost => Err(Message::new("prediction-refused-search")),
        }
    }
}

/// The readings and findings of one observation that a prediction needs.
pub struct Scene<'s, 'a> {
    /// The input of the stations.
    pub ctx: &'s Context<'a>,
    /// Every station's reading, in the order of the path.
    pub stations: &'s [StationReading],
    /// Every finding, causes first.
    pub findings: &'s [Finding],
}

/// The most requests a second that a station passes after the change.
#[derive(Debug, Clone, Copy)]
struct Remaining {
    station: StationId,
    /// Its limit after the change, in its own unit.
    limit: f64,
    ceiling: Ceiling,
}

/// The goodput to expect after this finding's station was lifted.
pub fn predict(scene: &Scene<'_, '_>, finding: &Finding, placed: &StationReading, lift: Lift) -> Prediction {
    let refused =
        |why| Prediction::Refused { why, at_most: bound::at_most(scene, finding, placed, lift), unsaid: unsaid(scene, placed, lift) };
    outlook(scene, finding, placed, lift).unwrap_or_else(refused)
}

/// What a refused prediction would have said.
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
    refusal::waiting_behind(scene, placed)?;
    let remaining = remaining(scene, placed, limit);
    let (goodput, next) = expected(&remaining, load);
    refusal::untold(scene, limit.map(|_| placed), &remaining, next, load)?;
    refusal::fills(scene, placed, goodput.value)?;
    if goodput.high > WIDTH_MAX * goodput.low {
        let why = Message::new("prediction-refused-wide").with("low", goodput.low).with("high", goodput.high);
        return Err(why.with("station", next.map_or("", |station| station.0)));
    }
    Ok(Prediction::Goodput { rps: goodput, next_station: next })
}

/// The ceilings of all rate stations. The lifted station has its new limit, or is left out if it has none any more.
fn remaining(scene: &Scene<'_, '_>, lifted: &StationReading, new_limit: Option<f64>) -> Vec<Remaining> {
    let rates = scene.stations.iter().filter(|reading| reading.kind == StationKind::Rate);
    let after = |reading: &StationReading| {
        let (ceiling, limit) = (reading.ceiling_rps?, reading.limit?);
        let times = if is_lifted(reading, lifted) { new_limit? / limit } else { 1.0 };
        let ceiling = Ceiling { value: ceiling.value * times, low: ceiling.low * times, high: ceiling.high * times };
        ceiling.value.is_finite().then_some(Remaining { station: reading.station, limit: limit * times, ceiling })
    };
    rates.filter_map(after).collect()
}

/// True for the lifted station, and for an interface whose limit is the rate of the lifted shaper.
fn is_lifted(reading: &StationReading, lifted: &StationReading) -> bool {
    let is_its_shaper = reading.station == StationId::LINK && lifted.station == StationId::SHAPER && reading.limit == lifted.limit;
    reading.is_same(lifted) || is_its_shaper
}

/// The entry with the lowest ceiling.
fn lowest<'r>(remaining: impl Iterator<Item = &'r Remaining>) -> Option<&'r Remaining> {
    remaining.min_by(|a, b| a.ceiling.value.total_cmp(&b.ceiling.value))
}

/// The lowest ceiling and its station. If the requests under way are limited and the cores are close to their limit too, fewer pass than either would allow
/// alone: some wait for a core while others wait to be under way. From four fifths of the cores' capacity on the cores decide.
fn expected(remaining: &[Remaining], load: &LoadResult) -> (Ceiling, Option<StationId>) {
    let mut next = lowest(remaining.iter()).map(|station| station.station);
    let least = |part: fn(&Ceiling) -> f64| remaining.iter().map(|station| part(&station.ceiling)).fold(f64::INFINITY, f64::min);
    let (mut value, mut low, mut high) = (least(|c| c.value), least(|c| c.low), least(|c| c.high));
    let closed = matches!(load.shape, Loop::Closed { .. });
    let is_counted = |station: &&Remaining| COUNTED.contains(&station.station) && (closed || station.station != StationId::CLIENTS);
    let fewest = lowest(remaining.iter().filter(is_counted));
    let cores = lowest(remaining.iter().filter(|station| CORES.contains(&station.station)));
    if let (Some(fewest), Some(cores)) = (fewest, cores) {
        // A fraction of a core counts as a slower core.
        let number = cores.limit.max(1.0);
        let together = |counted_rps: f64, cores_rps: f64, bursts: f64| {
            network::throughput(fewest.limit, fewest.limit / counted_rps, number, number / cores_rps, bursts)
        };
        let (counted, cores, cores_name) = (fewest.ceiling, cores.ceiling, cores.station);
        let (usual, least_bursts, most_bursts) = BURSTS;
        let joint = together(counted.value, cores.value, usual);
        if joint < value && joint >= CORES_DECIDE * cores.value {
            next = Some(cores_name);
        }
        value = value.min(joint);
        // Both at their bound at once is much less likely than one of them.
        let lower = [(counted.low, cores.value, usual), (counted.value, cores.low, usual), (counted.value, cores.value, most_bursts)];
        let higher = [(counted.high, cores.value, usual), (counted.value, cores.high, usual), (counted.value, cores.value, least_bursts)];
        low = lower.into_iter().map(|(counted, cores, bursts)| together(counted, cores, bursts)).fold(low, f64::min);
        high = high.min(higher.into_iter().map(|(counted, cores, bursts)| together(counted, cores, bursts)).fold(0.0, f64::max));
    }
    (Ceiling { value, low: low.min(value), high: high.max(value) }, next)
}
