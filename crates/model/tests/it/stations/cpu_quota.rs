//! Station `cpu-quota`: reported if a cgroup's quota throttles servers while their cores are idle and requests suffer, otherwise no finding.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::change::Change;
use chokepoint_model::load::Loop;
use chokepoint_model::observation::{CoreTimes, Counters, CpuTimes, Identity, Listener, Observation, RequestSocket, ThreadTimes};
use chokepoint_model::reading::{Lack, Reading};
use chokepoint_model::report::{Confidence, Diagnosis, LimitedBy, Prediction, Remedy, Role, Signal, Station, StationState, Step, Verdict};

use super::waiting::{client, sampled};
use crate::stage::pool::pool;
use crate::stage::quota::{Did, PHP, cgroup, cgroup_from, inside, throttled};
use crate::stage::*;

fn says(diagnosis: &Diagnosis, id: &str) -> bool {
    diagnosis.findings.iter().any(|finding| finding.id == id)
}

const THROTTLED: &str = "cgroup-cpu-throttled";

fn quota(diagnosis: &Diagnosis) -> &Station {
    diagnosis.path.iter().find(|station| station.station == "cpu-quota").unwrap()
}

fn silent(obs: &Observation) -> Diagnosis {
    let diagnosis = told(obs);
    assert!(diagnosis.findings.iter().all(|finding| finding.id != THROTTLED), "{:?}", diagnosis.findings);
    diagnosis
}

fn remedy(diagnosis: &Diagnosis) -> &Remedy {
    let finding = diagnosis.findings.iter().find(|finding| finding.id == THROTTLED).unwrap();
    finding.remedies.iter().find(|remedy| remedy.id == "raise-cpu-quota").unwrap()
}

/// Directory, file, old value and new value of each change.
fn changes(diagnosis: &Diagnosis) -> Vec<(&str, String, &str, &str)> {
    let of = |change: &'_ Change| match change {
        Change::Cgroup { file, .. } => file.clone(),
        other => panic!("{other:?}"),
    };
    remedy(diagnosis).change.iter().map(|change| (change.place(), of(change), change.from(), change.to())).collect()
}

#[test]
fn servers_throttled_while_their_core_is_idle_are_reported_in_both_cgroup_versions() {
    for (id, file, from, to) in
        [("v1:/php", "cpu.cfs_quota_us", "30000", "100000"), ("v2:/php", "cpu.max", "30000 100000", "100000 100000")]
    {
        let diagnosis = told(&throttled(id));
        assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec![THROTTLED]), "{id}");
        let finding = &diagnosis.findings[0];
        assert_eq!((finding.tier.as_str(), finding.confidence), ("php-fpm", Confidence::High));
        assert!(finding.evidence.iter().any(|proof| proof.source == "/sys/fs/cgroup/php/cpu.stat"), "{:?}", finding.evidence);
        let station = quota(&diagnosis);
        assert_eq!((station.state, station.limit, station.unit.as_str()), (StationState::Saturated, Some(0.3), "cores"));
        let ceiling = station.ceiling_rps.unwrap();
        assert!(ceiling.low < 250.0 && ceiling.high > 250.0, "the quota is used up by what was measured: {ceiling:?}");
        assert_eq!(changes(&diagnosis), [("/sys/fs/cgroup/php", file.to_owned(), from, to)], "no further than the one core");
        assert_eq!(remedy(&diagnosis).signal, Signal::Goodput);
    }
}

#[test]
fn a_full_pool_and_an_overflowing_queue_before_it_are_its_symptoms() {
    let mut obs = throttled("v1:/php");
    // Without scheduler statistics, throttled workers seem to wait for something else.
    for pid in PHP {
        let process = obs.processes.get_mut(&pid).unwrap();
        let points = process.cpu.points().to_vec();
        process.cpu = Default::default();
        for (at, mut cpu) in points {
            (cpu.run_ns, cpu.run_delay_ns) = (None, None);
            process.cpu.push(at, Reading::Ok(cpu));
        }
    }
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points: Vec<(u64, Vec<Listener>)> = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in points {
        (listeners[1].drops, listeners[1].accept_queue) = (Some(at / 10_000), 511);
        view.listeners.push(at, Reading::Ok(listeners));
    }
    let load = obs.load.as_mut().unwrap();
    (load.requests, load.errors.response_timeout) = (2_900, 400);
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), [THROTTLED]);
    for id in ["worker-pool-exhausted", "accept-queue-full"] {
        let symptom = diagnosis.findings.iter().find(|finding| finding.id == id).unwrap();
        assert_eq!(symptom.role, Role::Symptom, "{id}");
        assert!(symptom.symptom_of.contains(&THROTTLED.to_owned()), "{id}: {:?}", symptom.symptom_of);
    }
    assert_eq!(changes(&diagnosis)[0].3, "100000", "what was waited for is not known: all of the core");
}

#[test]
fn a_large_quota_or_no_quota_is_no_finding() {
    let mut obs = throttled("v1:/php");
    cgroup(&mut obs, "v1:/php", Did { limit: Some(1.5), used: 0.3, throttled: 0.0 });
    assert_eq!(quota(&silent(&obs)).state, StationState::Ok);
    cgroup(&mut obs, "v1:/php", Did { limit: Some(0.33), used: 0.3, throttled: 0.0 });
    assert_eq!(quota(&silent(&obs)).state, StationState::Near);
    cgroup(&mut obs, "v1:/php", Did { limit: None, used: 0.3, throttled: 0.0 });
    assert!(silent(&obs).path.iter().all(|station| station.station != "cpu-quota"), "a tier without a quota has no such station");
    obs.cgroups.clear();
    assert!(silent(&obs).path.iter().all(|station| station.station != "cpu-quota"));
}

#[test]
fn a_quota_that_throttles_rarely_or_only_at_the_beginning_is_no_finding() {
    let mut obs = throttled("v1:/php");
    cgroup(&mut obs, "v1:/php", Did { limit: Some(0.3), used: 0.28, throttled: 0.2 });
    let diagnosis = silent(&obs);
    assert_eq!(quota(&diagnosis).state, StationState::Near);
    assert!(quota(&diagnosis).why.contains("did not limit"), "{}", quota(&diagnosis).why);
    // Throttled before the load, while the server started.
    let series = obs.cgroups.values_mut().next().unwrap();
    let points = series.points().to_vec();
    *series = Default::default();
    for (at, mut cpu) in points {
        cpu.throttled_periods = Some(if at > 1_000_000 { 4_000 } else { 3_999 });
        series.push(at, Reading::Ok(cpu));
    }
    silent(&obs);
    // It is throttled often and uses little of its quota: a burst in each period ends before anyone waits for it.
    cgroup(&mut obs, "v1:/php", Did { limit: Some(0.3), used: 0.1, throttled: 0.9 });
    silent(&obs);
}

#[test]
fn a_busy_core_is_the_limit_with_any_quota() {
    let mut obs = throttled("v1:/php");
    cpu(&mut obs, 0.99);
    cgroup(&mut obs, "v1:/php", Did { limit: Some(1.0), used: 0.95, throttled: 0.9 });
    inside(&mut obs, "v1:/php", PHP, 0.16, 0.6);
    let diagnosis = silent(&obs);
    assert_eq!((diagnosis.verdict, diagnosis.limited_by), (Verdict::Healthy, Some(LimitedBy::Cpu)));
    obs.cgroups.clear();
    assert_eq!(silent(&obs).limited_by, Some(LimitedBy::Cpu), "a busy core without a quota");
}

#[test]
fn a_neighbour_in_the_cgroup_is_blamed_only_if_the_servers_wait_for_it() {
    let mut obs = throttled("v2:/app");
    inside(&mut obs, "v2:/app", PHP, 0.01, 0.001);
    silent(&obs);
    inside(&mut obs, "v2:/app", PHP, 0.01, 0.3);
    assert_eq!(causes(&told(&obs)), [THROTTLED]);
}

fn open_loop(obs: &mut Observation, rate_per_s: f64) {
    obs.load.as_mut().unwrap().shape = Loop::Open { rate_per_s, connections: 1_000 };
}

#[test]
fn an_open_loop_suffers_if_it_falls_short_or_is_late() {
    let mut obs = throttled("v1:/php");
    open_loop(&mut obs, 250.0);
    silent(&obs);
    open_loop(&mut obs, 400.0);
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), [THROTTLED]);
    // 0.3 cores gave 250 requests per second. 400 need 0.48, plus headroom.
    assert_eq!(changes(&diagnosis)[0].3, "58000");

    open_loop(&mut obs, 250.0);
    cgroup(&mut obs, "v1:/php", Did { limit: Some(0.3), used: 0.2, throttled: 0.1 });
    inside(&mut obs, "v1:/php", PHP, 0.033, 0.01);
    let load = obs.load.as_mut().unwrap();
    (load.latency_us.p50, load.latency_us.p99) = (9_000, 95_000);
    silent(&obs);
    obs.request.slo_p99_us = Some(50_000);
    let diagnosis = told(&obs);
    assert_eq!((causes(&diagnosis), &remedy(&diagnosis).signal), (vec![THROTTLED], &Signal::LatencyP99));
    // Late by less than one throttled period, or every request late: the reason is something else.
    obs.load.as_mut().unwrap().latency_us.p99 = 55_000;
    obs.load.as_mut().unwrap().latency_us.p50 = 49_000;
    silent(&obs);
    obs.load.as_mut().unwrap().latency_us.p50 = 60_000;
    obs.load.as_mut().unwrap().latency_us.p99 = 160_000;
    silent(&obs);
    // Late, but hardly ever throttled.
    let load = obs.load.as_mut().unwrap();
    (load.latency_us.p50, load.latency_us.p99) = (9_000, 95_000);
    cgroup_from(&mut obs, "v1:/php", Did { limit: Some(0.3), used: 0.2, throttled: 0.1 }, 10);
    silent(&obs);
}

#[test]
fn a_quota_that_just_suffices_is_reported_if_most_requests_wait_for_it() {
    let mut obs = throttled("v1:/php");
    open_loop(&mut obs, 250.0);
    let load = obs.load.as_mut().unwrap();
    (load.latency_us.p50, load.latency_us.p99) = (20_000, 90_000);
    silent(&obs);
    let mut alone = obs.load.clone().unwrap();
    (alone.requests, alone.good, alone.latency_us.p50) = (10, 10, 2_000);
    obs.unloaded = Some(alone);
    let diagnosis = told(&obs);
    assert_eq!((causes(&diagnosis), &remedy(&diagnosis).signal), (vec![THROTTLED], &Signal::LatencyP99));
    let proofs = &diagnosis.findings[0].evidence;
    assert!(proofs.iter().any(|proof| proof.text.contains("a single request took 2 ms")), "{proofs:?}");
    // Most requests pass at once, or wait much less than a throttled period, or as long as alone.
    for (p50, p99) in [(3_000, 90_000), (20_000, 21_000)] {
        let load = obs.load.as_mut().unwrap();
        (load.latency_us.p50, load.latency_us.p99) = (p50, p99);
        silent(&obs);
    }
    obs.unloaded.as_mut().unwrap().latency_us.p50 = 15_000;
    obs.load.as_mut().unwrap().latency_us.p99 = 90_000;
    silent(&obs);
    // It is hardly ever throttled, so the requests wait for something else.
    obs.unloaded.as_mut().unwrap().latency_us.p50 = 2_000;
    cgroup(&mut obs, "v1:/php", Did { limit: Some(0.3), used: 0.28, throttled: 0.2 });
    silent(&obs);
}

#[test]
fn watched_traffic_gives_less_confidence_and_no_traffic_gives_none() {
    let mut obs = throttled("v1:/php");
    obs.load = None;
    obs.request.loaded = false;
    silent(&obs);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for (at, opens) in [(0, 0), (11_000_000, 2_500)] {
        view.netstat.push(at, Reading::Ok(Counters::from([("Tcp.PassiveOpens".to_owned(), opens)])));
    }
    let diagnosis = told(&obs);
    assert_eq!((causes(&diagnosis), diagnosis.findings[0].confidence), (vec![THROTTLED], Confidence::Medium));
    assert!(matches!(remedy(&diagnosis).prediction, Prediction::Refused { .. }));
}

/// However few periods: it counts for how long the servers are stopped while requests wait for them.
#[test]
fn watched_requests_that_wait_for_a_stopped_server_suffer() {
    let told_at = |throttled: f64, requests: u16| {
        let unread = |_| (0..requests).map(|n| RequestSocket { receive_queue: 100, ..client(n, 40, true) }).collect();
        let mut obs = sampled(healthy(), &unread);
        inside(&mut obs, "v1:/web", [42], 0.28, 0.3);
        cgroup(&mut obs, "v1:/web", Did { limit: Some(0.3), used: 0.28, throttled });
        cpu(&mut obs, 0.3);
        (obs.load, obs.request.loaded) = (None, false);
        says(&told(&obs), THROTTLED)
    };
    for (throttled, requests, expected) in [(0.4, 12, true), (0.3, 12, true), (0.05, 12, false), (0.4, 0, false)] {
        assert_eq!(told_at(throttled, requests), expected, "{throttled} {requests}");
    }
}

#[test]
fn the_tightest_of_nested_quotas_is_reported_and_all_small_ones_are_raised_from_the_outside() {
    let mut obs = throttled("v1:/pod/php");
    cgroup(&mut obs, "v1:/pod/php", Did { limit: Some(0.5), used: 0.3, throttled: 0.0 });
    cgroup(&mut obs, "v1:/pod", Did { limit: Some(0.35), used: 0.35, throttled: 0.9 });
    cgroup(&mut obs, "v1:/", Did { limit: None, used: 0.4, throttled: 0.0 });
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), [THROTTLED]);
    assert_eq!(diagnosis.findings[0].at.cgroup.as_deref(), Some("/sys/fs/cgroup/pod"));
    assert_eq!(diagnosis.path.iter().filter(|station| station.station == "cpu-quota").count(), 1);
    // The inner one throttles, and the outer one would be next, because a neighbour uses 0.2 cores there.
    cgroup(&mut obs, "v1:/pod/php", Did { limit: Some(0.3), used: 0.3, throttled: 0.9 });
    cgroup(&mut obs, "v1:/pod", Did { limit: Some(0.6), used: 0.5, throttled: 0.1 });
    let diagnosis = told(&obs);
    let file = || "cpu.cfs_quota_us".to_owned();
    assert_eq!(
        changes(&diagnosis),
        [("/sys/fs/cgroup/pod", file(), "60000", "120000"), ("/sys/fs/cgroup/pod/php", file(), "30000", "100000")]
    );
    // Both throttle the servers in turn. Raising only one of them would change nothing.
    cgroup(&mut obs, "v1:/pod", Did { limit: Some(0.3), used: 0.3, throttled: 1.0 });
    let diagnosis = told(&obs);
    assert_eq!(diagnosis.findings[0].at.cgroup.as_deref(), Some("/sys/fs/cgroup/pod"));
    assert_eq!(
        changes(&diagnosis),
        [("/sys/fs/cgroup/pod", file(), "30000", "100000"), ("/sys/fs/cgroup/pod/php", file(), "30000", "100000")]
    );
    let undo = &remedy(&diagnosis).undo;
    assert!(undo[0].command.as_ref().is_some_and(|command| command.contains("/pod/php/")), "the inner one first: {undo:?}");
}

#[test]
fn a_quota_that_cannot_be_written_is_reported_with_its_owner() {
    let mut obs = throttled("v2:/system.slice/php8.2-fpm.service");
    let series = obs.cgroups.values_mut().next().unwrap();
    let points = series.points().to_vec();
    *series = Default::default();
    for (at, mut cpu) in points {
        cpu.writable = Some(false);
        series.push(at, Reading::Ok(cpu));
    }
    let diagnosis = told(&obs);
    assert_eq!(changes(&diagnosis), []);
    assert!(remedy(&diagnosis).text.contains("cannot write its limit"), "{}", remedy(&diagnosis).text);
    let advice = diagnosis.findings[0].remedies.iter().find(|remedy| remedy.id == "keep-cpu-quota").unwrap();
    assert_eq!(advice.persistent, [Step::of_command("systemctl set-property 'php8.2-fpm.service' CPUQuota=100%")]);
    assert_ne!(advice.persistent, advice.undo);
}

#[test]
fn servers_in_one_cgroup_are_reported_together() {
    let mut obs = throttled("v2:/app");
    inside(&mut obs, "v2:/app", [42], 0.02, 0.2);
    let diagnosis = told(&obs);
    assert_eq!((causes(&diagnosis), diagnosis.findings[0].tier.as_str()), (vec![THROTTLED], "nginx+php-fpm"));
}

#[test]
fn missing_readings_do_not_count_as_a_large_quota() {
    let mut obs = throttled("v1:/php");
    let series = obs.cgroups.values_mut().next().unwrap();
    let last = series.last().cloned().unwrap();
    *series = Default::default();
    series.push(5_000_000, Reading::Ok(last));
    let diagnosis = silent(&obs);
    assert_eq!((quota(&diagnosis).state, quota(&diagnosis).limit), (StationState::Unknown, Some(0.3)));
    let series = obs.cgroups.values_mut().next().unwrap();
    *series = Default::default();
    series.push(5_000_000, Reading::Absent(Lack::new("permission denied")));
    let diagnosis = silent(&obs);
    let reading = diagnosis.readings.iter().find(|reading| reading.source == "cgroup_cpu (v1:/php)").unwrap();
    assert_eq!(reading.why.as_deref(), Some("permission denied"));
}

#[test]
fn the_next_limit_after_a_quota_is_not_predicted_from_throttled_threads() {
    let diagnosis = told(&throttled("v1:/php"));
    let Prediction::Refused { refused, .. } = &remedy(&diagnosis).prediction else { panic!("{:?}", remedy(&diagnosis).prediction) };
    assert!(refused.contains(THROTTLED) || refused.contains("cpu"), "{refused}");
}

#[test]
fn a_quota_is_the_next_limit_of_an_enlarged_pool() {
    let mut obs = pool(5, 5, 60);
    obs.load.as_mut().unwrap().threads[0].cpu_us = 100_000;
    cgroup(&mut obs, "v1:/php", Did { limit: Some(0.2), used: 0.05, throttled: 0.0 });
    inside(&mut obs, "v1:/php", PHP, 0.008, 0.001);
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), ["worker-pool-exhausted"]);
    let remedy = diagnosis.findings[0].remedies.iter().find(|remedy| remedy.id == "raise-max-children").unwrap();
    let Prediction::Goodput { goodput_rps, next_station, high, .. } = &remedy.prediction else { panic!("{:?}", remedy.prediction) };
    assert_eq!(next_station, "cpu-quota");
    let ceiling = quota(&diagnosis).ceiling_rps.unwrap();
    assert!(*goodput_rps <= ceiling.value && *high <= ceiling.high * 1.001, "{:?} {ceiling:?}", remedy.prediction);
}

#[test]
fn cores_filled_by_a_neighbour_while_the_servers_are_throttled_do_not_hide_the_quota() {
    let mut obs = throttled("v1:/php");
    cpu(&mut obs, 1.0);
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), [THROTTLED]);
    assert_eq!(changes(&diagnosis)[0].3, "100000");
    let (low, goodput) = (ceiling_read(&obs, "worker-pool").unwrap().low, diagnosis.load.as_ref().unwrap().goodput_rps);
    assert!(low > 1.5 * goodput, "the wait for the quota is no part of a worker's service: {low} from {goodput}");
    assert!(matches!(remedy(&diagnosis).prediction, Prediction::Refused { .. }), "{:?}", remedy(&diagnosis).prediction);
    // If a neighbour takes its half anyway, a larger quota gains nothing: the servers are throttled just before the period ends.
    cgroup(&mut obs, "v1:/php", Did { limit: Some(0.5), used: 0.49, throttled: 0.9 });
    inside(&mut obs, "v1:/php", PHP, 0.08, 0.6);
    let series = obs.cgroups.values_mut().next().unwrap();
    let points = series.points().to_vec();
    *series = Default::default();
    for (at, mut cpu) in points {
        cpu.throttled_ns = cpu.throttled_periods.map(|stops| stops * 3_000_000);
        series.push(at, Reading::Ok(cpu));
    }
    silent(&obs);
}

#[test]
fn a_throttled_thread_is_not_reported_as_a_thread_without_a_core() {
    let mut obs = throttled("v1:/php");
    for pid in PHP {
        let process = obs.processes.get_mut(&pid).unwrap();
        let points = process.cpu.points().to_vec();
        process.cpu = Default::default();
        for (at, mut cpu) in points {
            let (run_ns, delay_ns) = (at * 300, at * 700);
            cpu.thread_times = vec![ThreadTimes { id: pid, run_ns, delay_ns }];
            process.cpu.push(at, Reading::Ok(cpu));
        }
        let identity = process.identity.last().cloned().unwrap();
        process.identity = Default::default();
        process.identity.push(0, Reading::Ok(Identity { cpus_allowed: (0..8).collect(), ..identity }));
    }
    let times = |second: u64| CpuTimes {
        cores: (0..8).map(|core| (core, CoreTimes { user: second * 20, idle: second * 80, ..CoreTimes::default() })).collect(),
    };
    obs.cpu = Default::default();
    for second in 0..=11_u64 {
        obs.cpu.push(second * 1_000_000, Reading::Ok(times(second)));
    }
    let state = |diagnosis: &Diagnosis| {
        let cpu = diagnosis.path.iter().find(|station| station.station == "cpu" && station.tier.contains("php")).unwrap();
        (cpu.state, cpu.why.clone())
    };
    let diagnosis = told(&obs);
    assert_eq!((causes(&diagnosis), state(&diagnosis).0), (vec![THROTTLED], StationState::Ok), "{:?}", state(&diagnosis));
    obs.cgroups.clear();
    assert_eq!(state(&told(&obs)).0, StationState::Saturated, "the twin without a quota: {:?}", state(&told(&obs)));
}
