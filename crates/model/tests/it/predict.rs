//! Predictions for lifting a station: the lowest ceiling of the remaining stations, and each reason for refusing a prediction.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::change::Change;
use chokepoint_model::finding::Finding;
use chokepoint_model::fix::{Action, Session, remedy};
use chokepoint_model::id::{FindingId, StationId};
use chokepoint_model::load::Loop;
use chokepoint_model::observation::{AfterRest, CpuUse, ListenerAddress, NetnsId, Observation, Qdisc, TimeWaitDialled, TimeWaits, Warmth};
use chokepoint_model::predict::{Lift, Scene, predict};
use chokepoint_model::reading::{Lack, Reading};
use chokepoint_model::report::{Ceiling, Diagnosis, Kept, Prediction};
use chokepoint_model::stations::{Context, STATIONS, StationReading};
use proptest::prelude::*;

use crate::stage::edge::*;
use crate::stage::pool::pool;
use crate::stage::*;

/// The prediction for a remedy.
fn prediction(diagnosis: &Diagnosis, remedy: &str) -> Prediction {
    let all = diagnosis.findings.iter().flat_map(|finding| &finding.remedies);
    all.into_iter().find(|other| other.id == remedy).unwrap_or_else(|| panic!("no {remedy}")).prediction.clone()
}

fn predicted(obs: &Observation) -> (f64, f64, f64, String) {
    match prediction(&told(obs), "raise-max-children") {
        Prediction::Goodput { goodput_rps, low, high, next_station } => (goodput_rps, low, high, next_station),
        Prediction::Refused { refused, .. } => panic!("refused: {refused}"),
    }
}

fn refused(obs: &Observation, remedy: &str) -> String {
    match prediction(&told(obs), remedy) {
        Prediction::Refused { refused, .. } => refused,
        other => panic!("{other:?}"),
    }
}

fn ceiling(diagnosis: &Diagnosis, station: &str) -> Option<Ceiling> {
    diagnosis.path.iter().find(|read| read.station == station).and_then(|read| read.ceiling_rps)
}

/// Five workers that hold each request for 20 ms, sixty waiting connections, and cores with room for thousands of requests.
fn waiting_pool() -> Observation {
    let mut obs = pool(5, 5, 60);
    cpu(&mut obs, 0.02);
    generator(&mut obs);
    obs
}

/// The web server dials a backend that is an event loop. It has 51 ports, `live` of which are in use. `failed` requests failed.
fn dialling(live: u16, failed: u64) -> Observation {
    let mut obs = edge(BACKEND, "20000 20050", live);
    generator(&mut obs);
    if failed > 0 {
        gateway_errors(&mut obs, failed);
    }
    obs
}

/// The generator uses a hundredth of its core.
fn generator(obs: &mut Observation) {
    obs.load.as_mut().unwrap().threads[0].cpu_us = 100_000;
}

#[test]
fn a_larger_pool_gives_more_until_the_clients_the_rate_or_the_cores_limit() {
    // 65 workers of 20 ms: the number of requests that were at the pool at once.
    let (value, low, high, next) = predicted(&waiting_pool());
    assert_eq!(next, "worker-pool");
    assert!((3_000.0..=3_250.0).contains(&value) && low < value && high > value, "{low} {value} {high}");
    // A fixed rate below all of that.
    let mut obs = waiting_pool();
    obs.load.as_mut().unwrap().shape = Loop::Open { rate_per_s: 1_000.0, connections: 100 };
    let (value, low, high, next) = predicted(&obs);
    assert_eq!((next.as_str(), value), ("clients", 1_000.0));
    assert!(low >= 950.0 && high <= 1_050.0, "{low} to {high}");
    // Cores that are 10 % busy with a tenth of their maximum.
    let mut obs = waiting_pool();
    cpu(&mut obs, 0.2);
    let (value, _, _, next) = predicted(&obs);
    assert_eq!(next, "cpu");
    assert!((1_250.0..1_700.0).contains(&value), "{value}");
    // A shaper that is already full.
    let mut obs = waiting_pool();
    shaper(&mut obs);
    let (value, _, _, next) = predicted(&obs);
    assert_eq!(next, "link");
    assert!((200.0..260.0).contains(&value), "{value}");
    // Seven connections, each answered in 20 ms at best.
    let mut obs = pool(5, 5, 5);
    cpu(&mut obs, 0.02);
    generator(&mut obs);
    obs.load.as_mut().unwrap().shape = Loop::Closed { connections: 7 };
    let (value, _, _, next) = predicted(&obs);
    assert_eq!(next, "clients");
    assert!((300.0..350.0).contains(&value), "{value}");
}

/// The CPU ceiling relative to goodput / `busy`. On this host a reference work takes `after_rest_ns` after a rest of 4 ms, and 40 us without a rest.
fn room(busy: f64, after_rest_ns: u64) -> Ceiling {
    let mut obs = waiting_pool();
    cpu(&mut obs, busy);
    let rested = vec![AfterRest { rest_us: 4_000, cost_ns: after_rest_ns }];
    obs.warmth = Some(Warmth { busy_ns: 40_000, rested });
    let goodput_rps = obs.load.as_ref().unwrap().goodput_rps();
    let Ceiling { value, low, high } = ceiling(&told(&obs), "cpu").unwrap();
    Ceiling { value: value / goodput_rps * busy, low: low / goodput_rps * busy, high: high / goodput_rps * busy }
}

#[test]
fn an_answer_gets_cheaper_on_full_cores_by_the_cost_of_a_rest_on_this_host() {
    let warm = room(0.1, 40_000);
    assert!((0.95..1.05).contains(&warm.value), "nothing is forgotten: {}", warm.value);
    let cold = room(0.1, 80_000);
    assert!((1.8..2.1).contains(&cold.value), "twice the cost after 4 ms of rest: {}", cold.value);
    assert!(cold.high / cold.low > warm.high / warm.low, "what is extrapolated further is less sure");
    let busy = room(0.9, 80_000);
    assert!((0.95..1.1).contains(&busy.value), "cores that hardly rest: {}", busy.value);
    // Each request takes 2 ms of CPU time. Cold caches cost it no more than they cost a request of 0.2 ms.
    let long = room(0.5, 80_000);
    assert!((1.0..1.25).contains(&long.value), "{}", long.value);
}

#[test]
fn waiting_for_a_core_or_for_the_next_tier_is_not_service_time() {
    let mut obs = waiting_pool();
    // The workers run for a fifth of their time and wait for a core for another fifth.
    ready(&mut obs, 0.4);
    cpu(&mut obs, 1.0);
    let held = ceiling(&told(&waiting_pool()), "worker-pool").unwrap().value;
    assert_eq!(ceiling(&told(&obs), "worker-pool"), None, "not while they wait");
    let own = ceiling_read(&obs, "worker-pool").unwrap().value;
    assert!((held - 250.0).abs() < 1.0, "{held}");
    // The master waits too: six processes wait for a fifth of the time of five workers.
    assert!((own - 250.0 / (1.0 - 1.2 / 5.0)).abs() < 2.0, "{own}");
}

/// The server's link is shaped to the rate that it carries.
fn shaper(obs: &mut Observation) {
    let qdisc = Qdisc { link: 2, kind: "tbf".into(), rate_bits_per_s: Some(8_000_000), ..Qdisc::default() };
    obs.netns.get_mut(&SERVER).unwrap().qdiscs.push(0, Reading::Ok(vec![qdisc]));
}

#[test]
fn a_shaper_that_is_lifted_hid_the_cpu_cost_of_an_answer() {
    let mut obs = healthy();
    shaper(&mut obs);
    generator(&mut obs);
    obs.load.as_mut().unwrap().shape = Loop::Open { rate_per_s: 50_000.0, connections: 1_000 };
    let (path, words) = (chokepoint_model::path::discover(&obs), Catalogue::english());
    let ctx = Context::new(&obs, &path, &words);
    let stations: Vec<StationReading> = STATIONS.iter().flat_map(|def| (def.read)(&ctx)).collect();
    let link = stations.iter().find(|reading| reading.station == StationId::LINK).unwrap();
    let predicted = |id: &'static str| {
        let findings = [Finding::new(FindingId(id), link.station, link.owner.clone(), link.at.clone())];
        predict(&Scene { ctx: &ctx, stations: &stations, findings: &findings }, &findings[0], link, Lift::Limit(80e6))
    };
    assert!(matches!(predicted("any"), remedy::Prediction::Goodput { next_station: Some(StationId::CPU), .. }));
    let remedy::Prediction::Refused { why, .. } = predicted("egress-shaped") else { panic!("predicted") };
    assert!(words.text(&why).starts_with("egress-shaped hides"), "{why:?}");
}

#[test]
fn a_prediction_that_nothing_could_contradict_is_refused() {
    let mut obs = pool(5, 5, 300);
    // Few clock ticks: what an answer costs is hardly known.
    cpu(&mut obs, 0.04);
    generator(&mut obs);
    obs.load.as_mut().unwrap().shape = Loop::Closed { connections: 400 };
    let (path, words) = (chokepoint_model::path::discover(&obs), Catalogue::english());
    let ctx = Context::new(&obs, &path, &words);
    let stations: Vec<StationReading> = STATIONS.iter().flat_map(|def| (def.read)(&ctx)).collect();
    let full = stations.iter().find(|reading| reading.station == StationId::WORKER_POOL).unwrap();
    let findings = [Finding::new(FindingId("worker-pool-exhausted"), full.station, full.owner.clone(), full.at.clone())];
    let scene = Scene { ctx: &ctx, stations: &stations, findings: &findings };
    let remedy::Prediction::Refused { why, .. } = predict(&scene, &findings[0], full, Lift::Limit(305.0)) else { panic!("predicted") };
    assert!(words.text(&why).contains("too wide"), "{why:?}");
}

/// The servers' processes ran for half of this share of their time, and were ready to run for the other half.
fn ready(obs: &mut Observation, share: f64) {
    for pid in 50..56 {
        let view = obs.processes.get_mut(&pid).unwrap();
        for second in 0..=11_u64 {
            let half_ns = (second as f64 * 5e8 * share) as u64;
            let user_ticks = half_ns / 10_000_000;
            let used = CpuUse { run_ns: Some(half_ns), run_delay_ns: Some(half_ns), user_ticks, ..CpuUse::default() };
            view.cpu.push(second * 1_000_000, Reading::Ok(used));
        }
    }
}

/// A name, a change of the stage, and a word of the expected reason.
type Case = (&'static str, fn(&mut Observation), &'static str);

#[test]
fn a_prediction_is_refused_with_the_reason_if_the_next_limit_is_not_known() {
    let cases: [Case; 8] = [
        ("passive", |obs| (obs.load, obs.request.loaded) = (None, false), "no load was applied"),
        (
            "few",
            |obs| {
                let load = obs.load.as_mut().unwrap();
                (load.good, load.requests, load.status) = (29, 29, [(200, 29)].into());
            },
            "only 29 good responses",
        ),
        (
            "another fault",
            |obs| {
                for id in [SERVER, HOST] {
                    conntrack_limit(obs, id, 200);
                }
                entries(obs, SERVER, 200);
                counters(obs, SERVER, &[("drop", 500)]);
                obs.load.as_mut().unwrap().connect_us.p999 = 3_000_000;
            },
            "conntrack-table-full limits it as well",
        ),
        (
            "hidden",
            |obs| {
                let load = obs.load.as_mut().unwrap();
                (load.requests, load.errors.response_timeout) = (6_000, 3_500);
            },
            "only 41.7 % of the requests",
        ),
        (
            "losses",
            |obs| {
                let load = obs.load.as_mut().unwrap();
                (load.requests, load.errors.reset) = (2_600, 100);
            },
            "100 of 2,600 requests failed in a way that worker-pool does not explain",
        ),
        (
            "other tenants",
            |obs| {
                ready(obs, 0.1);
                cpu(obs, 0.55);
            },
            "other programs use",
        ),
        (
            "cores not read",
            |obs| {
                ready(obs, 0.1);
                obs.cpu = Default::default();
                obs.cpu.push(0, Reading::Absent(Lack::new("not here")));
            },
            "the capacity of cpu could not be read",
        ),
        (
            "a table that would fill",
            |obs| {
                for id in [SERVER, HOST] {
                    conntrack_limit(obs, id, 1_000);
                }
            },
            "conntrack-table would be full",
        ),
    ];
    for (name, spoil, reason) in cases {
        let mut obs = waiting_pool();
        spoil(&mut obs);
        let why = refused(&obs, "raise-max-children");
        assert!(why.contains(reason), "{name}: {why}");
    }
}

#[test]
fn a_limit_behind_a_cliff_is_predicted_unless_most_requests_failed() {
    let mut obs = table_full(200);
    generator(&mut obs);
    assert!(refused(&obs, "raise-conntrack-max").contains("14.3 % of the requests"));
    let load = obs.load.as_mut().unwrap();
    (load.good, load.status) = (500, [(200, 500)].into());
    (load.errors.connect_timeout, load.errors.response_timeout) = (150, 50);
    assert!(refused(&obs, "raise-conntrack-max").contains("without waiting"), "a closed loop asks for more than it got");
    obs.load.as_mut().unwrap().shape = Loop::Open { rate_per_s: 120.0, connections: 1_000 };
    match prediction(&told(&obs), "raise-conntrack-max") {
        Prediction::Goodput { goodput_rps, next_station, .. } => assert_eq!((goodput_rps, next_station.as_str()), (120.0, "clients")),
        Prediction::Refused { refused, .. } => panic!("{refused}"),
    }
}

#[test]
fn a_load_generator_at_its_limit_is_the_next_limit() {
    let mut obs = waiting_pool();
    let load = obs.load.as_mut().unwrap();
    load.threads[0].cpu_us = 9_700_000;
    let diagnosis = told(&obs);
    assert!(diagnosis.findings.iter().any(|finding| finding.id == "load-generator-limited"), "{:?}", causes(&diagnosis));
    let own = ceiling(&diagnosis, "load-generator").unwrap();
    match prediction(&diagnosis, "raise-max-children") {
        Prediction::Goodput { goodput_rps, next_station, .. } => {
            assert_eq!((goodput_rps, next_station.as_str()), (own.value, "load-generator"))
        }
        Prediction::Refused { refused, .. } => panic!("{refused}"),
    }
}

#[test]
fn a_wider_range_gives_the_offered_rate_and_no_prediction_if_the_service_time_is_unknown() {
    let mut obs = dialling(51, 30_000);
    assert!(refused(&obs, "widen-port-range").contains("without waiting"));
    obs.load.as_mut().unwrap().shape = Loop::Open { rate_per_s: 10_000.0, connections: 1_000 };
    match prediction(&told(&obs), "widen-port-range") {
        Prediction::Goodput { goodput_rps, next_station, .. } => assert_eq!((goodput_rps, next_station.as_str()), (10_000.0, "clients")),
        Prediction::Refused { refused, .. } => panic!("{refused}"),
    }
    let found = ceiling(&told(&obs), "ephemeral-ports").unwrap().value;
    assert!((found - 7_000.0).abs() < 1.0, "51 ports, all taken: {found}");
    assert!(refused(&dialling(51, 60_000), "widen-port-range").contains("only 40 % of the requests"));
}

#[test]
fn ports_in_time_wait_are_in_use_for_a_minute_or_for_the_delay_of_their_reuse() {
    for (reuse, seconds) in [("1", 1.0), ("0", 60.0)] {
        let mut obs = dialling(51, 0);
        let view = obs.netns.get_mut(&SERVER).unwrap();
        for (at, count) in [(0, 0), (11_000_000, 100_000)] {
            let group = TimeWaitDialled { local: ip(SERVER_IP), remote: (ip(BACKEND), 8080), count };
            view.time_waits.push(at, Reading::Ok(TimeWaits { total: count, dialled: vec![group], ..TimeWaits::default() }));
        }
        set(&mut obs, "net.ipv4.tcp_tw_reuse", reuse);
        let found = ceiling(&told(&obs), "ephemeral-ports").unwrap().value;
        // 51 live connections at 10,000 a second: 5.1 ms.
        assert!((found - 51.0 / (0.0051 + seconds)).abs() < 0.1, "reuse {reuse}: {found}");
    }
}

#[test]
fn workers_with_durations_in_their_log_are_measured_by_it() {
    let mut obs = waiting_pool();
    let times =
        chokepoint_model::load::Percentiles { p50: 10_000, p75: 10_000, p90: 10_000, p95: 10_000, p99: 10_000, p999: 10_000, max: 10_000 };
    let log = chokepoint_model::observation::AccessLog { lines: 2_500, duration_us: Some(times), ..Default::default() };
    let mut view = chokepoint_model::observation::ServerView::default();
    view.access_logs.entry("/run/www.log".into()).or_default().push(11_000_000, Reading::Ok(log));
    obs.servers.insert(50, view);
    let found = ceiling(&told(&obs), "worker-pool").unwrap();
    assert!((found.value - 500.0).abs() < 1.0, "five workers of 10 ms: {found:?}");
    assert!(found.low < 250.0, "the sockets show 20 ms: {found:?}");
}

#[test]
fn a_round_reports_the_state_before_it_and_whether_the_prediction_held() {
    let words = Catalogue::english();
    for (after_rps, held) in [(3_100, Some(true)), (1_000, Some(false))] {
        let mut first = told(&waiting_pool());
        let key = "pm.max_children".to_owned();
        first.findings[0].remedies[0].change =
            vec![Change::Sysctl { key, netns: NetnsId(1), netns_name: "host".into(), from: "5".into(), to: "65".into() }];
        let mut obs = healthy();
        let load = obs.load.as_mut().unwrap();
        (load.good, load.requests, load.status) = (after_rps * 10, after_rps * 10, [(200, after_rps * 10)].into());
        let mut session = Session::new(true, &words);
        assert!(matches!(session.measured(first), Action::Apply { .. }));
        assert_eq!(session.acted(Ok(())), Action::Measure);
        assert_eq!(session.measured(told(&obs)), Action::Done);
        let report = session.report().unwrap();
        let [round] = report.rounds.as_slice() else { panic!("{:?}", report.rounds) };
        assert_eq!((round.prediction_held, round.before_rps, round.kept), (held, Some(250.0), Kept::Final));
    }
}

proptest! {
    #[test]
    fn a_prediction_never_exceeds_what_any_other_station_can_pass(
        workers in 2_u32..60, waiting in 1_u32..400, connections in 2_u32..2_000, busy in 0.01_f64..0.8, good in 30_u64..20_000, failed in 0_u64..20_000,
    ) {
        let mut obs = pool(workers, workers, waiting);
        cpu(&mut obs, busy);
        generator(&mut obs);
        let load = obs.load.as_mut().unwrap();
        load.shape = Loop::Closed { connections };
        (load.good, load.requests, load.status) = (good, good + failed, [(200, good), (504, failed)].into());
        let diagnosis = told(&obs);
        for remedy in diagnosis.findings.iter().flat_map(|finding| &finding.remedies) {
            if let Prediction::Goodput { goodput_rps, low, high, .. } = &remedy.prediction {
                prop_assert!(good * 2 >= good + failed);
                prop_assert!(*low > 0.0 && low <= goodput_rps && goodput_rps <= high && high.is_finite());
                let others = diagnosis.path.iter().filter(|read| read.station != "worker-pool").filter_map(|read| read.ceiling_rps);
                prop_assert!(others.into_iter().all(|other| *high <= other.high * (1.0 + 1e-9)));
            }
        }
    }

    #[test]
    fn capacity_where_nothing_is_short_changes_no_finding(connections in 100_u32..100_000, busy in 0.01_f64..0.5, max in 10_000_u64..10_000_000, room in 61_u32..100_000) {
        let mut obs = waiting_pool();
        cpu(&mut obs, busy);
        obs.load.as_mut().unwrap().shape = Loop::Closed { connections };
        for id in [SERVER, HOST] {
            conntrack_limit(&mut obs, id, max);
        }
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let points = view.listeners.points().to_vec();
        view.listeners = Default::default();
        for (at, mut listeners) in points {
            let ours = listeners.iter_mut().filter(|listener| matches!(listener.address, ListenerAddress::Tcp(_, 9000)));
            ours.for_each(|listener| listener.accept_queue_limit = room);
            view.listeners.push(at, Reading::Ok(listeners));
        }
        let diagnosis = told(&obs);
        prop_assert_eq!(causes(&diagnosis), ["worker-pool-exhausted"]);
    }
}
