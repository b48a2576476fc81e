//! Programs that poll: their busy cores are no measure of load. Saturated servers look similar.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::load::{LoadResult, Loop, Percentiles};
use chokepoint_model::observation::{CpuUse, Identity, Observation, Socket, SocketAddress, TcpState, ThreadTimes};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Diagnosis, LimitedBy, StationState, Verdict};

use crate::stage::profiled::{Counted, profile};
use crate::stage::*;

/// Time of the second reading before the load, microseconds. The first is at 0.
const SECOND_US: u64 = 110_000;

/// nginx's threads: the share of the time that each ran before the load, and under it.
struct Threads<'a>(&'a [(f64, f64)]);

/// nginx's threads fill core 1. nginx may run on `cores`. `quiet` segments arrived before the load, and `loaded` per second after its start.
fn served(threads: &Threads<'_>, cores: &[u32], (quiet, loaded): (i64, i64)) -> Observation {
    let mut obs = healthy();
    cpu(&mut obs, 0.99);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let segments = |count: i64| Reading::Ok([("Tcp.InSegs".to_owned(), count)].into());
    view.netstat = Default::default();
    view.netstat.push(0, segments(500));
    view.netstat.push(SECOND_US, segments(500 + quiet));
    for second in 1..=11_u32 {
        view.netstat.push(u64::from(second) * 1_000_000, segments(500 + quiet + i64::from(second - 1) * loaded));
    }
    let process = obs.processes.get_mut(&42).unwrap();
    let identity = Identity { cpus_allowed: cores.to_vec(), ..process.identity.first().unwrap().clone() };
    process.identity = Default::default();
    process.identity.push(0, Reading::Ok(identity));
    process.cpu = Default::default();
    let at = |us: u64, before: u64| {
        let ran = |(quiet, loaded): &(f64, f64)| (*quiet * before as f64 + *loaded * (us - before) as f64) * 1e3;
        let times = |(id, shares): (u32, &(f64, f64))| ThreadTimes { id, run_ns: ran(shares) as u64, delay_ns: 0 };
        let times: Vec<ThreadTimes> = (42..).zip(threads.0).map(times).collect();
        let run_ns = Some(times.iter().map(|thread| thread.run_ns).sum());
        CpuUse { thread_times: times, run_ns, run_delay_ns: Some(0), threads: threads.0.len() as u32, ..CpuUse::default() }
    };
    for us in [0, SECOND_US] {
        process.cpu.push(us, Reading::Ok(at(us, us)));
    }
    for second in 1..=11_u64 {
        process.cpu.push(second * 1_000_000, Reading::Ok(at(second * 1_000_000, SECOND_US)));
    }
    obs
}

/// Makes the load an open loop whose every request was answered.
fn at_a_rate(obs: &mut Observation) {
    let load = obs.load.as_mut().unwrap();
    load.shape = Loop::Open { rate_per_s: 10_000.0, connections: 100 };
}

/// Sets the latency of an unloaded request, and the duration of the unloaded requests.
fn alone(obs: &mut Observation, p50: u64) {
    let loaded = obs.load.as_ref().unwrap();
    let few = LoadResult {
        requests: 10,
        good: 10,
        duration_us: 10 * p50,
        shape: Loop::Closed { connections: 1 },
        latency_us: Percentiles { p50, ..Percentiles::default() },
        ..loaded.clone()
    };
    obs.unloaded = Some(few);
}

fn improvements(diagnosis: &Diagnosis) -> Vec<&str> {
    diagnosis.improvements.iter().map(|finding| finding.id.as_str()).collect()
}

fn state(diagnosis: &Diagnosis) -> StationState {
    diagnosis.path.iter().find(|station| station.station == "cpu").unwrap().state
}

const QUIET: (i64, i64) = (0, 50_000);
const POLLS: Threads<'_> = Threads(&[(1.0, 0.99)]);
const SERVES: Threads<'_> = Threads(&[(0.02, 0.99)]);

#[test]
fn a_core_that_was_as_busy_before_the_load_is_no_limit_and_is_reported() {
    let mut obs = served(&POLLS, &[1], QUIET);
    at_a_rate(&mut obs);
    profile(&mut obs, &[(42, 1, "allocator", &[], 100), (42, 1, "application", &[], 295)]);
    let found = told(&obs);
    assert_eq!((found.verdict, found.limited_by, improvements(&found)), (Verdict::Healthy, Some(LimitedBy::Demand), vec!["busy-polling"]));
    let finding = &found.improvements[0];
    assert_eq!((finding.tier.as_str(), finding.confidence, finding.remedies.len()), ("nginx", Confidence::High, 1));
    let cpu = found.path.iter().find(|station| station.station == "cpu").unwrap();
    assert!(cpu.ceiling_rps.is_none() && cpu.why.contains("says nothing"), "{cpu:?}");
    let profile = found.profile.unwrap();
    assert!(profile.bounds.is_empty() && profile.no_bound.unwrap().contains("polls"));
    assert_eq!(profile.tiers[0].cpu_us_per_request, None, "what an answer costs is not to be seen");
}

#[test]
fn the_latency_shows_whether_requests_wait() {
    for (alone_us, expected) in [
        // As fast as unloaded: more connections would give more goodput.
        (8_500, (Verdict::Healthy, Some(LimitedBy::Demand), StationState::Ok)),
        (300, (Verdict::Unknown, None, StationState::Unknown)),
    ] {
        let mut obs = served(&POLLS, &[1], QUIET);
        alone(&mut obs, alone_us);
        obs.window_us = Some((1_000_000, 11_000_000));
        let found = told(&obs);
        assert_eq!((found.verdict, found.limited_by, state(&found)), expected, "{alone_us}: {}", found.summary);
        assert_eq!(improvements(&found), ["busy-polling"], "{alone_us}");
        assert!(!found.summary.contains("could not be read"), "{}", found.summary);
    }
}

#[test]
fn a_saturated_server_is_limited_by_its_core_and_does_not_poll() {
    for (what, threads, segments) in [
        ("it slept before", SERVES, QUIET),
        ("others kept it busy", POLLS, (3_000, 50_000)),
        ("it was busy half of the time before", Threads(&[(0.5, 0.99)]), QUIET),
    ] {
        let found = told(&served(&threads, &[1], segments));
        assert_eq!(
            (found.verdict, found.limited_by, state(&found)),
            (Verdict::Healthy, Some(LimitedBy::Cpu), StationState::Saturated),
            "{what}"
        );
        assert_eq!(improvements(&found), [""; 0], "{what}");
    }
}

#[test]
fn a_busy_core_during_the_unloaded_requests_proves_nothing() {
    let mut obs = served(&POLLS, &[1], QUIET);
    alone(&mut obs, 92_000);
    assert_eq!(improvements(&told(&obs)), [""; 0], "they began before the second reading");
    obs.load = None;
    obs.unloaded = None;
    assert_eq!(improvements(&told(&obs)), [""; 0], "nobody knows what came in before");
}

#[test]
fn a_request_still_in_progress_is_no_polling() {
    for (inode, expected) in [(77, vec![]), (0, vec!["busy-polling"])] {
        let mut obs = served(&POLLS, &[1], QUIET);
        let client = SocketAddress::Tcp { local: (ip(SERVER_IP), 80), remote: (ip("10.0.0.9"), 40_000) };
        let (state, receive_queue, send_queue) = (TcpState::Established, 0, 0);
        let socket = Socket { address: client, state, inode, uid: None, receive_queue, send_queue, wait: None };
        obs.netns.get_mut(&SERVER).unwrap().sockets.push(0, Reading::Ok(vec![socket]));
        assert_eq!(improvements(&told(&obs)), expected, "{inode}");
    }
}

#[test]
fn a_polling_thread_beside_idle_cores_needs_no_further_cores() {
    let ran: &[Counted<'_>] = &[(42, 0, "application", &[], 150), (42, 1, "application", &[], 245)];
    for (threads, expected) in [(POLLS, "busy-polling"), (SERVES, "single-core-saturated")] {
        let mut obs = served(&threads, &[0, 1], QUIET);
        cpu(&mut obs, 0.7);
        profile(&mut obs, ran);
        let found = told(&obs);
        assert_eq!([causes(&found), improvements(&found)].concat(), [expected]);
    }
    // One thread polls, the other is at its limit.
    let mut obs = served(&Threads(&[(1.0, 0.99), (0.01, 0.98)]), &[0, 1, 2], QUIET);
    profile(&mut obs, ran);
    assert!(improvements(&told(&obs)).contains(&"busy-polling"));
}

#[test]
fn polling_functions_in_a_profile_show_it_without_earlier_readings() {
    for (polled, expected) in [(300, vec!["busy-polling"]), (210, vec![]), (40, vec![])] {
        let mut obs = served(&SERVES, &[1], QUIET);
        at_a_rate(&mut obs);
        profile(&mut obs, &[(42, 1, "polling", &[], polled), (42, 1, "application", &[], 395 - polled)]);
        assert_eq!(improvements(&told(&obs)), expected, "{polled}");
    }
}

#[test]
fn servers_that_wait_for_a_core_filled_by_polling_are_limited_by_it() {
    let mut obs = served(&POLLS, &[1], QUIET);
    let process = obs.processes.get_mut(&42).unwrap();
    let points = process.cpu.points().to_vec();
    process.cpu = Default::default();
    for (at, mut used) in points {
        // A second thread waits for the core half of the time.
        used.thread_times.push(ThreadTimes { id: 43, run_ns: at * 200, delay_ns: at * 500 });
        used.run_delay_ns = Some(at * 500);
        process.cpu.push(at, Reading::Ok(used));
    }
    assert_eq!(told(&obs).limited_by, Some(LimitedBy::Cpu));
}
