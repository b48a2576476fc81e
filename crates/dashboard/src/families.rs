//! What is exported: families of metrics out of what a board shows. Names end with their unit (prometheus.io/docs/practices/naming). nginx's own counts have the names of
//! the known exporter (nginx-prometheus-exporter), so that its dashboards and alerts go on working.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use chokepoint_model::observation::NginxStatus;
use chokepoint_recorder::{Queue, ResponseSource, Standing, TargetSample};
use chokepoint_statistics::histogram::Counts;

use crate::amplify;
use crate::board::{Board, State};

/// Upper ends of the histograms' buckets, microseconds: 1-2-5 from a millisecond to a minute.
pub(crate) const BUCKETS_US: [u64; 15] = [
    1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000,
    60_000_000,
];

/// Labels by name.
pub(crate) type Labels = Vec<(&'static str, String)>;

/// The unit of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A number of something.
    None,
    Seconds,
    Bytes,
}

/// The members of a family.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Points {
    /// Values that rise and fall.
    Gauges(Vec<(Labels, f64)>),
    /// Sums since the start.
    Counters(Vec<(Labels, f64)>),
    /// Durations since the start, microseconds.
    Histograms(Vec<(Labels, Counts)>),
}

/// Metrics of one name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Family {
    /// Without its unit and without `_total`.
    pub(crate) name: Cow<'static, str>,
    pub(crate) help: &'static str,
    pub(crate) unit: Unit,
    pub(crate) points: Points,
}

/// All families that have members.
pub(crate) fn families(board: &Board) -> Vec<Family> {
    let (measured_s, state) = (board.measured_s(), board.state());
    let all = [measured(measured_s, &state), now(&state), since_start(&state), nginx(&state), amplify::families(&state)].concat();
    all.into_iter().filter(|family| !family.is_empty()).map(Family::with_each_series_once).collect()
}

impl Family {
    fn gauges(name: &'static str, help: &'static str, members: impl IntoIterator<Item = (Labels, f64)>) -> Self {
        Self { name: name.into(), help, unit: Unit::None, points: Points::Gauges(members.into_iter().collect()) }
    }

    fn counters(name: &'static str, help: &'static str, members: impl IntoIterator<Item = (Labels, f64)>) -> Self {
        Self {
            name: name.into(),
            help,
            unit: Unit::None,
            points: Points::Counters(members.into_iter().map(|(labels, count)| (labels, thousandths(count))).collect()),
        }
    }

    /// A scraper refuses all metrics if two series have the same labels. What was counted twice adds up; of two values of now the larger is told.
    fn with_each_series_once(self) -> Self {
        let points = match self.points {
            Points::Gauges(members) => Points::Gauges(each_once(members, |ours, theirs| *ours = ours.max(theirs))),
            Points::Counters(members) => Points::Counters(each_once(members, |ours, theirs| *ours += theirs)),
            Points::Histograms(members) => Points::Histograms(each_once(members, |ours, theirs| ours.merge(&theirs))),
        };
        Self { points, ..self }
    }

    fn in_unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    fn is_empty(&self) -> bool {
        match &self.points {
            Points::Gauges(members) | Points::Counters(members) => members.is_empty(),
            Points::Histograms(members) => members.is_empty(),
        }
    }
}

/// Members in their order, those with the same labels put together.
fn each_once<V>(members: Vec<(Labels, V)>, join: impl Fn(&mut V, V)) -> Vec<(Labels, V)> {
    let mut at: BTreeMap<Labels, usize> = BTreeMap::new();
    let mut once: Vec<(Labels, V)> = Vec::new();
    for (labels, value) in members {
        match at.get(&labels) {
            Some(known) => join(&mut once[*known].1, value),
            None => {
                at.insert(labels.clone(), once.len());
                once.push((labels, value));
            }
        }
    }
    once
}

pub(crate) fn of(target: &str) -> (&'static str, String) {
    ("target", target.to_owned())
}

/// When something was measured last.
fn measured(measured_s: Option<f64>, state: &State) -> Vec<Family> {
    let version = (vec![("version", env!("CARGO_PKG_VERSION").to_owned())], 1.0);
    vec![
        Family::gauges("chokepoint_build_info", "The version of the program.", [version]),
        Family::gauges(
            "chokepoint_last_sample_timestamp",
            "When something was measured last, since 1970. Gauges of what was measured are left out once they are old.",
            measured_s.map(|at_s| (Vec::new(), at_s)),
        )
        .in_unit(Unit::Seconds),
        Family::gauges(
            "chokepoint_target_last_sample_timestamp",
            "When this server was measured last, since 1970.",
            state.measured_s().map(|(server, at_s)| (vec![of(server)], at_s)),
        )
        .in_unit(Unit::Seconds),
    ]
}

/// The newest second of each server, unless it is old.
fn now(state: &State) -> Vec<Family> {
    let newest = state.newest.as_ref().map(|sample| sample.targets.as_slice()).unwrap_or_default();
    let newest: Vec<&TargetSample> = newest.iter().filter(|target| state.is_fresh(&target.target)).collect();
    let each = |value: &dyn Fn(&TargetSample) -> Option<f64>| -> Vec<(Labels, f64)> {
        newest.iter().filter_map(|target| Some((vec![of(&target.target)], value(target)?))).collect()
    };
    let standing = newest.iter().flat_map(|target| {
        let place = move |standing: &Standing| {
            let kind = serde_json::to_value(standing.place).ok().and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default();
            (vec![of(&target.target), ("tier", standing.tier.clone()), ("place", kind)], target.mean_at(standing))
        };
        target.places.iter().map(place)
    });
    let queues = |value: fn(&Queue) -> u32| -> Vec<(Labels, f64)> {
        let one = |target: &&TargetSample| {
            let queue = |queue: &Queue| (vec![of(&target.target), ("listener", queue.listener.clone())], f64::from(value(queue)));
            target.queues.iter().map(queue).collect::<Vec<_>>()
        };
        newest.iter().flat_map(one).collect()
    };
    let quantiles = state.responses.iter().filter(|(target, _)| state.is_fresh(target)).flat_map(|(target, times)| {
        let source = if times.source == ResponseSource::Log { "log" } else { "sockets" };
        let one = move |(quantile, us): (&str, f64)| {
            (vec![of(target), ("source", source.to_owned()), ("quantile", quantile.to_owned())], us / 1e6)
        };
        [("0.5", times.p50_us), ("0.95", times.p95_us), ("0.99", times.p99_us)].map(one)
    });
    vec![
        Family::gauges("chokepoint_up", "1 if something listens.", each(&|target| Some(f64::from(target.under_way.value().is_some())))),
        Family::gauges("chokepoint_requests_in_flight", "Requests under way.", each(&|target| target.under_way.value())),
        Family::gauges("chokepoint_requests_standing", "Requests under way, by the place where they are.", standing),
        Family::gauges(
            "chokepoint_response_time_mean",
            "Mean response time of the last second: requests under way, divided by answers a second.",
            each(&TargetSample::response_s),
        )
        .in_unit(Unit::Seconds),
        Family::gauges(
            "chokepoint_response_time",
            "Response times of the last minute that this share of the requests did not exceed, from the access log or the sockets.",
            quantiles,
        )
        .in_unit(Unit::Seconds),
        Family::gauges(
            "chokepoint_accept_queue_connections",
            "The most connections that waited in the last second.",
            queues(|queue| queue.most),
        ),
        Family::gauges("chokepoint_accept_queue_limit", "The limit of the accept queue.", queues(|queue| queue.limit)),
    ]
}

/// Rounds a sum to a thousandth: sums of rates have noise in their last digits.
fn thousandths(count: f64) -> f64 {
    (count * 1e3).round() / 1e3
}

/// The sums since the start.
fn since_start(state: &State) -> Vec<Family> {
    let each = || state.totals.iter().map(|(name, totals)| (of(name), totals));
    let lost = each().flat_map(|(target, totals)| {
        let one = move |([tier, place, kind], count): (&[String; 3], &f64)| {
            (vec![target.clone(), ("tier", tier.clone()), ("place", place.clone()), ("kind", kind.clone())], *count)
        };
        totals.lost.iter().map(one)
    });
    let status = each().flat_map(|(target, totals)| {
        totals.status.iter().map(move |(code, count)| (vec![target.clone(), ("code", code.to_string())], *count as f64))
    });
    let durations = each().flat_map(|(target, totals)| {
        totals.durations_us.iter().map(move |(kind, counts)| (vec![target.clone(), ("kind", kind.clone())], counts.clone()))
    });
    // Of a server without incidents there is a zero: Prometheus sees no rise of a counter that begins with one.
    let counted = |counts: &BTreeMap<String, u64>| -> Vec<(Labels, f64)> {
        let targets: BTreeSet<&String> = state.totals.keys().chain(counts.keys()).collect();
        targets.into_iter().map(|target| (vec![of(target)], counts.get(target).copied().unwrap_or_default() as f64)).collect()
    };
    vec![
        Family::counters("chokepoint_requests", "Requests answered.", each().map(|(target, totals)| (vec![target], totals.answered))),
        Family::counters("chokepoint_requests_lost", "Requests or attempts that were refused or lost, by the place.", lost),
        Family::counters("chokepoint_responses", "Answers in the access log, by status.", status),
        Family::counters(
            "chokepoint_response",
            "Bytes of the answers in the access log.",
            each().map(|(target, totals)| (vec![target], totals.bytes as f64)),
        )
        .in_unit(Unit::Bytes),
        Family::counters(
            "chokepoint_log_lines_unread",
            "Lines of the access log that could not be read.",
            each().map(|(target, totals)| (vec![target], totals.unread as f64)),
        ),
        Family {
            name: "chokepoint_log_duration".into(),
            help: "Durations in the access log.",
            unit: Unit::Seconds,
            points: Points::Histograms(durations.collect()),
        },
        Family::counters("chokepoint_incidents", "Incidents.", counted(&state.incidents)),
        Family::gauges("chokepoint_incidents_open", "Incidents that last.", counted(&state.open)),
    ]
}

/// nginx's own counts.
fn nginx(state: &State) -> Vec<Family> {
    let each = |value: fn(&NginxStatus) -> u64| -> Vec<(Labels, f64)> {
        let fresh = state.nginx.iter().filter(|(target, _)| state.is_fresh(target));
        fresh.map(|(target, status)| (vec![of(target)], value(status) as f64)).collect()
    };
    vec![
        Family::gauges("nginx_up", "1 if nginx's status page was read.", each(|_| 1)),
        Family::gauges("nginx_connections_active", "Client connections, idle ones included.", each(|status| status.active)),
        Family::gauges("nginx_connections_reading", "Connections with a request being read.", each(|status| status.reading)),
        Family::gauges("nginx_connections_writing", "Connections with an answer being prepared or sent.", each(|status| status.writing)),
        Family::gauges("nginx_connections_waiting", "Idle client connections.", each(|status| status.waiting)),
        // Gauges without `_total`: the known exporter's names, which are older than the convention.
        Family::gauges("nginx_connections_accepted", "Accepted client connections.", each(|status| status.accepts)),
        Family::gauges("nginx_connections_handled", "Handled client connections.", each(|status| status.handled)),
        Family::counters("nginx_http_requests", "Requests.", each(|status| status.requests)),
    ]
}

/// The counts of a histogram's buckets, each without those below it; the last one has what is longer than all.
pub(crate) fn buckets(counts: &Counts) -> Vec<u64> {
    let mut below = 0;
    let ends = BUCKETS_US.iter().map(|upper_us| counts.up_to(*upper_us)).chain([counts.total()]);
    ends.map(|up_to| up_to - std::mem::replace(&mut below, up_to)).collect()
}
