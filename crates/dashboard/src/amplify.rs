//! The metrics of NGINX Amplify's agent under their own names, for dashboards that were built on them. Counts are sums since the start; timers are of the last minute.

use std::borrow::Cow;
use std::collections::BTreeMap;

use chokepoint_model::observation::{NginxStatus, PhpFpmStatus};

use crate::board::State;
use crate::families::{Family, Points, Unit, of};

/// Timers by the name of the durations in a log.
const TIMERS: [(&str, &str); 4] = [
    ("request", "nginx.http.request.time"),
    ("upstream-connect", "nginx.upstream.connect.time"),
    ("upstream-header", "nginx.upstream.header.time"),
    ("upstream-response", "nginx.upstream.response.time"),
];
/// The help of each family.
const HELP: &str = "As NGINX Amplify's agent named it.";

/// A value, and whether it only grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Value {
    pub(crate) number: f64,
    is_sum: bool,
}

fn sum(number: u64) -> Value {
    Value { number: number as f64, is_sum: true }
}

fn now(number: f64) -> Value {
    Value { number, is_sum: false }
}

/// The values of each server, by name. Of one that was not measured lately only what this program counted itself.
pub(crate) fn values(state: &State) -> BTreeMap<String, BTreeMap<Cow<'static, str>, Value>> {
    let mut all: BTreeMap<String, BTreeMap<Cow<'static, str>, Value>> = BTreeMap::new();
    for (target, totals) in &state.totals {
        let counts = totals.amplify.iter().map(|(name, count)| (Cow::Borrowed(*name), sum(*count)));
        all.entry(target.clone()).or_default().extend(counts);
    }
    for (target, status) in fresh(state, &state.nginx) {
        all.entry(target.clone()).or_default().extend(nginx(status).map(|(name, value)| (Cow::Borrowed(name), value)));
    }
    for (target, pools) in fresh(state, &state.fpm) {
        all.entry(target.clone()).or_default().extend(php_fpm(pools).map(|(name, value)| (Cow::Borrowed(name), value)));
    }
    for (target, values) in fresh(state, &state.values) {
        let values = values.iter().map(|(name, value)| (Cow::Borrowed(*name), now(*value)));
        all.entry(target.clone()).or_default().extend(values);
    }
    for (target, durations) in fresh(state, &state.durations_us) {
        for (kind, name) in TIMERS {
            let Some(counts) = durations.get(kind).map(|durations| &durations.0).filter(|counts| !counts.is_empty()) else { continue };
            let seconds = |us: Option<u64>| us.unwrap_or(0) as f64 / 1e6;
            let parts = [
                ("count", counts.total() as f64),
                ("max", seconds(Some(counts.max()))),
                ("median", seconds(counts.percentile(0.5))),
                ("pctl95", seconds(counts.percentile(0.95))),
            ];
            all.entry(target.clone()).or_default().extend(parts.map(|(part, value)| (Cow::Owned(format!("{name}.{part}")), now(value))));
        }
    }
    all.retain(|_, values| !values.is_empty());
    all
}

/// Those of servers that were measured lately.
fn fresh<'a, T>(state: &State, all: &'a BTreeMap<String, T>) -> impl Iterator<Item = (&'a String, &'a T)> {
    all.iter().filter(|(target, _)| state.is_fresh(target))
}

/// A family for each name.
pub(crate) fn families(state: &State) -> Vec<Family> {
    let mut members: BTreeMap<(Cow<'static, str>, bool), Vec<_>> = BTreeMap::new();
    for (target, values) in values(state) {
        for (name, value) in values {
            members.entry((name, value.is_sum)).or_default().push((vec![of(&target)], value.number));
        }
    }
    let family = |((name, is_sum), members)| {
        let points = if is_sum { Points::Counters(members) } else { Points::Gauges(members) };
        Family { name, help: HELP, unit: Unit::None, points }
    };
    members.into_iter().map(family).collect()
}

fn nginx(status: &NginxStatus) -> [(&'static str, Value); 10] {
    [
        ("nginx.status", now(1.0)),
        ("nginx.http.conn.accepted", sum(status.accepts)),
        ("nginx.http.conn.dropped", sum(status.accepts.saturating_sub(status.handled))),
        ("nginx.http.conn.current", now(status.active as f64)),
        ("nginx.http.conn.active", now(status.active.saturating_sub(status.waiting) as f64)),
        ("nginx.http.conn.idle", now(status.waiting as f64)),
        ("nginx.http.request.count", sum(status.requests)),
        ("nginx.http.request.current", now((status.reading + status.writing) as f64)),
        ("nginx.http.request.reading", now(status.reading as f64)),
        ("nginx.http.request.writing", now(status.writing as f64)),
    ]
}

/// All pools together.
fn php_fpm(pools: &[PhpFpmStatus]) -> [(&'static str, Value); 10] {
    let all = |of: fn(&PhpFpmStatus) -> u64| pools.iter().map(of).fold(0, u64::saturating_add);
    let each = |of: fn(&PhpFpmStatus) -> u64| now(all(of) as f64);
    [
        ("php.fpm.conn.accepted", sum(all(|pool| pool.accepted))),
        ("php.fpm.slow_req", sum(all(|pool| pool.slow_requests))),
        ("php.fpm.queue.current", each(|pool| pool.listen_queue)),
        ("php.fpm.queue.max", each(|pool| pool.max_listen_queue)),
        ("php.fpm.queue.len", each(|pool| pool.listen_queue_len)),
        ("php.fpm.proc.idle", each(|pool| pool.idle)),
        ("php.fpm.proc.active", each(|pool| pool.active)),
        ("php.fpm.proc.total", each(|pool| pool.total)),
        ("php.fpm.proc.max_active", each(|pool| pool.max_active)),
        ("php.fpm.proc.max_child", sum(all(|pool| pool.max_children_reached))),
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chokepoint_recorder::{Durations, Logged, Sample, TargetSample};
    use chokepoint_statistics::histogram::Histogram;

    use super::*;
    use crate::board::{Board, Seen};

    #[test]
    fn counts_add_up_and_timers_are_of_the_last_minute() {
        let board = Board::default();
        let status = NginxStatus { active: 7, accepts: 20, handled: 18, requests: 40, reading: 1, writing: 2, waiting: 4 };
        let seen = Seen {
            sample: Sample { targets: vec![TargetSample { target: "a".to_owned(), ..TargetSample::default() }], ..Sample::default() },
            nginx: BTreeMap::from([("a".to_owned(), status)]),
            fpm: BTreeMap::from([("a".to_owned(), vec![PhpFpmStatus { idle: 3, ..PhpFpmStatus::default() }; 2])]),
            said: "{}".to_owned(),
            amplify: BTreeMap::from([("a".to_owned(), BTreeMap::from([("nginx.http.method.get", 5)]))]),
            values: BTreeMap::from([("a".to_owned(), BTreeMap::from([("nginx.workers.count", 4.0)]))]),
            age: Some(Duration::ZERO),
            ages: BTreeMap::from([("a".to_owned(), Duration::ZERO)]),
        };
        board.see(seen.clone());
        board.see(Seen { values: BTreeMap::new(), ..seen });
        let mut histogram = Histogram::default();
        [100_000, 200_000, 400_000].into_iter().for_each(|us| histogram.add(us));
        let logged = Logged { durations_us: [("request".to_owned(), Durations(histogram.counts()))].into(), ..Logged::default() };
        let target = TargetSample { target: "a".to_owned(), logged: Some(logged), ..TargetSample::default() };
        board.see_minute(&Sample { span_s: 60, targets: vec![target], ..Sample::default() });
        let state = board.state();
        let values = &values(&state)["a"];
        let of = |name: &str| values.get(name).unwrap_or_else(|| panic!("{name}: {values:?}")).number;
        assert_eq!((of("nginx.http.method.get"), of("nginx.http.conn.dropped"), of("nginx.http.conn.active")), (10.0, 2.0, 3.0));
        assert_eq!(of("nginx.workers.count"), 4.0, "it was not looked at in the last second");
        assert_eq!((of("php.fpm.proc.idle"), of("nginx.http.request.time.count"), of("nginx.http.request.time.max")), (6.0, 3.0, 0.4));
        assert!((0.199..0.203).contains(&of("nginx.http.request.time.median")));
        let families = families(&state);
        let family = families.iter().find(|family| family.name == "nginx.http.method.get").unwrap();
        assert!(matches!(&family.points, Points::Counters(points) if points[0].1 == 10.0));
    }
}
