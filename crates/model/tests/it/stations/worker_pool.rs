//! Station `worker-pool`: reported if all workers wait and connections wait for them. No finding for pages that compute.
//!
//! Deterministic: observations made up by the tests.

mod behind_loops;
mod locks;
mod process_pools;

use chokepoint_model::load::Loop;
use chokepoint_model::observation::{
    CpuUse, Identity, Listener, Observation, Origin, PhpFpmConfig, ServerConfig, Setting, Syscall, TcpState, ThreadCalls, ThreadTimes,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, LimitedBy, Role, StationState, Verdict};

use proptest::prelude::*;

use crate::stage::pool::{cores, php_pool, pool, process, threads};
use crate::stage::*;

#[test]
fn a_pool_whose_workers_wait_is_a_cause_with_any_size() {
    for workers in [2, 5, 40] {
        let diagnosis = told(&pool(workers, workers, 60));
        assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["worker-pool-exhausted"]), "{workers} workers");
        assert_eq!(diagnosis.findings[0].tier, "php-fpm");
    }
}

#[test]
fn a_pool_of_one_is_a_pool_if_its_configuration_says_so() {
    let obs = php_pool(1, "static", 1, false);
    assert_eq!(causes(&told(&obs)), ["worker-pool-exhausted"]);
    let mut computes = obs.clone();
    cpu(&mut computes, 0.99);
    assert_eq!(causes(&told(&computes)), [""; 0]);
    let mut unknown = obs;
    unknown.servers.clear();
    assert_eq!(causes(&told(&unknown)), [""; 0], "it may be an event loop");
}

#[test]
fn an_overflowing_queue_before_it_is_its_symptom() {
    let mut obs = pool(5, 5, 511);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points: Vec<(u64, Vec<Listener>)> = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in points {
        listeners[1].drops = Some(at / 10_000);
        view.listeners.push(at, Reading::Ok(listeners));
    }
    let load = obs.load.as_mut().unwrap();
    (load.requests, load.errors.response_timeout) = (2_900, 400);
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), ["worker-pool-exhausted"]);
    let symptom = diagnosis.findings.iter().find(|finding| finding.role == Role::Symptom).unwrap();
    assert_eq!(
        (symptom.id.as_str(), symptom.symptom_of.as_slice()),
        ("accept-queue-full", ["worker-pool-exhausted".to_owned()].as_slice())
    );
}

#[test]
fn a_small_pool_for_a_page_that_computes_is_right() {
    let mut obs = pool(5, 5, 60);
    cpu(&mut obs, 0.99);
    let diagnosis = told(&obs);
    assert_eq!((diagnosis.verdict, diagnosis.limited_by, causes(&diagnosis)), (Verdict::Healthy, Some(LimitedBy::Cpu), vec![]));
}

#[test]
fn free_workers_or_workers_without_waiting_clients_are_no_finding() {
    for (busy, waiting) in [(5, 0), (3, 0), (3, 60)] {
        let diagnosis = told(&pool(5, busy, waiting));
        assert_eq!(causes(&diagnosis), [""; 0], "{busy} busy, {waiting} waiting");
    }
    let idle = told(&pool(5, 2, 0));
    let station = idle.path.iter().find(|station| station.station == "worker-pool").unwrap();
    assert_eq!(station.state, StationState::Ok);
    let ceiling = station.ceiling_rps.unwrap().value;
    assert!((ceiling - 625.0).abs() < 1.0, "five workers held 8 ms each: {ceiling}");
}

#[test]
fn a_pool_without_a_free_worker_is_too_small_for_one_more_client() {
    // The fifth client waits in `looks` of ten samples.
    let waited = |looks: u64, busy: u32, workers: u32| {
        let mut obs = pool(workers, busy, 1);
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let points = view.listeners.points().to_vec();
        view.listeners = Default::default();
        for (at, mut listeners) in points {
            if (at / 50_000) % 10 >= looks {
                listeners[1].accept_queue = 0;
            }
            view.listeners.push(at, Reading::Ok(listeners));
        }
        told(&obs)
    };
    assert_eq!(causes(&waited(7, 4, 4)), ["worker-pool-exhausted"]);
    assert_eq!(causes(&waited(3, 4, 4)), [""; 0], "as many clients as workers, but for a moment");
    assert_eq!(causes(&waited(7, 3, 4)), [""; 0], "one of them is free");
    assert_eq!(causes(&waited(7, 20, 20)), [""; 0], "one of twenty-one");
    assert_eq!(causes(&waited(10, 30, 30)), [""; 0], "one of thirty-one, however long");
}

#[test]
fn more_connections_than_processes_are_an_event_loop() {
    let diagnosis = told(&pool(2, 40, 60));
    assert!(diagnosis.path.iter().all(|station| station.station != "worker-pool"));
    assert_eq!(causes(&diagnosis), [""; 0]);
}

#[test]
fn a_growing_pool_is_not_exhausted() {
    let started = |at| {
        let mut obs = pool(5, 5, 60);
        let late = obs.processes.get_mut(&55).unwrap();
        late.identity = Default::default();
        let identity =
            Identity { pid: 55, parent: 50, comm: "php-fpm8.2".into(), start_ticks: 900, cpus_allowed: vec![1], ..Identity::default() };
        late.identity.push(at, Reading::Ok(identity));
        told(&obs)
    };
    assert_eq!(causes(&started(8_000_000)), [""; 0]);
    assert_eq!(causes(&started(2_500_000)), ["worker-pool-exhausted"], "it has grown as far as it may");
}

/// A pool of five that are all taken; every so many seconds one of them is killed, and the next takes its place. Each runs for this long in a second.
fn killed(every_s: u64, ran_ns: u64) -> Observation {
    let mut obs = pool(5, 5, 60);
    for pid in 51..56 {
        obs.processes.remove(&pid);
    }
    let mut pid = 100;
    for worker in 0..5_u64 {
        let mut began = 0;
        // Workers are killed one after the other.
        let mut ends = 2 + worker % every_s;
        while began < 11 {
            process(&mut obs, pid, 50, "php-fpm8.2", &[200, 1_000 + worker]);
            let view = obs.processes.get_mut(&pid).unwrap();
            let identity = Identity { start_ticks: 100 * began + u64::from(pid), ..view.identity.last().unwrap().clone() };
            view.identity = Default::default();
            view.identity.push(began * 1_000_000, Reading::Ok(identity));
            for second in began..ends.min(12) {
                let used = CpuUse { run_ns: Some(second * ran_ns), run_delay_ns: Some(0), threads: 1, ..CpuUse::default() };
                view.cpu.push(second * 1_000_000, Reading::Ok(used));
            }
            (began, ends, pid) = (ends, ends + every_s, pid + 1);
        }
    }
    obs
}

proptest! {
    /// However often workers are killed and replaced, there are five.
    #[test]
    fn workers_that_replace_others_are_no_further_ones(every_s in 2_u64..6, ran_ns in 2_000_000_u64..20_000_000) {
        let found = told(&killed(every_s, ran_ns));
        prop_assert_eq!(causes(&found), ["worker-pool-exhausted"], "{}", found.summary);
        let finding = &found.findings[0];
        prop_assert!(finding.title.starts_with("all 5 workers"), "{}", finding.title);
        let told = finding.evidence.iter().filter(|proof| proof.text.contains("workers of php-fpm ended meanwhile")).count();
        prop_assert_eq!(told, 1, "{:?}", finding.evidence);
    }

    /// Workers that do nothing until they are killed are held by requests that do not go on, and no others are advised.
    #[test]
    fn workers_that_are_killed_without_having_run_are_held(every_s in 2_u64..6, ran_ns in 0_u64..900_000) {
        let found = told(&killed(every_s, ran_ns));
        prop_assert_eq!(causes(&found), ["requests-hang"], "{}", found.summary);
        let finding = &found.findings[0];
        prop_assert!(finding.title.starts_with("requests hold the workers of php-fpm"), "{}", finding.title);
        prop_assert!(finding.remedies.iter().all(|remedy| remedy.id == "look-inside"), "{:?}", finding.remedies);
    }
}

#[test]
fn a_worker_whose_client_gave_up_is_still_busy() {
    let mut obs = pool(5, 5, 60);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.sockets.points().to_vec();
    view.sockets = Default::default();
    for (at, mut sockets) in points {
        sockets.iter_mut().filter(|socket| socket.inode % 2 == 1).for_each(|socket| socket.state = TcpState::CloseWait);
        view.sockets.push(at, Reading::Ok(sockets));
    }
    assert_eq!(causes(&told(&obs)), ["worker-pool-exhausted"]);
}

/// The workers ran for half of this share of their time, and waited for a core for the other half.
fn ready(obs: &mut Observation, share: f64) {
    used(obs, share / 2.0, share / 2.0);
}

/// The workers ran for this share of their time, and waited for a core for that one.
fn used(obs: &mut Observation, ran: f64, delayed: f64) {
    for pid in 50..56 {
        let view = obs.processes.get_mut(&pid).unwrap();
        for second in 0..=11_u64 {
            let ns = |share: f64| Some((second as f64 * 1e9 * share) as u64);
            let used = CpuUse { run_ns: ns(ran), run_delay_ns: ns(delayed), ..Default::default() };
            view.cpu.push(second * 1_000_000, Reading::Ok(used));
        }
    }
}

#[test]
fn cores_kept_busy_by_a_neighbour_do_not_hide_waiting_workers() {
    let mut obs = pool(5, 5, 60);
    cpu(&mut obs, 1.0);
    ready(&mut obs, 0.1);
    assert_eq!(causes(&told(&obs)), ["worker-pool-exhausted"]);
    let mut starved = pool(5, 5, 60);
    cpu(&mut starved, 1.0);
    ready(&mut starved, 0.95);
    assert_eq!(causes(&told(&starved)), [""; 0], "workers that are ready all the time wait for a core");
}

#[test]
fn workers_that_wait_beside_a_web_server_that_fills_their_core_are_not_too_few() {
    let full = |failed: u64| {
        let mut obs = pool(5, 5, 60);
        cpu(&mut obs, 1.0);
        ready(&mut obs, 0.1);
        for second in 0..=11 {
            let used = CpuUse { user_ticks: second * 97, ..CpuUse::default() };
            obs.processes.get_mut(&42).unwrap().cpu.push(second * 1_000_000, Reading::Ok(used));
        }
        let load = obs.load.as_mut().unwrap();
        (load.requests, load.errors.reset) = (load.good + failed, failed);
        told(&obs)
    };
    let diagnosis = full(0);
    assert_eq!((diagnosis.limited_by, causes(&diagnosis)), (Some(LimitedBy::Cpu), vec![]));
    // The core may be full of answers that fail for lack of workers.
    assert_eq!(causes(&full(2_000)), ["worker-pool-exhausted"]);
}

#[test]
fn workers_that_compute_are_too_few_only_with_idle_cores() {
    let computing = |busy: f64, ran: f64, delayed: f64| {
        let mut obs = pool(5, 5, 60);
        cores(&mut obs, 8, busy);
        used(&mut obs, ran, delayed);
        told(&obs)
    };
    let few = computing(0.6, 0.95, 0.01);
    assert_eq!(causes(&few), ["worker-pool-exhausted"]);
    assert!(few.findings[0].evidence.iter().any(|proof| proof.source == "/proc/stat" && proof.text.contains("71.2")), "{few:?}");
    assert_eq!(causes(&computing(0.97, 0.95, 0.01)), [""; 0], "no core is left for more workers");
    assert_eq!(causes(&computing(0.6, 0.6, 0.38)), [""; 0], "idle cores that are kept from them");
}

#[test]
fn busy_threads_that_wait_are_too_few() {
    for (all, in_service) in [(6, 5), (1, 1), (200, 150)] {
        let diagnosis = told(&threads(all, in_service, 0.3, 0.2));
        assert_eq!(causes(&diagnosis), ["worker-pool-exhausted"], "{in_service} of {all} threads");
        assert!(diagnosis.findings[0].title.contains(&format!("at most {in_service} ")), "{}", diagnosis.findings[0].title);
    }
    let computing = told(&threads(6, 5, 0.6, 3.0));
    assert_eq!(causes(&computing), ["worker-pool-exhausted"], "five threads compute beside idle cores");
}

/// Beside programs that use most of the cores five threads that wait for a timer are ready for longer: between four fifths and nearly one and a half of them. So they are
/// found in every run, and threads in turns in none.
#[test]
fn waiting_threads_are_found_whatever_others_do_with_the_cores() {
    let beside = |ready: f64, locked: u32| {
        let mut obs = threads(6, 5, 0.9, 0.1);
        let view = obs.processes.get_mut(&50).unwrap();
        view.cpu = Default::default();
        for second in 0..=11_u64 {
            let ns = |share: f64| Some((second as f64 * 1e9 * share) as u64);
            let used = CpuUse { run_ns: ns(0.1), run_delay_ns: ns(ready - 0.1), threads: 6, ..CpuUse::default() };
            view.cpu.push(second * 1_000_000, Reading::Ok(used));
            let calls = ThreadCalls { looked: 5, locked, ..ThreadCalls::default() };
            let call = Syscall { call: Some("epoll_wait".to_owned()), threads: calls, ..Syscall::default() };
            view.syscall.push(second * 1_000_000, Reading::Ok(call));
        }
        causes(&told(&obs)).contains(&"worker-pool-exhausted")
    };
    assert_eq!([0.8, 0.95, 1.1, 1.4].map(|ready| beside(ready, 0)), [true; 4]);
    assert_eq!([0.95, 1.1].map(|ready| beside(ready, 4)), [false; 2], "one at a time, as under a lock");
}

/// Five of six threads are taken by the count of connections. Threads that never ran under thousands of requests served none of them.
#[test]
fn threads_that_never_ran_serve_nobody() {
    let with = |ran: u32| {
        let mut obs = threads(6, 5, 0.3, 0.2);
        let view = obs.processes.get_mut(&50).unwrap();
        view.cpu = Default::default();
        for second in 0..=11_u64 {
            let time = |id: u32| ThreadTimes { id, run_ns: if id < 50 + ran { second * 10_000_000 } else { 7_000_000 }, delay_ns: 0 };
            let ns = Some(second * 60_000_000);
            let used =
                CpuUse { run_ns: ns, run_delay_ns: Some(0), threads: 6, thread_times: (50..56).map(time).collect(), ..CpuUse::default() };
            view.cpu.push(second * 1_000_000, Reading::Ok(used));
        }
        causes(&told(&obs)).contains(&"worker-pool-exhausted")
    };
    assert_eq!([6, 5, 1].map(with), [true, true, false], "one alone is an event loop beside idle threads");
}

#[test]
fn threads_that_take_turns_or_fill_their_cores_are_no_finding() {
    assert_eq!(causes(&told(&threads(6, 5, 0.5, 1.0))), [""; 0], "one at a time, as under an interpreter's lock");
    assert_eq!(causes(&told(&threads(6, 5, 0.99, 3.0))), [""; 0], "no core is left for more of them");
}

#[test]
fn an_event_loop_that_stops_accepting_has_its_own_limit() {
    let mut obs = threads(4, 40, 0.3, 0.2);
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), ["worker-pool-exhausted"]);
    assert!(diagnosis.findings[0].title.ends_with("accepts at most 40 connections at a time"), "{}", diagnosis.findings[0].title);
    let remedy = &diagnosis.findings[0].remedies[0];
    assert!(remedy.change.is_empty() && remedy.text.contains("hold 100 connections at once instead of 40"), "{}", remedy.text);
    // The number varies; the loop is busy itself; no client waits to be accepted; the loop never ran.
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.sockets.points().to_vec();
    view.sockets = Default::default();
    for (at, mut sockets) in points {
        sockets.retain(|socket| at % 2_000_000 == 0 || socket.inode < 1_035);
        view.sockets.push(at, Reading::Ok(sockets));
    }
    assert_eq!(causes(&told(&obs)), [""; 0]);
    assert_eq!(causes(&told(&threads(4, 40, 0.3, 0.8))), [""; 0]);
    assert_eq!(causes(&told(&threads(4, 40, 0.3, 0.0))), [""; 0]);
    let mut obs = pool(1, 40, 0);
    obs.processes.remove(&51);
    assert_eq!(causes(&told(&obs)), [""; 0]);
}

#[test]
fn clients_left_out_by_a_busy_event_loop_are_reported() {
    let full = |timeouts: u64, good: u64| {
        let mut obs = threads(1, 8, 0.99, 1.0);
        let load = obs.load.as_mut().unwrap();
        (load.shape, load.timeout_us, load.duration_us) = (Loop::Closed { connections: 60 }, 2_000_000, 10_000_000);
        load.errors.response_timeout = timeouts;
        (load.good, load.requests, load.status) = (good, good + timeouts, [(200, good)].into());
        told(&obs)
    };
    let diagnosis = full(52, 2_500);
    assert_eq!(causes(&diagnosis), ["worker-pool-exhausted"]);
    assert!(diagnosis.findings[0].title.contains("leaves the rest unanswered"), "{}", diagnosis.findings[0].title);
    assert!(diagnosis.findings[0].evidence.iter().any(|proof| proof.text.contains("17.3 %")), "{:?}", diagnosis.findings[0].evidence);
    assert_eq!(causes(&full(6, 2_500)), [""; 0], "hardly anybody gave up: it is as fast as its core");
    // Eight answers of 25 ms in a turn: it looks for new connections five times a second, and as many give up.
    assert_eq!(causes(&full(52, 400)), [""; 0], "it computes for long at a time");
}

#[test]
fn a_varying_number_of_busy_threads_is_no_finding() {
    let two_of_five_each = |seconds: u64| {
        let mut obs = threads(6, 5, 0.3, 0.2);
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let points = view.sockets.points().to_vec();
        view.sockets = Default::default();
        for (at, mut sockets) in points {
            let keep = if at % (seconds * 1_000_000) == 0 { 1_002 } else { 2_000 };
            sockets.retain(|socket| socket.inode < keep);
            view.sockets.push(at, Reading::Ok(sockets));
        }
        told(&obs)
    };
    assert_eq!(causes(&two_of_five_each(2)), [""; 0]);
    // A sample taken between two connections.
    assert_eq!(causes(&two_of_five_each(7)), ["worker-pool-exhausted"]);
}

#[test]
fn idle_cores_alone_are_uncertain() {
    let sure = |stats: bool| {
        let mut obs = pool(5, 5, 60);
        for pid in 50..56 {
            let process = obs.processes.get_mut(&pid).unwrap();
            for second in 0..=11_u64 {
                let ns = stats.then_some(second * 10_000_000);
                process.cpu.push(second * 1_000_000, Reading::Ok(CpuUse { run_ns: ns, run_delay_ns: ns, ..CpuUse::default() }));
            }
        }
        let diagnosis = told(&obs);
        assert_eq!(causes(&diagnosis), ["worker-pool-exhausted"]);
        diagnosis.findings[0].confidence
    };
    assert_eq!([sure(true), sure(false)], [Confidence::High, Confidence::Low]);
}

#[test]
fn threads_that_compute_are_not_said_to_wait() {
    let text = |busy: f64, ran: f64| {
        let diagnosis = told(&threads(6, 5, busy, ran));
        let found = &diagnosis.findings[0];
        format!("{} {}", found.title, found.explanation)
    };
    let (computing, waiting) = (text(0.6, 3.0), text(0.3, 0.2));
    assert!(computing.contains("running most of the time") && !computing.contains("wait for a disk"), "{computing}");
    assert!(!waiting.contains("running most of the time") && waiting.contains("wait for a disk"), "{waiting}");
}

#[test]
fn a_limit_of_all_pools_together_is_the_one_that_a_pool_is_at() {
    let with = |process_max: Option<u32>| {
        let mut obs = php_pool(5, "dynamic", 20, false);
        let config = obs.servers.get_mut(&50).unwrap().config.last().cloned().unwrap();
        let ServerConfig::PhpFpm(php_fpm) = config else { panic!("it is php-fpm") };
        let most = |value| Setting { value, origin: Origin { file: "/etc/php/8.2/fpm/php-fpm.conf".into(), line: 3 } };
        let changed = PhpFpmConfig { process_max: process_max.map(most), ..php_fpm };
        let view = &mut obs.servers.get_mut(&50).unwrap().config;
        *view = Default::default();
        view.push(0, Reading::Ok(ServerConfig::PhpFpm(changed)));
        told(&obs)
    };
    let common = with(Some(7));
    assert_eq!(causes(&common), ["worker-pool-exhausted"], "{}", common.summary);
    let first = &common.findings[0];
    assert!(first.evidence.iter().any(|proof| proof.text.contains("7 workers together (process.max)")), "{:?}", first.evidence);
    let advised = format!("{:?}", first.remedies);
    assert!(advised.contains("than the 7 that process.max") && advised.contains("changes nothing"), "{advised}");
    // A common limit that the pools cannot reach is none.
    for unreached in [None, Some(20), Some(100)] {
        assert!(!format!("{:?}", with(unreached).findings).contains("process.max"), "{unreached:?}");
    }
}
