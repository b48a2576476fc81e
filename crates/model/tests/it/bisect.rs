//! Bisection by tier: the plan derived from the configuration, and what the rates of the parts explain.
//!
//! Deterministic: observations made up by the tests.

use chokepoint_model::bisect::{Part, Session};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::load::Loop;
use chokepoint_model::observation::{
    CpuUse, Identity, ListenerAddress, NginxAsks, NginxConfig, NginxOwn, NginxPass, Observation, ServerConfig,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Bisect, Diagnosis, ExplainedBy, PartKind};

use crate::stage::pool::{pool, process};
use crate::stage::*;

/// nginx (42) in front of php-fpm; this much of php-fpm's configuration is known.
fn whole(asks: Vec<NginxAsks>, own: Vec<NginxOwn>) -> Observation {
    let mut obs = pool(5, 3, 0);
    let config = NginxConfig { asks, own, ..NginxConfig::default() };
    obs.servers.entry(42).or_default().config.push(0, Reading::Ok(ServerConfig::Nginx(config)));
    obs
}

fn asks() -> NginxAsks {
    let pass = NginxPass { kind: "fastcgi".into(), servers: vec![ListenerAddress::Tcp(ip("127.0.0.1"), 9000)], ..NginxPass::default() };
    let fields = vec![("SCRIPT_FILENAME".into(), "/srv/x.php".into())];
    NginxAsks { pass, path_and_query: "/srv/x.php?a=1".into(), fields, ..NginxAsks::default() }
}

fn own() -> NginxOwn {
    NginxOwn { path: "/static/".into(), directory: Some("/srv/static/".into()), endings: vec!["css".into()] }
}

/// A part that gives this goodput alone and is at its own limit: the web server's core, or all workers of the pool.
fn alone(part: &Part, goodput_rps: u64) -> Observation {
    let mut obs = if part.kind == PartKind::Own { healthy() } else { pool(5, 5, 60) };
    if part.kind == PartKind::Own {
        process(&mut obs, 42, 1, "nginx", &[100]);
        cpu(&mut obs, 1.0);
        used(&mut obs, 42, 1.0);
    } else {
        obs.request.scheme = "fcgi".into();
        (obs.request.port, obs.request.addresses, obs.request.client_netns) = (9000, vec![ip("127.0.0.1")], SERVER);
    }
    obs.request.url = part.url.clone();
    rate(&mut obs, goodput_rps);
    obs
}

fn rate(obs: &mut Observation, goodput_rps: u64) {
    let load = obs.load.as_mut().unwrap();
    let good = goodput_rps * load.duration_us / 1_000_000;
    (load.good, load.requests, load.status) = (good, good, [(200, good)].into());
}

fn used(obs: &mut Observation, pid: u32, share: f64) {
    let Some(process) = obs.processes.get_mut(&pid) else { return };
    process.cpu = Default::default();
    for second in 0..=11_u64 {
        let used = CpuUse { user_ticks: (second as f64 * 100.0 * share) as u64, ..CpuUse::default() };
        process.cpu.push(second * 1_000_000, Reading::Ok(used));
    }
}

/// The bisection of the whole stack, with the result of each part.
fn bisected(whole: &Observation, part: impl Fn(&Part) -> Result<Observation, String>) -> Diagnosis {
    let words = Catalogue::english();
    let mut session = Session::new(whole, &words);
    while let Some(next) = session.next_part() {
        match part(&next) {
            Ok(obs) => session.measured(&next, &obs),
            Err(why) => session.failed(&next, &why),
        }
    }
    let report = session.report();
    assert!(!serde_json::to_string(&report).unwrap().contains("[bisect-"), "a message without a sentence: {report:?}");
    report
}

fn explained(whole: &Observation, front: u64, behind: u64) -> Bisect {
    bisected(whole, |part| Ok(alone(part, if part.kind == PartKind::Own { front } else { behind }))).bisect.unwrap()
}

#[test]
fn parts_are_requested_as_the_configuration_requests_them() {
    let asked = std::cell::RefCell::new(Vec::new());
    let report = bisected(&whole(vec![asks()], vec![own()]), |part| {
        asked.borrow_mut().push(part.clone());
        Ok(alone(part, 1_000))
    });
    let asked = asked.into_inner();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert_eq!((asked[0].kind, asked[0].url.as_str(), asked[0].netns), (PartKind::Own, "http://10.0.0.2:80/static/", CLIENT));
    assert_eq!(asked[0].directory.as_deref(), Some("/srv/static/"));
    let php = &asked[1];
    assert_eq!((php.tier.as_str(), php.url.as_str()), ("php-fpm", "fcgi://127.0.0.1:9000/srv/x.php?a=1"));
    assert_eq!((php.netns, php.keep_alive, php.fields.len()), (SERVER, Some(false), 1));
    let parts = report.bisect.unwrap().parts;
    assert_eq!(parts.iter().map(|part| part.tier.as_str()).collect::<Vec<_>>(), ["nginx", "php-fpm"]);
}

#[test]
fn a_part_that_cannot_be_loaded_is_reported_with_its_reason() {
    let reasons = |asks: Vec<NginxAsks>, own: Vec<NginxOwn>| -> Vec<String> {
        let report = bisected(&whole(asks, own), |_| Err("status 404".into()));
        report.bisect.unwrap().parts.into_iter().map(|part| part.summary).collect()
    };
    let with = |change: fn(&mut NginxAsks)| {
        let mut one = asks();
        change(&mut one);
        vec![one]
    };
    for (asks, own, front, behind) in [
        (vec![], vec![], "has no file", "No configuration"),
        (vec![asks()], vec![own()], "status 404", "status 404"),
        (with(|asks| asks.unknown = Some("$x (n.conf:3)".into())), vec![], "has no file", "n.conf:3"),
        (with(|asks| asks.tls = true), vec![], "has no file", "TLS"),
        (with(|asks| asks.pass.kind = "uwsgi".into()), vec![], "has no file", "uwsgi"),
        (with(|asks| asks.pass.servers = vec![ListenerAddress::Tcp(ip("127.0.0.1"), 9001)]), vec![], "has no file", "No configuration"),
    ] {
        let told = reasons(asks, own);
        assert!(told[0].contains(front) && told[1].contains(behind), "{told:?}");
    }
    let mut unread = whole(vec![asks()], vec![own()]);
    unread.servers.clear();
    let report = bisected(&unread, |_| panic!("nothing is known"));
    assert_eq!(report.bisect.map(|bisect| bisect.explained_by), Some(ExplainedBy::Untold));
}

#[test]
fn servers_on_other_hosts_are_loaded_if_the_user_allows_it() {
    let mut remote = asks();
    remote.pass = NginxPass {
        kind: "proxy".into(),
        servers: vec![ListenerAddress::Tcp(ip("fd00::9"), 8080)],
        reuses: true,
        keepalive: Some(8),
        ..NginxPass::default()
    };
    remote.path_and_query = "/v1/x".into();
    let asked = std::cell::RefCell::new(Vec::new());
    let report = bisected(&whole(vec![remote], vec![]), |part| {
        asked.borrow_mut().push(part.clone());
        Err("load is sent elsewhere only with --yes".into())
    });
    let part = &asked.into_inner()[0];
    assert_eq!((part.tier.as_str(), part.url.as_str()), ("[fd00::9]:8080", "http://[fd00::9]:8080/v1/x"));
    assert_eq!((part.keep_alive, part.is_inner), (Some(true), false));
    let parts = report.bisect.unwrap().parts;
    assert!(parts.len() == 3 && parts[2].summary.contains("--yes"), "{parts:?}");
}

#[test]
fn nothing_is_asked_that_only_another_users_configuration_names() {
    let asked_by = |by: Option<u32>, master: u32| {
        let mut closed = asks();
        closed.pass.servers = vec![ListenerAddress::Unix("/root/closed.sock".into())];
        let mut obs = whole(vec![closed], vec![]);
        obs.request.by_uid = by;
        let identity = &mut obs.processes.get_mut(&42).unwrap().identity;
        let known = std::mem::take(identity);
        identity.push(0, Reading::Ok(Identity { uid: master, ..known.first().unwrap().clone() }));
        let asked = std::cell::Cell::new(0);
        let report = bisected(&obs, |_| {
            asked.set(asked.get() + 1);
            Err("no".into())
        });
        (asked.get(), report.bisect.unwrap().parts.iter().any(|part| part.summary.contains("another user's")))
    };
    assert_eq!(asked_by(Some(0), 65_534), (0, true));
    for (by, master) in [(Some(0), 0), (Some(1_000), 1_000), (Some(1_000), 0), (None, 65_534)] {
        assert_eq!(asked_by(by, master), (1, false), "{by:?} {master}");
    }
}

#[test]
fn a_part_names_the_processes_that_may_listen_at_its_unix_socket() {
    let holders = |asks: NginxAsks| {
        let asked = std::cell::RefCell::new(Vec::new());
        bisected(&whole(vec![asks], vec![]), |part| {
            asked.borrow_mut().push(part.clone());
            Err("no".into())
        });
        asked.into_inner().into_iter().map(|part| part.holders).collect::<Vec<_>>()
    };
    let behind = holders(asks());
    assert_eq!(behind.len(), 1, "{behind:?}");
    assert!(!behind[0].is_empty() && !behind[0].contains(&42), "those of the server behind, not the front: {behind:?}");
    // A path that is no listener's may be a link to the socket of any server of the path.
    let mut link = asks();
    link.pass.servers = vec![ListenerAddress::Unix("/srv/link".into())];
    let reached = holders(link);
    assert!(reached[0].contains(&behind[0][0]), "{reached:?}");
}

#[test]
fn another_way_is_tried_if_one_fails() {
    let fixed = NginxOwn { path: "/up".into(), ..NginxOwn::default() };
    let report = bisected(&whole(vec![asks()], vec![own(), fixed]), |part| match &part.directory {
        Some(_) => Err("it holds no file".into()),
        None => Ok(alone(part, 9_000)),
    });
    let parts = report.bisect.unwrap().parts;
    assert_eq!((parts.len(), parts[0].load.is_some(), parts[1].load.is_some()), (2, true, true), "{parts:?}");
}

#[test]
fn a_tier_that_gives_no_more_alone_explains_the_whole() {
    let mut obs = whole(vec![asks()], vec![own()]);
    rate(&mut obs, 240);
    let bisect = explained(&obs, 40_000, 250);
    assert_eq!((bisect.explained_by, bisect.tier.as_deref()), (ExplainedBy::Tier, Some("php-fpm")));
    let bisect = explained(&obs, 245, 9_000);
    assert_eq!(bisect.tier.as_deref(), Some("nginx"));
    let bisect = explained(&obs, 40_000, 2_500);
    assert_eq!(bisect.explained_by, ExplainedBy::Between, "{}", bisect.summary);
    assert!(bisect.summary.contains("2,500"), "{}", bisect.summary);
    obs.load.as_mut().unwrap().shape = Loop::Open { rate_per_s: 240.0, connections: 100 };
    assert_eq!(explained(&obs, 40_000, 2_500).explained_by, ExplainedBy::Demand);
}

#[test]
fn a_tier_that_gives_less_alone_than_the_whole_is_not_the_limit() {
    let mut obs = whole(vec![asks()], vec![own()]);
    rate(&mut obs, 20_000);
    let bisect = explained(&obs, 21_000, 250);
    assert_eq!((bisect.explained_by, bisect.tier.as_deref()), (ExplainedBy::Tier, Some("nginx")), "most answers are cached");
    assert_eq!(explained(&obs, 300, 250).explained_by, ExplainedBy::Beyond);
}

#[test]
fn an_interrupted_part_or_another_server_proves_nothing() {
    let told = |change: fn(&mut Observation)| {
        let report = bisected(&whole(vec![asks()], vec![]), |part| {
            let mut obs = alone(part, 250);
            change(&mut obs);
            Ok(obs)
        });
        report.bisect.unwrap()
    };
    for (change, why) in [
        ((|obs| obs.load.as_mut().unwrap().interrupted = true) as fn(&mut Observation), "interrupted"),
        (|obs| obs.load.as_mut().unwrap().stopped_by = Some("p99>5s".into()), "p99>5s"),
        (|obs| (obs.request.port, obs.request.addresses) = (80, vec![ip("10.0.0.2")]), "A server other than"),
    ] {
        let bisect = told(change);
        assert_eq!(bisect.explained_by, ExplainedBy::Untold);
        assert!(bisect.parts.iter().any(|part| part.summary.contains(why)), "{:?}", bisect.parts);
    }
}

#[test]
fn full_cores_are_shared_and_few_connections_take_turns() {
    let mut obs = whole(vec![asks()], vec![own()]);
    rate(&mut obs, 5_000);
    cpu(&mut obs, 1.0);
    used(&mut obs, 42, 0.4);
    used(&mut obs, 51, 0.58);
    let report = bisected(&obs, |part| {
        let mut alone = alone(part, if part.kind == PartKind::Own { 20_000 } else { 9_000 });
        used(&mut alone, 51, 1.0);
        Ok(alone)
    });
    let bisect = report.bisect.unwrap();
    assert_eq!(bisect.explained_by, ExplainedBy::SharedCores, "{}", bisect.summary);
    assert!(bisect.summary.contains("nginx 50 µs, php-fpm 111 µs"), "{}", bisect.summary);
    let mut few = whole(vec![asks()], vec![own()]);
    rate(&mut few, 400);
    assert_eq!(explained(&few, 1_000, 700).explained_by, ExplainedBy::Series);
    assert_eq!(explained(&few, 4_000, 3_700).explained_by, ExplainedBy::Between);
}
