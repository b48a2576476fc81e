//! Remedies for a server's own limits: the proposed size of a pool and of a queue, and which server's setting is changed.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::change::{Activation, Change};
use chokepoint_model::load::Loop;
use chokepoint_model::observation::{
    CpuUse, ListenerAddress, Memory, NginxConfig, NginxListen, Observation, Origin, ServerConfig, Setting,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::Remedy;

use crate::stage::pool::php_pool;
use crate::stage::*;

/// nginx (42) with an accept queue for ten connections that overflows; `backlog` from its configuration, `somaxconn` from the kernel.
fn short_queue(address: &str, backlog: Option<u32>, somaxconn: u32) -> Observation {
    let mut obs = healthy();
    let view = obs.netns.get_mut(&SERVER).unwrap();
    view.listeners = Default::default();
    for tick in 0..=220_u64 {
        let at = tick * 50_000;
        let mut listener = listener(ListenerAddress::Tcp(ip("0.0.0.0"), 80), 100, 1, at / 1_000);
        listener.accept_queue_limit = 10;
        view.listeners.push(at, Reading::Ok(vec![listener]));
    }
    view.sysctls.entry("net.core.somaxconn".into()).or_default().push(0, Reading::Ok(somaxconn.to_string()));
    let load = obs.load.as_mut().unwrap();
    load.shape = Loop::Closed { connections: 1_000 };
    (load.requests, load.errors.connect_timeout) = (102_000, 2_000);
    (load.connect_us.p999, load.connect_us.max) = (1_020_000, 1_030_000);
    let origin = Origin { file: "/etc/nginx/nginx.conf".into(), line: 9 };
    let address = ListenerAddress::Tcp(ip(address), 80);
    let listens = vec![NginxListen { address, backlog, reuseport: false, origin }];
    let config = NginxConfig { file: "/etc/nginx/nginx.conf".into(), listens, ..NginxConfig::default() };
    obs.servers.entry(42).or_default().config.push(0, Reading::Ok(ServerConfig::Nginx(config)));
    obs
}

fn first_remedy(obs: &Observation, id: &str) -> Remedy {
    let diagnosis = told(obs);
    let remedies = diagnosis.findings.iter().flat_map(|finding| &finding.remedies);
    remedies.into_iter().find(|remedy| remedy.id == id).unwrap_or_else(|| panic!("{id} in {diagnosis:?}")).clone()
}

fn settings(remedy: &Remedy) -> Vec<(String, &str, &str)> {
    remedy.change.iter().map(|change| (change.key(), change.from(), change.to())).collect()
}

#[test]
fn a_queue_is_raised_in_the_server_and_in_the_kernel() {
    let remedy = first_remedy(&short_queue("0.0.0.0", Some(10), 10), "raise-accept-backlog");
    let nginx = "nginx backlog of listen 0.0.0.0:80".to_owned();
    assert_eq!(settings(&remedy), [("net.core.somaxconn".to_owned(), "10", "4096"), (nginx.clone(), "10", "4096")]);
    assert_eq!(remedy.activation, Activation::Reload);
    // If the kernel's bound is high enough, only the server is changed. Without `backlog`, nginx's default of 511 applies.
    let remedy = first_remedy(&short_queue("0.0.0.0", None, 65_535), "raise-accept-backlog");
    assert_eq!(settings(&remedy), [(nginx.clone(), "511", "4096")]);
    // The file has enough, but the kernel reduced it when nginx began to listen. nginx listens again only if its value changes.
    let remedy = first_remedy(&short_queue("0.0.0.0", Some(4_096), 10), "raise-accept-backlog");
    assert_eq!(settings(&remedy), [("net.core.somaxconn".to_owned(), "10", "4096"), (nginx, "4096", "4097")]);
}

#[test]
fn a_listener_without_a_configuration_gets_advice_and_no_change() {
    let remedy = first_remedy(&short_queue("10.9.9.9", Some(10), 10), "raise-accept-backlog");
    assert!(remedy.change.is_empty() && remedy.text.contains("somaxconn"), "{remedy:?}");
}

#[test]
fn the_proposed_queue_grows_with_the_load() {
    let mut obs = short_queue("0.0.0.0", Some(10), 65_535);
    obs.load.as_mut().unwrap().shape = Loop::Closed { connections: 10_000 };
    assert_eq!(settings(&first_remedy(&obs, "raise-accept-backlog"))[0].2, "32768");
}

/// A pool of five (pids 51 to 55, master 50) that waits, with `waiting` connections in its queue of 511. Each worker has 20 MB.
fn full_pool(waiting: u32, available: u64) -> Observation {
    let mut obs = php_pool(5, "static", 5, false);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in points {
        listeners[1].accept_queue = waiting;
        view.listeners.push(at, Reading::Ok(listeners));
    }
    for pid in 51..=55 {
        let cpu = |at: u64| CpuUse { resident_bytes: 20 << 20, user_ticks: at / 10_000_000, state: 'S', ..CpuUse::default() };
        let process = obs.processes.get_mut(&pid).unwrap();
        for at in [1_000_000, 10_000_000] {
            process.cpu.push(at, Reading::Ok(cpu(at)));
        }
    }
    obs.memory = Default::default();
    obs.memory.push(0, Reading::Ok(Memory { total: 8 << 30, available, ..Memory::default() }));
    obs
}

fn workers(obs: &Observation) -> String {
    let remedy = first_remedy(obs, "raise-max-children");
    let Change::Server { pid, file, .. } = &remedy.change[0] else { panic!("{remedy:?}") };
    assert_eq!((*pid, file.as_str(), remedy.change.len()), (50, "/etc/php/8.2/fpm/php-fpm.conf", 1));
    remedy.change[0].to().to_owned()
}

#[test]
fn a_pool_is_sized_by_waiting_connections_cores_and_memory() {
    assert_eq!(workers(&full_pool(40, 7 << 30)), "45", "five in service and forty waiting");
    // Five workers use a tenth of the only core: what the core has time for bounds their number.
    let mut computing = full_pool(400, 64 << 30);
    for pid in 51..=55 {
        let process = computing.processes.get_mut(&pid).unwrap();
        process.cpu = Default::default();
        for (at, user_ticks) in [(1_000_000, 0), (10_000_000, 18)] {
            process.cpu.push(at, Reading::Ok(CpuUse { resident_bytes: 20 << 20, user_ticks, state: 'S', ..CpuUse::default() }));
        }
    }
    assert_eq!(workers(&computing), "68");
    // Half of 200 MiB holds five workers of 20 MiB.
    assert_eq!(workers(&full_pool(40, 200 << 20)), "10", "as memory allows");
    // A queue of 511 with 500 waiting hides further clients. The load knows their number.
    let mut cut_off = full_pool(500, 64 << 30);
    cut_off.load.as_mut().unwrap().shape = Loop::Closed { connections: 900 };
    assert_eq!(workers(&cut_off), "900");
}

#[test]
fn requests_in_flight_are_at_risk_if_workers_get_no_time() {
    let remedy = first_remedy(&full_pool(40, 7 << 30), "raise-max-children");
    assert!(remedy.risk.contains("process_control_timeout is not set"), "{}", remedy.risk);
    let mut obs = full_pool(40, 7 << 30);
    let ServerConfig::PhpFpm(mut config) = obs.servers[&50].config.last().unwrap().clone() else { panic!() };
    config.process_control_timeout_s = Setting { value: 10, origin: Origin::default() };
    obs.servers.get_mut(&50).unwrap().config.push(1, Reading::Ok(ServerConfig::PhpFpm(config)));
    assert!(!first_remedy(&obs, "raise-max-children").risk.contains("not set"));
}
