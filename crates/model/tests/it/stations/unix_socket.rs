//! The move of a pool to a unix socket: offered for nginx and php-fpm where everything that it depends on is known, and told in words elsewhere.
//!
//! Deterministic: observations made up by the tests.

use std::sync::Arc;

use chokepoint_model::change::{Change, ServerKind, ServerSetting};
use chokepoint_model::observation::{
    ConfigurationFiles, FileEdit, ListenerAddress, Memory, Observation, OpenFiles, ServerConfig, SettingValue, SocketAddress,
};
use chokepoint_model::reading::Reading;
use chokepoint_model::report::Remedy;

use super::upstream_connect::{Pair, pass};
use crate::stage::*;

const OFFER: &str = "move-to-unix-socket";
const WORDS: &str = "move-to-unix-socket-by-hand";
const NGINX: u32 = 42;
const POOLS: u32 = 50;

/// Files of which each setting changes this many.
#[derive(Debug)]
struct Files(Result<usize, String>);

impl ConfigurationFiles for Files {
    fn server(&self) -> ServerKind {
        ServerKind::Nginx
    }

    fn text(&self) -> &str {
        ""
    }

    fn value(&self, _: &ServerSetting) -> Option<String> {
        Some("localhost:9000".to_owned())
    }

    fn edited(&self, _: &[SettingValue<'_>], _: &[SettingValue<'_>]) -> Result<Vec<FileEdit>, String> {
        Err("it is hidden".to_owned())
    }

    fn changed(&self, _: &[SettingValue<'_>]) -> Result<usize, String> {
        self.0.clone()
    }
}

/// nginx as www-data (33) before a pool of php-fpm, whose only client it is.
fn observed() -> Observation {
    complete(Pair::tcp().observed())
}

fn complete(mut obs: Observation) -> Observation {
    for (pid, uid) in [(NGINX, 0), (43, 33), (POOLS, 0)] {
        if pid == 43 {
            let worker = obs.processes[&NGINX].clone();
            obs.processes.insert(43, worker);
        }
        let process = obs.processes.get_mut(&pid).unwrap();
        let mut identity = process.identity.last().unwrap().clone();
        (identity.pid, identity.uid) = (pid, uid);
        identity.parent = if pid == 43 { NGINX } else { 1 };
        process.identity = Default::default();
        process.identity.push(0, Reading::Ok(identity));
    }
    each_socket(&mut obs, |_, uid| *uid = Some(33));
    for pid in [NGINX, POOLS] {
        let server = obs.servers.get_mut(&pid).unwrap();
        server.files.text = Some(Arc::new(Files(Ok(1))));
        server.files.are_elsewhere = Some(false);
        let mut config = server.config.last().unwrap().clone();
        match &mut config {
            ServerConfig::Nginx(nginx) => nginx.user = Some("www-data".to_owned()),
            ServerConfig::PhpFpm(fpm) => fpm.pid_file = Some("/run/php/fpm.pid".to_owned()),
            ServerConfig::Stated(_) => {}
        }
        server.config.push(0, Reading::Ok(config));
    }
    obs
}

/// Changes the address and the user of each socket that was seen.
fn each_socket(obs: &mut Observation, change: impl Fn(&mut SocketAddress, &mut Option<u32>)) {
    let view = obs.netns.get_mut(&SERVER).unwrap();
    let points = view.sockets.points().to_vec();
    view.sockets = Default::default();
    for (at, mut sockets) in points {
        sockets.iter_mut().for_each(|socket| change(&mut socket.address, &mut socket.uid));
        view.sockets.push(at, Reading::Ok(sockets));
    }
}

fn remedies(obs: &Observation) -> Vec<Remedy> {
    told(obs).improvements.iter().find(|finding| finding.id == "upstream-connection-churn").unwrap().remedies.clone()
}

fn ids(remedies: &[Remedy]) -> Vec<&str> {
    remedies.iter().map(|remedy| remedy.id.as_str()).collect()
}

#[test]
fn a_pool_beside_its_proxy_moves_before_connections_are_kept() {
    let remedies = remedies(&observed());
    assert_eq!(ids(&remedies)[..2], [OFFER, "reuse-upstream-connections-short"]);
    assert!(!ids(&remedies).contains(&WORDS) && remedies[0].group.is_none());
    let moves: Vec<(ServerSetting, &str, &str)> = (remedies[0].change.iter())
        .map(|change| match change {
            Change::Server { setting, from, to, .. } => (setting.clone(), from.as_str(), to.as_str()),
            other => panic!("{other:?}"),
        })
        .collect();
    let socket = "unix:/run/php/www-9000.sock owner=www-data";
    let (tcp, unix) = ("127.0.0.1:9000".to_owned(), "unix:/run/php/www-9000.sock".to_owned());
    let pool = || "www".to_owned();
    let wanted = [
        (ServerSetting::PhpFpmSecondPool { pool: pool() }, "unset", socket),
        (ServerSetting::NginxFastcgiAddress { address: tcp.clone(), socket: unix.clone() }, tcp.as_str(), unix.as_str()),
        (ServerSetting::PhpFpmListen { pool: pool() }, "localhost:9000", socket),
    ];
    assert_eq!(moves, wanted);
    assert!(remedies[0].text.contains("/run/php/www-9000.sock") && remedies[0].risk.contains("reloaded twice"), "{:?}", remedies[0]);
    // By hand in the same order: the pool, nginx, the pool.
    let lines: Vec<&str> = remedies[0].runtime.iter().filter_map(|step| step.lines.as_deref()).collect();
    let [second, pass, listen] = lines[..] else { panic!("{lines:?}") };
    assert!(second.contains("in a pool of its own") && pass.starts_with("fastcgi_pass unix:/run/php/www-9000.sock;"), "{lines:?}");
    assert!(listen.starts_with("listen = /run/php/www-9000.sock, listen.owner = www-data, listen.mode = 0660"), "{lines:?}");
    let back: Vec<&str> = remedies[0].undo.iter().filter_map(|step| step.lines.as_deref()).collect();
    assert!(back[0].starts_with("listen = localhost:9000") && back[1].starts_with("fastcgi_pass 127.0.0.1:9000;"), "{back:?}");
}

#[test]
fn the_queue_of_the_socket_has_room_for_all_who_come_at_once() {
    let mut obs = observed();
    let load = obs.load.as_mut().unwrap();
    load.connections = 5_000;
    load.shape = chokepoint_model::load::Loop::Closed { connections: 5_000 };
    obs.netns.get_mut(&SERVER).unwrap().sysctls.entry("net.core.somaxconn".into()).or_default().push(0, Reading::Ok("4096".into()));
    let all = remedies(&obs);
    let Change::Sysctl { key, to, .. } = &all[0].change[0] else { panic!("{:?}", all[0].change) };
    assert_eq!((key.as_str(), to.as_str()), ("net.core.somaxconn", "16384"));
    let Change::Server { setting, from, to, .. } = &all[0].change[1] else { panic!("{:?}", all[0].change) };
    assert_eq!((setting, from.as_str(), to.as_str()), (&ServerSetting::PhpFpmBacklog { pool: "www".to_owned() }, "4096", "16384"));
    // As long as the kernel allows already.
    edit_pool(&mut obs, |fpm| fpm.pools[0].backlog.value = -1);
    assert!(!remedies(&obs)[0].change.iter().any(|change| change.to() == "16384" && matches!(change, Change::Server { .. })));
}

/// A condition that does not hold, and the words that name it.
type Twin = (&'static str, fn(&mut Observation));

fn edit_pool(obs: &mut Observation, change: impl Fn(&mut chokepoint_model::observation::PhpFpmConfig)) {
    let server = obs.servers.get_mut(&POOLS).unwrap();
    let mut config = server.config.last().unwrap().clone();
    if let ServerConfig::PhpFpm(fpm) = &mut config {
        change(fpm);
    }
    server.config.push(1, Reading::Ok(config));
}

const TWINS: &[Twin] = &[
    ("another program, of user 1000", |obs| each_socket(obs, |_, uid| *uid = Some(1_000))),
    ("another program, of user 33", |obs| {
        let mut other = obs.processes[&POOLS].clone();
        other.files = Default::default();
        other.files.push(0, Reading::Ok(OpenFiles { count: 1, sockets: vec![500] }));
        obs.processes.insert(77, other);
    }),
    ("see the same files", |obs| obs.servers.get_mut(&POOLS).unwrap().files.are_elsewhere = Some(true)),
    ("see the same files", |obs| obs.servers.get_mut(&NGINX).unwrap().files.are_elsewhere = None),
    ("several files", |obs| obs.servers.get_mut(&NGINX).unwrap().files.text = Some(Arc::new(Files(Ok(2))))),
    ("cannot be edited (it has variables)", |obs| {
        obs.servers.get_mut(&NGINX).unwrap().files.text = Some(Arc::new(Files(Err("it has variables".to_owned()))));
    }),
    ("could not be read", |obs| obs.servers.get_mut(&POOLS).unwrap().files.text = None),
    ("the user of nginx's workers", |obs| {
        let server = obs.servers.get_mut(&NGINX).unwrap();
        let Some(ServerConfig::Nginx(nginx)) = server.config.last().cloned() else { panic!("nginx") };
        server.config.push(1, Reading::Ok(ServerConfig::Nginx(chokepoint_model::observation::NginxConfig { user: None, ..nginx })));
    }),
    ("does not fit into the path", |obs| edit_pool(obs, |fpm| fpm.pid_file = Some(format!("/{}/fpm.pid", "x".repeat(100))))),
    ("not enough memory", |obs| {
        let process = obs.processes.get_mut(&POOLS).unwrap();
        let cpu = chokepoint_model::observation::CpuUse { resident_bytes: 1 << 30, ..process.cpu.last().unwrap().clone() };
        process.cpu.push(12_000_000, Reading::Ok(cpu));
        obs.memory.push(0, Reading::Ok(Memory { available: 1 << 30, ..Memory::default() }));
    }),
];

#[test]
fn it_is_told_in_words_where_something_is_not_known_to_hold() {
    for (number, (why, change)) in TWINS.iter().enumerate() {
        let mut obs = observed();
        change(&mut obs);
        let remedies = remedies(&obs);
        assert!(!ids(&remedies).contains(&OFFER), "{number}: {why}");
        let words = remedies.iter().find(|remedy| remedy.id == WORDS).unwrap_or_else(|| panic!("{number}: {why}: {:?}", ids(&remedies)));
        assert!(words.change.is_empty() && words.text.contains(why), "{number}: {}", words.text);
    }
}

/// A busy namespace is read seldom. Whether the address is used is looked at again before it is given up.
#[test]
fn it_is_offered_where_no_connection_happened_to_be_seen() {
    let mut obs = observed();
    each_socket(&mut obs, |address, _| {
        *address = SocketAddress::Tcp { local: (ip("127.0.0.1"), 1), remote: (ip("127.0.0.1"), 2) };
    });
    assert_eq!(ids(&remedies(&obs))[0], OFFER);
}

#[test]
fn without_a_directory_of_its_own_the_socket_lies_in_run() {
    let mut obs = observed();
    edit_pool(&mut obs, |fpm| fpm.pid_file = None);
    assert!(remedies(&obs)[0].change[0].to().starts_with("unix:/run/www-9000.sock "));
}

#[test]
fn a_pool_that_others_can_reach_or_that_is_elsewhere_stays() {
    // Not on loopback: whoever reaches the host may use it.
    let mut any = Pair::at(ListenerAddress::Tcp(ip("0.0.0.0"), 9000));
    any.pass = pass(vec![ListenerAddress::Tcp(ip("127.0.0.1"), 9000)]);
    let found = remedies(&complete(any.observed()));
    let words = found.iter().find(|remedy| remedy.id == WORDS);
    assert!(words.is_some_and(|words| words.text.contains("others than this host can reach the address")), "{found:?}");
    // On a unix socket already.
    let unix = Pair::at(ListenerAddress::Unix("/run/php.sock".into()));
    let there = told(&unix.observed());
    assert!(there.improvements.iter().flat_map(|finding| &finding.remedies).all(|remedy| ![OFFER, WORDS].contains(&remedy.id.as_str())));
}

#[test]
fn other_servers_get_examples() {
    let mut obs = observed();
    obs.servers.remove(&POOLS);
    let found = remedies(&obs);
    let words = found.iter().find(|remedy| remedy.id == WORDS).unwrap();
    assert!(words.text.contains("gunicorn --bind unix:") && words.text.contains("HAProxy"), "{}", words.text);
}
