//! Three tiers in a row. Each has stations that may be too small, and passes on what it lets through. The names are the model's, so that its own order
//! decides what is fixed first.

use super::{Cure, Found, Random, Settings, Truth, World};
use chokepoint_model::causes;
use chokepoint_model::facts::TierId;
use chokepoint_model::finding::Finding;
use chokepoint_model::id::{FindingId, StationId};
use chokepoint_model::location::Location;
use chokepoint_model::owner::Owner;
use chokepoint_model::report::{Diagnosis, Role, Signal};
use chokepoint_model::station::StationReading;

/// What happens to the requests above the limit of a station that is too small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Almost nothing passes the station.
    Starves,
    /// The rest retries later.
    PutsOff,
    /// The rest fails at once, which takes CPU.
    Fails,
    /// The rest waits until the clients being served have timed out as well.
    Holds,
}

/// The stations in the order of the path: tier, finding, station, behaviour.
pub(crate) const ROW: [(&str, &str, &str, Kind); 10] = [
    ("web", "conntrack-table-full", "conntrack-table", Kind::Starves),
    ("web", "accept-queue-full", "accept-queue", Kind::PutsOff),
    ("web", "worker-connections-exhausted", "worker-connections", Kind::Fails),
    ("web", "ephemeral-ports-exhausted", "ephemeral-ports", Kind::Fails),
    ("app", "accept-queue-full", "accept-queue", Kind::PutsOff),
    ("app", "file-descriptors-exhausted", "file-descriptors", Kind::Fails),
    ("app", "ephemeral-ports-exhausted", "ephemeral-ports", Kind::Fails),
    ("app", "worker-pool-exhausted", "worker-pool", Kind::Holds),
    ("data", "accept-queue-full", "accept-queue", Kind::PutsOff),
    ("data", "worker-pool-exhausted", "worker-pool", Kind::Holds),
];

/// Names of the model that other simulators use too.
const EXTRA: [&str; 1] = ["time-wait-port-search"];

/// Requests that clients start, including retries, per second.
const OFFERED_RPS: f64 = 20_000.0;
/// Requests that pass a station of kind `Starves`, per second.
const STARVED_RPS: f64 = 12.0;
/// CPU seconds of a good and of a failed answer, on the one core that all tiers share.
const GOOD_S: f64 = 120e-6;
const FAILED_S: f64 = 40e-6;
/// Smallest share of a pool's answers that clients still want, however many wait.
const WANTED_SHARE_MIN: f64 = 0.3;

pub(crate) struct Pipe {
    /// Bit n set: station n of the row is too small.
    pub(crate) faults: u32,
    /// Determines the sizes.
    pub(crate) seed: u64,
    /// The causes are listed from the client inwards, against the model's order.
    pub(crate) outermost_first: bool,
}

impl Pipe {
    fn key(place: usize) -> String {
        format!("{place}")
    }

    /// Requests a second that a small station lets through: between 100 and 5,000.
    fn limit_rps(&self, place: usize) -> f64 {
        let mut random = Random(self.seed ^ (place as u64 + 1).wrapping_mul(0x9e37_79b9));
        random.next();
        100.0 * 50.0_f64.powf(random.share())
    }
}

impl World for Pipe {
    fn start(&self) -> Settings {
        (0..ROW.len()).map(|place| (Self::key(place), u32::from(self.faults & (1 << place) == 0))).collect()
    }

    fn truth(&self, settings: &Settings) -> Truth {
        let mut truth = Truth { latency_us_p99: 45_000.0, ..Truth::default() };
        let (mut flow, mut failed) = (OFFERED_RPS, 0.0);
        for (place, (tier, finding, station, kind)) in ROW.into_iter().enumerate() {
            let limit = if kind == Kind::Starves { STARVED_RPS } else { self.limit_rps(place) };
            if settings[&Self::key(place)] == 1 || flow <= limit {
                continue;
            }
            let station = format!("{tier}/{station}");
            let rest = flow - limit;
            flow = match kind {
                Kind::Holds => limit * (limit / flow).max(WANTED_SHARE_MIN),
                _ => limit,
            };
            failed += if kind == Kind::Fails { rest } else { 0.0 };
            truth.refusals.insert(station.clone(), rest);
            let signal = Signal::Refusals { station: station.clone() };
            let lift = Cure { id: format!("lift-{place}"), sets: vec![(Self::key(place), 1)], signal, group: None, starved_s: None };
            truth.findings.push(Found { id: format!("{tier}/{finding}"), station, role: Role::Cause, remedies: vec![lift] });
        }
        // Good and failed answers share the core.
        let times = (flow * GOOD_S + failed * FAILED_S).max(1.0);
        (truth.goodput_rps, truth.failed_rps) = (flow / times, failed / times);
        truth
    }

    fn told(&self, diagnosis: Diagnosis) -> Diagnosis {
        in_order(diagnosis, self.outermost_first)
    }
}

/// Removes the tiers from names such as "web/accept-queue". Sorts the findings into the model's order, or the causes into the opposite one.
pub(crate) fn in_order(mut diagnosis: Diagnosis, reverse: bool) -> Diagnosis {
    let names = ["web", "app", "data"];
    let split = |name: &str| name.split_once('/').map(|(tier, rest)| (tier.to_owned(), rest.to_owned())).expect("a tier and a name");
    for station in &mut diagnosis.path {
        (station.tier, station.station) = split(&station.station);
        station.at.listener = Some(station.tier.clone());
    }
    for finding in &mut diagnosis.findings {
        (finding.tier, finding.id) = split(&finding.id);
        finding.station = split(&finding.station).1;
        finding.at.listener = Some(finding.tier.clone());
        for remedy in &mut finding.remedies {
            if let Signal::Refusals { station } = &mut remedy.signal {
                *station = split(station).1;
            }
        }
    }
    let owner = |name: &str| Owner::from(TierId(names.iter().position(|known| *known == name).expect("a tier")));
    let known =
        |name: &str| ROW.iter().flat_map(|row| [row.1, row.2]).chain(EXTRA).find(|known| *known == name).expect("a name of the model");
    let finding = |told: &chokepoint_model::report::Finding| Finding {
        role: told.role,
        ..Finding::new(FindingId(known(&told.id)), StationId(known(&told.station)), owner(&told.tier), Location::default())
    };
    let reading = |told: &chokepoint_model::report::Station| {
        let reading =
            StationReading::new((StationId(known(&told.station)), told.kind), owner(&told.tier), Location::default(), "connections");
        StationReading { refused_per_s: told.refused_per_s, ..reading }
    };
    let findings: Vec<Finding> = diagnosis.findings.iter().map(finding).collect();
    let stations: Vec<StationReading> = diagnosis.path.iter().map(reading).collect();
    let name = |owner: &Owner| names[owner.tiers()[0].0].to_owned();
    let layout = causes::Layout { upstreams: &[vec![1], vec![2], vec![]], stations: &stations, name: &name };
    let order = causes::order(&findings, &[], layout);
    diagnosis.findings = order.into_iter().map(|at| diagnosis.findings[at].clone()).collect();
    if reverse {
        let causes = diagnosis.findings.iter().filter(|finding| finding.role == Role::Cause).count();
        diagnosis.findings[..causes].reverse();
    }
    diagnosis
}
