//! The effective configuration: every context of a tree with its values and the origin of each.

pub(crate) mod directives;
pub(crate) mod limits;
pub(crate) mod listen;
pub(crate) mod location;
pub(crate) mod logs;
pub(crate) mod pass;
pub(crate) mod pattern;
pub(crate) mod scope;
pub(crate) mod server;
pub(crate) mod server_name;
pub(crate) mod settings;
pub(crate) mod upstream;
pub(crate) mod upstream_reuse;
pub(crate) mod version;

use limits::LimitZone;
use listen::{Address, Listen, ListenSocket, sockets};
use logs::LogFormat;
use pass::{Names, Pass, PassKind};
use scope::{Problem, Scope, collect};
use server::Server;
use settings::Settings;
use upstream::Upstream;
use version::Version;

use super::tree::Tree;
use crate::{Node, Setting, SourceLine};

/// The default port of an upstream's server.
const UPSTREAM_PORT: u16 = 80;

/// The number of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerProcesses {
    /// As many as online cores. A cgroup's CPU quota is ignored.
    Auto,
    /// This many.
    Count(u64),
}

/// The main context with its `events`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Main {
    /// The simple directives of the main context.
    pub settings: Settings,
    /// Those of the `events` block.
    pub events: Settings,
}

impl Main {
    /// `worker_processes`.
    pub fn worker_processes(&self) -> Option<Setting<WorkerProcesses>> {
        let word = self.settings.word("worker_processes")?;
        if word.value == "auto" {
            return Some(word.map(|_| WorkerProcesses::Auto));
        }
        self.settings.number("worker_processes").map(|count| count.map(WorkerProcesses::Count))
    }

    /// `worker_connections`: connections of one worker, those to upstreams included.
    pub fn worker_connections(&self) -> Option<Setting<u64>> {
        self.events.number("worker_connections")
    }

    /// `worker_rlimit_nofile`; `None` if it is not set. Then the workers inherit the limit of the process that started nginx.
    pub fn worker_rlimit_nofile(&self) -> Option<Setting<u64>> {
        self.settings.number("worker_rlimit_nofile")
    }
}

/// The `http` block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// Its position.
    pub place: SourceLine,
    /// The settings in it, outside its servers.
    pub settings: Settings,
    /// Its servers, in configuration order.
    pub servers: Vec<Server>,
    /// Its upstreams.
    pub upstreams: Vec<Upstream>,
    /// Its log formats, the built-in `combined` first.
    pub log_formats: Vec<LogFormat>,
    /// Its zones of `limit_req` and `limit_conn`.
    pub zones: Vec<LimitZone>,
    /// The addresses that it listens on.
    pub sockets: Vec<ListenSocket>,
}

/// A `server` of the stream context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamServer {
    /// Its position.
    pub place: SourceLine,
    /// The addresses that it listens on.
    pub listens: Vec<Listen>,
    /// The settings in it.
    pub settings: Settings,
    /// The target of its connections.
    pub pass: Option<Pass>,
}

/// The `stream` block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// Its position.
    pub place: SourceLine,
    /// The settings in it, outside its servers.
    pub settings: Settings,
    /// Its servers.
    pub servers: Vec<StreamServer>,
    /// Its upstreams.
    pub upstreams: Vec<Upstream>,
    /// Its log formats.
    pub log_formats: Vec<LogFormat>,
    /// The addresses that it listens on.
    pub sockets: Vec<ListenSocket>,
}

/// A whole effective configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nginx {
    /// The version whose defaults apply.
    pub version: Version,
    /// The main context and `events`.
    pub main: Main,
    /// The `http` block.
    pub http: Option<Http>,
    /// The `stream` block.
    pub stream: Option<Stream>,
    /// Parts that nginx would refuse or this reader omitted.
    pub problems: Vec<Problem>,
}

impl Nginx {
    /// The effective configuration with the defaults of a version.
    pub fn of(tree: &Tree, version: Version) -> Self {
        let mut problems: Vec<Problem> = Vec::new();
        let top = collect(tree, &tree.top(), &mut problems);
        let settings = Settings::new(top.simple, None, version);
        let named = |name: &str| top.blocks.iter().copied().find(|&node| tree.directive(node).name() == name);
        let events = named("events").map(|node| collect(tree, &tree.children(node), &mut problems).simple).unwrap_or_default();
        let events = Settings::new(events, None, version);
        let mut scope = Scope { tree, problems: &mut problems };
        let http = named("http").map(|node| Http::read(&mut scope, node, &settings));
        let stream = named("stream").map(|node| Stream::read(&mut scope, node, &settings));
        Self { version, main: Main { settings, events }, http, stream, problems }
    }
}

impl Http {
    fn read(scope: &mut Scope<'_>, node: Node, outer: &Settings) -> Self {
        let tree = scope.tree;
        let block = scope.block(node);
        let settings = Settings::new(block.simple, Some(outer), outer.version());
        let upstreams = upstreams(scope, &block.blocks, Some(UPSTREAM_PORT), outer.version());
        let names = Names::new(upstreams.iter().map(|upstream| upstream.name.as_str()), map_values(tree, &block.blocks));
        let own = block.blocks.iter().filter(|node| tree.directive(**node).name() == "server");
        let servers: Vec<Server> = own.map(|&node| Server::read(scope, node, &settings, &names)).collect();
        Self {
            place: tree.place(node),
            sockets: sockets(servers.iter().map(|server| server.listens.as_slice())),
            log_formats: logs::log_formats(&settings),
            zones: limits::zones(&settings),
            settings,
            servers,
            upstreams,
        }
    }

    /// The upstream with that name.
    pub fn upstream(&self, name: &str) -> Option<&Upstream> {
        self.upstreams.iter().find(|upstream| upstream.name.eq_ignore_ascii_case(name))
    }

    /// The log format with that name. nginx would refuse a second one; here the last one counts.
    pub fn log_format(&self, name: &str) -> Option<&LogFormat> {
        self.log_formats.iter().rev().find(|format| format.name == name)
    }

    /// The socket that nginx opened for an address, as the kernel lists it.
    pub fn socket(&self, address: &Address) -> Option<&ListenSocket> {
        self.sockets.iter().find(|socket| socket.bound && !socket.udp && socket.address == *address)
    }
}

impl Stream {
    fn read(scope: &mut Scope<'_>, node: Node, outer: &Settings) -> Self {
        let tree = scope.tree;
        let block = scope.block(node);
        let settings = Settings::new(block.simple, Some(outer), outer.version());
        let upstreams = upstreams(scope, &block.blocks, None, outer.version());
        let names = Names::new(upstreams.iter().map(|upstream| upstream.name.as_str()), map_values(tree, &block.blocks));
        let mut servers = Vec::new();
        for &node in block.blocks.iter().filter(|node| tree.directive(**node).name() == "server") {
            let inner = scope.block(node);
            let settings = Settings::new(inner.simple, Some(&settings), outer.version());
            let pass = settings.own("proxy_pass").last().and_then(|directive| Pass::parse(directive, PassKind::Proxy, &names));
            let listens = server::listens(&settings, None, scope.problems);
            servers.push(StreamServer { place: tree.place(node), listens, settings, pass });
        }
        Self {
            place: tree.place(node),
            sockets: sockets(servers.iter().map(|server| server.listens.as_slice())),
            log_formats: logs::log_formats(&settings),
            settings,
            servers,
            upstreams,
        }
    }
}

fn upstreams(scope: &mut Scope<'_>, blocks: &[Node], default_port: Option<u16>, version: Version) -> Vec<Upstream> {
    let tree = scope.tree;
    let own = blocks.iter().filter(|node| tree.directive(**node).name() == "upstream");
    own.map(|&node| Upstream::read(scope, node, default_port, version)).collect()
}

/// Variable and value of every line in every `map`.
fn map_values(tree: &Tree, blocks: &[Node]) -> Vec<(String, String)> {
    let mut values = Vec::new();
    for &node in blocks.iter().filter(|node| tree.directive(**node).name() == "map") {
        let Some(name) = tree.directive(node).args().get(1).and_then(|word| word.value.strip_prefix('$')) else { continue };
        for child in tree.children(node) {
            if let [value] = tree.directive(child).args() {
                values.push((name.to_owned(), value.value.clone()));
            }
        }
    }
    values
}
