//! What nginx answers itself, with no server behind it: files below a directory, and answers that stand in its configuration.

use super::location::{Condition, Location, Matcher};
use super::select::{Selection, location_for};
use super::server::Server;
use super::settings::Settings;

/// What must not stand between a request and nginx's own answer: it refuses, delays or turns requests elsewhere.
const BARRIERS: &[&str] = &["rewrite", "auth_request", "auth_jwt", "deny", "limit_rate", "internal", "secure_link", "image_filter"];
/// What answers in the place of files.
const CONTENT: &[&str] = &["return", "perl", "js_content", "content_by_lua_block", "content_by_lua_file", "random_index", "dav_methods"];
/// Endings of files that servers send as they are.
const STATIC: &[&str] = &[
    "html", "htm", "css", "js", "mjs", "txt", "json", "xml", "map", "svg", "png", "jpg", "jpeg", "gif", "webp", "avif", "ico", "woff",
    "woff2",
];
/// Locations that are looked at.
const LOCATIONS_MAX: usize = 256;

/// One thing that nginx answers itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnAnswer {
    /// The path to ask for, or the one that names of files go behind.
    pub path: String,
    /// The directory of these files; nothing where the path itself has a fixed answer.
    pub directory: Option<String>,
    /// Endings of those of them that no other location takes.
    pub endings: Vec<&'static str>,
}

impl Selection<'_> {
    /// What the server that was selected answers itself to anybody, files first. Whether a file is there is not known here.
    pub fn own_answers(&self) -> Vec<OwnAnswer> {
        let server = self.server;
        let is_turned = !server.settings.own("return").is_empty();
        if is_turned || !self.servers_possible.is_empty() || !is_open(&server.settings, &server.conditions) {
            return Vec::new();
        }
        let mut locations: Vec<&Location> = Vec::new();
        collect(&server.locations, &mut locations);
        let mut found: Vec<OwnAnswer> = locations.into_iter().filter_map(|location| of_location(server, location)).collect();
        if let (None, _) = location_for(server, "/") {
            found.extend(directory(&server.settings, None).and_then(|directory| files(server, None, "/", directory)));
        }
        found.sort_by_key(|own| own.directory.is_none());
        found
    }
}

fn collect<'a>(locations: &'a [Location], all: &mut Vec<&'a Location>) {
    for location in locations.iter().take(LOCATIONS_MAX.saturating_sub(all.len())) {
        all.push(location);
        collect(&location.locations, all);
    }
}

/// True where anybody's request passes.
fn is_open(settings: &Settings, conditions: &[Condition]) -> bool {
    let is_off = |name: &str| settings.word(name).is_none_or(|word| word.value == "off");
    conditions.is_empty()
        && BARRIERS.iter().all(|name| settings.all(name).is_empty())
        && is_off("auth_basic")
        && settings.rate_limits().is_empty()
        && settings.conn_limits().is_empty()
}

fn of_location(server: &Server, location: &Location) -> Option<OwnAnswer> {
    let path = location.path().filter(|path| path.starts_with('/'))?;
    // Not what another location answers first.
    let (chosen, possible) = location_for(server, path);
    let is_chosen = possible.is_empty() && chosen.is_some_and(|chosen| chosen.place == location.place);
    let settings = &location.settings;
    if !is_chosen || location.pass.is_some() || location.is_internal() || !is_open(settings, &location.conditions) {
        return None;
    }
    let own = |name: &str| !settings.own(name).is_empty();
    let returns_good = || settings.own("return").first().is_some_and(|answer| answer.arg(0).len() == 3 && answer.arg(0).starts_with('2'));
    if own("empty_gif") || own("stub_status") || returns_good() {
        return Some(OwnAnswer { path: path.to_owned(), directory: None, endings: Vec::new() });
    }
    if CONTENT.iter().any(|name| own(name)) || settings.own("try_files").first().is_some_and(|tries| tries.arg(0) != "$uri") {
        return None;
    }
    // Names go behind a path that ends in a slash; another one stands for names that merely begin so, or for itself alone.
    let is_prefix = matches!(location.matcher, Matcher::Prefix { .. }) && path.ends_with('/');
    let directory = directory(settings, Some(path)).filter(|_| is_prefix)?;
    files(server, Some(location), path, directory)
}

/// The files of a directory that this location answers, or the server itself; nothing where another one takes all of them.
fn files(server: &Server, location: Option<&Location>, path: &str, directory: String) -> Option<OwnAnswer> {
    let is_here = |ending: &&&'static str| {
        let (chosen, possible) = location_for(server, &format!("{path}name.{ending}"));
        possible.is_empty() && chosen.map(|chosen| &chosen.place) == location.map(|location| &location.place)
    };
    let endings: Vec<&'static str> = STATIC.iter().filter(is_here).copied().collect();
    (!endings.is_empty()).then(|| OwnAnswer { path: path.to_owned(), directory: Some(directory), endings })
}

/// Where the files of a location are; nothing where variables, an alias of a location further out, or the prefix that nginx was built with
/// decide.
fn directory(settings: &Settings, path: Option<&str>) -> Option<String> {
    let directory = match settings.nearest(&["alias", "root"])? {
        ("alias", alias, true) => alias.arg(0).to_owned(),
        ("root", root, _) => format!("{}{}", root.arg(0).trim_end_matches('/'), path.unwrap_or("/")),
        _ => return None,
    };
    (directory.starts_with('/') && !directory.contains('$')).then_some(directory)
}
