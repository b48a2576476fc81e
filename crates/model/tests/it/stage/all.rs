//! Every kind of observation of the stage, by name: each cause and each decoy.

use chokepoint_model::load::Loop;
use chokepoint_model::observation::{Observation, TcpState, TimeWaitDialled, TimeWaits};
use chokepoint_model::reading::Reading;

use super::blocked::{BEHIND, behind, towards};
use super::both::{overflowing, proxied, tabled};
use super::edge::{BACKEND, edge, gateway_errors, set};
use super::handshakes::{self, FULL, FULL_BY_SYSCTL, Shown, show};
use super::held::{all_taken, calls, keep};
use super::limits::{self, ALERT, logged, nginx, overflow, rate};
use super::pool::{php_pool, pool};
use super::queue::{queue, suffer};
use super::quota::{Did, PHP, cgroup, inside, throttled};
use super::shaper::{self, Shaped};
use super::{SERVER, cpu, healthy, ip, table_full};

/// A named observation with the id of its first cause, or `None`.
pub(crate) type Staged = (&'static str, Option<&'static str>, Observation);

/// All of them.
pub(crate) fn all() -> Vec<Staged> {
    let mut all = stations();
    all.extend(servers());
    all.extend(pairs());
    all.extend(decoys());
    all
}

fn made(start: Observation, change: impl FnOnce(&mut Observation)) -> Observation {
    let mut obs = start;
    change(&mut obs);
    obs
}

fn stations() -> Vec<Staged> {
    let burst = made(healthy(), |obs| {
        queue(obs, 10, 1, 3_000);
        suffer(obs, 1_000, 50_000);
    });
    let shaken = |shown: &Shown<'_>| {
        made(healthy(), |obs| {
            show(obs, shown);
            handshakes::suffer(obs);
        })
    };
    let search = made(edge("10.0.0.9", "32768 60999", 10), |obs| {
        let waits = TimeWaitDialled { local: ip("10.0.0.2"), remote: (ip(BACKEND), 8080), count: 14_000 };
        let waits = TimeWaits { total: 14_000, dialled: vec![waits], ..TimeWaits::default() };
        obs.netns.get_mut(&SERVER).unwrap().time_waits.push(9_000_000, Reading::Ok(waits));
        set(obs, "net.ipv4.tcp_tw_reuse", "0");
        cpu(obs, 1.0);
    });
    vec![
        ("a full table", Some("conntrack-table-full"), table_full(200)),
        ("a short accept queue", Some("accept-queue-full"), burst),
        ("a SYN queue full", Some("syn-queue-full"), shaken(&FULL)),
        ("a SYN queue full by its sysctl", Some("syn-queue-full"), shaken(&FULL_BY_SYSCTL)),
        ("a pool too small", Some("worker-pool-exhausted"), pool(5, 5, 60)),
        ("a pool of php-fpm too small", Some("worker-pool-exhausted"), php_pool(5, "dynamic", 5, false)),
        ("few ports", Some("ephemeral-ports-exhausted"), made(edge(BACKEND, "20000 20050", 50), |obs| gateway_errors(obs, 60_000))),
        ("the search for a port", Some("time-wait-port-search"), search),
        ("a full shaper towards the upstream", Some("egress-shaped"), shaper::full().observed()),
        ("a full class of htb", Some("egress-shaped"), Shaped { is_class: true, ..shaper::full() }.observed()),
        ("a CPU quota too small", Some("cgroup-cpu-throttled"), throttled("v1:/php")),
        ("a CPU quota too small of version 2", Some("cgroup-cpu-throttled"), throttled("v2:/php")),
        ("a slow server away", Some("workers-blocked-on-upstream"), towards("192.0.2.7")),
        ("a slow server behind", Some("workers-blocked-on-upstream"), made(towards(BEHIND), |obs| behind(obs, 1, 2, 3))),
        ("clients that do not close", Some("waits-for-clients"), lingering()),
        ("clients that keep connections", Some("waits-for-clients"), keep(pool(5, 5, 60), 5, 5)),
        ("threads at one lock", Some("workers-wait-for-each-other"), all_taken(calls(15, 15, 15))),
        ("a full pool behind", Some("worker-pool-exhausted"), made(towards(BEHIND), |obs| behind(obs, 3, 2, 3))),
    ]
}

/// A full pool whose workers wait for clients that have their answer.
fn lingering() -> Observation {
    made(pool(5, 5, 60), |obs| {
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let points = view.sockets.points().to_vec();
        view.sockets = Default::default();
        for (at, mut sockets) in points {
            sockets.iter_mut().filter(|socket| socket.inode >= 1_000).for_each(|socket| socket.state = TcpState::FinWait2);
            view.sockets.push(at, Reading::Ok(sockets));
        }
    })
}

fn servers() -> Vec<Staged> {
    let few = made(nginx(64, 1_024, true, Vec::new()), |obs| {
        limits::suffer(obs, 4_000, &[(500, 1_000)]);
        logged(obs, "worker_connections", 5_000, ALERT);
    });
    let drained = made(nginx(58, 1_024, false, Vec::new()), |obs| limits::suffer(obs, 700, &[]));
    let files = made(nginx(60, 80, true, Vec::new()), |obs| {
        limits::suffer(obs, 0, &[(500, 2_000)]);
        logged(obs, "socket 24", 2_000, "socket() failed (24: Too many open files)");
    });
    let queued = made(nginx(80, 80, false, Vec::new()), |obs| {
        overflow(obs);
        logged(obs, "accept 24", 20, "accept4() failed (24: Too many open files)");
    });
    let unknown = made(healthy(), |obs| {
        limits::process(obs, 42, 1, 255, 256);
        overflow(obs);
    });
    let refused = made(nginx(10, 1_024, false, vec![rate(Some(true), 20, 20)]), |obs| limits::suffer(obs, 0, &[(429, 7_980)]));
    let generator = made(healthy(), |obs| obs.load.as_mut().unwrap().threads[0].cpu_us = 9_500_000);
    vec![
        ("few connections", Some("worker-connections-exhausted"), few),
        ("few connections, in no log", Some("worker-connections-exhausted"), drained),
        ("few files", Some("file-descriptors-exhausted"), files),
        ("few files before a queue", Some("file-descriptors-exhausted"), queued),
        ("an unknown program with few files", Some("file-descriptors-exhausted"), unknown),
        ("a rate by configuration", Some("rate-limited-by-config"), refused),
        ("a generator at its limit", Some("load-generator-limited"), generator),
    ]
}

fn pairs() -> Vec<Staged> {
    let ports = made(edge(BACKEND, "20000 20050", 50), |obs| {
        gateway_errors(obs, 60_000);
        overflowing(obs, 100);
    });
    let alone = made(nginx(64, 1_024, false, Vec::new()), |obs| {
        limits::suffer(obs, 4_000, &[]);
        logged(obs, "worker_connections", 4_000, ALERT);
        tabled(obs);
    });
    vec![
        ("few ports behind a short queue", Some("ephemeral-ports-exhausted"), ports),
        ("a full table before few connections", Some("conntrack-table-full"), alone),
        ("a full table on the way to an upstream", Some("conntrack-table-full"), made(proxied(), tabled)),
        ("a slow server behind a queue", Some("workers-blocked-on-upstream"), made(towards("192.0.2.7"), |obs| overflowing(obs, 200))),
    ]
}

fn decoys() -> Vec<Staged> {
    let offered = made(healthy(), |obs| obs.load.as_mut().unwrap().shape = Loop::Open { rate_per_s: 10_000.0, connections: 100 });
    let watched = made(healthy(), |obs| (obs.load, obs.request.loaded) = (None, false));
    let lines = made(nginx(64, 1_024, false, Vec::new()), |obs| logged(obs, "worker_connections", 300, ALERT));
    let cookies = made(healthy(), |obs| {
        let grown = handshakes::Grown { cookies: 30_000, ..handshakes::Grown::default() };
        show(obs, &Shown { own: Some(0), sysctls: ("1", "128"), grown, ..FULL });
    });
    let standing = made(healthy(), |obs| {
        queue(obs, 511, 512, 3_000);
        suffer(obs, 1_000, 2_500);
        cpu(obs, 0.05);
    });
    let roomy = made(pool(5, 3, 0), |obs| {
        cgroup(obs, "v1:/php", Did { limit: Some(0.5), used: 0.3, throttled: 0.0 });
        inside(obs, "v1:/php", PHP, 0.05, 0.0);
    });
    let resets = made(healthy(), |obs| {
        let load = obs.load.as_mut().unwrap();
        (load.good, load.errors.reset) = (90_000, 10_000);
    });
    vec![
        ("healthy", None, healthy()),
        ("a rate that is met", None, offered),
        ("watched without traffic", None, watched),
        ("busy cores", None, made(healthy(), |obs| cpu(obs, 0.99))),
        ("a short queue that nobody reaches", None, made(healthy(), |obs| queue(obs, 4, 1, 0))),
        ("overflows that nobody suffers from", None, made(healthy(), |obs| queue(obs, 10, 0, 3))),
        ("a queue before workers who do not come", Some("accepts-slowly"), standing),
        ("SYN cookies", None, cookies),
        ("few ports that suffice", None, edge(BACKEND, "20000 20099", 50)),
        ("another client's connections refused", None, lines),
        ("as many files as it needs", None, nginx(60, 61, false, Vec::new())),
        ("a rate that is not reached", None, nginx(10, 1_024, false, vec![rate(Some(true), 20, 20)])),
        ("a pool with room", None, pool(5, 3, 0)),
        ("a CPU quota that is not used up", None, roomy),
        ("a shaper with room", None, Shaped { share: 0.5, waiting: 0, drops: (0, 0), ..shaper::full() }.observed()),
        ("failures that nothing explains", None, resets),
    ]
}
