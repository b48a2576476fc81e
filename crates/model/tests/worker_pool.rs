//! Station `worker-pool`: it fires where all workers wait and connections wait for them, and stays silent before pages that compute.

mod stage;

use chokepoint_model::observation::{Identity, Listener, Observation, TcpState};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{LimitedBy, Role, StationState, Verdict};
use stage::pool::pool;
use stage::*;

#[test]
fn a_pool_whose_workers_wait_is_a_cause_whatever_its_size() {
    for workers in [2, 5, 40] {
        let diagnosis = told(&pool(workers, workers, 60));
        assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["worker-pool-exhausted"]), "{workers} workers");
        assert_eq!(diagnosis.findings[0].tier, "php-fpm");
    }
}

#[test]
fn a_queue_that_overflows_before_it_is_its_symptom() {
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
fn a_small_pool_before_a_page_that_computes_is_right() {
    let mut obs = pool(5, 5, 60);
    cpu(&mut obs, 0.99);
    let diagnosis = told(&obs);
    assert_eq!((diagnosis.verdict, diagnosis.limited_by, causes(&diagnosis)), (Verdict::Healthy, Some(LimitedBy::Cpu), vec![]));
}

#[test]
fn workers_that_are_free_or_nobody_waits_for_are_no_finding() {
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
fn more_connections_than_processes_are_an_event_loop() {
    let diagnosis = told(&pool(2, 40, 60));
    assert!(diagnosis.path.iter().all(|station| station.station != "worker-pool"));
    assert_eq!(causes(&diagnosis), [""; 0]);
}

#[test]
fn a_pool_that_still_grows_is_not_called_exhausted() {
    let mut obs = pool(5, 5, 60);
    let late = obs.processes.get_mut(&55).unwrap();
    late.identity = Default::default();
    let identity =
        Identity { pid: 55, parent: 50, comm: "php-fpm8.2".into(), start_ticks: 900, cpus_allowed: vec![1], ..Identity::default() };
    late.identity.push(4_000_000, Reading::Ok(identity));
    assert_eq!(causes(&told(&obs)), [""; 0]);
}

#[test]
fn a_worker_whose_client_gave_up_is_still_taken() {
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

/// The workers ran, or were ready to, for this share of their time.
fn ready(obs: &mut Observation, share: f64) {
    for pid in 50..56 {
        let view = obs.processes.get_mut(&pid).unwrap();
        for second in 0..=11_u64 {
            let ready_ns = (second as f64 * 1e9 * share) as u64;
            let used = chokepoint_model::observation::CpuUse {
                run_ns: Some(ready_ns / 2),
                run_delay_ns: Some(ready_ns / 2),
                ..Default::default()
            };
            view.cpu.push(second * 1_000_000, Reading::Ok(used));
        }
    }
}

#[test]
fn cores_that_a_neighbour_keeps_busy_do_not_hide_workers_that_wait() {
    let mut obs = pool(5, 5, 60);
    cpu(&mut obs, 1.0);
    ready(&mut obs, 0.1);
    assert_eq!(causes(&told(&obs)), ["worker-pool-exhausted"]);
    let mut starved = pool(5, 5, 60);
    cpu(&mut starved, 1.0);
    ready(&mut starved, 0.95);
    assert_eq!(causes(&told(&starved)), [""; 0], "workers that are ready all the time wait for a core");
}
