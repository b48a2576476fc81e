//! Station `ephemeral-ports`: exhausted ports and the port search because of TIME_WAIT on the dialling side are reported. TIME_WAIT on the
//! accepting side and large port ranges are no finding.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::change::Change;
use chokepoint_model::observation::{
    CpuUse, ErrorLog, LogExtent, NginxConfig, Observation, ServerConfig, TimeWaitAccepted, TimeWaitDialled, TimeWaits,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, StationState, Verdict};

use proptest::prelude::*;

use crate::stage::edge::*;
use crate::stage::limits::{event, logged};
use crate::stage::profiled::profile;
use crate::stage::*;

fn dialled_waits(obs: &mut Observation, remote: &str, count: u64) {
    let waits = TimeWaits {
        total: count,
        dialled: vec![TimeWaitDialled { local: ip("10.0.0.2"), remote: (ip(remote), 8080), count }],
        ..TimeWaits::default()
    };
    obs.netns.get_mut(&SERVER).unwrap().time_waits.push(9_000_000, Reading::Ok(waits));
}

#[test]
fn exhausted_ports_with_gateway_errors_are_a_cause() {
    let mut obs = edge(BACKEND, "20000\t20050", 50);
    gateway_errors(&mut obs, 60_000);
    let diagnosis = told(&obs);
    assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["ephemeral-ports-exhausted"]));
    let [Change::Sysctl { key, netns, from, to, .. }] = diagnosis.findings[0].remedies[0].change.as_slice() else { panic!() };
    assert_eq!((key.as_str(), *netns, from.as_str(), to.as_str()), ("net.ipv4.ip_local_port_range", SERVER, "20000 20050", "10000 65535"));
}

proptest! {
    /// Ports in TIME_WAIT that may be taken over after a second are enough for as many connections a second as there are ports.
    #[test]
    fn ports_that_are_wanted_again_within_a_second_are_used_up(ports in 200_u32..2_000, per_s in 100_u64..4_000) {
        let wanted = per_s as f64 / f64::from(ports);
        prop_assume!((wanted - 0.9).abs() > 0.05);
        let mut obs = edge(BACKEND, &format!("20000 {}", 20_000 + ports - 1), 20);
        set(&mut obs, "net.ipv4.tcp_tw_reuse", "1");
        dialled_waits(&mut obs, BACKEND, u64::from(ports));
        gateway_errors(&mut obs, 60_000);
        protocol_counters(&mut obs, SERVER, &[("Tcp.ActiveOpens", per_s * 11)]);
        let found = told(&obs);
        let expected: &[&str] = if wanted > 0.9 { &["ephemeral-ports-exhausted"] } else { &[] };
        prop_assert_eq!(causes(&found), expected, "{}", found.summary);
    }
}

/// The web server is nginx, and its error log with these lines was read.
fn log(obs: &mut Observation, kinds: &[(&str, u64)], skipped_bytes: u64) {
    let server = obs.servers.entry(42).or_default();
    server.config.push(0, Reading::Ok(ServerConfig::Nginx(NginxConfig::default())));
    let events = kinds.iter().map(|(kind, count)| (event(kind), *count)).collect();
    let log = ErrorLog { events, extent: LogExtent { skipped_bytes, ..LogExtent::default() }, ..ErrorLog::default() };
    server.error_logs.entry("/var/log/nginx/error.log".into()).or_default().push(11_000_000, Reading::Ok(log));
}

#[test]
fn application_errors_over_few_kept_connections_are_not_caused_by_ports() {
    let failing = |kinds: &[(&str, u64)], skipped_bytes: u64| {
        let mut obs = edge(BACKEND, "20000 20050", 50);
        let load = obs.load.as_mut().unwrap();
        (load.good, load.status) = (95_000, [(200, 95_000), (500, 5_000)].into());
        log(&mut obs, kinds, skipped_bytes);
        causes(&told(&obs)).len()
    };
    assert_eq!(failing(&[], 0), 0, "nginx would have logged it");
    assert_eq!(failing(&[("upstream timed out", 5_000)], 0), 0, "it logged something else");
    assert_eq!(failing(&[("connect 99", 5_000)], 0), 1);
    assert_eq!(failing(&[], 1 << 20), 1, "a part of the log was not read");
}

/// nginx's log line after connect(2) returned EADDRNOTAVAIL.
fn no_address(remote: &str) -> String {
    format!(
        "2026/11/24 04:36:35 [crit] 42#42: *126 connect() to {remote} failed (99: Cannot assign requested address) while connecting to upstream"
    )
}

#[test]
fn the_log_names_the_upstream_although_few_ports_are_seen_in_use() {
    let judged = |remote: &str, count: u64| {
        let mut obs = edge(BACKEND, "20000 20081", 10);
        gateway_errors(&mut obs, count);
        log(&mut obs, &[], 0);
        logged(&mut obs, "connect 99", count, &no_address(remote));
        let diagnosis = told(&obs);
        (diagnosis.verdict, causes(&diagnosis).join(" "))
    };
    let named = format!("{BACKEND}:8080");
    assert_eq!(judged(&named, 5_000), (Verdict::Choked, "ephemeral-ports-exhausted".to_owned()));
    assert_eq!(judged(&named, 500).1, "", "few requests suffered");
    // A name with two addresses, one of which this host cannot reach.
    assert_eq!(judged("[::1]:8080", 5_000), (Verdict::Unknown, String::new()));
}

#[test]
fn reserved_ports_cannot_be_used() {
    let mut obs = edge(BACKEND, "20000 20099", 50);
    set(&mut obs, "net.ipv4.ip_local_reserved_ports", "8080,20050-30000");
    gateway_errors(&mut obs, 60_000);
    assert_eq!(causes(&told(&obs)), ["ephemeral-ports-exhausted"]);
}

#[test]
fn four_fifths_of_the_ports_in_use_is_near_and_no_cause() {
    let diagnosis = told(&edge(BACKEND, "20000 20049", 41));
    assert_eq!(causes(&diagnosis), [""; 0]);
    let station = diagnosis.path.iter().find(|station| station.station == "ephemeral-ports").unwrap();
    assert_eq!((station.state, station.limit), (StationState::Near, Some(50.0)));
}

#[test]
fn gateway_errors_with_free_ports_are_not_caused_by_ports() {
    let mut obs = edge(BACKEND, "10000 65535", 100);
    gateway_errors(&mut obs, 60_000);
    let diagnosis = told(&obs);
    assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Unknown, vec![]));
}

#[test]
fn time_wait_on_the_dialling_side_near_half_the_range_is_a_port_search() {
    for (reuse, timestamps, why) in [
        ("0", "1", "is 0 (off)."),
        ("2", "1", "is 2 (loopback only, the kernel's default)."),
        ("1", "0", "is 1, but TCP timestamps are off"),
    ] {
        let mut obs = edge(BACKEND, "10000 65535", 20);
        dialled_waits(&mut obs, BACKEND, 27_700);
        set(&mut obs, "net.ipv4.tcp_tw_reuse", reuse);
        set(&mut obs, "net.ipv4.tcp_timestamps", timestamps);
        cpu(&mut obs, 0.99);
        let diagnosis = told(&obs);
        assert_eq!(causes(&diagnosis), ["time-wait-port-search"], "reuse {reuse}, timestamps {timestamps}");
        let told_why = diagnosis.findings[0].evidence.iter().any(|proof| proof.text.contains(&format!("tcp_tw_reuse {why}")));
        assert!(told_why, "{:?}", diagnosis.findings[0].evidence);
    }
}

#[test]
fn no_port_search_with_port_reuse_or_idle_cores_or_little_time_wait() {
    let searching = |backend: &str, reuse: &str, count: u64, busy: f64| {
        let mut obs = edge(backend, "10000 65535", 20);
        dialled_waits(&mut obs, backend, count);
        set(&mut obs, "net.ipv4.tcp_tw_reuse", reuse);
        cpu(&mut obs, busy);
        causes(&told(&obs)).len()
    };
    assert_eq!(searching(BACKEND, "1", 27_700, 0.99), 0, "reuse in force");
    assert_eq!(searching("127.0.0.1", "2", 27_700, 0.99), 0, "reuse in force on loopback");
    assert_eq!(searching(BACKEND, "0", 27_700, 0.3), 0, "idle cores");
    assert_eq!(searching(BACKEND, "0", 9_000, 0.99), 0, "few");
}

#[test]
fn pages_that_compute_beside_much_time_wait_are_no_port_search() {
    // nginx runs in the kernel for this share of the core. The pages use the rest.
    for (system, expected) in [(0.02, vec![]), (0.6, vec!["time-wait-port-search"])] {
        let mut obs = edge(BACKEND, "10000 65535", 20);
        dialled_waits(&mut obs, BACKEND, 26_000);
        set(&mut obs, "net.ipv4.tcp_tw_reuse", "0");
        cpu(&mut obs, 0.99);
        for second in 0..=11_u64 {
            let used = CpuUse { system_ticks: (second as f64 * 100.0 * system) as u64, ..CpuUse::default() };
            obs.processes.get_mut(&42).unwrap().cpu.push(second * 1_000_000, Reading::Ok(used));
        }
        assert_eq!(causes(&told(&obs)), expected, "{system}");
    }
}

/// The dialling side's ports are in TIME_WAIT, its core is full, and this many of 400 samples of it fell into the port search.
fn searched(samples: u64, waits: u64) -> Observation {
    let mut obs = edge(BACKEND, "10000 65535", 20);
    dialled_waits(&mut obs, BACKEND, waits);
    set(&mut obs, "net.ipv4.tcp_tw_reuse", "0");
    cpu(&mut obs, 0.99);
    let search: &[&str] = &["kernel-network", "connection"];
    profile(&mut obs, &[(42, 1, "port-search", search, samples), (42, 1, "tcp-transmit", &[], 400 - samples)]);
    obs
}

#[test]
fn a_profile_shows_whether_the_port_search_uses_the_cpu() {
    let found = told(&searched(120, 27_700));
    assert_eq!(causes(&found), ["time-wait-port-search"]);
    let proof = found.findings[0].evidence.iter().find(|proof| proof.source == "profile").unwrap();
    assert!(proof.text.contains("30 %") && proof.text.contains("__inet_check_established"), "{proof:?}");
    assert_eq!(found.findings[0].confidence, Confidence::High);
    // In this kernel the search is too cheap to matter.
    assert_eq!(causes(&told(&searched(4, 27_700))), [""; 0]);
    // Too close to decide: judged as without a profile.
    let close = told(&searched(36, 27_700));
    assert_eq!((causes(&close), close.findings[0].confidence), (vec!["time-wait-port-search"], Confidence::Medium));
    // Without the names of kernel functions the profile decides nothing: judged as without a profile.
    let mut obs = searched(0, 27_700);
    let mut nameless = obs.profile.last().unwrap().clone();
    nameless.unnamed_kernel = 0.9;
    obs.profile.push(10_700_000, Reading::Ok(nameless));
    assert_eq!(causes(&told(&obs)), ["time-wait-port-search"]);
    // The profile shows the search with few ports in TIME_WAIT. Whatever the reason, the search uses the CPU, and the text does not mention a minute.
    let few = told(&searched(120, 9_000));
    assert_eq!((causes(&few), few.findings[0].confidence), (vec!["time-wait-port-search"], Confidence::High));
    assert!(
        few.findings[0].explanation.contains("tries one port after the other") && few.findings[0].explanation.contains("9,000"),
        "{few:?}"
    );
    // Too close to decide, and nothing else shows a search.
    assert_eq!(causes(&told(&searched(36, 9_000))), [""; 0]);
}

#[test]
fn a_search_on_the_accepting_side_or_in_another_program_does_not_belong_to_this_edge() {
    let mut obs = searched(0, 27_700);
    profile(&mut obs, &[(50, 1, "port-search", &[], 120), (42, 1, "tcp-transmit", &[], 280)]);
    // It is told of the program that searches, wherever that connects to.
    let found = told(&obs);
    assert_eq!((causes(&found), found.findings[0].tier == "nginx"), (vec!["time-wait-port-search"], false));
    profile(&mut obs, &[(7, 1, "port-search", &[], 120), (42, 1, "tcp-transmit", &[], 280)]);
    assert_eq!(causes(&told(&obs)), [""; 0]);
}

#[test]
fn any_number_of_time_wait_on_the_accepting_side_is_harmless() {
    let mut obs = edge(BACKEND, "10000 65535", 20);
    cpu(&mut obs, 0.99);
    set(&mut obs, "net.ipv4.tcp_tw_reuse", "0");
    let waits = TimeWaits {
        total: 60_000,
        accepted: vec![TimeWaitAccepted { local: (ip(BACKEND), 8080), remote: ip("10.0.0.2"), count: 60_000 }],
        ..TimeWaits::default()
    };
    obs.netns.get_mut(&SERVER).unwrap().time_waits.push(9_000_000, Reading::Ok(waits));
    assert_eq!(causes(&told(&obs)), [""; 0]);
}
