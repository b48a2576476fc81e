//! The verdict as a whole: healthy and by what, client-limited, unknown and why; and what must hold for every observation.
//!
//! Deterministic: observations made up by the tests.

use std::collections::BTreeMap;

use chokepoint_model::load::{Handshakes, Loop, Lost, Slice, TlsFailure, TlsLoad};
use chokepoint_model::observation::{CpuUse, Identity, Observation, Qdisc, RequestSample, ThreadTimes};
use chokepoint_model::reading::{Lack, Reading};
use chokepoint_model::report::{Diagnosis, LimitedBy, StationState, Verdict};
use proptest::prelude::*;

use crate::stage::*;

fn verdict(diagnosis: &Diagnosis) -> (Verdict, Option<LimitedBy>) {
    (diagnosis.verdict, diagnosis.limited_by)
}

#[test]
fn healthy_by_demand_cpu_and_link() {
    assert_eq!(verdict(&told(&healthy())), (Verdict::Healthy, Some(LimitedBy::Demand)));
    let mut obs = healthy();
    cpu(&mut obs, 0.99);
    assert_eq!(verdict(&told(&obs)), (Verdict::Healthy, Some(LimitedBy::Cpu)));
    let mut obs = healthy();
    links(&mut obs, 6_240_000);
    let shaper = Qdisc { link: 2, kind: "tbf".into(), rate_bits_per_s: Some(50_000_000), ..Qdisc::default() };
    obs.netns.get_mut(&SERVER).unwrap().qdiscs.push(0, Reading::Ok(vec![shaper.clone()]));
    assert_eq!(verdict(&told(&obs)), (Verdict::Healthy, Some(LimitedBy::Link)));
    // What the shaper counts itself is what it lets pass, and one that counts nothing says nothing.
    let counted = |bytes: [u64; 2]| {
        let mut obs = obs.clone();
        let view = obs.netns.get_mut(&SERVER).unwrap();
        view.qdiscs = Default::default();
        for (at_us, bytes) in [0, 11_000_000].into_iter().zip(bytes) {
            view.qdiscs.push(at_us, Reading::Ok(vec![Qdisc { bytes, ..shaper.clone() }]));
        }
        verdict(&told(&obs)).1
    };
    assert_eq!(counted([5_000, 5_000 + 11 * 3_000_000]), Some(LimitedBy::Demand), "it is the half of its rate");
    assert_eq!(counted([0, 0]), Some(LimitedBy::Link));
}

/// Twenty clients are served fast, and eighty are refused at every try, which fails ten times a second each: one request in a hundred and fifty.
#[test]
fn clients_that_get_no_connection_are_harm_however_few_requests_fail() {
    let mut obs = healthy();
    let load = obs.load.as_mut().unwrap();
    (load.requests, load.good, load.errors.connect_refused) = (1_200_000, 1_192_000, 8_000);
    load.without_connection_us = Some(80 * load.duration_us);
    let found = told(&obs);
    assert_eq!(verdict(&found), (Verdict::Unknown, None));
    assert!(found.summary.contains("80 of the load's 100 connections"), "{}", found.summary);
    obs.load.as_mut().unwrap().without_connection_us = Some(0);
    assert_eq!(verdict(&told(&obs)), (Verdict::Healthy, Some(LimitedBy::Demand)));
}

/// A load of ten seconds in whose slices this many answers came, in turn, while all connections had a request under way.
fn in_turn(turn: [u32; 10], connections: u32) -> Observation {
    let mut obs = healthy();
    let slice = |good: u32| Slice { started: good, good, in_flight: connections, ..Slice::default() };
    let slices: Vec<Slice> = turn.into_iter().cycle().take(100).map(slice).collect();
    let good = slices.iter().map(|slice| u64::from(slice.good)).sum();
    let mut few = obs.load.clone().unwrap();
    (few.requests, few.good, few.latency_us.p50) = (10, 10, 4_000);
    let load = obs.load.as_mut().unwrap();
    (load.shape, load.slices) = (Loop::Closed { connections }, slices);
    (load.requests, load.good, load.status) = (good, good, BTreeMap::from([(200, good)]));
    (load.latency_us.p50, load.latency_us.p99) = (5_000, 703_000);
    obs.unloaded = Some(few);
    obs
}

#[test]
fn answers_in_bursts_between_pauses_are_no_lack_of_connections() {
    let blocked = in_turn([0, 0, 0, 0, 0, 0, 0, 850, 850, 850], 40);
    let found = told(&blocked);
    assert_eq!(verdict(&found), (Verdict::Unknown, None), "{}", found.summary);
    assert!(["70 %", "700 ms", "40 requests"].iter().all(|told| found.summary.contains(told)), "{}", found.summary);
    // An open loop that gets all its answers, most of them late.
    let mut open = blocked.clone();
    let load = open.load.as_mut().unwrap();
    load.shape = Loop::Open { rate_per_s: load.good as f64 / 10.0, connections: 1_000 };
    load.slices.iter_mut().for_each(|slice| (slice.started, slice.in_flight) = (255, if slice.good == 0 { 600 } else { 2 }));
    assert_eq!(verdict(&told(&open)), (Verdict::Unknown, None));
    let fine = |obs: &Observation, why: &str| {
        let found = told(obs);
        assert_eq!(verdict(&found), (Verdict::Healthy, Some(LimitedBy::Demand)), "{why}: {}", found.summary);
    };
    fine(&in_turn([255; 10], 40), "evenly");
    fine(&in_turn([0, 250, 270, 240, 260, 250, 270, 240, 260, 250].map(|good| good.max(120)), 40), "unevenly");
    fine(&in_turn([0, 1, 0, 2, 1, 1, 3, 0, 1, 2], 40), "few answers: chance leaves slices empty");
    // Each takes a second by itself, and all of them end together.
    let mut slow = in_turn([0, 0, 0, 0, 0, 0, 0, 0, 0, 400], 400);
    slow.unloaded.as_mut().unwrap().latency_us.p50 = 1_000_000;
    slow.load.as_mut().unwrap().latency_us.p50 = 1_000_000;
    fine(&slow, "a second each");
    // Nothing was asked in the empty ones.
    let mut offered = open.clone();
    offered.load.as_mut().unwrap().slices.iter_mut().for_each(|slice| slice.in_flight = 0);
    fine(&offered, "no request stood");
}

/// Watched traffic of which the server's namespace counted this.
fn counted(counters: &[(&str, i64)]) -> Observation {
    let mut obs = healthy();
    (obs.load, obs.request.loaded) = (None, false);
    for (at_us, times) in [(0, 0), (11_000_000, 1)] {
        let counters = counters.iter().map(|(name, grown)| ((*name).to_owned(), 7 + times * grown)).collect();
        obs.netns.get_mut(&SERVER).unwrap().netstat.push(at_us, Reading::Ok(counters));
    }
    obs
}

#[test]
fn watched_connections_that_end_without_an_answer_are_harm_whoever_ended_them() {
    let opened = ("Tcp.PassiveOpens", 260_000);
    for counters in [&[opened, ("TcpExt.TCPAbortOnClose", 240_000)] as &[_], &[opened, ("TcpExt.TCPAbortOnData", 9_000)]] {
        let found = told(&counted(counters));
        assert_eq!(verdict(&found), (Verdict::Unknown, None));
        assert!(found.summary.contains("got no answer"), "{}", found.summary);
    }
    // Few of many: a client that went away.
    let few = told(&counted(&[opened, ("TcpExt.TCPAbortOnClose", 40)]));
    assert!(!few.summary.contains("got no answer"), "{}", few.summary);
}

#[test]
fn a_load_of_less_than_a_second_and_servers_that_hardly_used_a_core_give_no_ceiling() {
    let ceilings = |obs: &Observation| told(obs).path.into_iter().filter(|station| station.ceiling_rps.is_some()).count();
    assert!(ceilings(&healthy()) > 0);
    let mut short = healthy();
    short.load.as_mut().unwrap().duration_us = 3_000;
    assert_eq!(ceilings(&short), 0);
    // An idle server beside a compiler: what it may use is what it used.
    let idle = told(&contended(0.02, Some(0.001)));
    let cpu = idle.path.iter().find(|station| station.station == "cpu").unwrap();
    assert!(cpu.used.unwrap() < 0.1 && cpu.utilization.unwrap() < 0.1, "{cpu:?}");
    assert_eq!((cpu.ceiling_rps, idle.limited_by), (None, Some(LimitedBy::Demand)));
}

/// The servers' core is full. Each server process used this share of it, and waited for it for that share of the time.
fn contended(used: f64, waited: Option<f64>) -> Observation {
    let mut obs = healthy();
    cpu(&mut obs, 1.0);
    for process in obs.processes.values_mut() {
        process.cpu = Default::default();
        for second in 0..=11_u64 {
            let user_ticks = (second as f64 * 100.0 * used) as u64;
            let delay_ns = waited.map(|waited| (second as f64 * 1e9 * waited) as u64);
            let used =
                CpuUse { user_ticks, run_ns: delay_ns.map(|_| user_ticks * 10_000_000), run_delay_ns: delay_ns, ..CpuUse::default() };
            process.cpu.push(second * 1_000_000, Reading::Ok(used));
        }
    }
    obs
}

#[test]
fn a_core_that_others_fill_is_a_limit_only_of_servers_that_want_it_whole() {
    let servers = healthy().processes.len() as f64;
    // A neighbour that takes what is left: the servers hardly wait.
    let left = told(&contended(0.3 / servers, Some(0.05 / servers)));
    assert_eq!(verdict(&left), (Verdict::Healthy, Some(LimitedBy::Demand)));
    let cpu = left.path.iter().find(|station| station.station == "cpu").unwrap();
    assert!(cpu.state == StationState::Near && cpu.why.contains("70"), "{}", cpu.why);
    assert!(left.warnings.iter().any(|warning| warning.contains("70")), "{:?}", left.warnings);
    // One that takes its half of a core that the servers would fill.
    assert_eq!(verdict(&told(&contended(0.5 / servers, Some(0.48 / servers)))), (Verdict::Healthy, Some(LimitedBy::Cpu)));
    // The servers wait for one another now and then, and answers take hardly longer than alone.
    let mut bursts = contended(0.5 / servers, Some(0.6 / servers));
    assert_eq!(verdict(&told(&bursts)), (Verdict::Healthy, Some(LimitedBy::Cpu)));
    let (load, mut few) = (bursts.load.clone().unwrap(), bursts.load.clone().unwrap());
    (few.requests, few.good, few.latency_us.p50) = (10, 10, load.latency_us.p50 * 4 / 5);
    bursts.unloaded = Some(few);
    assert_eq!(verdict(&told(&bursts)), (Verdict::Healthy, Some(LimitedBy::Demand)));
    // Nobody else: what little is left over is the grain of the clock.
    assert_eq!(verdict(&told(&contended(0.97 / servers, Some(0.0)))), (Verdict::Healthy, Some(LimitedBy::Cpu)));
}

#[test]
fn a_watched_server_beside_a_neighbour_is_limited_by_the_core_where_it_waits_for_it() {
    let watched = |used: f64, waited: Option<f64>| {
        let mut obs = contended(used, waited);
        (obs.load, obs.request.loaded) = (None, false);
        for (at, opens) in [(0, 10), (11_000_000, 500)] {
            let counters = BTreeMap::from([("Tcp.PassiveOpens".to_owned(), opens)]);
            obs.netns.get_mut(&SERVER).unwrap().netstat.push(at, Reading::Ok(counters.into_iter().collect()));
        }
        obs
    };
    let servers = healthy().processes.len() as f64;
    // Not by the core; and what else the requests wait for was not sampled.
    assert_eq!(verdict(&told(&watched(0.2 / servers, Some(0.05 / servers)))), (Verdict::Unknown, None));
    assert_eq!(verdict(&told(&watched(0.4 / servers, Some(0.7 / servers)))), (Verdict::Healthy, Some(LimitedBy::Cpu)));
    // Without schedstats the waiting time is unknown. With a neighbour on most of the core the verdict stays unknown.
    assert_eq!(verdict(&told(&watched(0.2 / servers, None))), (Verdict::Unknown, None));
}

#[test]
fn healthy_is_not_said_where_some_are_served_and_others_starve() {
    let lost = |share: f64, p50: u64| {
        let mut obs = healthy();
        cpu(&mut obs, 0.99);
        let load = obs.load.as_mut().unwrap();
        load.latency_us.p50 = p50;
        load.lost = Some(Lost { patience_us: 1_000_000, late: 0, time_us: (share * 1e9) as u64, of_us: 1_000_000_000 });
        obs
    };
    assert_eq!(verdict(&told(&lost(0.02, 5_000))), (Verdict::Healthy, Some(LimitedBy::Cpu)));
    let starved = told(&lost(0.6, 5_000));
    assert_eq!(verdict(&starved), (Verdict::Unknown, None));
    assert!(starved.summary.contains("60 % of the clients' time was lost"), "{}", starved.summary);
    // All requests are slow: a full core does that.
    assert_eq!(verdict(&told(&lost(0.6, 800_000))), (Verdict::Healthy, Some(LimitedBy::Cpu)));
    // What an objective asks for beyond the usual is no loss.
    let mut obs = lost(0.6, 5_000);
    obs.request.slo_p99_us = Some(1_000_000);
    assert_eq!(verdict(&told(&obs)), (Verdict::Healthy, Some(LimitedBy::Cpu)));
}

#[test]
fn an_open_loop_that_got_through_is_demand_and_one_that_did_not_is_not() {
    let mut obs = healthy();
    obs.load.as_mut().unwrap().shape = Loop::Open { rate_per_s: 10_000.0, connections: 100 };
    assert_eq!(verdict(&told(&obs)), (Verdict::Healthy, Some(LimitedBy::Demand)));
    obs.load.as_mut().unwrap().shape = Loop::Open { rate_per_s: 20_000.0, connections: 100 };
    assert_eq!(told(&obs).verdict, Verdict::Unknown);
}

/// Each request takes so long that the answers to the last ones come after the offering, where nothing is short.
#[test]
fn answers_that_are_still_on_their_way_at_the_end_are_no_lack() {
    let offered = |capacity: u32, takes_slices: usize| {
        let mut obs = healthy();
        let load = obs.load.as_mut().unwrap();
        load.shape = Loop::Open { rate_per_s: 250.0, connections: 1_000 };
        let good = |n: usize| if n < takes_slices { 0 } else { capacity };
        load.slices = (0..100).map(|n| Slice { started: 25, good: good(n), in_flight: 200, ..Slice::default() }).collect();
        (load.requests, load.good, load.drained) = (2_500, 2_500, 0);
        let ended: u32 = load.slices.iter().map(|slice| slice.good).sum();
        (load.drained, load.drained_good) = (2_500 - u64::from(ended), 2_500 - u64::from(ended));
        told(&obs)
    };
    for takes_slices in [0, 3, 8] {
        let slow = offered(25, takes_slices);
        assert_eq!(verdict(&slow), (Verdict::Healthy, Some(LimitedBy::Demand)), "{takes_slices}: {}", slow.summary);
    }
    // As many are answered in the end, but fewer a second than were asked.
    assert_eq!(offered(20, 3).verdict, Verdict::Unknown);
}

#[test]
fn the_generators_own_limits_forbid_a_verdict_about_the_server() {
    let mut obs = healthy();
    obs.load.as_mut().unwrap().threads[0].cpu_us = 9_500_000;
    assert_eq!((verdict(&told(&obs)), causes(&told(&obs))), ((Verdict::ClientLimited, None), vec!["load-generator-limited"]));
    let mut obs = healthy();
    let load = obs.load.as_mut().unwrap();
    load.errors.local_ports = 60_000;
    load.requests += 60_000;
    assert_eq!(told(&obs).verdict, Verdict::ClientLimited);
    // What the server refused is a finding all the same.
    let mut obs = table_full(200);
    obs.load.as_mut().unwrap().threads[0].cpu_us = 9_500_000;
    assert_eq!((told(&obs).verdict, causes(&told(&obs)).len()), (Verdict::ClientLimited, 2));
}

#[test]
fn wrong_answers_ask_for_the_right_url() {
    for status in [404, 401, 301] {
        let mut obs = healthy();
        let load = obs.load.as_mut().unwrap();
        load.good = 0;
        load.status = BTreeMap::from([(status, 100_000)]);
        let diagnosis = told(&obs);
        assert_eq!(diagnosis.verdict, Verdict::Unknown);
        assert!(diagnosis.summary.contains(&status.to_string()) && diagnosis.summary.contains("right URL"), "{}", diagnosis.summary);
    }
    let mut obs = healthy();
    let load = obs.load.as_mut().unwrap();
    (load.good, load.status, load.errors.connect_refused) = (0, BTreeMap::new(), load.requests);
    assert!(told(&obs).summary.contains("refused"));
}

#[test]
fn what_is_wrong_with_a_certificate_is_told_only_where_no_handshake_succeeded() {
    let summary = |full: u64, failure: TlsFailure| {
        let mut obs = healthy();
        let load = obs.load.as_mut().unwrap();
        (load.good, load.status) = (0, BTreeMap::from([(500, full)]));
        load.errors.tls_failed = load.requests - full;
        let handshakes = Handshakes { full, resumed: 0 };
        load.tls = Some(TlsLoad { offers_sessions: true, handshakes, time_us: None, failure: Some(failure) });
        told(&obs).summary
    };
    for (failure, said) in [
        (TlsFailure::UnknownAuthority, "--cacert FILE"),
        (TlsFailure::Expired, "expired"),
        (TlsFailure::NotYetValid, "not valid yet"),
        (TlsFailure::WrongName, "another name"),
        (TlsFailure::Certificate, "cannot be accepted"),
        (TlsFailure::Handshake, "speak TLS"),
    ] {
        assert!(summary(0, failure).contains(said), "{}", summary(0, failure));
        assert!(!summary(10, failure).contains("no TLS handshake"), "{}", summary(10, failure));
    }
}

#[test]
fn failures_that_nothing_explains_are_never_healthy() {
    let mut obs = healthy();
    let load = obs.load.as_mut().unwrap();
    (load.good, load.errors.reset) = (90_000, 10_000);
    assert_eq!(told(&obs).verdict, Verdict::Unknown);
}

#[test]
fn connections_that_wait_before_idle_cores_are_not_too_few_connections() {
    let mut obs = healthy();
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let mut waiting = view.listeners.first().unwrap().clone();
    waiting[0].accept_queue = 80;
    for tick in 221..400_u64 {
        view.listeners.push(tick * 50_000, Reading::Ok(waiting.clone()));
    }
    obs.window_us = Some((500_000, 19_900_000));
    assert_eq!(told(&obs).verdict, Verdict::Unknown);
}

#[test]
fn a_core_with_little_left_is_the_limit_where_all_of_it_is_wanted() {
    let servers = healthy().processes.len() as f64;
    let busy_and_waiting = |busy: f64, waiting: f64| {
        let mut obs = contended(busy / servers, Some(waiting / servers));
        cpu(&mut obs, busy);
        told(&obs)
    };
    let crowded = busy_and_waiting(0.93, 2.5);
    assert_eq!(verdict(&crowded), (Verdict::Healthy, Some(LimitedBy::Cpu)));
    assert!(crowded.summary.contains("93 %") && crowded.summary.contains("2.5 threads"), "{}", crowded.summary);
    assert_eq!(verdict(&busy_and_waiting(0.93, 0.5)), (Verdict::Healthy, Some(LimitedBy::Cpu)));
    // A part of it is wanted by nobody, or more is left than a tenth.
    assert_eq!(verdict(&busy_and_waiting(0.93, 0.02)), (Verdict::Healthy, Some(LimitedBy::Demand)));
    assert_eq!(verdict(&busy_and_waiting(0.85, 2.5)), (Verdict::Healthy, Some(LimitedBy::Demand)));
}

/// Processes that are expensive to read have their own reading times.
#[test]
fn what_servers_used_counts_by_the_time_between_their_own_readings() {
    let servers = healthy().processes.len() as f64;
    let mut obs = contended(0.97 / servers, Some(0.0));
    for process in obs.processes.values_mut() {
        let all = std::mem::take(&mut process.cpu);
        for (at_us, used) in all.points().iter().filter(|(at_us, _)| [4_000_000, 7_000_000].contains(at_us)) {
            process.cpu.push(*at_us, Reading::Ok(used.clone()));
        }
    }
    let told = told(&obs);
    assert_eq!(verdict(&told), (Verdict::Healthy, Some(LimitedBy::Cpu)));
    assert!(told.warnings.is_empty(), "nobody else used the core: {:?}", told.warnings);
}

/// A server of these threads, on two cores that are half busy: each ran for this share of the time, and waited for a core for that one.
fn threaded(threads: &[(f64, f64)]) -> Observation {
    let mut obs = healthy();
    cpu(&mut obs, 0.7);
    let process = obs.processes.get_mut(&42).unwrap();
    let identity = Identity { cpus_allowed: vec![0, 1], ..process.identity.first().unwrap().clone() };
    process.identity = Default::default();
    process.identity.push(0, Reading::Ok(identity));
    process.cpu = Default::default();
    for second in 0..=11_u64 {
        let ns = |share: f64| (second as f64 * 1e9 * share) as u64;
        let times = |(id, (ran, delayed)): (u32, &(f64, f64))| ThreadTimes { id, run_ns: ns(*ran), delay_ns: ns(*delayed) };
        let thread_times: Vec<ThreadTimes> = (42..).zip(threads).map(times).collect();
        let used = CpuUse { thread_times, threads: threads.len() as u32, ..CpuUse::default() };
        process.cpu.push(second * 1_000_000, Reading::Ok(used));
    }
    obs
}

#[test]
fn work_that_the_clock_ticks_miss_is_told_by_the_servers_own_clocks() {
    let mut obs = threaded(&[(0.6, 0.0), (0.2, 0.0)]);
    let process = obs.processes.get_mut(&42).unwrap();
    for (at, used) in std::mem::take(&mut process.cpu).points() {
        let run_ns = Some(used.thread_times.iter().map(|thread| thread.run_ns).sum());
        process.cpu.push(*at, Reading::Ok(CpuUse { run_ns, ..used.clone() }));
    }
    let cores = |obs: &Observation| told(obs).path.iter().find(|station| station.station == "cpu").unwrap().used.unwrap();
    assert!((cores(&obs) - 1.0).abs() < 0.02, "the ticks count more: {}", cores(&obs));
    cpu(&mut obs, 0.1);
    assert!((cores(&obs) - 0.8).abs() < 0.02, "the ticks count half of it: {}", cores(&obs));
}

#[test]
fn one_event_loop_at_its_limit_beside_an_idle_core_is_choked() {
    // Its helpers sleep, as those of a runtime do.
    let full = told(&threaded(&[(0.97, 0.01), (0.001, 0.0), (0.02, 0.0)]));
    assert_eq!((verdict(&full), causes(&full)), ((Verdict::Choked, None), vec!["single-core-saturated"]));
    let station = full.path.iter().find(|station| station.station == "cpu").unwrap();
    let ceiling = station.ceiling_rps.unwrap();
    let goodput = full.load.as_ref().unwrap().goodput_rps;
    assert!(station.why.contains("one serving thread") && ceiling.value > goodput && ceiling.value < 1.05 * goodput, "{station:?}");
    // A thread that waits now and then, or as many busy threads as cores: what is idle is not for want of threads.
    for threads in [&[(0.8, 0.02)][..], &[(0.97, 0.01), (0.4, 0.0)], &[(0.96, 0.01), (0.96, 0.01)]] {
        assert_eq!(verdict(&told(&threaded(threads))), (Verdict::Healthy, Some(LimitedBy::Demand)), "{threads:?}");
    }
}

#[test]
fn answers_that_wait_where_nothing_is_full_are_not_too_few_connections() {
    let waiting = |alone_us: u64, good: u64| {
        let mut obs = healthy();
        let mut few = obs.load.clone().unwrap();
        (few.requests, few.good, few.latency_us.p50) = (10, good, alone_us);
        obs.unloaded = Some(few);
        obs
    };
    let p50 = healthy().load.unwrap().latency_us.p50;
    let diagnosis = told(&waiting(p50 / 20, 10));
    assert_eq!(verdict(&diagnosis), (Verdict::Unknown, None));
    assert!(diagnosis.summary.contains("alone"), "{}", diagnosis.summary);
    // As long as alone, or too few answers to say: the connections are what limits.
    for obs in [waiting(p50, 10), waiting(p50 / 2, 10), waiting(p50 / 20, 3)] {
        assert_eq!(verdict(&told(&obs)), (Verdict::Healthy, Some(LimitedBy::Demand)));
    }
    // Four times as long as alone, and no longer than cores take to wake up.
    let mut obs = waiting(8, 10);
    obs.load.as_mut().unwrap().latency_us.p50 = 32;
    assert_eq!(verdict(&told(&obs)), (Verdict::Healthy, Some(LimitedBy::Demand)));
    // A generator that waits for a core measures that.
    let mut obs = waiting(p50 / 20, 10);
    obs.load.as_mut().unwrap().threads[0].wait_us = Some(4_000_000);
    let diagnosis = told(&obs);
    assert!(diagnosis.verdict == Verdict::Unknown && diagnosis.summary.contains("generator itself waited"), "{}", diagnosis.summary);
    // Where the cores are busy they are what is waited for.
    let mut obs = waiting(p50 / 20, 10);
    cpu(&mut obs, 0.99);
    assert_eq!(verdict(&told(&obs)), (Verdict::Healthy, Some(LimitedBy::Cpu)));
}

#[test]
fn with_too_few_samples_nothing_explains_it_and_the_report_says_how_long_to_measure() {
    let summary = |samples: u64| {
        let mut obs = healthy();
        let load = obs.load.as_ref().unwrap();
        let mut few = load.clone();
        (few.requests, few.good, few.latency_us.p50) = (10, 10, load.latency_us.p50 / 20);
        obs.unloaded = Some(few);
        for number in 0..samples {
            let sample = RequestSample { share: 1.0, handshake_share: 1.0, ..RequestSample::default() };
            obs.netns.get_mut(&SERVER).unwrap().request_samples.push(2_000_000 + number * 1_000_000, Reading::Ok(sample));
        }
        let told = told(&obs);
        assert_eq!(told.verdict, Verdict::Unknown);
        told.summary
    };
    assert!(
        summary(2).contains("alone")
            && summary(2).ends_with("Only 2 samples of where requests stood could be taken in 10 s: measure longer, -z 30s."),
        "{}",
        summary(2)
    );
    assert!(summary(1).contains("Only one sample") && summary(1).ends_with("-z 60s."), "{}", summary(1));
    assert!(!summary(6).contains("samples") && !summary(0).contains("samples"), "{}", summary(6));
}

#[test]
fn passive_without_traffic_or_listener_cannot_tell() {
    let mut obs = healthy();
    (obs.load, obs.request.loaded) = (None, false);
    assert!(told(&obs).summary.contains("no connection reached"));
    obs.request.port = 81;
    assert!(told(&obs).summary.contains("listens on port 81"));
    let mut obs = healthy();
    (obs.load, obs.request.loaded) = (None, false);
    for (at, opens) in [(0, 10), (11_000_000, 500)] {
        let counters = BTreeMap::from([("Tcp.PassiveOpens".to_owned(), opens)]);
        obs.netns.get_mut(&SERVER).unwrap().netstat.push(at, Reading::Ok(counters.into_iter().collect()));
    }
    let unsampled = told(&obs);
    assert!(verdict(&unsampled) == (Verdict::Unknown, None) && unsampled.summary.contains("was not sampled"), "{}", unsampled.summary);
}

#[test]
fn two_namespaces_with_the_same_address_are_ambiguous_until_one_is_named() {
    let mut obs = healthy();
    let twin = obs.netns[&SERVER].clone();
    obs.netns.insert(HOST, twin);
    assert!(told(&obs).summary.contains("--server-netns"));
    obs.request.server_netns = Some(SERVER);
    assert_eq!(told(&obs).verdict, Verdict::Healthy);
}

/// Takes away, one by one, whatever the bits of `mask` name.
fn blind(mut obs: Observation, mask: u32) -> Observation {
    let gone = || Lack::needing("permission denied", "CAP_SYS_ADMIN");
    let bit = |n: u32| mask & (1 << n) != 0;
    macro_rules! take {
        ($n:expr, $series:expr) => {
            if bit($n) {
                $series = Default::default();
                $series.push(0, Reading::Absent(gone()));
            }
        };
    }
    take!(0, obs.kernel);
    take!(1, obs.cpu);
    take!(2, obs.memory);
    take!(3, obs.kernel_log);
    for view in obs.netns.values_mut() {
        take!(4, view.conntrack_count);
        take!(5, view.conntrack_cpus);
        take!(6, view.listeners);
        take!(7, view.links);
        take!(8, view.addresses);
        take!(9, view.netstat);
        if bit(10) {
            view.sysctls.clear();
        }
    }
    for process in obs.processes.values_mut() {
        take!(11, process.identity);
        take!(12, process.files);
    }
    if bit(13) {
        obs.netns.clear();
    }
    if bit(14) {
        obs.processes.clear();
    }
    if bit(15) {
        (obs.load, obs.request.loaded) = (None, false);
    }
    if bit(16) {
        obs.window_us = None;
    }
    obs
}

proptest! {
    #[test]
    fn readings_that_are_absent_never_panic_and_never_make_a_cause(mask in 0_u32..1 << 17) {
        let diagnosis = told(&blind(healthy(), mask));
        prop_assert!(causes(&diagnosis).is_empty());
        prop_assert_ne!(diagnosis.verdict, Verdict::Choked);
        // A cause that was there may be lost, never become another one.
        let diagnosis = told(&blind(table_full(200), mask));
        prop_assert!(causes(&diagnosis).iter().all(|id| *id == "conntrack-table-full"));
        let counted = mask & ((1 << 4) | (1 << 10) | (1 << 13)) == 0;
        if !counted {
            prop_assert!(causes(&diagnosis).is_empty());
        }
    }

    #[test]
    fn slices_and_error_samples_do_not_change_the_verdict(started in 0_u32..1000) {
        let mut obs = table_full(200);
        obs.load.as_mut().unwrap().slices = vec![Slice { started, ..Slice::default() }; 100];
        let diagnosis = told(&obs);
        prop_assert_eq!(causes(&diagnosis), ["conntrack-table-full"]);
    }
}

/// Full cores limit a server only if it uses them: others may fill them, or processes that it starts and that end before they are read.
#[test]
fn cores_that_the_servers_hardly_use_do_not_limit_them() {
    let with = |own_share: f64| {
        let mut obs = healthy();
        cpu(&mut obs, 0.99);
        let process = obs.processes.get_mut(&42).unwrap();
        process.cpu = Default::default();
        for second in 0..=11_u64 {
            let ns = (second as f64 * 1e9 * own_share) as u64;
            let used = CpuUse { user_ticks: ns / 10_000_000, run_ns: Some(ns), run_delay_ns: Some(0), threads: 1, ..CpuUse::default() };
            process.cpu.push(second * 1_000_000, Reading::Ok(used));
        }
        told(&obs)
    };
    assert_eq!(with(0.9).limited_by, Some(LimitedBy::Cpu), "{}", with(0.9).summary);
    for little in [0.0, 0.02, 0.08] {
        assert_ne!(with(little).limited_by, Some(LimitedBy::Cpu), "{little}: {}", with(little).summary);
    }
}
