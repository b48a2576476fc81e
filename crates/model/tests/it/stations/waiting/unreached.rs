//! Finding `upstream-unreachable`: connections to a server behind a proxy that nobody answers, or that the kernel refuses.
//!
//! Deterministic: observations made up by the tests.

use std::net::SocketAddr;

use chokepoint_model::observation::{
    Counters, ListenerAddress, NginxConfig, NginxPass, Observation, OpenFiles, RequestSocket, ServerConfig, SocketAddress, StatedConfig,
    StatedPass, TcpState, TimeWaitDialled, TimeWaits, WireAnswers,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Diagnosis, Verdict};
use proptest::prelude::*;

use super::silent::{GOOD, accepted, proxied};
use crate::stage::*;

const FOUND: &str = "upstream-unreachable";
const AWAY: (&str, u16) = ("10.7.0.9", 80);

/// The connecting end of a connection of nginx (process 42).
fn made(n: u64, state: TcpState) -> RequestSocket {
    let socket = accepted(AWAY, n, 1_000 + n, 5, 0);
    let address = SocketAddress::Tcp { local: (ip("10.7.0.1"), 30_000 + n as u16), remote: (ip(AWAY.0), AWAY.1) };
    RequestSocket { address, state, times: socket.times.filter(|_| state != TcpState::SynSent), ..socket }
}

/// nginx before a server that answers and one elsewhere. In each sample `waiting` connections to that wait for an answer to their SYN, each for five samples, and so many are
/// established. `failed` of the 800 requests end with this status.
fn behind(waiting: u64, established: u64, (status, failed): (u16, u64)) -> Observation {
    let mut obs = proxied(|number| {
        let connecting = (0..waiting).map(|n| made((number / 5) * waiting + n, TcpState::SynSent));
        let others = (0..established).map(|n| made(8_000 + n, TcpState::Established));
        connecting.chain(others).chain([accepted(GOOD, 1, 8, 4, 10 * number)]).collect()
    });
    let files = OpenFiles { count: 20, sockets: [100, 7, 500].into_iter().chain(1_000..1_600).chain(9_000..9_040).collect() };
    obs.processes.get_mut(&42).unwrap().files.push(1, Reading::Ok(files));
    let load = obs.load.as_mut().unwrap();
    (load.good, load.status) = (800 - failed, [(200, 800 - failed), (status, failed)].into());
    obs
}

fn finds(obs: &Observation) -> bool {
    told(obs).findings.iter().any(|finding| finding.id == FOUND)
}

fn first_is(diagnosis: &Diagnosis, title: &str) {
    assert_eq!(
        (diagnosis.verdict, causes(diagnosis).first().copied(), diagnosis.findings[0].title.as_str()),
        (Verdict::Choked, Some(FOUND), title),
        "{}",
        diagnosis.summary
    );
}

#[test]
fn a_server_that_answers_no_syn_is_named_by_its_address() {
    let title = "nginx passes requests to 10.7.0.9:80, which answers none of its connections";
    let waits = told(&behind(30, 0, (200, 0)));
    first_is(&waits, title);
    let proof = "300 connections to 10.7.0.9:80 were seen waiting for an answer to their SYN, and none was seen to be established.";
    assert_eq!((waits.findings[0].evidence[0].text.as_str(), waits.findings[0].confidence), (proof, Confidence::High));
    assert!(waits.findings[0].remedies[0].text.starts_with("Start the server at 10.7.0.9:80"), "{}", waits.findings[0].remedies[0].text);
    // Few wait, because their caller gives up soon, and many fail.
    first_is(&told(&behind(3, 0, (502, 400))), title);
    let mut watched = behind(30, 0, (200, 0));
    watched.load = None;
    watched.unloaded = None;
    first_is(&told(&watched), title);
}

#[test]
fn a_server_that_answers_some_connections_is_reached() {
    assert!(!finds(&behind(30, 1, (200, 0))), "one is established");
    assert!(!finds(&behind(1, 0, (200, 0))), "few wait");
    assert!(!finds(&behind(0, 0, (502, 400))), "what fails is not seen to wait for it");
    let mut answered = behind(30, 0, (200, 0));
    let came = [(SocketAddr::new(ip(AWAY.0), AWAY.1), [(200, 9)].into())].into();
    answered.netns.get_mut(&SERVER).unwrap().answers.push(5_000_000, Reading::Ok(WireAnswers { came, ..WireAnswers::default() }));
    assert!(!finds(&answered), "responses came from there");
    let mut ended = behind(30, 0, (200, 0));
    let group = TimeWaitDialled { local: ip("10.7.0.1"), remote: (ip(AWAY.0), AWAY.1), count: 7 };
    let waits = TimeWaits { total: 7, dialled: vec![group], accepted: Vec::new() };
    ended.netns.get_mut(&SERVER).unwrap().time_waits.push(5_000_000, Reading::Ok(waits));
    assert!(!finds(&ended), "connections to it have ended");
    let mut foreign = behind(30, 0, (200, 0));
    foreign.processes.get_mut(&42).unwrap().files = Default::default();
    foreign.processes.get_mut(&42).unwrap().files.push(0, Reading::Ok(OpenFiles { count: 20, sockets: vec![100, 7, 500] }));
    assert!(!finds(&foreign), "another program connects there");
}

#[test]
fn what_a_server_tries_to_reach_beside_its_requests_is_no_upstream() {
    let mut obs = behind(30, 0, (502, 400));
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let samples = view.request_samples.points().to_vec();
    view.request_samples = Default::default();
    for (at_us, mut sample) in samples {
        // Its requests take some milliseconds, and a connection a second.
        for socket in sample.sockets.iter_mut().filter(|socket| socket.inode == 7) {
            socket.times.iter_mut().for_each(|times| times.last_data_recv_ms %= 10);
        }
        view.request_samples.push(at_us, Reading::Ok(sample));
    }
    assert!(!finds(&obs));
}

proptest! {
    #[test]
    fn it_is_named_wherever_it_costs_a_tenth_and_nowhere_else(waiting in 0_u64..40, failed in 0_u64..400) {
        let obs = behind(waiting, 0, (503, failed));
        // In each of ten rounds of five samples, a second, as many new ones are seen.
        let is_seen = waiting > 0;
        let hurts = failed >= 8 || 40.0 / (40.0 - waiting as f64).max(0.01) >= 1.1;
        prop_assert_eq!(finds(&obs), is_seen && hurts, "{} waiting, {} failed", waiting, failed);
    }
}

proptest! {
    /// A connection now and then: three that stand for more than half a second are no packets that a network lost, and of such as are soon given up more must be seen.
    #[test]
    fn few_connections_tell_where_each_stands_for_long(tries in 0_u64..14, lasts in 1_u64..5) {
        prop_assume!(tries * lasts <= 48);
        let every = 48 / tries.max(1);
        let mut obs = behind(0, 0, (504, 400));
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let samples = view.request_samples.points().to_vec();
        view.request_samples = Default::default();
        for (number, (at_us, mut sample)) in (0..).zip(samples) {
            if number % every < lasts.min(every) && number / every < tries {
                sample.sockets.push(made(number / every, TcpState::SynSent));
            }
            view.request_samples.push(at_us, Reading::Ok(sample));
        }
        // Five samples are a second.
        let is_seen = tries >= 12 || tries >= 3 && lasts.min(every) >= 3;
        prop_assert_eq!(finds(&obs), is_seen, "{} of {} samples", tries, lasts);
    }
}

/// A configuration that names a server of this host at which nobody listens, whose connections were refused so often. `inside`: requests inside the proxy; the others are answered.
fn refused(config: ServerConfig, inside: u64, (attempts, resets): (i64, i64), failed: u64) -> Observation {
    let mut obs = proxied(|number| (0..40 - inside).map(|n| accepted(GOOD, n, 8, 4, 10 * number)).collect());
    obs.servers.entry(42).or_default().config.push(0, Reading::Ok(config));
    let view = obs.netns.get_mut(&SERVER).unwrap();
    view.netstat = Default::default();
    for (at_us, factor) in [(0, 0), (11_000_000, 1)] {
        let counters =
            [("Tcp.AttemptFails", attempts), ("Tcp.OutRsts", resets), ("Tcp.ActiveOpens", attempts + 9), ("Tcp.PassiveOpens", 9)];
        let grown = counters.into_iter().map(|(name, count)| (name.to_owned(), 70 + factor * count));
        view.netstat.push(at_us, Reading::Ok(Counters::from_iter(grown)));
    }
    let load = obs.load.as_mut().unwrap();
    (load.good, load.status) = (800 - failed, [(200, 800 - failed), (503, failed)].into());
    obs
}

fn at(port: u16) -> ListenerAddress {
    ListenerAddress::Tcp(ip("127.0.0.1"), port)
}

/// HAProxy's words for two servers that stand for each other.
fn stated(ports: [u16; 2]) -> ServerConfig {
    let pass = |port: u16| StatedPass {
        to: format!("app/{port}"),
        address: Some(at(port)),
        is_asked: Some(true),
        is_backup: false,
        origin: Default::default(),
    };
    ServerConfig::Stated(StatedConfig { passes: ports.map(pass).to_vec(), ..StatedConfig::default() })
}

fn nginx(ports: [u16; 2]) -> ServerConfig {
    let pass = NginxPass { kind: "proxy".into(), servers: ports.map(at).to_vec(), ..NginxPass::default() };
    ServerConfig::Nginx(NginxConfig { passes: vec![pass], ..NginxConfig::default() })
}

#[test]
fn a_server_of_this_host_that_is_not_there_is_named_where_its_caller_waits_or_fails() {
    for config in [stated, nginx] {
        let title = "nginx passes requests to 127.0.0.1:8099, where nothing listens";
        first_is(&told(&refused(config([GOOD.1, 8_099]), 36, (400, 400), 0)), title);
        first_is(&told(&refused(config([GOOD.1, 8_099]), 4, (400, 400), 400)), title);
        let none = |inside, counted, failed| !finds(&refused(config([GOOD.1, 8_099]), inside, counted, failed));
        assert!(none(4, (90_000, 90_000), 0), "another server is asked at once");
        assert!(none(36, (5, 5), 0), "fewer were refused than wait");
        assert!(none(36, (400, 0), 0), "the kernel sent no reset");
        assert!(none(4, (90, 90), 400), "fewer were refused than failed");
        assert!(!finds(&refused(config([GOOD.1, 8_081]), 36, (400, 400), 0)), "somebody listens there");
    }
    let elsewhere =
        StatedPass { to: "app/b".into(), address: Some(at(8_099)), is_asked: Some(false), is_backup: false, origin: Default::default() };
    let leads_to = Some(vec![at(GOOD.1)]);
    let config = ServerConfig::Stated(StatedConfig { passes: vec![elsewhere], leads_to, ..StatedConfig::default() });
    assert!(!finds(&refused(config, 36, (400, 400), 0)), "other requests are passed there");
}

proptest! {
    /// What a program connects to only the program knows: as many refused connections as failed requests say that nothing is there, if most requests fail.
    #[test]
    fn a_program_that_connects_in_vain_is_told_where_most_requests_fail(failed in 0_u64..800, counted in 0_i64..2_000, is_counted_twice in any::<bool>()) {
        let resets = if is_counted_twice { counted } else { 0 };
        let mut obs = refused(stated([GOOD.1, 8_081]), 4, (counted, resets), failed);
        prop_assert!(!finds(&obs), "either program behind the proxy may have made them");
        obs.servers.entry(51).or_default().config.push(0, Reading::Ok(ServerConfig::Stated(StatedConfig::default())));
        let found = told(&obs);
        let expected = 2 * failed > 800 && resets > 0 && resets as u64 >= failed;
        let is_found = found.findings.iter().any(|finding| finding.id == FOUND);
        prop_assert_eq!(is_found, expected, "{}", &found.summary);
        if is_found {
            let first = causes(&found).first().copied();
            prop_assert_eq!(first, Some(FOUND));
            prop_assert!(found.findings[0].title.contains("connects to a server of this host that is not there"), "{}", &found.findings[0].title);
            prop_assert_eq!(found.findings[0].confidence, Confidence::Medium);
        }
    }
}

/// A filter takes strangers' packets on every host that has one: only what does not leave keeps a tier from a server elsewhere.
#[test]
fn what_a_filter_takes_explains_a_silent_server_only_where_it_takes_what_was_sent() {
    let with = |came: u64, kept: u64| {
        let mut obs = behind(30, 0, (200, 0));
        let sent = [("Tcp.OutSegs", 40_000), ("Tcp.RetransSegs", 400), ("TcpExt.TCPSynRetrans", 400), ("TcpExt.TCPDSACKRecvSegs", 0)];
        let packets = [
            ("TcpExt.TCPTimeouts", 400),
            ("Ip.InReceives", 40_000 + came),
            ("Ip.InDelivers", 40_000),
            ("Ip.OutRequests", 40_000),
            ("Ip.OutTransmits", 40_000 - kept),
        ];
        protocol_counters(&mut obs, SERVER, &[&sent[..], &packets].concat());
        let found = told(&obs);
        causes(&found).first().map(|first| (*first).to_owned())
    };
    assert_eq!(with(0, 0).as_deref(), Some(FOUND));
    assert_eq!(with(5_000, 0).as_deref(), Some(FOUND), "strangers' packets");
    assert_eq!(with(0, 800).as_deref(), Some("packets-filtered"));
}

/// A watched program whose clients come on new connections, each closed without an answer: so many connections came, so many were refused in its namespace, and these responses left in all.
fn closed_unanswered(scheme: &str, came: i64, refused: i64, responses: u64, lost: u64) -> Observation {
    let mut obs = healthy();
    (obs.load, obs.request.loaded) = (None, false);
    obs.request.scheme = scheme.to_owned();
    protocol_counters(
        &mut obs,
        SERVER,
        &[("Tcp.PassiveOpens", came), ("Tcp.AttemptFails", refused), ("Tcp.OutRsts", refused)].map(|(name, count)| (name, count as u64)),
    );
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for at_us in (WINDOW.0..WINDOW.1).step_by(250_000) {
        let socket = accepted((SERVER_IP, 80), 1 + at_us, 7, 5, 0);
        let sample = chokepoint_model::observation::RequestSample {
            share: 1.0,
            handshake_share: 1.0,
            sockets: if (at_us / 250_000).is_multiple_of(5) { vec![socket] } else { Vec::new() },
            ..Default::default()
        };
        view.request_samples.push(at_us, Reading::Ok(sample));
        let servers = if responses > 0 { [((ip(SERVER_IP), 80).into(), [(200, responses)].into())].into() } else { Default::default() };
        view.answers.push(at_us + 1, Reading::Ok(WireAnswers { open_us: 249_000, servers, lost, ..WireAnswers::default() }));
    }
    obs
}

#[test]
fn a_watched_program_that_answers_none_and_connects_in_vain_is_not_healthy() {
    for came in [400, 1_000, 90_000] {
        for refused in [came * 6 / 10, came - 1, came, 3 * came] {
            let diagnosis = told(&closed_unanswered("http", came, refused, 0, 0));
            assert!(
                diagnosis.verdict == Verdict::Choked && finds(&closed_unanswered("http", came, refused, 0, 0)),
                "{came} {refused}: {}",
                diagnosis.summary
            );
        }
        for (what, obs) in [
            ("responses left", closed_unanswered("http", came, came, 2, 0)),
            ("packets were not counted", closed_unanswered("http", came, came, 0, 9)),
            ("they cannot be read", closed_unanswered("https", came, came, 0, 0)),
            ("others connect in vain", closed_unanswered("http", came, came / 4, 0, 0)),
        ] {
            assert!(!finds(&obs), "{came}: {what}");
        }
    }
}
