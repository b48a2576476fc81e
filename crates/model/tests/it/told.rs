//! What a report says beside its verdict is so: shares, notes, and words that fit the server.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::observation::{Identity, Observation, Syscall};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::Verdict;

use crate::stage::pool::{Served, process, ran, selector, tcp};
use crate::stage::*;

/// The load's threads run on the server's core, and each thread of the server waited for it for this share of the time.
fn beside_the_load(waited: f64) -> Vec<String> {
    let mut obs = healthy();
    obs.load.as_mut().unwrap().threads[0].cpus = vec![1];
    let view = obs.processes.get_mut(&42).unwrap();
    for second in 0..=11_u64 {
        let delayed = Some((second as f64 * 1e9 * waited) as u64);
        let used = chokepoint_model::observation::CpuUse { run_ns: Some(second * 1_000), run_delay_ns: delayed, ..Default::default() };
        view.cpu.push(second * 1_000_000, Reading::Ok(used));
    }
    told(&obs).warnings
}

#[test]
fn a_load_slows_only_servers_that_wait_for_its_core() {
    let tells = |waited| beside_the_load(waited).iter().any(|warning| warning.contains("would be faster"));
    assert!(tells(0.6) && !tells(0.0), "{:?}", beside_the_load(0.0));
}

#[test]
fn watching_that_was_cut_short_says_so() {
    let tells = |asked_s: u64| {
        let mut obs = healthy();
        (obs.load, obs.request.loaded, obs.request.watch_us) = (None, false, Some(asked_s * 1_000_000));
        told(&obs).warnings.iter().any(|warning| warning.contains("Only 10 s were watched of the 30 s"))
    };
    assert!(tells(30) && !tells(10));
}

/// Answers that were awaited after the end are in the numbers of requests, and not in the rates.
#[test]
fn a_report_has_one_share_of_failures() {
    let mut obs = healthy();
    let load = obs.load.as_mut().unwrap();
    (load.requests, load.good, load.errors.reset, load.drained) = (100_000, 64_900, 35_100, 4_559);
    let diagnosis = told(&obs);
    let shown = format!("{:.0} %", 100.0 * diagnosis.load.as_ref().unwrap().failed_share().unwrap());
    assert!(diagnosis.verdict == Verdict::Unknown && shown == "32 %" && diagnosis.summary.contains(&shown), "{}", diagnosis.summary);
}

/// Two processes of a web server that hold a connection each, on which nothing is asked.
fn keeping(comm: &str, call: &str) -> Observation {
    let mut obs = healthy();
    process(&mut obs, 42, 1, comm, &[100]);
    for pid in [43, 44] {
        process(&mut obs, pid, 42, comm, &[100, 1_000 + u64::from(pid)]);
    }
    ran(&mut obs, 42..=44, 1_000_000);
    for second in 1..=10_u64 {
        let held = |pid: u64| tcp(1_000 + pid, (ip(SERVER_IP), 80), (ip("10.0.0.1"), 40_000 + pid as u16));
        obs.netns.get_mut(&SERVER).unwrap().sockets.push(second * 1_000_000, Reading::Ok(vec![held(43), held(44)]));
        for pid in [43, 44] {
            let view = obs.processes.get_mut(&pid).unwrap();
            view.syscall.push(second * 1_000_000, Reading::Ok(Syscall { call: Some(call.to_owned()), ..Syscall::default() }));
            let used = chokepoint_model::observation::CpuUse { threads: 1, ..view.cpu.last().unwrap().clone() };
            view.cpu.push(second * 1_000_000 + 1, Reading::Ok(used));
        }
    }
    obs
}

#[test]
fn an_event_loop_with_idle_connections_is_no_full_pool() {
    let pool = |comm, call| told(&keeping(comm, call)).path.into_iter().find(|station| station.station == "worker-pool");
    assert!(pool("nginx", "epoll_wait").is_none(), "its processes are loops");
    assert!(pool("server", "epoll_wait").is_none(), "they wait for more although each has a connection");
    assert_eq!(pool("server", "read").map(|pool| pool.utilization), Some(Some(1.0)), "each waits for its client");
}

#[test]
fn cores_that_others_use_are_not_called_idle() {
    let told_with = |busy: f64| {
        let mut obs = healthy();
        let mut few = obs.load.clone().unwrap();
        (few.requests, few.good, few.latency_us.p50) = (10, 10, few.latency_us.p50 / 20);
        obs.unloaded = Some(few);
        cpu(&mut obs, busy);
        let pids: Vec<u32> = obs.processes.keys().copied().collect();
        ran(&mut obs, pids, 10_000_000);
        told(&obs).summary
    };
    let beside = told_with(0.8);
    assert!(beside.contains("alone") && !beside.contains("cores are idle") && beside.contains("other programs use"), "{beside}");
    assert!(told_with(0.02).contains("cores are idle"), "{}", told_with(0.02));
}

/// Advice of a tier whose process is this program.
fn advice(obs: &mut Observation, exe: &str) -> String {
    let view = obs.processes.get_mut(&42).unwrap();
    let identity =
        Identity { exe: Some(exe.to_owned()), comm: exe.rsplit('/').next().unwrap().to_owned(), ..view.identity.last().unwrap().clone() };
    view.identity = Default::default();
    view.identity.push(0, Reading::Ok(identity));
    let diagnosis = told(obs);
    diagnosis.findings.iter().flat_map(|finding| &finding.remedies).map(|remedy| remedy.text.clone()).collect::<Vec<_>>().join("\n")
}

#[test]
fn advice_names_the_settings_of_the_server_that_it_is_for() {
    let text = |exe| advice(&mut crate::stations::stalls(), exe);
    assert!(text("/usr/sbin/nginx").contains("tcp_nodelay on;"), "{}", text("/usr/sbin/nginx"));
    for (exe, named) in [("/opt/jdk/bin/java", "setTcpNoDelay"), ("/usr/bin/python3.11", "TCP_NODELAY"), ("/srv/app", "TCP_NODELAY")] {
        assert!(text(exe).contains(named) && !text(exe).contains("tcp_nodelay"), "{exe}: {}", text(exe));
    }
}

/// The counters of a namespace are read each second, and a window may be shorter: 230 connections came in each second of both.
#[test]
fn a_rate_is_that_of_the_time_between_the_readings_that_tell_it() {
    let mut obs = selector(4, 230, |number| Served { taken: 4, unread: 30, first: 46 * number, requests: 1 });
    obs.window_us = Some((WINDOW.0, WINDOW.0 + 3_300_000));
    let rate = told(&obs).ledger.and_then(|ledger| ledger.rate_rps);
    assert!(rate.is_some_and(|rate| (rate - 230.0).abs() < 1.0), "{rate:?}");
}

/// Ten connections of which two are new in each second, and each is asked on twice between two samples: 100/s.
#[test]
fn a_rate_of_kept_and_new_connections_is_counted_on_both() {
    let mut obs = selector(4, 0, |number| Served { taken: 10, unread: 0, first: number * 2 / 5, requests: 2 });
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.request_samples.points().to_vec();
    view.request_samples = Default::default();
    for (number, (at_us, mut sample)) in (0_u64..).zip(points) {
        for socket in &mut sample.sockets {
            let times = socket.times.as_mut().unwrap();
            // Since it is there: the first ten came before.
            let age = number - (socket.cookie.saturating_sub(10) * 5).div_ceil(2).min(number);
            (times.data_segs_in, times.bytes_received) = (Some(1 + 2 * age), Some(100 * (1 + 2 * age)));
        }
        view.request_samples.push(at_us, Reading::Ok(sample));
    }
    let rate = told(&obs).ledger.and_then(|ledger| ledger.rate_rps);
    assert!(rate.is_some_and(|rate| (90.0..110.0).contains(&rate)), "{rate:?}");
}
