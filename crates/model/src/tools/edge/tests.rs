//! Keepalive verdicts: for each reason a case that fires and a twin that does not.

use super::*;
use crate::observation::{Closes, EdgeFacts, EdgeProtocol};
use crate::output::catalogue::Catalogue;

/// 100 requests on as many connections, without any Connection header, all closed by the client.
fn churning() -> EdgeFacts {
    EdgeFacts {
        protocol: EdgeProtocol::Http,
        connections: 100,
        requests: 100,
        answers: 100,
        single_open: 0,
        requests_close: 0,
        requests_http10: 0,
        requests_unkept: 0,
        answers_close: 0,
        answers_until_close: 0,
        client_after_answer: Closes { fin: 100, rst: 0 },
        server_after_answer: Closes::default(),
        client_idle: Closes::default(),
        server_idle: Closes::default(),
        server_idle_s: None,
        request_limit: None,
        races: 0,
        setup_ms: Some(20.0),
        request_ms: Some(20.0),
    }
}

fn kept() -> EdgeFacts {
    EdgeFacts { connections: 4, requests: 1000, answers: 1000, client_after_answer: Closes::default(), ..churning() }
}

#[test]
fn each_reason_is_told_by_its_evidence() {
    let by_server = Closes { fin: 100, rst: 0 };
    let cases = [
        (Reason::CloseRequested, EdgeFacts { requests_close: 100, answers_close: 100, server_after_answer: by_server, ..churning() }),
        (Reason::Http10, EdgeFacts { requests_http10: 100, answers_close: 100, server_after_answer: by_server, ..churning() }),
        (Reason::KeepConnUnset, EdgeFacts { protocol: EdgeProtocol::Fastcgi, requests_unkept: 100, ..churning() }),
        (Reason::ServerCloses, EdgeFacts { answers_close: 100, server_after_answer: by_server, ..churning() }),
        (Reason::ServerClosesSilently, EdgeFacts { server_after_answer: by_server, client_after_answer: Closes::default(), ..churning() }),
        (Reason::ClientCloses, churning()),
    ];
    let words = Catalogue::english();
    for (reason, facts) in cases {
        let verdict = keepalive(&facts);
        assert_eq!((verdict.kept, &verdict.reasons[..]), (ConnectionReuse::Not, &[reason][..]));
        let text = words.text(&verdict.why[0]) + &words.text(&verdict.lines[0]) + &words.text(&verdict.summary);
        assert!(!text.contains('['), "{text}");
    }
}

#[test]
fn kept_connections_are_in_force_and_need_nothing() {
    let verdict = keepalive(&kept());
    assert_eq!((verdict.kept, verdict.reasons.len(), verdict.lines.len()), (ConnectionReuse::InForce, 0, 0));
    assert!(verdict.gain.is_none());
    // The client closes connections that it does not need, which is fine; so is a high limit.
    let idle = EdgeFacts { client_idle: Closes { fin: 4, rst: 0 }, request_limit: Some((1000, 1)), ..kept() };
    assert_eq!(keepalive(&idle).kept, ConnectionReuse::InForce);
}

#[test]
fn a_low_limit_of_requests_and_a_race_make_it_partly() {
    let limited = EdgeFacts { request_limit: Some((300, 3)), answers_close: 3, server_after_answer: Closes { fin: 3, rst: 0 }, ..kept() };
    assert_eq!((keepalive(&limited).kept, keepalive(&limited).reasons), (ConnectionReuse::Partly, vec![Reason::RequestLimit]));
    let raced = EdgeFacts { races: 2, server_idle: Closes { fin: 3, rst: 0 }, server_idle_s: Some(5.0), ..kept() };
    assert_eq!((keepalive(&raced).kept, keepalive(&raced).reasons), (ConnectionReuse::Partly, vec![Reason::ServerIdle]));
}

#[test]
fn too_little_allows_no_verdict() {
    let open = EdgeFacts { single_open: 100, client_after_answer: Closes::default(), ..churning() };
    assert_eq!(keepalive(&open).kept, ConnectionReuse::Unknown);
    let none = EdgeFacts { connections: 0, requests: 0, answers: 0, client_after_answer: Closes::default(), ..churning() };
    assert_eq!(keepalive(&none).kept, ConnectionReuse::Unknown);
}

#[test]
fn the_gain_is_the_set_up_that_is_spared() {
    let gain = keepalive(&churning()).gain.expect("both times are known");
    assert!((gain.factor - 2.0).abs() < 1e-9);
    assert!(keepalive(&EdgeFacts { setup_ms: None, ..churning() }).gain.is_none());
}
