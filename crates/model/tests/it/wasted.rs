//! CPU time that an nginx could do without: a debug log, and TLS handshakes of sessions that it refuses to resume. Each with the cases that look like it and are a
//! trade, somebody's wish, or the clients' doing.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::change::{Change, ServerSetting};
use chokepoint_model::load::{Handshakes, TlsLoad};
use chokepoint_model::observation::{
    Counters, ErrorLog, LogExtent, NginxConfig, NginxDebugLog, NginxTlsSessions, Observation, Origin, ServerConfig, Setting, Socket,
    SocketAddress, TcpState,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Diagnosis, Finding, Verdict};

use crate::stage::limits::{LOG, MAIN, at};
use crate::stage::profiled::{Counted, profile};
use crate::stage::*;

/// nginx has core 1 to itself, which is full, was sampled so, and has this configuration.
fn sampled(config: NginxConfig, counted: &[Counted<'_>]) -> Observation {
    let mut obs = healthy();
    cpu(&mut obs, 0.99);
    profile(&mut obs, counted);
    let config = NginxConfig { file: MAIN.into(), ..config };
    obs.servers.entry(42).or_default().config.push(0, Reading::Ok(ServerConfig::Nginx(config)));
    obs
}

/// The verdict, with the ids of causes and of what is told.
fn ids(diagnosis: &Diagnosis) -> (Verdict, Vec<&str>, Vec<&str>) {
    (
        diagnosis.verdict,
        diagnosis.findings.iter().map(|one| one.id.as_str()).collect(),
        diagnosis.improvements.iter().map(|one| one.id.as_str()).collect(),
    )
}

fn says(finding: &Finding, words: &str) -> bool {
    finding.evidence.iter().any(|evidence| evidence.text.contains(words))
}

/// 45 % of the core: lines are put together by the program and written by the kernel.
const LOGGING: &[Counted<'_>] =
    &[(42, 1, "application", &["error-log"], 60), (42, 1, "file-system", &["error-log"], 120), (42, 1, "application", &[], 220)];

fn debug(to: &str) -> NginxDebugLog {
    NginxDebugLog {
        to: to.into(),
        levels: "debug, warn".into(),
        quiet: "error, warn".into(),
        is_memory: to.starts_with("memory:"),
        origin: at(2),
    }
}

#[test]
fn a_debug_log_is_a_choke_point_with_a_change_that_takes_its_level_away() {
    let mut obs = sampled(NginxConfig { debug_logs: vec![debug(LOG)], ..NginxConfig::default() }, LOGGING);
    let extent = LogExtent { rotated: false, skipped_bytes: 590 << 20, read_bytes: 10 << 20 };
    obs.servers
        .get_mut(&42)
        .unwrap()
        .error_logs
        .entry(LOG.into())
        .or_default()
        .push(11_000_000, Reading::Ok(ErrorLog { extent, ..ErrorLog::default() }));
    let told = told(&obs);
    assert_eq!(ids(&told), (Verdict::Choked, vec!["debug-log"], vec![]));
    let finding = &told.findings[0];
    assert_eq!((finding.tier.as_str(), finding.confidence), ("nginx", Confidence::High));
    assert!(finding.title.contains("45 %"), "{}", finding.title);
    assert!(says(finding, "debug, warn") && says(finding, "600 MiB") && says(finding, "6,291 bytes"), "{:?}", finding.evidence);
    let remedy = &finding.remedies[0];
    let [Change::Server { setting: ServerSetting::NginxErrorLogLevels { to }, from, to: quiet, .. }] = remedy.change.as_slice() else {
        panic!("{:?}", remedy.change)
    };
    assert_eq!((to.as_str(), from.as_str(), quiet.as_str()), (LOG, "debug, warn", "error, warn"));
    assert_eq!((remedy.id.as_str(), finding.remedies.len()), ("log-errors-alone", 1));
}

#[test]
fn lines_that_somebody_wants_under_load_are_told_and_no_cause() {
    for (what, config) in [
        ("debug_connection", NginxConfig { debug_logs: vec![debug(LOG)], debug_connections: true, ..NginxConfig::default() }),
        ("in memory", NginxConfig { debug_logs: vec![debug("memory:32m")], ..NginxConfig::default() }),
    ] {
        let told = told(&sampled(config, LOGGING));
        assert_eq!(ids(&told), (Verdict::Healthy, vec![], vec!["debug-log"]), "{what}");
        assert!(told.improvements[0].remedies.iter().any(|remedy| remedy.id == "switch-steps-off"), "{what}");
    }
    let both = NginxConfig { debug_logs: vec![debug("memory:32m"), debug(LOG)], ..NginxConfig::default() };
    let told = told(&sampled(both, LOGGING));
    assert_eq!(ids(&told), (Verdict::Choked, vec!["debug-log"], vec![]), "a file beside the memory");
    assert_eq!(told.findings[0].remedies[0].change.len(), 1);
}

#[test]
fn rewrites_that_are_logged_are_the_same_waste() {
    let told = told(&sampled(NginxConfig { rewrite_log: Some(at(9)), ..NginxConfig::default() }, LOGGING));
    assert_eq!(ids(&told), (Verdict::Choked, vec!["debug-log"], vec![]));
    let remedies = &told.findings[0].remedies;
    assert_eq!((remedies.len(), remedies[0].id.as_str(), remedies[0].change.len()), (1, "switch-steps-off", 0));
}

#[test]
fn an_error_log_is_no_debug_log_and_little_of_one_is_nothing() {
    let debugs = || NginxConfig { debug_logs: vec![debug(LOG)], ..NginxConfig::default() };
    let little: &[Counted<'_>] = &[(42, 1, "file-system", &["error-log"], 12), (42, 1, "application", &[], 388)];
    let none: &[Counted<'_>] = &[(42, 1, "file-system", &[], 200), (42, 1, "application", &[], 200)];
    for (what, config, counted) in [
        ("errors are logged, or debug_connection limits the steps to others", NginxConfig::default(), LOGGING),
        ("debug_connection alone", NginxConfig { debug_connections: true, ..NginxConfig::default() }, LOGGING),
        ("little", debugs(), little),
        ("no line is written", debugs(), none),
    ] {
        assert_eq!(ids(&told(&sampled(config, counted))), (Verdict::Healthy, vec![], vec![]), "{what}");
    }
    let mut unread = sampled(NginxConfig::default(), LOGGING);
    unread.servers.clear();
    assert_eq!(ids(&told(&unread)).1, [""; 0], "the configuration is not known");
}

/// Nine tenths of the core are TLS, in stacks that break off before the handshake.
const SIGNING: &[Counted<'_>] = &[(42, 1, "tls", &[], 355), (42, 1, "tls", &["tls-handshake"], 5), (42, 1, "application", &[], 40)];
/// As much of it below the handshake, seven tenths of the core in signatures.
const WALKED: &[Counted<'_>] =
    &[(42, 1, "tls", &["tls-handshake", "tls-signature"], 280), (42, 1, "tls", &["tls-handshake"], 80), (42, 1, "application", &[], 40)];

/// Tickets off, and this cache; an empty one is nginx's default.
fn sessions(cache: &str) -> NginxTlsSessions {
    let cache = match cache {
        "" => Setting { value: "none".into(), origin: Origin::default() },
        cache => Setting { value: cache.into(), origin: at(8) },
    };
    NginxTlsSessions { tickets: Setting { value: false, origin: at(7) }, cache, verifies_clients: false, has_quick_curves: true }
}

/// A load of so many requests, each on a connection of its own, most of whose handshakes were full.
fn tls(sessions: Option<NginxTlsSessions>, requests: u64, offers_sessions: Option<bool>, resumed: u64) -> Observation {
    let mut obs = sampled(NginxConfig { tls_sessions: sessions, ..NginxConfig::default() }, SIGNING);
    obs.request.scheme = "https".into();
    let load = obs.load.as_mut().unwrap();
    (load.connections, load.requests, load.good, load.received_bytes) = (requests, requests, requests, 1_000_000);
    load.status = [(200, requests)].into();
    let handshakes = Handshakes { full: requests - resumed, resumed };
    load.tls = offers_sessions.map(|offers_sessions| TlsLoad { offers_sessions, handshakes, time_us: None, failure: None });
    obs
}

#[test]
fn sessions_that_nobody_said_to_refuse_are_a_choke_point() {
    let told = told(&tls(Some(sessions("")), 4_000, Some(true), 0));
    assert_eq!(ids(&told), (Verdict::Choked, vec!["tls-handshake-hot"], vec![]));
    let finding = &told.findings[0];
    assert!(finding.title.contains("refuses to resume"), "{}", finding.title);
    assert!(
        says(finding, "ssl_session_tickets is off") && says(finding, "4,000 handshakes were full, 0 were resumed"),
        "{:?}",
        finding.evidence
    );
    // Of nine tenths 4,000 exchanges of keys take at most 1.2 s of the core's 10, what was sent and its records 0.1 s.
    assert!(says(finding, "Some stacks end inside TLS") && says(finding, "to 4.11 times"), "{:?}", finding.evidence);
    let [Change::Server { setting: ServerSetting::NginxTlsSessionCache, from, to, .. }] = finding.remedies[0].change.as_slice() else {
        panic!("{:?}", finding.remedies)
    };
    assert_eq!((finding.remedies[0].id.as_str(), from.as_str(), to.as_str()), ("store-tls-sessions", "unset", "shared:chokepoint:10m"));
}

#[test]
fn signatures_that_are_seen_count_whatever_the_curves_are_and_those_that_are_not_seen_do_not() {
    let slow = || NginxTlsSessions { has_quick_curves: false, ..sessions("") };
    let walked = |signed: u64| {
        let mut obs = tls(Some(slow()), 4_000, Some(true), 0);
        let rest = 360 - signed;
        profile(
            &mut obs,
            &[
                (42, 1, "tls", &["tls-handshake", "tls-signature"], signed),
                (42, 1, "tls", &["tls-handshake"], rest),
                // Checksums of records.
                (42, 1, "tls", &["tls-signature"], 10),
                (42, 1, "application", &[], 30),
            ],
        );
        told(&obs)
    };
    let seen = walked(200);
    assert_eq!(ids(&seen), (Verdict::Choked, vec!["tls-handshake-hot"], vec![]));
    assert!(
        says(&seen.findings[0], "Signing functions alone take 50 %") && says(&seen.findings[0], "to 2 times"),
        "{:?}",
        seen.findings[0].evidence
    );
    // As with an ECDSA key: most of a handshake is the exchange of keys.
    assert_eq!(ids(&walked(24)), (Verdict::Healthy, vec![], vec!["tls-handshake-hot"]));
    let unseen = tls(Some(slow()), 4_000, Some(true), 0);
    assert_eq!(ids(&told(&unseen)), (Verdict::Healthy, vec![], vec!["tls-handshake-hot"]), "long exchanges of keys look the same");
}

#[test]
fn what_is_the_clients_doing_or_somebodys_wish_is_told() {
    let stored = NginxTlsSessions { tickets: Setting { value: true, origin: Origin::default() }, ..sessions("") };
    let verified = NginxTlsSessions { verifies_clients: true, ..sessions("") };
    for (what, obs, proof) in [
        ("tickets are on", tls(Some(stored), 4_000, Some(true), 0), "lets clients resume"),
        ("a cache", tls(Some(sessions("shared:a:10m")), 4_000, Some(true), 0), "lets clients resume"),
        ("most are resumed", tls(Some(sessions("shared:a:10m")), 4_000, Some(true), 3_950), "3,950 were resumed"),
        ("a cache that somebody forbade", tls(Some(sessions("off")), 4_000, Some(true), 0), "somebody decided"),
        ("certificates of clients", tls(Some(verified), 4_000, Some(true), 0), "ssl_verify_client"),
        ("a load that offers none", tls(Some(sessions("")), 4_000, Some(false), 0), "was told to offer no session"),
        ("some were resumed all the same", tls(Some(sessions("")), 4_000, Some(true), 9), "9 were resumed"),
        // So short that they may be exchanges of keys alone.
        ("short handshakes", tls(Some(sessions("")), 26_000, Some(true), 0), "0 were resumed"),
        ("an old recording", tls(Some(sessions("")), 4_000, None, 0), "ssl_session_tickets is off"),
        ("the configuration is not known", tls(None, 4_000, Some(true), 0), "beyond the most that encrypting"),
    ] {
        let told = told(&obs);
        assert_eq!(ids(&told), (Verdict::Healthy, vec![], vec!["tls-handshake-hot"]), "{what}");
        assert!(says(&told.improvements[0], proof), "{what}: {:?}", told.improvements[0].evidence);
        let changes = told.improvements[0].remedies.iter().filter(|remedy| !remedy.change.is_empty()).count();
        assert!(changes == 0 || what != "tickets are on", "{what}");
    }
}

/// Watched alone: so many addresses, each with one connection at a time and so many one behind the other.
fn watched(addresses: u8, each: u16) -> Observation {
    let mut obs = sampled(NginxConfig { tls_sessions: Some(sessions("")), ..NginxConfig::default() }, WALKED);
    (obs.load, obs.request.loaded) = (None, false);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for turn in 0..each {
        let socket = |address: u8| Socket {
            address: SocketAddress::Tcp { local: (ip(SERVER_IP), 80), remote: (ip(&format!("10.0.9.{address}")), 40_000 + turn) },
            state: TcpState::Established,
            inode: 200 + u64::from(address),
            uid: None,
            receive_queue: 0,
            send_queue: 0,
            wait: None,
        };
        view.sockets.push(1_000_000 * u64::from(turn), Reading::Ok((0..addresses).map(socket).collect()));
    }
    // Connections came: it is no idle server that is watched.
    for (at, opened) in [(0, 0), (10_400_000, 4_000)] {
        view.netstat.push(at, Reading::Ok([("Tcp.PassiveOpens".to_owned(), opened)].into_iter().collect::<Counters>()));
    }
    obs
}

#[test]
fn watched_clients_that_come_back_would_resume_and_those_that_come_once_would_not() {
    let again = told(&watched(10, 9));
    assert_eq!(ids(&again).1, ["tls-handshake-hot"], "{:?}", again.improvements);
    assert_eq!(again.findings[0].confidence, Confidence::Medium);
    // Of each address the first connection cannot resume.
    assert!(says(&again.findings[0], "88.9 %") && says(&again.findings[0], "Whether they would is unknown"), "{:?}", again.findings[0]);
    for (what, obs) in [("each comes once", watched(90, 1)), ("too few were seen", watched(1, 9))] {
        let told = told(&obs);
        assert_eq!((ids(&told).1, ids(&told).2), (vec![], vec!["tls-handshake-hot"]), "{what}");
    }
}
