//! `upstream` blocks: servers with their options, the balancing method, and the idle connections kept.

use super::listen::Address;
use super::scope::{Problem, Scope};
use super::settings::{Occurrence, Settings};
use super::version::Version;
use crate::{Node, Setting, SourceLine, quantity};

/// The balancing method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Balance {
    /// Weighted round-robin.
    RoundRobin,
    /// `least_conn`.
    LeastConn,
    /// `ip_hash`.
    IpHash,
    /// `hash KEY [consistent]`.
    Hash(String),
    /// `random [two [METHOD]]`.
    Random,
    /// A method of a module or of the commercial version, named by its directive.
    Other(String),
}

/// One `server` of an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamServer {
    /// Its position.
    pub place: SourceLine,
    /// Its address.
    pub address: Address,
    /// `weight=`, 1 by default.
    pub weight: u64,
    /// `max_conns=`, per worker unless the upstream has a zone; 0 (the default) means no limit.
    pub max_conns: u64,
    /// `max_fails=`: failures within `fail_timeout` that take the server out of use; 1 by default, 0 for never.
    pub max_fails: u64,
    /// `fail_timeout=`: how long failures count, and how long the server is out of use; 10 s by default.
    pub fail_timeout_ms: u64,
    /// `backup`.
    pub backup: bool,
    /// `down`.
    pub down: bool,
    /// `resolve`: the name is resolved again when its record expires.
    pub resolve: bool,
}

/// `keepalive`: idle connections that each worker keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keepalive {
    /// Idle connections per worker; 0 for none. This does not limit the connections in use.
    pub connections: u64,
    /// Separate for each location (nginx 1.29.7).
    pub local: bool,
}

/// One `upstream`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// Its position.
    pub place: SourceLine,
    /// Its name.
    pub name: String,
    /// Its servers.
    pub servers: Vec<UpstreamServer>,
    /// The balancing method.
    pub balance: Balance,
    /// Idle connections kept.
    pub keepalive: Setting<Keepalive>,
    /// Requests after which a kept connection is closed.
    pub keepalive_requests: Setting<u64>,
    /// Idle time after which a kept connection is closed. An upstream that closes earlier causes resets.
    pub keepalive_timeout_ms: Setting<u64>,
    /// `zone`: name, and size in bytes.
    pub zone: Option<(String, Option<u64>)>,
    /// Every simple directive of the block.
    pub settings: Settings,
}

impl Upstream {
    pub(crate) fn read(scope: &mut Scope<'_>, node: Node, default_port: Option<u16>, version: Version) -> Self {
        let block = scope.block(node);
        let (tree, problems) = (scope.tree, &mut *scope.problems);
        let settings = Settings::new(block.simple, None, version);
        let mut servers = Vec::new();
        for directive in settings.own("server") {
            match server(directive, default_port) {
                Some(server) => servers.push(server),
                None => problems.push(Problem::invalid(directive, "server")),
            }
        }
        let zone = settings.one("zone").map(|zone| (zone.arg(0).to_owned(), quantity::size_bytes(zone.arg(1))));
        Self {
            place: tree.place(node),
            name: tree.directive(node).args().first().map(|word| word.value.clone()).unwrap_or_default(),
            servers,
            balance: balance(&settings),
            keepalive: keepalive(&settings, problems),
            keepalive_requests: settings.number("keepalive_requests").unwrap_or(Setting::default_of(1000)),
            keepalive_timeout_ms: match settings.one("keepalive_timeout") {
                Some(_) => settings.time_ms("keepalive_timeout").unwrap_or(Setting::default_of(60_000)),
                None => Setting::default_of(60_000),
            },
            zone,
            settings,
        }
    }
}

fn keepalive(settings: &Settings, problems: &mut Vec<Problem>) -> Setting<Keepalive> {
    if let Some(directive) = settings.one("keepalive") {
        match quantity::number(directive.arg(0)) {
            Some(connections) => return Setting::set(Keepalive { connections, local: directive.has("local") }, directive.place.clone()),
            None => problems.push(Problem::invalid(directive, "keepalive")),
        }
    }
    // "keepalive 32 local" is the default since 1.29.7. Earlier versions keep nothing by default. is the default since 1.29.7; before, nothing is kept.
    let on = settings.version() >= Version(1, 29, 7);
    Setting::default_of(Keepalive { connections: if on { 32 } else { 0 }, local: on })
}

fn balance(settings: &Settings) -> Balance {
    if settings.one("least_conn").is_some() {
        Balance::LeastConn
    } else if settings.one("ip_hash").is_some() {
        Balance::IpHash
    } else if let Some(hash) = settings.one("hash") {
        Balance::Hash(hash.args.join(" "))
    } else if settings.one("random").is_some() {
        Balance::Random
    } else {
        let others = ["least_time", "sticky", "fair", "balancer_by_lua_block", "balancer_by_lua_file"];
        others.iter().find(|name| settings.one(name).is_some()).map_or(Balance::RoundRobin, |name| Balance::Other((*name).to_owned()))
    }
}

fn server(directive: &Occurrence, default_port: Option<u16>) -> Option<UpstreamServer> {
    let number = |name: &str, default: u64| directive.option(name).map_or(Some(default), quantity::number);
    Some(UpstreamServer {
        place: directive.place.clone(),
        address: Address::parse(directive.arg(0), default_port, false)?,
        weight: number("weight", 1)?,
        max_conns: number("max_conns", 0)?,
        max_fails: number("max_fails", 1)?,
        fail_timeout_ms: directive.option("fail_timeout").map_or(Some(10_000), quantity::time_ms)?,
        backup: directive.has("backup"),
        down: directive.has("down"),
        resolve: directive.has("resolve"),
    })
}
