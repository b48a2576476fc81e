//! The report of `capacity`, the `chokepoint/capacity/1` document: what watched traffic leaves in reserve at each station.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_model::report::{At, Diagnosis, Station, StationKind, StationState};
use serde::{Deserialize, Serialize};

use crate::growth::Growth;
use crate::interval::Interval;
use crate::reserve::{Basis, Full, Unknown, can_fill, full_at, share};

/// Name and version of the schema.
pub const SCHEMA: &str = "chokepoint/capacity/1";

/// The whole report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapacityReport {
    /// "chokepoint/capacity/1".
    pub schema: String,
    /// The URL.
    pub url: String,
    /// Seconds that were watched.
    pub watched_s: f64,
    /// Requests per second in that time; null if neither logs nor sockets show it.
    pub rate_rps: Option<f64>,
    /// The answer in one sentence.
    pub summary: String,
    /// The stations that can fill, the first to fill first, those of which it is not known last.
    pub stations: Vec<Reserve>,
    /// The first to fill, by its index in `stations`; null if that is not known of any.
    pub first: Option<usize>,
    /// The growth that was given.
    pub growth: Option<GrowthReport>,
    /// Things to know.
    pub warnings: Vec<String>,
}

/// The growth that was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrowthReport {
    /// Share per period.
    pub share: f64,
    /// "day", "week", "month" or "year".
    pub period: String,
    /// Days until the first station is full; null if that is not known.
    pub days: Option<f64>,
    /// One sentence.
    pub text: String,
}

/// What one station has left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reserve {
    /// Its tier.
    pub tier: String,
    /// Its id.
    pub station: String,
    /// Where it is.
    pub at: At,
    /// Rate or cliff.
    pub kind: StationKind,
    /// Used, in the station's unit.
    pub used: Option<f64>,
    /// Its limit.
    pub limit: Option<f64>,
    /// Unit of both.
    pub unit: String,
    /// used / limit.
    pub share: Option<f64>,
    /// Its state.
    pub state: StationState,
    /// Requests per second in all at which it is full; null if that is not known.
    pub full_rps: Option<Interval>,
    /// More requests per second until then, at least zero.
    pub headroom_rps: Option<f64>,
    /// How that was found.
    pub basis: Option<Basis>,
    /// Why it is not known.
    pub unknown: Option<Unknown>,
    /// One sentence.
    pub text: String,
}

/// The report of a passive diagnosis. `watched_s`: how long traffic was watched.
pub fn report(diagnosis: &Diagnosis, watched_s: f64, growth: Option<Growth>, words: &Catalogue) -> CapacityReport {
    let rate_rps = rate(diagnosis);
    // The load generator is not part of production.
    let own =
        diagnosis.path.iter().filter(|station| !["load-generator", "clients"].contains(&station.station.as_str()) && can_fill(station));
    let mut stations: Vec<Reserve> = own.map(|station| reserve(station, rate_rps, words)).collect();
    let full = |reserve: &Reserve| reserve.full_rps.map_or(f64::INFINITY, |full| full.value);
    stations.sort_by(|a, b| full(a).total_cmp(&full(b)));
    let first = stations.first().filter(|first| first.full_rps.is_some()).map(|_| 0);
    let unknown = stations.iter().filter(|reserve| reserve.full_rps.is_none()).count();
    let mut warnings = vec![words.text(&Message::new("capacity-window").with("seconds", watched_s))];
    if unknown > 0 {
        warnings.push(words.text(&Message::new("capacity-unknown").with("count", unknown as f64).with("of", stations.len() as f64)));
    }
    warnings.extend(diagnosis.warnings.iter().cloned());
    CapacityReport {
        schema: SCHEMA.to_owned(),
        url: diagnosis.target.url.clone(),
        watched_s,
        rate_rps,
        summary: words.text(&summary(diagnosis, rate_rps, first.map(|place| &stations[place]))),
        growth: growth.map(|growth| growth_report(growth, rate_rps, first.map(|place| &stations[place]), words)),
        stations,
        first,
        warnings,
    }
}

/// The watched rate: from logs, else from the sockets.
fn rate(diagnosis: &Diagnosis) -> Option<f64> {
    let logged = diagnosis.load.as_ref().map(|load| load.throughput_rps);
    logged.or_else(|| diagnosis.ledger.as_ref()?.rate_rps)
}

fn summary(diagnosis: &Diagnosis, rate_rps: Option<f64>, first: Option<&Reserve>) -> Message {
    match (rate_rps, first) {
        (_, None) if diagnosis.target.tiers.is_empty() => Message::new("capacity-no-server"),
        (None, _) => Message::new("capacity-no-rate"),
        (Some(rate), _) if rate <= 0.0 => Message::new("capacity-no-traffic"),
        (Some(rate), None) => Message::new("capacity-none-known").with("rate", rate),
        (Some(rate), Some(first)) => {
            let headroom = first.headroom_rps.unwrap_or(0.0);
            let message = Message::new(if headroom > 0.0 { "capacity-first" } else { "capacity-full" });
            let message = message.with("rate", rate).with("headroom", headroom).with("tier", first.tier.as_str());
            message.with("station", first.station.replace('-', " ")).with("full", first.full_rps.map_or(0.0, |full| full.value))
        }
    }
}

fn reserve(station: &Station, rate_rps: Option<f64>, words: &Catalogue) -> Reserve {
    let found = full_at(station, rate_rps);
    let full = found.as_ref().ok().map(|full| full.rate_rps);
    let headroom_rps = full.zip(rate_rps).map(|(full, rate)| (full.value - rate).max(0.0));
    Reserve {
        tier: station.tier.clone(),
        station: station.station.clone(),
        at: station.at.clone(),
        kind: station.kind,
        used: station.used,
        limit: station.limit,
        unit: station.unit.clone(),
        share: share(station),
        state: station.state,
        full_rps: full,
        headroom_rps,
        basis: found.as_ref().ok().map(|full| full.basis),
        unknown: found.err(),
        text: words.text(&sentence(station, found, headroom_rps)),
    }
}

fn sentence(station: &Station, found: Result<Full, Unknown>, headroom_rps: Option<f64>) -> Message {
    match found {
        Err(Unknown::NotRead) => Message::new("capacity-not-read").with("why", station.why.as_str()),
        Err(Unknown::NoRate) => Message::new("capacity-station-no-rate"),
        Err(Unknown::NotUsed) => Message::new("capacity-not-used"),
        Err(Unknown::Queue) => Message::new("capacity-queue").with("share", share(station).unwrap_or(0.0) * 100.0),
        Ok(Full { rate_rps, basis }) => {
            let id = match basis {
                Basis::Ceiling => "capacity-by-ceiling",
                Basis::Proportion => "capacity-by-proportion",
            };
            Message::new(id).with("full", rate_rps.value).with("headroom", headroom_rps.unwrap_or(0.0))
        }
    }
}

fn growth_report(growth: Growth, rate_rps: Option<f64>, first: Option<&Reserve>, words: &Catalogue) -> GrowthReport {
    let full = first.and_then(|first| first.full_rps);
    let days = rate_rps.zip(full).and_then(|(rate, full)| growth.days_until(rate, full.value));
    let args = |id: &'static str| Message::new(id).with("percent", growth.share * 100.0).with("period", growth.period.name());
    let text = match (days, first) {
        (Some(days), Some(first)) => {
            let message = args("capacity-growth").with("days", days.floor()).with("weeks", days / 7.0);
            message.with("tier", first.tier.as_str()).with("station", first.station.replace('-', " "))
        }
        _ => args("capacity-growth-unknown"),
    };
    GrowthReport { share: growth.share, period: growth.period.name().to_owned(), days, text: words.text(&text) }
}
