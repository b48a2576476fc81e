//! The stage's web server as an nginx that exhausts its connections, files or rate.

use std::collections::BTreeMap;

use chokepoint_model::observation::{
    ErrorLog, Identity, Limits, LogEvent, NginxConfig, NginxLimit, NginxPass, Observation, OpenFiles, Origin, ProcessView, ServerConfig,
    Setting,
};
use chokepoint_model::reading::Reading;

use super::{SERVER, WINDOW, healthy};

pub(crate) const LOG: &str = "/var/log/nginx/error.log";
pub(crate) const MAIN: &str = "/etc/nginx/nginx.conf";
pub(crate) const ALERT: &str = "2026/11/20 07:17:47 [alert] 43#43: *5 64 worker_connections are not enough";

pub(crate) fn at(line: u32) -> Origin {
    Origin { file: MAIN.into(), line }
}

/// nginx (42) with one worker (43) that has `sockets` sockets and may open `nofile` files. Each worker may have 64 connections.
pub(crate) fn nginx(sockets: u64, nofile: u64, passes: bool, limits: Vec<NginxLimit>) -> Observation {
    let mut obs = healthy();
    process(&mut obs, 42, 1, 3, nofile);
    process(&mut obs, 43, 42, sockets, nofile);
    let pass = NginxPass {
        backups: Vec::new(),
        kind: "fastcgi".into(),
        upstream: None,
        servers: Vec::new(),
        keepalive: None,
        keepalive_requests: None,
        reuses: false,
        origin: at(9),
    };
    let config = NginxConfig {
        file: MAIN.into(),
        worker_processes: Setting { value: 1, origin: at(1) },
        worker_connections: Setting { value: 64, origin: at(3) },
        passes: if passes { vec![pass] } else { Vec::new() },
        limits,
        ..NginxConfig::default()
    };
    obs.servers.entry(42).or_default().config.push(0, Reading::Ok(ServerConfig::Nginx(config)));
    obs
}

pub(crate) fn process(obs: &mut Observation, pid: u32, parent: u32, sockets: u64, nofile: u64) {
    let mut view = ProcessView::default();
    let identity =
        Identity { pid, parent, comm: "nginx".into(), start_ticks: u64::from(pid), cpus_allowed: vec![1], ..Identity::default() };
    view.identity.push(0, Reading::Ok(identity));
    view.limits.push(0, Reading::Ok(Limits { open_files_soft: Some(nofile), open_files_hard: Some(nofile), ..Limits::default() }));
    for second in 0..=10_u64 {
        let inodes = (100..100 + sockets).collect();
        view.files.push(second * 1_000_000, Reading::Ok(OpenFiles { count: sockets as u32, sockets: inodes }));
    }
    obs.processes.insert(pid, view);
}

/// The event with this text, which must be one.
pub(crate) fn event(text: &str) -> LogEvent {
    let event = LogEvent::of_text(text);
    assert_eq!(event.to_string(), text, "no event has this text");
    event
}

pub(crate) fn logged(obs: &mut Observation, kind: &str, count: u64, line: &str) {
    let log = ErrorLog {
        events: BTreeMap::from([(event(kind), count)]),
        samples: BTreeMap::from([(event(kind), line.into())]),
        ..ErrorLog::default()
    };
    obs.servers.entry(42).or_default().error_logs.entry(format!("{LOG} {kind}")).or_default().push(11_000_000, Reading::Ok(log));
}

/// The load has 10,000 requests: `closed` lost their connection, and `answers` got an error status.
pub(crate) fn suffer(obs: &mut Observation, closed: u64, answers: &[(u16, u64)]) {
    let load = obs.load.as_mut().unwrap();
    load.requests = 10_000;
    load.good = 10_000 - closed - answers.iter().map(|(_, count)| count).sum::<u64>();
    load.errors.closed_before_answer = closed / 2;
    load.errors.reset = closed - closed / 2;
    load.status = answers.iter().copied().chain([(200, load.good)]).collect();
}

/// The accept queue is full and drops.
pub(crate) fn overflow(obs: &mut Observation) {
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in points {
        listeners[0].drops = Some(at / 10_000);
        listeners[0].accept_queue = if (WINDOW.0..=WINDOW.1).contains(&at) { 512 } else { 0 };
        view.listeners.push(at, Reading::Ok(listeners));
    }
    let load = obs.load.as_mut().unwrap();
    (load.requests, load.good, load.errors.connect_timeout) = (10_000, 9_000, 1_000);
    (load.latency_us.p99, load.latency_us.max) = (1_500_000, 2_000_000);
    load.status = [(200, 9_000)].into();
}

pub(crate) fn rate(applies: Option<bool>, burst: u64, at_once: u64) -> NginxLimit {
    NginxLimit {
        kind: "limit_req".into(),
        zone: "one".into(),
        rate_per_s: Some(200.0),
        burst,
        burst_at_once: at_once,
        key: "$binary_remote_addr".into(),
        applies,
        status: 429,
        origin: at(20),
        zone_origin: at(5),
        ..NginxLimit::default()
    }
}
