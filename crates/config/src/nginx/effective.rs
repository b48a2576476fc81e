//! The configuration in force: every context of a tree with its values and where each comes from.

use std::collections::BTreeMap;

use super::directives::shape_problem;
use super::file::Body;
use super::limits::{self, LimitZone};
use super::listen::{Address, Listen, ListenSocket, sockets};
use super::logs::{self, LogFormat};
use super::pass::{Names, Pass, PassKind};
use super::server::{self, Server};
use super::settings::{Occurrence, Settings};
use super::tree::Tree;
use super::upstream::Upstream;
use super::version::Version;
use crate::{Node, Setting, SourceLine, quantity};

/// The port of an upstream's server that names none.
const UPSTREAM_PORT: u16 = 80;

/// Something that nginx would refuse, or that this reader leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: SourceLine,
    /// What.
    pub text: String,
}

impl Problem {
    pub(super) fn invalid(directive: &Occurrence, name: &str) -> Self {
        Self { place: directive.place.clone(), text: format!("invalid value \"{}\" in \"{name}\"", directive.args.join(" ")) }
    }
}

/// What is read while the tree is walked.
pub(super) struct Scope<'a> {
    pub(super) tree: &'a Tree,
    pub(super) problems: &'a mut Vec<Problem>,
}

impl Scope<'_> {
    pub(super) fn pass(&mut self, settings: &Settings, names: &Names) -> Option<Pass> {
        match Pass::read(settings, names)? {
            Ok(pass) => Some(pass),
            Err((directive, name)) => {
                self.problems.push(Problem::invalid(&directive, name));
                None
            }
        }
    }
}

/// One block's directives: simple ones by name, blocks in order.
pub(super) struct Block {
    pub(super) simple: BTreeMap<String, Vec<Occurrence>>,
    pub(super) blocks: Vec<Node>,
}

/// Sorts the directives of one block, and notes those whose shape nginx would refuse.
pub(super) fn collect(tree: &Tree, nodes: &[Node], problems: &mut Vec<Problem>) -> Block {
    let mut block = Block { simple: BTreeMap::new(), blocks: Vec::new() };
    for &node in nodes {
        let directive = tree.directive(node);
        let is_block = matches!(directive.body, Body::Block(_));
        if let Some(text) = shape_problem(directive.name(), directive.args().len(), is_block) {
            problems.push(Problem { place: tree.place(node), text });
        }
        if is_block {
            block.blocks.push(node);
        } else {
            let occurrence = Occurrence { args: directive.values(), place: tree.place(node) };
            // Most stand once in a block.
            block.simple.entry(directive.name().to_owned()).or_insert_with(|| Vec::with_capacity(1)).push(occurrence);
        }
    }
    block
}

/// How many workers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerProcesses {
    /// As many as cores are online; a CPU quota of a cgroup is not looked at.
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

    /// `worker_rlimit_nofile`; nothing where it is not set and the limit is that of the process that started nginx.
    pub fn worker_rlimit_nofile(&self) -> Option<Setting<u64>> {
        self.settings.number("worker_rlimit_nofile")
    }
}

/// The `http` block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// Where it stands.
    pub place: SourceLine,
    /// What is in force in it, outside of its servers.
    pub settings: Settings,
    /// Its servers, in the order of the configuration.
    pub servers: Vec<Server>,
    /// Its upstreams.
    pub upstreams: Vec<Upstream>,
    /// Its log formats, the built-in `combined` first.
    pub log_formats: Vec<LogFormat>,
    /// Its zones for `limit_req` and `limit_conn`.
    pub zones: Vec<LimitZone>,
    /// What it listens on.
    pub sockets: Vec<ListenSocket>,
}

/// A `server` of the stream context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamServer {
    /// Where it stands.
    pub place: SourceLine,
    /// What it listens on.
    pub listens: Vec<Listen>,
    /// What is in force in it.
    pub settings: Settings,
    /// Where it sends connections.
    pub pass: Option<Pass>,
}

/// The `stream` block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// Where it stands.
    pub place: SourceLine,
    /// What is in force in it, outside of its servers.
    pub settings: Settings,
    /// Its servers.
    pub servers: Vec<StreamServer>,
    /// Its upstreams.
    pub upstreams: Vec<Upstream>,
    /// Its log formats.
    pub log_formats: Vec<LogFormat>,
    /// What it listens on.
    pub sockets: Vec<ListenSocket>,
}

/// A whole configuration in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nginx {
    /// The version whose defaults it follows.
    pub version: Version,
    /// Main context and `events`.
    pub main: Main,
    /// The `http` block.
    pub http: Option<Http>,
    /// The `stream` block.
    pub stream: Option<Stream>,
    /// What nginx would refuse or this reader left out.
    pub problems: Vec<Problem>,
}

impl Nginx {
    /// The configuration in force with the defaults of a version.
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
        let block = collect(tree, &tree.children(node), scope.problems);
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

    /// The upstream of that name.
    pub fn upstream(&self, name: &str) -> Option<&Upstream> {
        self.upstreams.iter().find(|upstream| upstream.name.eq_ignore_ascii_case(name))
    }

    /// The log format of that name; the last one where nginx would refuse a second.
    pub fn log_format(&self, name: &str) -> Option<&LogFormat> {
        self.log_formats.iter().rev().find(|format| format.name == name)
    }

    /// The socket that nginx opened for an address, as the kernel shows it.
    pub fn socket(&self, address: &Address) -> Option<&ListenSocket> {
        self.sockets.iter().find(|socket| socket.bound && !socket.udp && socket.address == *address)
    }
}

impl Stream {
    fn read(scope: &mut Scope<'_>, node: Node, outer: &Settings) -> Self {
        let tree = scope.tree;
        let block = collect(tree, &tree.children(node), scope.problems);
        let settings = Settings::new(block.simple, Some(outer), outer.version());
        let upstreams = upstreams(scope, &block.blocks, None, outer.version());
        let names = Names::new(upstreams.iter().map(|upstream| upstream.name.as_str()), map_values(tree, &block.blocks));
        let mut servers = Vec::new();
        for &node in block.blocks.iter().filter(|node| tree.directive(**node).name() == "server") {
            let inner = collect(tree, &tree.children(node), scope.problems);
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
    let own = blocks.iter().filter(|node| scope.tree.directive(**node).name() == "upstream");
    own.map(|&node| Upstream::read(scope.tree, node, default_port, version, scope.problems)).collect()
}

/// Variable and value of every line of every `map`.
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

impl Settings {
    /// `keepalive_timeout` towards clients in milliseconds; 0 means that connections are not kept.
    pub fn keepalive_timeout_ms(&self) -> Option<Setting<u64>> {
        self.time_ms("keepalive_timeout")
    }

    /// `ssl_session_cache`: whether sessions are kept in memory that all workers share, and its bytes.
    pub fn ssl_session_cache_shared_bytes(&self) -> Option<Setting<Option<u64>>> {
        let words = self.words("ssl_session_cache")?;
        let shared = words.value.iter().find_map(|word| word.strip_prefix("shared:")?.rsplit_once(':'));
        let bytes = shared.and_then(|(_, size)| quantity::size_bytes(size));
        Some(words.map(|_| bytes))
    }
}
