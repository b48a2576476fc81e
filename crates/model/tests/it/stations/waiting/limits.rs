//! Station `server-limit`: the limit of a configuration that is reached is named with its line, and one that is not is silent.
//!
//! Deterministic: observations made up by the tests.

use std::sync::Arc;

use chokepoint_model::change::{Change, ServerKind, ServerSetting};
use chokepoint_model::observation::{
    ConfigurationFiles, FileEdit, Identity, LimitOf, LimitScope, ListenerAddress, MasterProcess, Observation, Origin, ServerConfig,
    ServerView, SettingValue, Socket, StatedConfig, StatedLimit,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::{Confidence, Diagnosis, Verdict};

use super::{at_random, later, made, sampled, seen};
use proptest::prelude::*;

use crate::stage::*;

/// A limit of requests at the server that [`made`] connections lead to.
fn limit(value: u64) -> StatedLimit {
    StatedLimit {
        scope: LimitScope::Upstream,
        of: LimitOf::Requests,
        value,
        least: None,
        kept: 0,
        is_refused: false,
        needs_restart: false,
        setting: "maxconn".to_owned(),
        owner: "app/a".to_owned(),
        line: "server a 10.0.0.9:5432 ... maxconn".to_owned(),
        at: vec![ListenerAddress::Tcp(ip("10.0.0.9"), 5_432)],
        is_asked: Some(true),
        gives_up_ms: None,
        gives_up_status: None,
        change: None,
        origin: Origin { file: "/etc/p.cfg".to_owned(), line: 7 },
    }
}

/// The same observation of a server with these limits.
fn stating(mut obs: Observation, limits: Vec<StatedLimit>) -> Observation {
    let mut view = ServerView::default();
    view.config
        .push(0, Reading::Ok(ServerConfig::Stated(StatedConfig { file: "/etc/p.cfg".to_owned(), limits, ..StatedConfig::default() })));
    obs.servers.insert(42, view);
    obs
}

/// A hundred clients of a server that has this many connections to another, of which so many are in use.
fn calling(connections: u16, in_use: u16) -> Observation {
    seen(&move |n| {
        let calls = (0..connections).map(|number| made(number, number < in_use, 100 + n * 12));
        at_random(100, 1_000).into_iter().map(|socket| later(socket, n / 5)).chain(calls).collect()
    })
}

fn states(diagnosis: &Diagnosis) -> Vec<&str> {
    diagnosis.path.iter().filter(|station| station.station == "server-limit").map(|station| station.why.as_str()).collect()
}

#[test]
fn a_limit_that_is_reached_is_the_cause_and_has_its_line() {
    for connections in [4, 6] {
        let diagnosis = told(&stating(calling(connections, 4), vec![limit(4)]));
        assert_eq!((diagnosis.verdict, causes(&diagnosis)), (Verdict::Choked, vec!["server-limit-reached"]), "{connections}");
        let found = &diagnosis.findings[0];
        assert_eq!(found.title, "96 of 100 requests wait inside nginx for maxconn of app/a: it allows 4 at a time");
        assert_eq!(found.confidence, Confidence::Medium, "it was only watched");
        assert!(found.explanation.contains("/etc/p.cfg:7"), "{}", found.explanation);
        let remedy = &found.remedies[0];
        assert_eq!((remedy.id.as_str(), remedy.change.len()), ("raise-server-limit-by-hand", 0));
        let lines: Vec<&str> = remedy.persistent.iter().filter_map(|step| step.lines.as_deref()).collect();
        assert_eq!(lines, ["server a 10.0.0.9:5432 ... maxconn 4", "server a 10.0.0.9:5432 ... maxconn 8"]);
    }
}

/// Files in which every limit has this value.
#[derive(Debug)]
struct Files(&'static str);

impl ConfigurationFiles for Files {
    fn server(&self) -> ServerKind {
        ServerKind::Haproxy
    }

    fn text(&self) -> &str {
        ""
    }

    fn value(&self, _: &ServerSetting) -> Option<String> {
        Some(self.0.to_owned())
    }

    fn edited(&self, _: &[SettingValue<'_>], _: &[SettingValue<'_>]) -> Result<Vec<FileEdit>, String> {
        Ok(vec![FileEdit { path: "/etc/p.cfg".to_owned(), diff: b"--- a\n+++ b\n".to_vec() }])
    }

    fn changed(&self, _: &[SettingValue<'_>]) -> Result<usize, String> {
        Ok(1)
    }
}

/// A limit of four that is reached, of a server whose files state this value; one of its workers was read, and its master belongs to this user.
fn editable(stated: &'static str, uid: u32, needs_restart: bool) -> Observation {
    let (server, section) = (ServerKind::Haproxy, "backend app".to_owned());
    let change = Some(ServerSetting::Limit { server, section, line: "server a".to_owned(), limit: "maxconn".to_owned() });
    let mut obs = stating(calling(4, 4), vec![StatedLimit { change, needs_restart, ..limit(4) }]);
    let files = &mut obs.servers.get_mut(&42).unwrap().files;
    files.text = Some(Arc::new(Files(stated)));
    files.master = Some(MasterProcess { pid: 4_711, start_ticks: 99, parent: 1, uid });
    let process = obs.processes.get_mut(&42).unwrap();
    let identity = process.identity.last().unwrap().clone();
    process.identity = Default::default();
    process.identity.push(0, Reading::Ok(Identity { exe: Some("/usr/sbin/haproxy".to_owned()), ..identity }));
    obs.request.by_uid = Some(0);
    obs
}

#[test]
fn a_limit_in_files_that_can_be_edited_is_changed_by_its_master() {
    let diagnosis = told(&editable("4", 0, false));
    let remedy = &diagnosis.findings[0].remedies[0];
    assert_eq!((remedy.id.as_str(), diagnosis.findings[0].remedies.len()), ("raise-server-limit", 1));
    let Change::Server { pid, start_ticks, from, to, file, .. } = &remedy.change[0] else { panic!("{remedy:?}") };
    assert_eq!((*pid, *start_ticks, from.as_str(), to.as_str(), file.as_str()), (4_711, 99, "4", "8", "/etc/p.cfg"));
    let steps = format!("{:?}", remedy.runtime);
    assert!(steps.contains("kill -USR2 4711") && steps.contains("-c -f /etc/p.cfg"), "{steps}");
}

#[test]
fn a_limit_that_somebody_else_must_change_is_told_in_words() {
    let mut alone = editable("4", 0, false);
    alone.servers.get_mut(&42).unwrap().files.text = None;
    for (what, obs, id) in [
        ("computed in the files", editable("5", 0, false), "raise-server-limit-by-hand"),
        ("needs a restart", editable("4", 0, true), "raise-server-limit-by-restart"),
        ("nobody reads the files again", alone, "raise-server-limit-by-restart"),
    ] {
        let remedies = told(&obs).findings.remove(0).remedies;
        assert_eq!((remedies[0].id.as_str(), remedies[0].change.len(), remedies.len()), (id, 0, 1), "{what}");
    }
    let others = &told(&editable("4", 1_000, false)).findings[0].remedies[0];
    assert_eq!((others.id.as_str(), others.change.len()), ("raise-server-limit", 0), "root changes nothing of another user's");
    let steps = format!("{:?}", others.runtime);
    assert!(steps.contains("sudo -u '#1000' kill -USR2 4711"), "{steps}");
}

/// A sample takes a moment, in which a request ends and the next one gets its place: both may be in it.
#[test]
fn a_limit_is_reached_though_some_samples_have_one_more() {
    let with = |every: u16, more: u16| {
        let obs = seen(&move |n| {
            let in_use = if n as u16 % 4 < every { 4 + more } else { 4 };
            let calls = (0..7).map(|number| made(number, number < in_use, 100 + n * 12));
            at_random(100, 1_000).into_iter().map(|socket| later(socket, n / 5)).chain(calls).collect()
        });
        causes(&told(&stating(obs, vec![limit(4)]))).contains(&"server-limit-reached")
    };
    assert!(with(0, 0) && with(1, 1));
    assert!(!with(1, 2) && !with(3, 1), "as many are not met by accident");
}

#[test]
fn a_limit_with_room_or_of_others_is_silent() {
    let ample = told(&stating(calling(4, 4), vec![limit(50)]));
    assert_eq!(causes(&ample), ["waits-inside"], "they are as many as there are, but not as many as allowed");
    assert_eq!(states(&ample), ["maxconn of app/a (/etc/p.cfg:7) allows 50 requests at a time; 4 were in use on average."]);
    let others = told(&stating(calling(4, 4), vec![StatedLimit { is_asked: Some(false), ..limit(4) }]));
    assert_eq!((causes(&others), states(&others).len()), (vec!["waits-inside"], 0));
    let free = told(&stating(calling(4, 1), vec![limit(4)]));
    assert_eq!(free.verdict, Verdict::Unknown, "three are free");
    let twice = told(&stating(calling(4, 4), vec![limit(4), limit(9)]));
    assert_eq!(causes(&twice), ["waits-inside"], "whose they are is not known");
}

#[test]
fn a_limit_before_a_server_that_nobody_waits_for_is_silent() {
    let few = seen(&|n| {
        let calls = (0..4).map(|number| made(number, true, 100 + n * 12));
        at_random(4, 1_000).into_iter().map(|socket| later(socket, n / 5)).chain(calls).collect()
    });
    let diagnosis = told(&stating(few, vec![limit(4)]));
    assert!(!causes(&diagnosis).contains(&"server-limit-reached"), "{diagnosis:#?}");
}

#[test]
fn connections_of_clients_at_a_limit_wait_to_be_accepted() {
    let of_listener = |value: u64| StatedLimit {
        scope: LimitScope::Listener,
        of: LimitOf::Connections,
        owner: "www".to_owned(),
        line: "maxconn".to_owned(),
        at: Vec::new(),
        ..limit(value)
    };
    let with = |value: u64, waiting: u32| {
        let obs = sampled(healthy(), &|_| at_random(40, 1_000));
        let mut obs = stating(obs, vec![of_listener(value)]);
        let listeners = std::mem::take(&mut obs.netns.get_mut(&SERVER).unwrap().listeners);
        for (at_us, seen) in listeners.points() {
            let seen = seen.iter().cloned().map(|mut listener| {
                listener.accept_queue = waiting;
                listener
            });
            obs.netns.get_mut(&SERVER).unwrap().listeners.push(*at_us, Reading::Ok(seen.collect()));
        }
        told(&obs)
    };
    let full = with(40, 60);
    let found = full.findings.iter().find(|found| found.id == "server-limit-reached").expect("it is reached");
    assert_eq!(found.title, "nginx accepts 40 connections at a time by configuration (maxconn of www), and 60 more wait");
    for (value, waiting) in [(40, 0), (50, 60)] {
        assert!(!causes(&with(value, waiting)).contains(&"server-limit-reached"), "{value} {waiting}");
    }
}

/// A listener that may accept so many connections a second, and did so many; `waiting` more stand in its queue.
fn at_rate(limit_per_s: u64, accepted_per_s: u64, waiting: u32) -> Observation {
    let of_listener = StatedLimit {
        scope: LimitScope::Listener,
        of: LimitOf::ConnectionRate,
        setting: "rate-limit sessions".to_owned(),
        owner: "www".to_owned(),
        line: "rate-limit sessions".to_owned(),
        at: Vec::new(),
        ..limit(limit_per_s)
    };
    let mut obs = stating(healthy(), vec![of_listener]);
    cpu(&mut obs, 0.05);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let listeners = std::mem::take(&mut view.listeners);
    for (at_us, seen) in listeners.points() {
        let seen = seen.iter().cloned().map(|listener| chokepoint_model::observation::Listener { accept_queue: waiting, ..listener });
        view.listeners.push(*at_us, Reading::Ok(seen.collect()));
    }
    let load = obs.load.as_mut().unwrap();
    (load.requests, load.good, load.keep_alive) = (10 * accepted_per_s, 10 * accepted_per_s, false);
    (load.connections, load.status) = (10 * accepted_per_s + u64::from(waiting), [(200, 10 * accepted_per_s)].into());
    load.shape = chokepoint_model::load::Loop::Closed { connections: waiting + 1 };
    obs
}

/// Clients that give up leave their connections in the queue, and open others: it grows, and what was accepted is what does not stand there at the end.
#[test]
fn a_limit_of_new_connections_is_the_cause_where_the_queue_grows() {
    let mut obs = at_rate(20, 20, 60);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = std::mem::take(&mut view.listeners).points().to_vec();
    for (at_us, seen) in points {
        let waiting = (120 * at_us / 11_000_000) as u32;
        let seen = seen.into_iter().map(|listener| chokepoint_model::observation::Listener { accept_queue: waiting, ..listener });
        view.listeners.push(at_us, Reading::Ok(seen.collect()));
    }
    obs.load.as_mut().unwrap().connections = 10 * 20 + 110;
    assert_eq!(causes(&told(&obs)), ["server-limit-reached"]);
}

proptest! {
    #[test]
    fn a_limit_of_new_connections_is_the_cause_where_as_many_are_accepted(limit in 20_u64..200, accepted in 10_u64..300, waiting in 0_u32..90) {
        let diagnosis = told(&at_rate(limit, accepted, waiting));
        let found = diagnosis.findings.iter().find(|found| found.id == "server-limit-reached");
        let is_at_limit = (accepted as f64 / limit as f64 - 1.0).abs() <= 0.1;
        prop_assert_eq!(found.is_some(), is_at_limit && waiting > 0, "{} of {}, {} wait: {}", accepted, limit, waiting, &diagnosis.summary);
        if let Some(found) = found {
            let title = format!("nginx accepts {limit} connections a second by configuration (rate-limit sessions of www), and {waiting} more wait");
            prop_assert_eq!(&found.title, &title);
            prop_assert_eq!(causes(&diagnosis), ["server-limit-reached"]);
            let advice = &found.remedies[0].text;
            prop_assert!(advice.contains("twice as many as now, since it is not known") && !advice.contains("this load"), "{}", advice);
        }
    }
}

/// A database behind the server that may have so many connections, of which `kept` are not for everybody; so many are open in each look, and `new` of them are others each time. `failed` of
/// the requests are answered with an error.
fn refusing((value, kept): (u64, u64), open: u64, new: u64, failed: u64) -> Observation {
    let mut obs = healthy();
    cpu(&mut obs, 0.1);
    const BEHIND: (&str, u16) = ("127.0.0.1", 5_432);
    let at = (ip(BEHIND.0), BEHIND.1);
    let tcp = |inode: u64, local, remote| Socket {
        address: chokepoint_model::observation::SocketAddress::Tcp { local, remote },
        state: chokepoint_model::observation::TcpState::Established,
        inode,
        uid: None,
        receive_queue: 0,
        send_queue: 0,
        wait: None,
    };
    let mut master = obs.processes[&42].clone();
    let identity = master.identity.last().unwrap().clone();
    master.identity = Default::default();
    master.identity.push(0, Reading::Ok(chokepoint_model::observation::Identity { pid: 70, comm: "postgres".into(), ..identity }));
    master.files = Default::default();
    master.files.push(0, Reading::Ok(chokepoint_model::observation::OpenFiles { count: 9, sockets: vec![700] }));
    obs.processes.insert(70, master);
    obs.processes
        .get_mut(&42)
        .unwrap()
        .files
        .push(1, Reading::Ok(chokepoint_model::observation::OpenFiles { count: 9, sockets: vec![100, 900] }));
    let of_server = StatedLimit {
        scope: LimitScope::Server,
        of: LimitOf::Connections,
        kept,
        is_refused: true,
        needs_restart: true,
        setting: "max_connections".to_owned(),
        owner: String::new(),
        line: "max_connections =".to_owned(),
        at: Vec::new(),
        ..limit(value)
    };
    let mut view = ServerView::default();
    let config =
        StatedConfig { file: "/etc/p.conf".to_owned(), limits: vec![of_server], leads_to: Some(Vec::new()), ..StatedConfig::default() };
    view.config.push(0, Reading::Ok(ServerConfig::Stated(config)));
    obs.servers.insert(70, view);
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let listeners = std::mem::take(&mut view.listeners);
    for (at_us, seen) in listeners.points() {
        let mut seen = seen.clone();
        seen.push(listener(ListenerAddress::Tcp(at.0, at.1), 700, 0, 0));
        view.listeners.push(*at_us, Reading::Ok(seen));
    }
    for second in 1..=10_u64 {
        let backends =
            (0..open).map(|n| tcp(10_000 + n + if n < new { 1_000 * second } else { 0 }, at, (ip("127.0.0.1"), 40_000 + n as u16)));
        let callers = [tcp(900, (ip("127.0.0.1"), 40_000), at)];
        view.sockets.push(second * 1_000_000, Reading::Ok(backends.chain(callers).collect()));
    }
    let load = obs.load.as_mut().unwrap();
    load.good = load.requests - failed;
    load.status = [(200, load.good), (500, failed)].into();
    obs
}

proptest! {
    #[test]
    fn a_server_that_refuses_is_named_where_its_connections_are_taken_and_requests_fail(
        (value, kept) in (5_u64..120, 0_u64..4), open in 1_u64..130, new in 0_u64..3, share in 0.0_f64..0.3,
    ) {
        let requests = healthy().load.unwrap().requests;
        let failed = (requests as f64 * share) as u64;
        let diagnosis = told(&refusing((value, kept), open, new.min(open), failed));
        let found = diagnosis.findings.iter().find(|found| found.id == "server-limit-reached");
        let is_full = open as f64 >= 0.98 * (value - kept) as f64;
        let hurts = failed as f64 >= 0.01 * requests as f64;
        let expected = is_full && hurts && new > 0;
        prop_assert_eq!(found.is_some(), expected, "{} of {} ({}), {} new, {} fail: {}", open, value, kept, new, failed, &diagnosis.summary);
        if let Some(found) = found {
            let taken = match kept {
                0 => format!("all its {value} connections taken (max_connections)"),
                _ => format!(
                    "all {} connections for ordinary users taken (max_connections is {value}, and {kept} are kept for administrators)",
                    value - kept
                ),
            };
            prop_assert_eq!(&found.title, &format!("postgres has {taken}, and refuses more"));
            prop_assert!(found.remedies[0].text.contains("share fewer"), "{}", found.remedies[0].text);
            prop_assert_eq!(causes(&diagnosis), ["server-limit-reached"]);
        }
    }
}
