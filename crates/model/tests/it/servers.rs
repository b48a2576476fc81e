//! What a known server's configuration and logs add: edges without observed connections, limits of growing pools, failures in the server's words, and
//! figures of watched traffic. Each has a case without a finding.
//!
//! Deterministic: observations made up by the tests.

use std::collections::BTreeMap;

use chokepoint_model::load::Percentiles;
use chokepoint_model::observation::{
    AccessLog, Address, ErrorLog, ListenerAddress, LogExtent, NginxConfig, NginxPass, Observation, Origin, RequestSample, RequestSocket,
    ServerConfig, Socket, SocketAddress, TcpState,
};
use chokepoint_model::reading::{Lack, Reading};
use chokepoint_model::report::{Confidence, Diagnosis, Mode, SourceStatus, Verdict};

use crate::stage::limits::event;
use crate::stage::pool::{php_pool, process};
use crate::stage::*;

const BACKEND: &str = "10.0.0.9";
const LOG: &str = "/var/log/nginx/error.log";

/// The web server (42) with a second listener on this host, owned by `php-fpm` (50), and `live` connections between them.
fn two_tiers(address: ListenerAddress, live: u16) -> Observation {
    let mut obs = healthy();
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let mut addresses = view.addresses.last().cloned().unwrap();
    addresses.push(Address { ip: ip(BACKEND), prefix_bits: 24, link: 3 });
    view.addresses.push(1, Reading::Ok(addresses));
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    for (at, mut listeners) in points {
        listeners.push(listener(address.clone(), 200, 0, 0));
        view.listeners.push(at, Reading::Ok(listeners));
    }
    if let ListenerAddress::Tcp(to, port) = address {
        let dialled = |n: u16| Socket {
            address: SocketAddress::Tcp { local: (ip("10.0.0.2"), 20_000 + n), remote: (to, port) },
            state: TcpState::Established,
            inode: 500 + u64::from(n),
            uid: None,
            receive_queue: 0,
            send_queue: 0,
            wait: None,
        };
        for second in 1..=10_u64 {
            view.sockets.push(second * 1_000_000, Reading::Ok((0..live).map(dialled).collect()));
        }
    }
    view.sysctls.entry("net.ipv4.ip_local_port_range".into()).or_default().push(0, Reading::Ok("20000 20099".into()));
    process(&mut obs, 42, 1, "nginx", &[100, 500]);
    process(&mut obs, 50, 1, "php-fpm8.2", &[200]);
    obs
}

/// No load of our own: the traffic is only watched.
fn passive(obs: &mut Observation) {
    obs.load = None;
    obs.request.loaded = false;
}

fn logged(obs: &mut Observation, pid: u32, kind: &str, count: u64) {
    let events = BTreeMap::from([(event(kind), count)]);
    let samples = BTreeMap::from([(event(kind), format!("the first line of {kind}"))]);
    let log = obs.servers.entry(pid).or_default().error_logs.entry(LOG.into()).or_default();
    log.push(11_000_000, Reading::Ok(ErrorLog { events, samples, ..ErrorLog::default() }));
}

fn passes_to(obs: &mut Observation, servers: Vec<ListenerAddress>) {
    let pass = NginxPass {
        backups: Vec::new(),
        kind: "fastcgi".into(),
        upstream: None,
        servers,
        keepalive: None,
        keepalive_requests: None,
        reuses: false,
        origin: Origin { file: "/etc/nginx/nginx.conf".into(), line: 7 },
    };
    let config = NginxConfig { passes: vec![pass], ..NginxConfig::default() };
    obs.servers.entry(42).or_default().config.push(0, Reading::Ok(ServerConfig::Nginx(config)));
}

fn tiers(diagnosis: &Diagnosis) -> Vec<&str> {
    diagnosis.target.tiers.iter().map(|tier| tier.name.as_str()).collect()
}

fn tcp_backend() -> ListenerAddress {
    ListenerAddress::Tcp(ip(BACKEND), 9000)
}

#[test]
fn a_logged_errno_is_enough_without_load_and_gives_high_confidence_beside_ports_that_were_seen_taken() {
    for (live, confidence) in [(60, Confidence::Medium), (95, Confidence::High)] {
        let mut obs = two_tiers(tcp_backend(), live);
        passive(&mut obs);
        logged(&mut obs, 42, "connect 99", 500);
        let diagnosis = told(&obs);
        assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["ephemeral-ports-exhausted"]));
        let finding = &diagnosis.findings[0];
        assert_eq!(finding.confidence, confidence);
        let proof = finding.evidence.iter().find(|proof| proof.source == LOG).unwrap();
        assert!(proof.value == Some(500.0) && proof.text.contains("the first line of connect 99"), "{proof:?}");
    }
}

#[test]
fn other_errors_other_servers_or_free_ports_are_no_exhaustion() {
    for (pid, kind, live) in [(42, "connect 111", 60), (42, "connect 11", 60), (50, "connect 99", 60), (42, "connect 99", 30)] {
        let mut obs = two_tiers(tcp_backend(), live);
        passive(&mut obs);
        logged(&mut obs, pid, kind, 500);
        assert_eq!(causes(&told(&obs)), [""; 0], "{kind} of {pid}, {live} live");
    }
}

#[test]
fn an_edge_without_observed_connections_is_taken_from_the_configuration_and_reported() {
    let unix = ListenerAddress::Unix("/run/php/php8.2-fpm.sock".into());
    let pass = ListenerAddress::Unix("/var/run/php/php8.2-fpm.sock".into());
    for (listens, names) in [(tcp_backend(), tcp_backend()), (unix, pass)] {
        let mut obs = two_tiers(listens, 0);
        assert_eq!(tiers(&told(&obs)), ["nginx"], "without a configuration nothing leads there");
        passes_to(&mut obs, vec![names]);
        let diagnosis = told(&obs);
        assert_eq!(tiers(&diagnosis), ["nginx", "php-fpm"]);
        assert_eq!(diagnosis.target.tiers[0].upstreams, ["php-fpm"]);
        assert!(diagnosis.warnings.iter().any(|text| text.contains("taken from the configuration")), "{:?}", diagnosis.warnings);
    }
}

#[test]
fn an_edge_on_which_a_request_stands_is_not_said_to_be_unseen() {
    let mut obs = two_tiers(tcp_backend(), 0);
    passes_to(&mut obs, vec![tcp_backend()]);
    let socket = RequestSocket {
        address: SocketAddress::Tcp { local: (ip(BACKEND), 9000), remote: (ip(SERVER_IP), 40_000) },
        cookie: 77,
        state: TcpState::Established,
        inode: 9,
        receive_queue: 80,
        send_queue: 0,
        times: None,
    };
    for second in 1..=10_u64 {
        let sample = RequestSample { share: 1.0, handshake_share: 1.0, sockets: vec![socket.clone()], ..RequestSample::default() };
        obs.netns.get_mut(&SERVER).unwrap().request_samples.push(second * 1_000_000, Reading::Ok(sample));
    }
    let diagnosis = told(&obs);
    assert_eq!(tiers(&diagnosis), ["nginx", "php-fpm"]);
    assert!(!diagnosis.warnings.iter().any(|text| text.contains("taken from the configuration")), "{:?}", diagnosis.warnings);
}

#[test]
fn observed_edges_take_precedence_over_configured_ones() {
    let mut obs = two_tiers(tcp_backend(), 5);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.listeners.points().to_vec();
    view.listeners = Default::default();
    let other = ListenerAddress::Tcp(ip("10.0.0.2"), 8081);
    for (at, mut listeners) in points {
        listeners.push(listener(other.clone(), 300, 0, 0));
        view.listeners.push(at, Reading::Ok(listeners));
    }
    process(&mut obs, 60, 1, "java", &[300]);
    passes_to(&mut obs, vec![other, ListenerAddress::Tcp(ip("192.0.2.1"), 9000)]);
    let diagnosis = told(&obs);
    assert_eq!(tiers(&diagnosis), ["nginx", "php-fpm"]);
    assert!(diagnosis.warnings.iter().all(|text| !text.contains("configuration")), "{:?}", diagnosis.warnings);
}

fn limit(diagnosis: &Diagnosis) -> Option<f64> {
    diagnosis.path.iter().find(|station| station.station == "worker-pool").unwrap().limit
}

#[test]
fn a_pool_that_grew_to_its_limit_is_exhausted_and_a_smaller_one_is_not() {
    let mut full = php_pool(5, "dynamic", 5, true);
    logged(&mut full, 50, "max_children www", 1);
    let diagnosis = told(&full);
    assert_eq!((causes(&diagnosis), limit(&diagnosis)), (vec!["worker-pool-exhausted"], Some(5.0)));
    let sources: Vec<&str> = diagnosis.findings[0].evidence.iter().map(|proof| proof.source.as_str()).collect();
    assert!(sources.contains(&LOG) && sources.contains(&"/etc/php/8.2/fpm/pool.d/www.conf:9"), "{sources:?}");
    for manager in ["dynamic", "ondemand"] {
        let diagnosis = told(&php_pool(5, manager, 50, false));
        assert_eq!((causes(&diagnosis), limit(&diagnosis)), (vec![], Some(50.0)), "{manager}");
    }
}

#[test]
fn a_static_pool_has_its_running_size() {
    // The file was changed and not loaded yet: the running processes count.
    let diagnosis = told(&php_pool(5, "static", 50, false));
    assert_eq!((causes(&diagnosis), limit(&diagnosis)), (vec!["worker-pool-exhausted"], Some(5.0)));
}

fn access(obs: &mut Observation, log: AccessLog) {
    let view = obs.servers.entry(42).or_default();
    view.access_logs.entry("/var/log/nginx/access.log".into()).or_default().push(11_000_000, Reading::Ok(log));
}

fn watched() -> AccessLog {
    AccessLog {
        lines: 1_000,
        has_status: true,
        status: [(200, 900), (404, 20), (502, 80)].into(),
        request_time_us: Some(Percentiles { p50: 1_000, p99: 90_000, max: 95_000, ..Percentiles::default() }),
        ..AccessLog::default()
    }
}

#[test]
fn watched_traffic_has_the_figures_of_the_access_log() {
    let mut obs = healthy();
    passive(&mut obs);
    access(&mut obs, watched());
    let diagnosis = told(&obs);
    let load = diagnosis.load.unwrap();
    assert_eq!((diagnosis.mode, load.requests, load.status["502"]), (Mode::Passive, 1_000, 80));
    assert!((load.goodput_rps - 90.0).abs() < 0.01 && (load.throughput_rps - 100.0).abs() < 0.01, "{load:?}");
    assert_eq!(load.p99_us(), Some(90_000));
}

#[test]
fn times_that_a_log_lacks_are_absent_and_not_zero() {
    let mut obs = healthy();
    passive(&mut obs);
    access(&mut obs, AccessLog { request_time_us: None, ..watched() });
    let diagnosis = told(&obs);
    assert_eq!(diagnosis.load.as_ref().unwrap().latency_us, None);
    let json = serde_json::to_value(&diagnosis).unwrap();
    assert!(json["load"]["latency_us"].is_null(), "{}", json["load"]);
    let lacks = |diagnosis: &Diagnosis| diagnosis.warnings.iter().filter(|warning| warning.contains("has no response times")).count();
    assert_eq!(lacks(&diagnosis), 1, "{:?}", diagnosis.warnings);
    access(&mut obs, watched());
    assert_eq!(lacks(&told(&obs)), 0);
}

#[test]
fn errors_of_a_watched_server_are_losses_without_explanation_and_never_healthy() {
    let judged = |status: &[(u16, u64)]| {
        let mut obs = healthy();
        passive(&mut obs);
        access(&mut obs, AccessLog { status: status.iter().copied().collect(), ..watched() });
        let diagnosis = told(&obs);
        (diagnosis.verdict, diagnosis.summary)
    };
    let (verdict, summary) = judged(&[(200, 900), (404, 50), (502, 50)]);
    assert!(verdict == Verdict::Unknown && summary.contains("5 % of the requests failed"), "{verdict:?}: {summary}");
    for harmless in [&[(200, 900), (404, 100)][..], &[(200, 995), (502, 5)], &[(200, 1_000)]] {
        let (_, summary) = judged(harmless);
        assert!(!summary.contains("failed"), "{harmless:?}: {summary}");
    }
}

#[test]
fn a_log_of_several_sites_tells_nothing_of_one() {
    let judged = |leads_to: &[ListenerAddress]| {
        let mut obs = healthy();
        passive(&mut obs);
        access(&mut obs, watched());
        let [shop, blog] = [8_080, 8_081].map(|port| ListenerAddress::Tcp(ip(BACKEND), port));
        let pass = NginxPass { servers: vec![shop, blog], ..NginxPass::default() };
        let config = NginxConfig { passes: vec![pass], leads_to: Some(leads_to.to_vec()), ..NginxConfig::default() };
        obs.servers.entry(42).or_default().config.push(1, Reading::Ok(ServerConfig::Nginx(config)));
        let diagnosis = told(&obs);
        (diagnosis.load.is_some(), diagnosis.summary.contains("failed"))
    };
    let all = [8_080, 8_081].map(|port| ListenerAddress::Tcp(ip(BACKEND), port));
    assert_eq!(judged(&all), (true, true), "all of it is asked for");
    assert_eq!(judged(&all[..1]), (false, false), "the failures may be the other site's");
}

#[test]
fn an_incomplete_log_and_one_without_status_give_no_figures() {
    let of = |rotated, skipped_bytes, read_bytes| AccessLog { extent: LogExtent { rotated, skipped_bytes, read_bytes }, ..watched() };
    for log in [
        AccessLog { has_status: false, ..watched() },
        of(true, 0, 1_000),
        of(true, 1_000, 1_000),
        of(false, 1_000, 0),
        AccessLog::default(),
    ] {
        let mut obs = healthy();
        passive(&mut obs);
        access(&mut obs, log.clone());
        assert_eq!(told(&obs).load, None, "{log:?}");
    }
    let mut loaded = healthy();
    access(&mut loaded, watched());
    assert_eq!(told(&loaded).load.unwrap().requests, 100_000, "the generator's own figures stand");
}

#[test]
fn the_end_of_a_log_represents_everything_appended() {
    let mut obs = healthy();
    passive(&mut obs);
    access(&mut obs, AccessLog { extent: LogExtent { rotated: false, skipped_bytes: 3_000, read_bytes: 1_000 }, ..watched() });
    let load = told(&obs).load.unwrap();
    assert_eq!((load.requests, load.status["502"]), (4_000, 320));
    assert!((load.goodput_rps - 360.0).abs() < 0.01, "{load:?}");
}

#[test]
fn missing_parts_of_a_log_are_listed_among_the_readings() {
    let mut obs = healthy();
    access(&mut obs, AccessLog { extent: LogExtent { skipped_bytes: 77, rotated: true, read_bytes: 1 }, ..watched() });
    let diagnosis = told(&obs);
    let told = diagnosis.readings.iter().find(|reading| reading.source.contains("access.log")).unwrap();
    let why = told.why.as_deref().unwrap();
    assert!(why.contains("77 bytes") && why.contains("replaced"), "{why}");
}

#[test]
fn a_log_without_status_is_listed_among_the_readings_and_one_with_it_is_not() {
    for (has_status, expected) in [(false, true), (true, false)] {
        let mut obs = healthy();
        passive(&mut obs);
        access(&mut obs, AccessLog { has_status, status: BTreeMap::new(), ..watched() });
        let diagnosis = told(&obs);
        let log = diagnosis.readings.iter().find(|reading| reading.source.contains("access.log")).unwrap();
        assert_eq!(log.why.as_deref().is_some_and(|why| why.contains("no status")), expected, "{log:?}");
    }
}

#[test]
fn an_unreadable_configuration_is_reported_and_the_diagnosis_continues() {
    let why = "/etc/nginx/conf.d/site.conf:7: unexpected \"}\"";
    let mut obs = two_tiers(tcp_backend(), 60);
    passive(&mut obs);
    logged(&mut obs, 42, "connect 99", 500);
    obs.servers.get_mut(&42).unwrap().config.push(0, Reading::Failed(Lack::new(why)));
    let diagnosis = told(&obs);
    assert_eq!(causes(&diagnosis), ["ephemeral-ports-exhausted"], "what does not need the configuration is judged");
    assert_eq!(tiers(&diagnosis), ["nginx", "php-fpm"]);
    let reading = diagnosis.readings.iter().find(|reading| reading.source.starts_with("server_config")).unwrap();
    assert_eq!((reading.status, reading.why.as_deref()), (SourceStatus::Failed, Some(why)));
    let warning = diagnosis.warnings.iter().find(|warning| warning.contains("could not be read or understood"));
    let warning = warning.unwrap_or_else(|| panic!("{:?}", diagnosis.warnings));
    assert!(warning.contains("site.conf:7"), "which source: {warning}");
    assert!(warning.contains("could not be judged") || warning.contains("judged without it"), "what it costs: {warning}");
}
