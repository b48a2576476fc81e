//! Station `worker-pool`: it fires where all workers wait and connections wait for them, and stays silent before pages that compute.

mod stage;

use chokepoint_model::observation::{Identity, Listener, ListenerAddress, Observation, Socket, SocketAddress, TcpState};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{LimitedBy, Role, StationState, Verdict};
use stage::*;

/// A pool of `workers` behind the web server, of which `busy` hold a connection in each sample, while `waiting` wait in its queue.
fn pool(workers: u32, busy: u32, waiting: u32) -> Observation {
    let mut obs = healthy();
    let address = ListenerAddress::Tcp(ip("127.0.0.1"), 9000);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let front: Vec<(u64, Vec<Listener>)> = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in front {
        let inside = (WINDOW.0..=WINDOW.1).contains(&at);
        listeners.push(listener(address.clone(), 200, if inside { waiting } else { 0 }, 0));
        view.listeners.push(at, Reading::Ok(listeners));
    }
    for second in 1..=10_u64 {
        let accepted = |n: u32| tcp(1_000 + u64::from(n), (ip("127.0.0.1"), 9000), (ip("127.0.0.1"), 40_000 + n as u16));
        let mut sockets: Vec<Socket> = (0..busy).map(accepted).collect();
        sockets.push(tcp(500, (ip("127.0.0.1"), 40_000), (ip("127.0.0.1"), 9000)));
        // Those that wait have no inode yet.
        sockets.extend((0..waiting.min(50)).map(|n| tcp(0, (ip("127.0.0.1"), 9000), (ip("127.0.0.1"), 50_000 + n as u16))));
        view.sockets.push(second * 1_000_000, Reading::Ok(sockets));
    }
    process(&mut obs, 42, 1, "nginx", &[100, 500]);
    process(&mut obs, 50, 1, "php-fpm8.2", &[200]);
    for n in 0..workers {
        process(&mut obs, 51 + n, 50, "php-fpm8.2", &[200, 1_000 + u64::from(n)]);
    }
    cpu(&mut obs, 0.2);
    let load = obs.load.as_mut().unwrap();
    (load.good, load.requests, load.status) = (2_500, 2_500, [(200, 2_500)].into());
    obs
}

fn tcp(inode: u64, local: (std::net::IpAddr, u16), remote: (std::net::IpAddr, u16)) -> Socket {
    let address = SocketAddress::Tcp { local, remote };
    Socket { address, state: TcpState::Established, inode, uid: None, receive_queue: 0, send_queue: 0, wait: None }
}

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
