//! Drops in simulated series: a queue with random arrivals or with clients that wait for their answers.

use std::collections::BTreeMap;

use chokepoint_model::report::{LedgerLossKind, LedgerPlaceKind};
use chokepoint_statistics::Random;

use super::{Against, Detector, Event, Figures, Kind};
use crate::sample::{Logged, Loss, Mean, PoolUse, Queue, Standing, TargetSample};

/// What happens in one second.
#[derive(Debug, Clone, Copy)]
struct Second {
    /// Requests a second that come, or with `closed` those that the clients could send at most.
    demand_rps: f64,
    /// Requests that can be answered a second, each alone taking `service_s`.
    capacity_rps: f64,
    /// Clients that wait for their answers before they ask again; none: requests come whatever happens.
    clients: f64,
    refused_share: f64,
    failed_share: f64,
    is_gone: bool,
}

const STEADY: Second =
    Second { demand_rps: 600.0, capacity_rps: 1_000.0, clients: 0.0, refused_share: 0.0, failed_share: 0.0, is_gone: false };
const CLOSED: Second = Second { clients: 50.0, ..STEADY };

/// Time of a request alone.
const SERVICE_S: f64 = 0.01;

/// The sample of a second, with noise of some per cent as on a shared machine. Response times follow a queue with one server (M/M/1), which grows while more comes
/// than it can answer.
fn sample(second: Second, backlog: &mut f64, random: &mut Random) -> TargetSample {
    if second.is_gone {
        return TargetSample { target: "t".to_owned(), ..TargetSample::default() };
    }
    let mut noise = |sigma: f64| (1.0 + sigma * random.normal()).max(0.05);
    let capacity = second.capacity_rps * noise(0.03);
    let (rate, under_way) = if second.clients > 0.0 {
        let rate = (second.clients / SERVICE_S).min(capacity);
        (rate, second.clients)
    } else {
        let come = second.demand_rps * noise(0.05);
        let rate = (come + *backlog).min(capacity);
        *backlog = (*backlog + come - rate).max(0.0);
        let utilization = (come / capacity).min(0.98);
        (rate, *backlog + rate * SERVICE_S / (1.0 - utilization) * noise(0.1))
    };
    let ended = rate;
    let (lost, answered) = (ended * second.refused_share, ended * (1.0 - second.refused_share));
    let failed = (answered * second.failed_share).round() as u64;
    let loss = Loss { tier: None, place: None, kind: LedgerLossKind::Refused, count: lost };
    TargetSample {
        target: "t".to_owned(),
        under_way: Mean::of(Some(under_way), 1.0),
        rate: Mean::of(Some(answered), 1.0),
        losses: if lost > 0.0 { vec![loss] } else { Vec::new() },
        logged: Some(Logged {
            status: BTreeMap::from([(200, answered as u64 - failed.min(answered as u64)), (502, failed)]),
            ..Logged::default()
        }),
        ..TargetSample::default()
    }
}

/// The events of a series, with the second of each.
fn events(seconds: impl Iterator<Item = Second>, seed: u64) -> Vec<(u64, Event)> {
    let mut random = Random::new(seed);
    let (mut detector, mut backlog) = (Detector::new("t"), 0.0);
    let all = (1_000_000..).zip(seconds);
    all.filter_map(|(at_s, second)| Some((at_s - 1_000_000, detector.add(at_s, &sample(second, &mut backlog, &mut random))?))).collect()
}

/// This before the fault, then the fault for a minute, then this again.
fn with_fault(healthy: Second, fault: Second) -> impl Iterator<Item = Second> {
    (0..400).map(move |second| if (200..260).contains(&second) { fault } else { healthy })
}

#[test]
fn each_kind_of_fault_is_seen_within_seconds_and_ends() {
    for (name, healthy, fault, kind) in [
        ("half the capacity, open loop", STEADY, Second { capacity_rps: 500.0, ..STEADY }, Kind::Slower),
        ("half the capacity, closed loop", CLOSED, Second { capacity_rps: 500.0, ..CLOSED }, Kind::Slower),
        ("a fifth less, closed loop", CLOSED, Second { capacity_rps: 750.0, ..CLOSED }, Kind::Slower),
        ("it hangs", CLOSED, Second { capacity_rps: 0.0, ..CLOSED }, Kind::Slower),
        ("a tenth refused", STEADY, Second { refused_share: 0.1, ..STEADY }, Kind::Losses),
        ("a twentieth fails", STEADY, Second { failed_share: 0.05, ..STEADY }, Kind::Losses),
        ("it ended", STEADY, Second { is_gone: true, ..STEADY }, Kind::Gone),
    ] {
        for seed in 1..=20 {
            let seen = events(with_fault(healthy, fault), seed);
            let (at, drop) = match seen.first() {
                Some((at, Event::Began(drop))) => (*at, drop.clone()),
                other => panic!("{name}, seed {seed}: {other:?}"),
            };
            assert!((203..=226).contains(&at) && drop.kinds.contains(&kind), "{name}, seed {seed}: {at} {drop:?}");
            // An open loop's capacity of half leaves a backlog to work off, and blocks last up to five seconds.
            assert!(drop.since_s >= 1_000_200 - 5, "{name}: {drop:?}");
            let ended = seen.iter().find_map(|(at, event)| matches!(event, Event::Ended { recovered: true, .. }).then_some(*at));
            assert!(ended.is_some_and(|at| at > 260), "{name}, seed {seed}: {seen:?}");
            assert_eq!(seen.len(), 2, "{name}, seed {seed}: {seen:?}");
        }
    }
}

#[test]
fn less_demand_is_no_drop() {
    for healthy in [STEADY, CLOSED] {
        for part in [0.5, 0.1, 0.0] {
            let fewer = Second { demand_rps: healthy.demand_rps * part, clients: healthy.clients * part, ..healthy };
            // Without any client nothing is under way.
            let fewer = if healthy.clients > 0.0 && part == 0.0 { Second { demand_rps: 0.0, ..STEADY } } else { fewer };
            for seed in 1..=20 {
                assert_eq!(events(with_fault(healthy, fewer), seed), [], "{part} of {healthy:?}, seed {seed}");
            }
        }
    }
}

#[test]
fn a_day_with_waves_bursts_and_reloads_has_no_drop() {
    for seed in 1..=3 {
        let mut random = Random::new(seed + 100);
        let mut bursts = Vec::new();
        let seconds = (0..86_400u32).map(move |second| {
            let wave = 1.0 + 0.5 * (f64::from(second) / 86_400.0 * std::f64::consts::TAU).sin();
            let mut now = Second { demand_rps: 400.0 * wave, ..STEADY };
            if bursts.is_empty() && random.uniform() < 1.0 / 600.0 {
                // A burst of one to three seconds: more demand, fewer answers, or a reload that refuses some.
                let lasts = second + 1 + (random.uniform() * 3.0) as u32;
                bursts.push((lasts, random.uniform()));
            }
            bursts.retain(|(until, _)| second < *until);
            match bursts.first() {
                Some((_, which)) if *which < 0.3 => now.demand_rps *= 1.5,
                Some((_, which)) if *which < 0.6 => now.refused_share = 0.05,
                Some((_, which)) if *which < 0.9 => now.capacity_rps = 600.0,
                Some(_) => now.is_gone = true,
                None => {}
            }
            now
        });
        assert_eq!(events(seconds, seed), [], "seed {seed}");
    }
}

#[test]
fn what_lasts_is_how_the_server_is_now() {
    let seconds = (0..1_500).map(|second| if second < 200 { CLOSED } else { Second { capacity_rps: 500.0, ..CLOSED } });
    let seen = events(seconds, 7);
    assert!(matches!(seen[..], [(_, Event::Began(_)), (_, Event::Ended { recovered: false, .. })]), "{seen:?}");
}

/// Drops that are seen while nothing is known of the past.
fn at_once(second: impl Fn(u64) -> TargetSample, lasts_s: u64) -> Vec<(u64, Event)> {
    let mut detector = Detector::new("t");
    (0..lasts_s).filter_map(|at_s| Some((at_s, detector.add(1_000_000 + at_s, &second(at_s))?))).collect()
}

fn quiet() -> TargetSample {
    TargetSample {
        target: "t".to_owned(),
        under_way: Mean::of(Some(4.0), 1.0),
        rate: Mean::of(Some(100.0), 1.0),
        ..TargetSample::default()
    }
}

fn losing(count: f64, rate: Option<f64>) -> TargetSample {
    let loss = Loss { tier: None, place: None, kind: LedgerLossKind::Refused, count };
    TargetSample { losses: vec![loss], rate: Mean::of(rate, 1.0), ..quiet() }
}

/// Four threads, and so many requests that wait unread.
fn waiting(unread: f64, rate: Option<f64>) -> TargetSample {
    let place = Standing { tier: "t".to_owned(), place: LedgerPlaceKind::Unread, request_seconds: unread };
    TargetSample { places: vec![place], under_way: Mean::of(Some(4.0 + unread), 1.0), rate: Mean::of(rate, 1.0), ..quiet() }
}

/// More come than four threads can serve: from 21 ms to two seconds, although the rate is higher than ever.
#[test]
fn a_queue_that_grows_is_a_drop_however_many_come() {
    let overload = |at_s: u64| if at_s < 200 { waiting(0.0, Some(100.0)) } else { waiting(30.0 * (at_s - 199) as f64, Some(230.0)) };
    let seen = at_once(overload, 230);
    let [(began, Event::Began(drop))] = &seen[..] else { panic!("{seen:?}") };
    assert!((200..220).contains(began) && drop.kinds == [Kind::Full], "{seen:?}");
    // What was always so is how the server is used: a load that waits for its answers.
    let always = at_once(|at_s| waiting(if at_s < 300 { 60.0 } else { 61.0 }, Some(200.0)), 600);
    assert!(matches!(always[..], [(_, Event::Began(_)), (_, Event::Ended { recovered: false, .. })]), "it is told once: {always:?}");
}

#[test]
fn an_outage_that_was_there_before_us_needs_no_past() {
    let full = || Queue { listener: "0.0.0.0:80".to_owned(), most: 129, limit: 128 };
    let taken = || PoolUse { active: Mean::of(Some(4.0), 1.0), total: Mean::of(Some(4.0), 1.0) };
    let bad: [(&str, &dyn Fn() -> TargetSample, Kind); 5] = [
        ("threads before which nearly all wait unread", &|| waiting(120.0, Some(200.0)), Kind::Full),
        ("a tenth is refused", &|| losing(10.0, Some(90.0)), Kind::Losses),
        ("refusals beside answers that nobody counts", &|| losing(50.0, None), Kind::Losses),
        ("a full queue", &|| TargetSample { queues: vec![full()], ..quiet() }, Kind::Full),
        (
            "a full pool",
            &|| TargetSample { pools: [("www".to_owned(), taken())].into(), under_way: Mean::of(Some(12.0), 1.0), ..quiet() },
            Kind::Full,
        ),
    ];
    for (name, second, kind) in bad {
        let seen = at_once(|at_s| if at_s < 60 { second() } else { quiet() }, 120);
        let [(began, Event::Began(drop)), (ended, Event::Ended { recovered: true, .. })] = &seen[..] else { panic!("{name}: {seen:?}") };
        assert!((3..=10).contains(began) && *ended > 60, "{name}: {seen:?}");
        assert_eq!((&drop.kinds[..], drop.against, drop.before), (&[kind][..], Against::Nothing, Figures::default()), "{name}");
    }
    let lasting = at_once(|_| losing(10.0, Some(90.0)), 3_000);
    assert!(matches!(lasting[..], [(_, Event::Began(_)), (_, Event::Ended { recovered: false, .. })]), "it is told once: {lasting:?}");
}

#[test]
fn what_a_healthy_server_shows_is_no_outage() {
    let busy = || PoolUse { active: Mean::of(Some(4.0), 1.0), total: Mean::of(Some(4.0), 1.0) };
    let good: [(&str, &dyn Fn(u64) -> TargetSample); 5] = [
        ("one in a hundred", &|_| losing(1.0, Some(99.0))),
        ("a lonely refusal now and then", &|at_s| {
            if at_s % 5 == 0 { losing(1.0, Some(0.0)) } else { TargetSample { rate: Mean::of(Some(0.0), 1.0), ..quiet() } }
        }),
        ("a reload", &|at_s| if at_s < 3 { losing(30.0, Some(70.0)) } else { quiet() }),
        ("a queue with room", &|_| TargetSample { queues: vec![Queue { listener: "a".to_owned(), most: 128, limit: 128 }], ..quiet() }),
        ("busy workers before whom nobody waits", &|_| TargetSample { pools: [("www".to_owned(), busy())].into(), ..quiet() }),
    ];
    for (name, second) in good {
        assert_eq!(at_once(second, 60), [], "{name}");
    }
}

/// Kept connections that carried a request and its answer within one tick of the kernel's clock: some seconds tell which came last, others do not.
#[test]
fn connections_that_may_be_idle_are_no_requests_that_wait() {
    let of = |idle: f64, known: f64, rate: f64| {
        let place = Standing { tier: "t".to_owned(), place: LedgerPlaceKind::Undecided, request_seconds: idle };
        TargetSample { places: vec![place], under_way: Mean::of(Some(known + idle), 1.0), rate: Mean::of(Some(rate), 1.0), ..quiet() }
    };
    let idle = |at_s: u64| if at_s < 200 { 0.0 } else { 500.0 * (at_s % 17) as f64 };
    assert_eq!(at_once(|at_s| of(idle(at_s), 2.0, 500.0), 400), []);
    let pool = PoolUse { active: Mean::of(Some(4.0), 1.0), total: Mean::of(Some(4.0), 1.0) };
    assert_eq!(at_once(|_| TargetSample { pools: [("www".to_owned(), pool)].into(), ..of(3_000.0, 4.0, 500.0) }, 60), []);
    // What is known to wait counts beside them.
    let seen = at_once(|at_s| of(500.0, if at_s < 200 { 2.0 } else { 2_000.0 }, 500.0), 230);
    let [(_, Event::Began(drop))] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((&drop.kinds[..], drop.during.rate_rps), (&[Kind::Slower][..], Some(500.0)));
    assert_eq!((drop.before.response_ms, drop.during.response_ms.map(f64::round)), (None, Some(4_000.0)), "2 to 502 of them before");
}

#[test]
fn losses_alone_are_no_share() {
    let seen = at_once(|_| losing(50.0, None), 20);
    let [(_, Event::Began(drop))] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((drop.during.bad_share, drop.during.rate_rps, drop.during.lost_per_s), (None, None, Some(50.0)));
    // In seconds with a rate, those count alone.
    let seen = at_once(|at_s| losing(50.0, (at_s % 2 == 0).then_some(150.0)), 20);
    let [(_, Event::Began(drop))] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((drop.during.bad_share, drop.during.lost_per_s), (Some(0.25), Some(50.0)));
}

/// Where counters are read every few seconds, the seconds of one reading have the mean of before and after.
#[test]
fn the_figures_of_a_drop_are_those_of_the_seconds_since() {
    let of = |rate: f64| TargetSample { under_way: Mean::of(Some(4.0), 1.0), rate: Mean::of(Some(rate), 1.0), ..quiet() };
    for mixed in [1, 2, 3] {
        let mut detector = Detector::new("t");
        let rate = |n: u64| {
            if n < 100 {
                400.0
            } else if n < 100 + mixed {
                300.0
            } else {
                80.0
            }
        };
        let began = (0..120).filter_map(|n| detector.add(1_000_000 + n, &of(rate(n)))).count();
        let during = detector.drop_under_way().map(|drop| (drop.since_s, drop.during.response_ms));
        assert_eq!((began, during), (1, Some((1_000_100, Some(50.0)))), "{mixed}");
    }
}

#[test]
fn nothing_is_judged_by_too_short_a_past() {
    let seconds = (0..60).map(|second| if second < 20 { CLOSED } else { Second { capacity_rps: 200.0, ..CLOSED } });
    assert_eq!(events(seconds, 1), []);
}

#[test]
fn a_clock_that_is_set_back_does_not_matter() {
    let mut detector = Detector::new("t");
    let (mut random, mut backlog) = (Random::new(3), 0.0);
    for at_s in (5_000..5_100).chain(100..250) {
        assert_eq!(detector.add(at_s, &sample(STEADY, &mut backlog, &mut random)), None);
    }
}
