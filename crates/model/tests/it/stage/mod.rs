//! A stage for the model: an observation of one nginx-like server behind a firewall. It is healthy by default, and each test changes it.

pub(crate) mod all;
pub(crate) mod blocked;
pub(crate) mod both;
pub(crate) mod edge;
pub(crate) mod handshakes;
pub(crate) mod held;
pub(crate) mod limits;
pub(crate) mod pool;
pub(crate) mod profiled;
pub(crate) mod queue;
pub(crate) mod quota;
pub(crate) mod shaper;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::LazyLock;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::diagnose::diagnose;
use chokepoint_model::load::{Errors, GeneratorThread, LoadResult, Loop, Percentiles};
use chokepoint_model::observation::Request;
use chokepoint_model::observation::{
    Address, ConntrackCpu, CoreTimes, CpuTimes, Identity, KernelInfo, Link, Listener, ListenerAddress, Memory, NetnsId, NetnsView,
    Observation, OpenFiles, ProcessView,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Ceiling, Diagnosis};
use chokepoint_model::stations::{Context, STATIONS};

pub(crate) const CLIENT: NetnsId = NetnsId(1);
pub(crate) const SERVER: NetnsId = NetnsId(2);
pub(crate) const HOST: NetnsId = NetnsId(3);
pub(crate) const SERVER_IP: &str = "10.0.0.2";
/// The load runs from 0.5 s to 10.5 s. Readings extend one second further on both sides.
pub(crate) const WINDOW: (u64, u64) = (500_000, 10_500_000);

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub(crate) fn listener(address: ListenerAddress, inode: u64, accept_queue: u32, drops: u64) -> Listener {
    Listener { address, v6_only: false, inode, accept_queue, accept_queue_limit: 511, drops: Some(drops) }
}

/// Healthy: 100,000 good answers in ten seconds, the server's core 60 % busy, nothing full.
pub(crate) fn healthy() -> Observation {
    let mut obs = Observation {
        request: Request {
            url: format!("http://{SERVER_IP}/"),
            scheme: "http".into(),
            host: SERVER_IP.into(),
            port: 80,
            addresses: vec![ip(SERVER_IP)],
            client_netns: CLIENT,
            expect: vec![(200, 399)],
            loaded: true,
            ..Request::default()
        },
        load: Some(load()),
        window_us: Some(WINDOW),
        ..Observation::default()
    };
    obs.kernel
        .push(0, Reading::Ok(KernelInfo { release: "6.1".into(), ticks_per_s: 100, cores: 2, page_bytes: 4096, ..KernelInfo::default() }));
    obs.memory.push(0, Reading::Ok(Memory { total: 8 << 30, available: 7 << 30, ..Memory::default() }));
    for (name, id, is_host) in [("client", CLIENT, false), ("server", SERVER, false), ("host", HOST, true)] {
        obs.netns.insert(id, NetnsView { name: Some(name.into()), is_host, ..NetnsView::default() });
    }
    let view = obs.netns.get_mut(&SERVER).unwrap();
    view.addresses.push(0, Reading::Ok(vec![Address { ip: ip(SERVER_IP), prefix_bits: 24, link: 2 }]));
    for tick in 0..=220_u64 {
        let at = tick * 50_000;
        view.listeners.push(at, Reading::Ok(vec![listener(ListenerAddress::Tcp(ip("0.0.0.0"), 80), 100, 0, 0)]));
        view.conntrack_count.push(at, Reading::Ok(if at < WINDOW.0 { 0 } else { 120 }));
    }
    conntrack_limit(&mut obs, SERVER, 262_144);
    conntrack_limit(&mut obs, HOST, 262_144);
    counters(&mut obs, SERVER, &[]);
    links(&mut obs, 1_000_000);
    cpu(&mut obs, 0.6);
    let server = ProcessView::default();
    obs.processes.insert(42, server);
    let server = obs.processes.get_mut(&42).unwrap();
    let identity = Identity { pid: 42, comm: "nginx".into(), netns: SERVER, cpus_allowed: vec![1], ..Identity::default() };
    server.identity.push(0, Reading::Ok(identity));
    server.files.push(0, Reading::Ok(OpenFiles { count: 9, sockets: vec![100] }));
    obs
}

pub(crate) fn load() -> LoadResult {
    LoadResult {
        shape: Loop::Closed { connections: 100 },
        keep_alive: false,
        drained: 0,
        drained_good: 0,
        early: 0,
        early_good: 0,
        under_way_us: None,
        without_connection_us: None,
        timeout_us: 2_000_000,
        duration_us: 10_000_000,
        requests: 100_000,
        status: BTreeMap::from([(200, 100_000)]),
        good: 100_000,
        errors: Errors::default(),
        latency_us: Percentiles { p50: 9_000, p99: 20_000, p999: 30_000, max: 40_000, ..Percentiles::default() },
        latency_us_p99_range: None,
        good_latency_us: Percentiles::default(),
        lost: None,
        connect_us: Percentiles { p50: 100, p999: 2_000, max: 3_000, ..Percentiles::default() },
        latency_histogram: String::new(),
        connections: 100_000,
        tls: None,
        received_bytes: 10_000_000,
        sent_bytes: 5_000_000,
        resent: 0,
        late: 0,
        slices: Vec::new(),
        threads: vec![GeneratorThread { cpu_us: 3_000_000, wall_us: 10_000_000, wait_us: None, cpus: vec![0] }],
        stopped_by: None,
        interrupted: false,
        error_samples: Vec::new(),
    }
}

/// Sets the table's limit as a namespace sees it. Only the host's limit can be written.
pub(crate) fn conntrack_limit(obs: &mut Observation, id: NetnsId, max: u64) {
    let view = obs.netns.get_mut(&id).unwrap();
    let mode = if view.is_host { "rw" } else { "ro" };
    for (key, value) in [
        ("net.netfilter.nf_conntrack_max", max.to_string()),
        ("net.netfilter.nf_conntrack_max mode", mode.to_owned()),
        ("net.netfilter.nf_conntrack_buckets", "262144".to_owned()),
        ("net.netfilter.nf_conntrack_tcp_timeout_time_wait", "120".to_owned()),
    ] {
        let series = view.sysctls.entry(key.to_owned()).or_default();
        *series = Default::default();
        series.push(0, Reading::Ok(value));
    }
}

/// Sets the growth of the conntrack counters over the observation.
pub(crate) fn counters(obs: &mut Observation, id: NetnsId, grown: &[(&str, u64)]) {
    let view = obs.netns.get_mut(&id).unwrap();
    view.conntrack_cpus = Default::default();
    for at in [0, 1_000_000, 10_000_000, 11_000_000] {
        let mut row: BTreeMap<String, u64> = ["drop", "early_drop", "insert_failed"].map(|name| (name.to_owned(), 7)).into();
        for (name, grown) in grown {
            *row.get_mut(*name).unwrap() += grown * at / 11_000_000;
        }
        view.conntrack_cpus.push(at, Reading::Ok(vec![ConntrackCpu { counters: row.into_iter().collect() }, ConntrackCpu::default()]));
    }
}

/// Sets the growth of a namespace's protocol counters over the observation.
pub(crate) fn protocol_counters(obs: &mut Observation, id: NetnsId, grown: &[(&str, u64)]) {
    let series = &mut obs.netns.get_mut(&id).unwrap().netstat;
    let before = series.last().cloned().unwrap_or_default();
    *series = Default::default();
    for at in [0, 1_000_000, 10_000_000, 11_000_000] {
        let grown = grown.iter().map(|(name, grown)| ((*name).to_owned(), 1_000 + (grown * at / 11_000_000) as i64));
        let others = before.iter().map(|(name, value)| (name.to_owned(), *value));
        series.push(at, Reading::Ok(others.chain(grown).collect()));
    }
}

/// The server's core (1) has this busy share, the client's core (0) a third.
pub(crate) fn cpu(obs: &mut Observation, busy: f64) {
    obs.cpu = Default::default();
    for second in 0..=11_u64 {
        let core = |share: f64| CoreTimes {
            system: (second as f64 * 100.0 * share) as u64,
            idle: (second as f64 * 100.0 * (1.0 - share)) as u64,
            ..CoreTimes::default()
        };
        obs.cpu.push(second * 1_000_000, Reading::Ok(CpuTimes { cores: vec![(0, core(0.3)), (1, core(busy))] }));
    }
}

/// The server's link sends this many bytes a second.
pub(crate) fn links(obs: &mut Observation, bytes_per_s: u64) {
    let view = obs.netns.get_mut(&SERVER).unwrap();
    view.links = Default::default();
    for second in [0, 11] {
        let link = Link { index: 2, name: "eth0".into(), up: true, mtu: 1500, tx_bytes: second * bytes_per_s, ..Link::default() };
        view.links.push(second * 1_000_000, Reading::Ok(vec![link]));
    }
}

/// The server's table, with this limit, was full from 35 ms after the start of the load and dropped packets. Requests timed out.
pub(crate) fn table_full(max: u64) -> Observation {
    let mut obs = healthy();
    for id in [SERVER, HOST] {
        conntrack_limit(&mut obs, id, max);
    }
    entries(&mut obs, SERVER, max);
    counters(&mut obs, SERVER, &[("drop", 5_000)]);
    cpu(&mut obs, 0.05);
    let load = obs.load.as_mut().unwrap();
    load.requests = 700;
    load.good = 100;
    load.status = BTreeMap::from([(200, 100)]);
    load.errors.connect_timeout = 500;
    load.errors.response_timeout = 100;
    (load.latency_us.p999, load.latency_us.max) = (2_000_000, 2_000_000);
    obs
}

/// Sets the number of entries in a namespace's table from the start of the load on.
pub(crate) fn entries(obs: &mut Observation, id: NetnsId, count: u64) {
    let view = obs.netns.get_mut(&id).unwrap();
    view.conntrack_count = Default::default();
    for tick in 0..=220_u64 {
        let at = tick * 50_000;
        view.conntrack_count.push(at, Reading::Ok(if at < WINDOW.0 + 35_000 { 0 } else { count }));
    }
}

/// Parsed once: some tests make thousands of diagnoses.
static WORDS: LazyLock<Catalogue> = LazyLock::new(Catalogue::english);

/// The ceiling that predictions count with. A report leaves out one that supposes that waits end.
pub(crate) fn ceiling_read(obs: &Observation, station: &str) -> Option<Ceiling> {
    let path = chokepoint_model::path::discover(obs);
    let ctx = Context::new(obs, &path, &WORDS);
    let mut read = STATIONS.iter().flat_map(|def| (def.read)(&ctx));
    read.find(|reading| reading.station.0 == station)?.ceiling_rps
}

pub(crate) fn told(obs: &Observation) -> Diagnosis {
    let diagnosis = diagnose(obs, &WORDS);
    let text = serde_json::to_string(&diagnosis).unwrap();
    // A message without its text shows as its id in brackets.
    for id in ["state-", "verdict-", "evidence-", "finding-", "remedy-", "prediction-", "warning-"] {
        assert!(!text.contains(&format!("[{id}")), "a message without a sentence in {text}");
    }
    diagnosis
}

pub(crate) fn causes(diagnosis: &Diagnosis) -> Vec<&str> {
    diagnosis
        .findings
        .iter()
        .filter(|finding| finding.role == chokepoint_model::report::Role::Cause)
        .map(|finding| finding.id.as_str())
        .collect()
}
