//! What a station has left for more of the traffic that was watched.

use chokepoint_model::report::{Station, StationState};
use serde::{Deserialize, Serialize};

use crate::interval::Interval;

/// How the rate at which a station is full was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// It is the ceiling that the diagnosis gives.
    Ceiling,
    /// Its use grows in proportion to the requests: each takes as much of it as now.
    Proportion,
}

/// Why it is not known when a station is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unknown {
    /// The station, its use or its limit could not be read.
    NotRead,
    /// The rate of requests is not known.
    NoRate,
    /// Nothing of it, or next to nothing of the cores, was used in the window, so that nothing shows how much a request takes.
    NotUsed,
    /// It is a queue: it fills once the station behind it is full, and not in proportion to the requests.
    Queue,
}

/// Stations that are queues.
const QUEUES: [&str; 2] = ["accept-queue", "syn-queue"];

/// Fewest cores in use from which it is told at what rate they are full: the work of so little is hidden by that of the kernel, and a hundredfold is a guess.
const CORES_MIN: f64 = 0.1;

/// The rate at which a station is full.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Full {
    /// Requests per second in all.
    pub rate_rps: Interval,
    /// How it was found.
    pub basis: Basis,
}

/// The rate at which a station is full. `rate_rps`: the watched one.
pub fn full_at(station: &Station, rate_rps: Option<f64>) -> Result<Full, Unknown> {
    if station.state == StationState::Unknown {
        return Err(Unknown::NotRead);
    }
    if QUEUES.contains(&station.station.as_str()) {
        return Err(Unknown::Queue);
    }
    let rate = rate_rps.filter(|rate| *rate > 0.0).ok_or(Unknown::NoRate)?;
    if let Some(ceiling) = station.ceiling_rps {
        return Ok(Full { rate_rps: ceiling.into(), basis: Basis::Ceiling });
    }
    let share = share(station).ok_or(Unknown::NotRead)?;
    let is_too_little = station.unit == "cores" && station.used.is_some_and(|used| used < CORES_MIN);
    if share <= 0.0 || is_too_little {
        return Err(Unknown::NotUsed);
    }
    Ok(Full { rate_rps: Interval::exact(rate / share), basis: Basis::Proportion })
}

/// The share of a station that is used, 0 to 1. `None` if it has no limit or was not read.
pub fn share(station: &Station) -> Option<f64> {
    if station.state == StationState::Unknown {
        return None;
    }
    let counted = || station.used.zip(station.limit).filter(|(_, limit)| *limit > 0.0).map(|(used, limit)| used / limit);
    station.utilization.or_else(counted).map(|share| share.clamp(0.0, 1.0))
}

/// True if a station has a limit of its own, so that it can fill.
pub fn can_fill(station: &Station) -> bool {
    station.limit.is_some() || station.ceiling_rps.is_some() || station.state == StationState::Unknown
}

#[cfg(test)]
pub(crate) mod tests {
    use chokepoint_model::report::{At, Ceiling, StationKind};

    use super::*;

    pub(crate) fn station(id: &str, used: Option<f64>, limit: Option<f64>) -> Station {
        Station {
            tier: "nginx".to_owned(),
            station: id.to_owned(),
            at: At::default(),
            kind: StationKind::Cliff,
            limit,
            used,
            waiting: None,
            refused_per_s: None,
            utilization: None,
            unit: "entries".to_owned(),
            ceiling_rps: None,
            state: StationState::Ok,
            why: "fine".to_owned(),
        }
    }

    #[test]
    fn a_cliff_fills_in_proportion_to_the_requests() {
        // 50 of 200 entries at 100/s: full at 400/s.
        let full = full_at(&station("conntrack-table", Some(50.0), Some(200.0)), Some(100.0)).unwrap();
        assert_eq!((full.rate_rps.value, full.basis), (400.0, Basis::Proportion));
    }

    #[test]
    fn a_ceiling_is_taken_as_it_is() {
        let ceiling = Some(Ceiling { value: 900.0, low: 800.0, high: 1000.0 });
        let full = full_at(&Station { ceiling_rps: ceiling, ..station("cpu", Some(0.5), Some(1.0)) }, Some(100.0)).unwrap();
        assert_eq!((full.rate_rps.low, full.basis), (800.0, Basis::Ceiling));
    }

    #[test]
    fn what_was_not_seen_has_no_room() {
        let unknown = Station { state: StationState::Unknown, ..station("conntrack-table", Some(1.0), Some(200.0)) };
        assert_eq!(full_at(&unknown, Some(100.0)), Err(Unknown::NotRead));
        assert_eq!(full_at(&station("x", Some(0.0), Some(200.0)), Some(100.0)), Err(Unknown::NotUsed));
        assert_eq!(full_at(&station("x", Some(5.0), Some(200.0)), None), Err(Unknown::NoRate));
        assert_eq!(full_at(&station("x", Some(5.0), Some(200.0)), Some(0.0)), Err(Unknown::NoRate));
        assert_eq!(full_at(&station("x", None, Some(200.0)), Some(1.0)), Err(Unknown::NotRead));
        assert_eq!(full_at(&station("accept-queue", Some(1.0), Some(128.0)), Some(100.0)), Err(Unknown::Queue));
        // A page that sleeps takes next to no time of the cores.
        let cores = |used| Station { unit: "cores".to_owned(), ..station("cpu", Some(used), Some(2.0)) };
        assert_eq!(full_at(&cores(0.02), Some(40.0)), Err(Unknown::NotUsed));
        assert_eq!(full_at(&cores(0.5), Some(40.0)).map(|full| full.rate_rps.value), Ok(160.0));
        assert!(!can_fill(&station("x", Some(1.0), None)) && can_fill(&unknown));
    }
}
