//! Finding `waits-inside`: one of two equal servers behind a proxy takes longer for each request than the other.
//!
//! Deterministic: observations made up by the tests.

use std::net::SocketAddr;

use chokepoint_model::load::Loop;
use chokepoint_model::observation::{
    ListenerAddress, NginxConfig, NginxPass, Observation, Origin, ServerConfig, SocketAddress, StatedConfig, StatedPass, WireAnswers,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::Verdict;

use super::silent::{FRONT, GOOD, SILENT, accepted, passing, proxied};
use crate::stage::*;

/// Forty requests a second to each of two servers: one takes 4 ms and the other a second for each. `slow` and `quick` are their responses in a quarter of a second.
pub(super) fn beside((slow, quick): (u64, u64), words: [&str; 2]) -> Observation {
    let mut obs = proxied(|number| {
        let at_slow = passing(number, |n, age_ms| accepted(SILENT, n, 9, age_ms, 0));
        at_slow.into_iter().chain([accepted(GOOD, 1, 8, 4, 10 * number)]).collect()
    });
    obs.load = None;
    obs.unloaded = None;
    for (pid, words) in [(50, words[0]), (51, words[1])] {
        let process = obs.processes.get_mut(&pid).unwrap();
        let identity = process.identity.last().unwrap().clone();
        process.identity = Default::default();
        process.identity.push(0, Reading::Ok(chokepoint_model::observation::Identity { cmdline: words.to_owned(), ..identity }));
    }
    let view = obs.netns.get_mut(&SERVER).unwrap();
    for turn in 1..=40_u64 {
        let mut counted = WireAnswers { open_us: 250_000, ..WireAnswers::default() };
        for ((host, port), count) in [(FRONT, slow + quick), (GOOD, quick), (SILENT, slow)].into_iter().filter(|(_, count)| *count > 0) {
            counted.servers.insert(SocketAddr::new(ip(host), port), [(200, count)].into());
        }
        view.answers.push(turn * 250_000, Reading::Ok(counted));
    }
    obs
}

pub(super) const EQUAL: [&str; 2] = ["node app.js 8080", "node app.js 8081"];

#[test]
fn a_server_that_is_slower_than_its_equals_is_named_with_both_times() {
    let watched = told(&beside((10, 10), EQUAL));
    assert_eq!((watched.verdict, causes(&watched)), (Verdict::Choked, vec!["waits-inside"]), "{}", watched.summary);
    let cause = &watched.findings[0];
    assert!(
        cause.title.contains("wait inside node:8081 (127.0.0.1:8081): it takes 1,000 ms for one, and the other server behind nginx"),
        "{}",
        cause.title
    );
    assert!(cause.remedies[0].text.contains("take it out of the servers that nginx asks"), "{}", cause.remedies[0].text);
    let mut loaded = beside((10, 10), EQUAL);
    let load = proxied(|_| Vec::new()).load.unwrap();
    loaded.load = Some(chokepoint_model::load::LoadResult {
        shape: Loop::Closed { connections: 40 },
        good: 800,
        status: [(200, 800)].into(),
        ..load
    });
    assert_eq!(causes(&told(&loaded)), ["waits-inside"]);
}

#[test]
fn other_programs_unknown_rates_and_an_uneven_share_show_no_equals() {
    let is_silent = |obs: &Observation| causes(&told(obs)).is_empty();
    assert!(is_silent(&beside((10, 10), ["node app.js 8080", "node reports.js 8081"])), "another program takes its own time");
    assert!(is_silent(&beside((40, 10), EQUAL)), "it gets more of the requests");
    let mut unread = beside((10, 10), EQUAL);
    unread.netns.get_mut(&SERVER).unwrap().answers = Default::default();
    assert!(is_silent(&unread));
}

/// All requests at one of two servers, and the configuration of the proxy before them.
fn at_one(config: ServerConfig) -> Vec<String> {
    let mut obs = proxied(|number| passing(number, |n, age_ms| accepted(GOOD, n, 8, age_ms, 0)));
    obs.servers.entry(42).or_default().config.push(0, Reading::Ok(config));
    // No connection to the other one is seen.
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.sockets.points().to_vec();
    view.sockets = Default::default();
    for (at_us, mut sockets) in points {
        sockets.retain(|socket| !matches!(socket.address, SocketAddress::Tcp { remote, .. } if remote.1 == SILENT.1));
        view.sockets.push(at_us, Reading::Ok(sockets));
    }
    told(&obs).warnings.into_iter().filter(|told| told.contains(" and none to ")).collect()
}

#[test]
fn servers_of_a_set_that_get_no_request_are_told_unless_they_are_in_reserve() {
    let at = |(host, port): (&str, u16)| ListenerAddress::Tcp(ip(host), port);
    let nginx = |backups: &[(&str, u16)]| {
        let servers = vec![at(GOOD), at(SILENT)];
        let pass =
            NginxPass { kind: "proxy".into(), servers, backups: backups.iter().map(|one| at(*one)).collect(), ..NginxPass::default() };
        ServerConfig::Nginx(NginxConfig { passes: vec![pass], ..NginxConfig::default() })
    };
    let stated = |is_backup: bool| {
        let pass = |one, is_backup| StatedPass {
            to: "app/a".into(),
            address: Some(at(one)),
            is_asked: Some(true),
            is_backup,
            origin: Origin::default(),
        };
        ServerConfig::Stated(StatedConfig { passes: vec![pass(GOOD, false), pass(SILENT, is_backup)], ..StatedConfig::default() })
    };
    for config in [nginx(&[]), stated(false)] {
        let told = at_one(config);
        assert_eq!(told.len(), 1);
        assert!(
            told[0].starts_with("nginx passes requests to node:8080 and none to node:8081, which its configuration has in the same set."),
            "{told:?}"
        );
    }
    for config in [nginx(&[SILENT]), stated(true)] {
        assert_eq!(at_one(config), [""; 0]);
    }
}
