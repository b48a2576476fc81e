//! `server` blocks of the http context.

use super::listen::Listen;
use super::location::{Condition, Inner, Location};
use super::pass::Names;
use super::scope::{Problem, Scope};
use super::server_name::ServerName;
use super::settings::Settings;
use crate::{Node, SourceLine};

/// The default port of a `listen`.
const DEFAULT_PORT: u16 = 80;

/// One `server`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its position.
    pub place: SourceLine,
    /// The addresses that it listens on; without a position if it has no `listen`.
    pub listens: Vec<Listen>,
    /// Its names; the empty name by default.
    pub names: Vec<ServerName>,
    /// The settings in it, outside its locations.
    pub settings: Settings,
    /// Its locations, in configuration order.
    pub locations: Vec<Location>,
    /// Its `if` blocks.
    pub conditions: Vec<Condition>,
}

impl Server {
    pub(crate) fn read(scope: &mut Scope<'_>, node: Node, outer: &Settings, names: &Names) -> Self {
        let block = scope.block(node);
        let settings = Settings::new(block.simple, Some(outer), outer.version());
        let own_names = names.with_sets(all_sets(scope, &block.blocks, &settings));
        let inner = Inner::read(scope, &block.blocks, &settings, &own_names, 0);
        Self {
            place: scope.tree.place(node),
            listens: listens(&settings, Some(DEFAULT_PORT), scope.problems),
            names: server_names(&settings),
            settings,
            locations: inner.locations,
            conditions: inner.conditions,
        }
    }
}

/// The addresses that a server listens on.
pub(crate) fn listens(settings: &Settings, default_port: Option<u16>, problems: &mut Vec<Problem>) -> Vec<Listen> {
    let mut listens = Vec::new();
    for directive in settings.own("listen") {
        match Listen::parse(directive, default_port) {
            Ok(listen) => listens.push(listen),
            Err(text) => problems.push(Problem { place: directive.place.clone(), text }),
        }
    }
    if settings.own("listen").is_empty() && default_port.is_some() {
        listens.push(Listen::implicit());
    }
    listens
}

fn server_names(settings: &Settings) -> Vec<ServerName> {
    let own = settings.own("server_name").iter().flat_map(|directive| &directive.args);
    let names: Vec<ServerName> = own.map(|name| ServerName::parse(name)).collect();
    if names.is_empty() { vec![ServerName::Exact(String::new())] } else { names }
}

/// Variable and value of every `set` in a server, at any level.
fn all_sets(scope: &Scope<'_>, blocks: &[Node], settings: &Settings) -> Vec<(String, String)> {
    let pair = |name: &str, value: &str| Some((name.strip_prefix('$')?.to_owned(), value.to_owned()));
    let mut sets: Vec<(String, String)> = settings.own("set").iter().filter_map(|set| pair(set.arg(0), set.arg(1))).collect();
    let mut waiting = blocks.to_vec();
    while let Some(node) = waiting.pop() {
        for child in scope.tree.children(node) {
            let directive = scope.tree.directive(child);
            match (directive.name(), directive.args()) {
                ("set", [name, value]) => sets.extend(pair(&name.value, &value.value)),
                _ => waiting.push(child),
            }
        }
    }
    sets
}
