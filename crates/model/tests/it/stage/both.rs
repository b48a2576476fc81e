//! Two faults at once.

use chokepoint_model::observation::{Observation, OpenFiles};
use chokepoint_model::reading::Reading;

use super::edge::{BACKEND, edge};
use super::limits::{ALERT, logged, nginx, suffer};
use super::{SERVER, table_full};

/// The listener with this inode drops connections because its queue is full, and requests suffer.
pub(crate) fn overflowing(obs: &mut Observation, inode: u64) {
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in points {
        listeners.iter_mut().filter(|listener| listener.inode == inode).for_each(|listener| listener.drops = Some(at / 1_000));
        view.listeners.push(at, Reading::Ok(listeners));
    }
    let load = obs.load.as_mut().unwrap();
    load.requests += 2_000;
    load.errors.response_timeout += 2_000;
    (load.latency_us.p999, load.latency_us.max) = (2_000_000, 2_000_000);
}

/// nginx with exhausted worker connections, in front of a server that it dials over TCP.
pub(crate) fn proxied() -> Observation {
    let mut obs = edge(BACKEND, "10000 65535", 10);
    let other = nginx(64, 1_024, true, Vec::new());
    obs.servers = other.servers;
    for (pid, mut process) in other.processes {
        let sockets: Vec<u64> = process.files.last().map(|files| files.sockets.clone()).unwrap_or_default();
        let held = OpenFiles { count: 64, sockets: sockets.into_iter().chain([500]).collect() };
        process.files.push(10_000_001, Reading::Ok(held));
        obs.processes.insert(pid, process);
    }
    suffer(&mut obs, 4_000, &[(500, 1_000)]);
    logged(&mut obs, "worker_connections", 5_000, ALERT);
    obs
}

/// Adds a full conntrack table that drops packets in the namespace.
pub(crate) fn tabled(obs: &mut Observation) {
    let full = table_full(200);
    for (id, view) in full.netns {
        let own = obs.netns.get_mut(&id).unwrap();
        (own.conntrack_count, own.conntrack_cpus) = (view.conntrack_count, view.conntrack_cpus);
        own.sysctls.extend(view.sysctls.into_iter().filter(|(key, _)| key.contains("conntrack")));
    }
    let load = obs.load.as_mut().unwrap();
    load.requests += 500;
    load.errors.connect_timeout += 500;
}
