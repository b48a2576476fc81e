//! Finding `answers-errors`: who makes the server errors that clients get.
//!
//! Deterministic: observations made up by the tests.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use chokepoint_model::observation::SocketAddress;
use chokepoint_model::observation::{
    AccessLog, ErrorLog, ListenerAddress, LogEvent, LogExtent, Observation, Origin, ProxiedServer, ProxiedState, ServerConfig,
    ServerStatus, ServerView, Socket, StatedConfig, StatedPass, UnixPeer, WireAnswers,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Verdict};
use proptest::prelude::*;

use crate::stage::pool::{process, ran, tcp};
use crate::stage::*;

const FRONT: (&str, u16) = (SERVER_IP, 80);
const ONE: (&str, u16) = ("127.0.0.1", 8_080);
const TWO: (&str, u16) = ("127.0.0.1", 8_081);

/// Where a server listens.
type Place = (&'static str, u16);
/// Status and number of a server's responses in a quarter of a second.
type Counts = &'static [(u16, u64)];

/// A proxy before two servers, watched without an access log, and what the wire showed of each.
fn watched(front: &[(u16, u64)], one: &[(u16, u64)], two: &[(u16, u64)]) -> Observation {
    let mut obs = healthy();
    cpu(&mut obs, 0.1);
    obs.load = None;
    obs.unloaded = None;
    process(&mut obs, 42, 1, "caddy", &[100, 7, 500, 501]);
    process(&mut obs, 50, 1, "node", &[200, 8]);
    process(&mut obs, 51, 1, "node", &[201, 9]);
    ran(&mut obs, [42, 50, 51], 1_000_000);
    obs.servers.clear();
    let view = obs.netns.get_mut(&SERVER).unwrap();
    view.listeners = Default::default();
    for tick in 0..=220_u64 {
        let all = [(FRONT, 100), (ONE, 200), (TWO, 201)];
        let all = all.map(|((host, port), inode)| listener(ListenerAddress::Tcp(ip(host), port), inode, 0, 0));
        view.listeners.push(tick * 50_000, Reading::Ok(all.to_vec()));
    }
    let dialled = |inode: u64, to: (&str, u16)| tcp(inode, (ip("127.0.0.1"), 30_000 + inode as u16), (ip(to.0), to.1));
    let dialled: Vec<Socket> = vec![dialled(500, ONE), dialled(501, TWO)];
    view.sockets = Default::default();
    for second in 1..=10_u64 {
        view.sockets.push(second * 1_000_000, Reading::Ok(dialled.clone()));
    }
    for turn in 1..=40_u64 {
        view.answers.push(turn * 250_000, Reading::Ok(counted(&[(FRONT, front), (ONE, one), (TWO, two)])));
    }
    obs
}

fn counted(all: &[(Place, &[(u16, u64)])]) -> WireAnswers {
    let mut counted = WireAnswers { open_us: 250_000, ..WireAnswers::default() };
    for ((host, port), counts) in all.iter().filter(|(_, counts)| !counts.is_empty()) {
        let by_status: BTreeMap<u16, u64> = counts.iter().copied().collect();
        counted.servers.insert(SocketAddr::new(ip(host), *port), by_status);
    }
    counted
}

/// Whose errors are the first cause, and how sure that is.
fn maker(obs: &Observation) -> Option<(String, Confidence)> {
    let diagnosis = told(obs);
    let first = diagnosis.findings.first().filter(|finding| finding.id == "answers-errors");
    first.map(|finding| (finding.tier.clone(), finding.confidence))
}

fn named(obs: &Observation) -> Option<String> {
    maker(obs).map(|(tier, _)| tier)
}

#[test]
fn errors_belong_to_the_innermost_server_that_sends_them() {
    const GOOD: Counts = &[(200, 50)];
    const BAD: Counts = &[(200, 10), (500, 40)];
    let passed_on = watched(&[(200, 60), (500, 40)], GOOD, BAD);
    let diagnosis = told(&passed_on);
    assert_eq!(diagnosis.verdict, Verdict::Choked, "{}", diagnosis.summary);
    assert_eq!(diagnosis.findings[0].title, "node:8081 answers 80 % of its requests with errors, most with status 500");
    assert!(!diagnosis.findings[0].remedies.is_empty());
    assert_eq!(named(&watched(&[(200, 60), (502, 40)], GOOD, GOOD)), Some("caddy".to_owned()), "both behind it answer well");
    assert_eq!(named(&watched(&[(200, 60), (500, 40)], BAD, GOOD)), Some("node:8080".to_owned()));
    // What a gateway makes of errors behind it is not what these servers answer, and none of several is alone with it.
    let both = told(&watched(&[(200, 60), (502, 40)], BAD, &[(200, 25), (500, 25)]));
    assert_eq!(both.findings[0].title, "node:8080 answers 80 % of its requests with errors, most with status 500");
    let evidence: Vec<&str> = both.findings[0].evidence.iter().map(|proof| proof.text.as_str()).collect();
    assert!(
        evidence.iter().any(|text| text.contains("most with status 502"))
            && evidence.iter().any(|text| text.starts_with("node:8081, beside it")),
        "{evidence:?}"
    );
    // Some of the errors are another client's: most decide.
    assert_eq!(named(&watched(&[(200, 60), (500, 40)], &[(500, 5)], GOOD)), Some("caddy".to_owned()));
}

#[test]
fn a_server_whose_responses_cannot_be_read_may_have_made_them() {
    // Over TLS, or a database: it sends no response that can be read.
    let unread = watched(&[(200, 60), (500, 40)], &[], &[]);
    assert_eq!(maker(&unread), Some(("caddy".to_owned(), Confidence::Medium)));
    let mut unix = watched(&[(200, 60), (500, 40)], &[], &[]);
    let view = unix.netns.get_mut(&SERVER).unwrap();
    let at = |path: &str, inode| listener(ListenerAddress::Unix(path.to_owned()), inode, 0, 0);
    view.listeners = Default::default();
    view.sockets = Default::default();
    for second in 1..=10_u64 {
        let all = vec![listener(ListenerAddress::Tcp(ip(FRONT.0), FRONT.1), 100, 0, 0), at("/run/a.sock", 200)];
        view.listeners.push(second * 1_000_000, Reading::Ok(all));
        let end = |inode, path: Option<&str>, peer| Socket {
            address: SocketAddress::Unix { path: path.map(str::to_owned), peer: UnixPeer::Inode(peer) },
            ..tcp(inode, (ip("127.0.0.1"), 1), (ip("127.0.0.1"), 1))
        };
        view.sockets.push(second * 1_000_000, Reading::Ok(vec![end(500, None, 8), end(8, Some("/run/a.sock"), 500)]));
    }
    let diagnosis = told(&unix);
    assert_eq!((named(&unix), diagnosis.verdict), (None, Verdict::Unknown), "{}", diagnosis.summary);
    assert!(diagnosis.summary.contains("40 %"), "{}", diagnosis.summary);
}

/// A proxy that has taken all servers behind it out of service answers for them, however well they answer its checks.
#[test]
fn a_proxy_that_asks_nobody_makes_its_errors_itself() {
    let checked = |of_all: bool| {
        let mut obs = watched(&[(503, 100)], &[], &[]);
        // Without load the status of older connections is not sure; the load knows what it got.
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let all: Vec<(u64, WireAnswers)> = view.answers.points().to_vec();
        view.answers = Default::default();
        let checks: &[(Place, &[(u16, u64)])] = if of_all { &[(ONE, &[(404, 1)]), (TWO, &[(200, 1)])] } else { &[(ONE, &[(404, 1)])] };
        // They were checked before the time that counts.
        view.answers.push(1_000, Reading::Ok(counted(checks)));
        all.into_iter().for_each(|(at_us, counted)| view.answers.push(at_us, Reading::Ok(counted)));
        obs.window_us = Some((100_000, 10_000_000));
        obs
    };
    let diagnosis = told(&checked(true));
    assert_eq!(
        (maker(&checked(true)), diagnosis.verdict),
        (Some(("caddy".to_owned(), Confidence::High)), Verdict::Choked),
        "{}",
        diagnosis.summary
    );
    assert_eq!(
        diagnosis.findings[0].title,
        "caddy answers 100 % of the requests with errors, most with status 503: it asks no server behind it"
    );
    assert_eq!(maker(&checked(false)), Some(("caddy".to_owned(), Confidence::Medium)), "one of the two was never read");
    // They are checked all the time.
    let found = told(&watched(&[(503, 100)], &[(200, 1)], &[(404, 1)])).findings.remove(0);
    assert!(found.title.ends_with("it asks no server behind it") && found.confidence == Confidence::High, "{}", found.title);
    let partly = told(&watched(&[(503, 100)], &[(200, 30)], &[(200, 30)])).findings.remove(0);
    assert!(partly.title.ends_with("most with status 503"), "{}", partly.title);
}

/// Nobody is asked, and nothing was ever seen of those that could be: many calls a second would have been met in some look.
#[test]
fn a_proxy_without_a_connection_to_anybody_makes_its_errors_itself() {
    let alone = |per_turn: u64| {
        let mut obs = watched(&[(503, per_turn)], &[], &[]);
        let to = ListenerAddress::Tcp(ip(ONE.0), ONE.1);
        let stated = StatedConfig { leads_to: Some(vec![to]), ..Default::default() };
        let mut view = ServerView::default();
        view.config.push(0, Reading::Ok(ServerConfig::Stated(stated)));
        obs.servers.insert(42, view);
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let points = std::mem::take(&mut view.listeners).points().to_vec();
        for (at_us, seen) in points {
            let first: Vec<_> = seen.into_iter().filter(|listener| listener.inode == 100).collect();
            view.listeners.push(at_us, Reading::Ok(first));
        }
        view.sockets = Default::default();
        view.sockets.push(1_000_000, Reading::Ok(Vec::new()));
        for tick in 1..=100_u64 {
            view.request_samples.push(tick * 100_000, Reading::Ok(Default::default()));
        }
        maker(&obs)
    };
    assert_eq!(alone(2_000), Some(("caddy".to_owned(), Confidence::High)));
    assert_eq!(alone(20), None, "a call now and then may be met by no look");
}

/// What the proxy says of the servers behind it: of each its state and what its check found.
fn saying(mut obs: Observation, servers: &[(&str, ProxiedState, &str, Option<u64>)]) -> Observation {
    let pass = |(name, ..): &(&str, ProxiedState, &str, Option<u64>)| StatedPass {
        to: (*name).to_owned(),
        address: None,
        is_asked: Some(true),
        is_backup: false,
        origin: Origin::default(),
    };
    let stated = StatedConfig { passes: servers.iter().map(pass).collect(), ..Default::default() };
    let said = |(name, state, check, code): &(&str, ProxiedState, &str, Option<u64>)| ProxiedServer {
        name: (*name).to_owned(),
        state: *state,
        since_s: Some(32),
        check: (*check).to_owned(),
        code: *code,
        waiting: Some(0),
        in_use: Some(0),
    };
    let mut all: Vec<ProxiedServer> = servers.iter().map(said).collect();
    // That of a group which these requests do not use.
    all.push(ProxiedServer { name: "other/x".to_owned(), state: ProxiedState::Up, ..all[0].clone() });
    let mut view = ServerView::default();
    view.config.push(0, Reading::Ok(ServerConfig::Stated(stated)));
    for second in 1..=10_u64 {
        let looks = view.status.entry("servers".to_owned()).or_default();
        looks.push(second * 1_000_000, Reading::Ok(ServerStatus::Proxied(all.clone())));
    }
    obs.servers.insert(42, view);
    obs
}

#[test]
fn a_proxy_says_itself_why_it_has_no_server_to_ask() {
    use ProxiedState::{Down, Maintenance, Unchecked, Up};
    let all = saying(watched(&[(503, 100)], &[], &[]), &[("app/a", Down, "L7STS", Some(404)), ("app/b", Maintenance, "", None)]);
    let diagnosis = told(&all);
    let found = &diagnosis.findings[0];
    assert_eq!(found.title, "caddy answers 100 % of the requests with errors, most with status 503: it has no server left to ask");
    assert_eq!((found.confidence, diagnosis.verdict), (Confidence::High, Verdict::Choked));
    let evidence: Vec<&str> = found.evidence.iter().map(|proof| proof.text.as_str()).collect();
    for said in [
        "caddy itself says that 2 of the 2 servers for these requests are out of service.",
        "app/a is down for 32 s: its check gets status 404.",
        "app/b is in maintenance for 32 s.",
    ] {
        assert!(evidence.contains(&said), "{said}: {evidence:?}");
    }
    // Others serve: errors have another reason, and those that are out are a note.
    for (state, is_told) in [(Down, true), (Up, false), (Unchecked, false)] {
        let some = saying(
            watched(&[(200, 100)], &[(200, 50)], &[(200, 50)]),
            &[("app/a", state, "L4CON", None), ("app/b", Up, "L7OK", Some(200))],
        );
        let notes = told(&some).warnings.join(" ");
        assert_eq!(notes.contains("caddy has 1 of 2 servers for these requests out of service: app/a is down"), is_told, "{notes}");
    }
    let failing = saying(watched(&[(500, 100)], &[(500, 100)], &[]), &[("app/a", Up, "L7OK", Some(200)), ("app/b", Down, "L4CON", None)]);
    assert_eq!(named(&failing), Some("node:8080".to_owned()));
}

#[test]
fn what_only_comes_with_a_servers_address_is_not_its_own() {
    let with = |came: &str| {
        let mut obs = watched(&[(200, 60)], &[(200, 50)], &[(200, 50)]);
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let all: Vec<(u64, WireAnswers)> = view.answers.points().to_vec();
        view.answers = Default::default();
        for (at_us, counted) in all {
            let came = [(came.parse().unwrap(), [(500, 400)].into())].into();
            view.answers.push(at_us, Reading::Ok(WireAnswers { came, ..counted }));
        }
        told(&obs)
    };
    for forged in [format!("{}:{}", FRONT.0, FRONT.1), "127.0.0.1:8080".to_owned()] {
        assert!(causes(&with(&forged)).is_empty(), "anybody on the network can send that");
    }
}

#[test]
fn few_errors_and_those_of_clients_are_none() {
    for front in [&[(200, 999), (500, 5)][..], &[(200, 50), (404, 50)], &[(301, 100)]] {
        let obs = watched(front, &[(200, 50)], &[(200, 50)]);
        assert_eq!(named(&obs), None);
    }
    let seen = told(&watched(&[(200, 100)], &[(200, 50)], &[(200, 50)]));
    assert!(!seen.summary.contains("No access log"), "{}", seen.summary);
    let unseen = told(&watched(&[], &[], &[]));
    assert!(unseen.verdict != Verdict::Healthy || unseen.summary.contains("No access log"), "{}", unseen.summary);
}

#[test]
fn too_many_requests_on_the_wire_are_a_limit_by_configuration() {
    let diagnosis = told(&watched(&[(200, 60), (429, 40)], &[(200, 30)], &[(200, 30)]));
    assert_eq!(causes(&diagnosis), ["rate-limited-by-config"], "{}", diagnosis.summary);
}

proptest! {
    /// Whatever the rates, and however many responses found no room in the kernel's queue.
    #[test]
    fn the_maker_is_found_for_any_rates(
        maker in 0_usize..3, good in 20_u64..2_000, share in 0.05..1.0_f64, status in prop_oneof![Just(500_u16), Just(502), Just(503), Just(507)], lost in 0_u64..5_000
    ) {
        let bad = ((good as f64) * share / (1.0 - share).max(0.1)).ceil() as u64;
        let some = [(200, good), (status, bad)];
        let none = [(200, good)];
        let at = |index: usize| if index == maker { &some[..] } else { &none[..] };
        let front = [(200, 2 * good), (status, bad)];
        let front = if maker == 0 { &some[..] } else { &front[..] };
        let mut obs = watched(front, at(1), at(2));
        let view = obs.netns.get_mut(&SERVER).unwrap();
        let all: Vec<(u64, WireAnswers)> = view.answers.points().to_vec();
        view.answers = Default::default();
        for (at_us, counted) in all {
            view.answers.push(at_us, Reading::Ok(WireAnswers { lost, ..counted }));
        }
        prop_assert_eq!(named(&obs), Some(["caddy", "node:8080", "node:8081"][maker].to_owned()));
    }
}

/// What the error log of the front says of its errors.
fn with_log(mut obs: Observation, events: &[(LogEvent, u64)]) -> Observation {
    let line = |event: &LogEvent| (event.clone(), format!("2026/11/28 12:00:00 [error] 42#42: *7 {event}"));
    let log = ErrorLog {
        events: events.iter().cloned().collect(),
        samples: events.iter().map(|(event, _)| line(event)).collect(),
        extent: LogExtent::default(),
    };
    obs.servers.entry(42).or_default().error_logs.entry("/var/log/front.log".to_owned()).or_default().push(11_000_000, Reading::Ok(log));
    obs
}

/// Of 4,000 responses of the front 2,000 are errors.
const HALF: Counts = &[(200, 50), (502, 50)];
const ALL_GOOD: Counts = &[(200, 50)];

#[test]
fn the_servers_own_log_says_why_it_answers_with_errors() {
    for (event, words, fix) in [
        (LogEvent::AnswerHeaderTooBig, "the header of a response is larger than its buffer for it", "proxy_buffer_size"),
        (LogEvent::NoLiveUpstreams, "it has no server left to ask", "max_fails=0"),
        (LogEvent::AnswerInvalid, "a server behind it breaks the protocol", "error log"),
        (LogEvent::UpstreamReset, "a server behind it resets connections", "error log"),
    ] {
        let diagnosis = told(&with_log(watched(HALF, ALL_GOOD, ALL_GOOD), &[(event.clone(), 2_000), (LogEvent::UpstreamTimedOut, 3)]));
        let first = &diagnosis.findings[0];
        assert_eq!((first.id.as_str(), first.confidence), ("answers-errors", Confidence::High), "{event}: {}", diagnosis.summary);
        assert!(first.title.ends_with(words), "{}", first.title);
        assert!(first.evidence.iter().any(|proof| proof.text.contains("beside 3 x upstream timed out")), "{:?}", first.evidence);
        let advised = format!("{:?}", first.remedies);
        assert!(advised.contains(fix), "{advised}");
        // On connections older than the watching its responses are not sure, but what it writes of them is.
        let mut older = with_log(watched(&[], ALL_GOOD, ALL_GOOD), &[(event.clone(), 2_000)]);
        let access = AccessLog { lines: 4_000, has_status: true, status: [(200, 2_000), (502, 2_000)].into(), ..AccessLog::default() };
        older
            .servers
            .entry(42)
            .or_default()
            .access_logs
            .entry("/var/log/access.log".to_owned())
            .or_default()
            .push(11_000_000, Reading::Ok(access));
        assert_eq!(maker(&older), Some(("caddy".to_owned(), Confidence::Medium)), "{event}: {}", told(&older).summary);
    }
}

#[test]
fn few_lines_are_no_reason_for_many_errors() {
    for lines in [1, 900] {
        let diagnosis = told(&with_log(watched(HALF, ALL_GOOD, ALL_GOOD), &[(LogEvent::AnswerHeaderTooBig, lines)]));
        assert!(diagnosis.findings[0].title.ends_with("most with status 502"), "{lines}: {}", diagnosis.findings[0].title);
    }
    // Without errors the lines say nothing.
    let quiet = told(&with_log(watched(ALL_GOOD, ALL_GOOD, ALL_GOOD), &[(LogEvent::AnswerHeaderTooBig, 2_000)]));
    assert!(causes(&quiet).is_empty(), "{:?}", quiet.findings);
}

#[test]
fn errors_on_older_connections_are_told_beside_whatever_else_is_unknown() {
    let with = |errors: u64| {
        let mut obs = super::seen(&|_| super::evenly(16, 10));
        let statuses = [(200, 100 - errors), (502, errors)].into_iter().filter(|(_, count)| *count > 0).collect();
        let kept = [(SocketAddr::new(ip(SERVER_IP), 80), statuses)].into_iter().collect();
        let counted = WireAnswers { open_us: 250_000, kept, ..WireAnswers::default() };
        obs.netns.get_mut(&SERVER).unwrap().answers.push(5_000_000, Reading::Ok(counted));
        told(&obs)
    };
    let told_of =
        |diagnosis: &chokepoint_model::report::Diagnosis| diagnosis.warnings.iter().any(|note| note.contains("look like responses"));
    let many = with(40);
    assert_eq!(many.verdict, Verdict::Unknown, "{}", many.summary);
    assert!(many.summary.contains("wait inside") && told_of(&many), "{} {:?}", many.summary, many.warnings);
    assert!(!told_of(&with(0)));
    // Where they are most, they come first.
    let most = with(60);
    assert_eq!((most.verdict, told_of(&most)), (Verdict::Unknown, false), "{}", most.summary);
    assert!(most.summary.contains("60 of 100 packets that look like responses"), "{}", most.summary);
}

#[test]
fn a_watched_server_of_which_no_answer_is_good_is_not_healthy() {
    let with = |status: &[(u16, u64)]| {
        let mut obs = watched(ALL_GOOD, ALL_GOOD, ALL_GOOD);
        let lines = status.iter().map(|(_, count)| count).sum();
        let access = AccessLog { lines, has_status: true, status: status.iter().copied().collect(), ..AccessLog::default() };
        let server = obs.servers.entry(42).or_default();
        server.access_logs.entry("/var/log/access.log".to_owned()).or_default().push(11_000_000, Reading::Ok(access));
        told(&obs)
    };
    let refused = with(&[(400, 2_000)]);
    assert_eq!(refused.verdict, Verdict::Unknown, "{}", refused.summary);
    assert!(refused.summary.contains("every answer seen had status 400 (2,000 of them)"), "{}", refused.summary);
    assert_eq!(with(&[(400, 2_000), (404, 9)]).verdict, Verdict::Unknown);
    for some in [&[(400, 2_000), (200, 1)][..], &[(404, 2_000), (301, 3)], &[(200, 2_000)]] {
        let summary = with(some).summary;
        assert!(!summary.contains("every answer seen") && !summary.contains("good answer"), "{some:?}: {summary}");
    }
}
