//! What nginx answers itself, without an upstream: files below a directory, and answers given in its configuration.

use super::select::{Selection, location_for};
use crate::nginx::effective::location::{Condition, Location, Matcher};
use crate::nginx::effective::server::Server;
use crate::nginx::effective::settings::Settings;

/// Directives that refuse, delay or redirect requests. A location with one of them has no plain answer.
const BARRIERS: &[&str] = &["rewrite", "auth_request", "auth_jwt", "deny", "limit_rate", "internal", "secure_link", "image_filter"];
/// Directives that answer instead of files.
const CONTENT: &[&str] = &["return", "perl", "js_content", "content_by_lua_block", "content_by_lua_file", "random_index", "dav_methods"];
/// Extensions of static files.
const STATIC_EXTENSIONS: &[&str] = &[
    "html", "htm", "css", "js", "mjs", "txt", "json", "xml", "map", "svg", "png", "jpg", "jpeg", "gif", "webp", "avif", "ico", "woff",
    "woff2",
];
/// Locations that are examined.
const LOCATIONS_MAX: usize = 256;

/// One answer of nginx itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnAnswer {
    /// The path to request, or the path that file names are appended to.
    pub path: String,
    /// The directory of the files; none if the path itself has a fixed answer.
    pub directory: Option<String>,
    /// Extensions of files that no other location answers.
    pub endings: Vec<&'static str>,
}

impl Selection<'_> {
    /// What the selected server answers itself to every client, files first. Whether a file exists is unknown here.
    pub fn own_answers(&self) -> Vec<OwnAnswer> {
        let server = self.server;
        let always_returns = !server.settings.own("return").is_empty();
        if always_returns || !self.servers_possible.is_empty() || !is_open(&server.settings, &server.conditions) {
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

/// True if requests of every client pass.
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
    // Skip a location whose requests another one answers first.
    let (chosen, possible) = location_for(server, path);
    let is_chosen = possible.is_empty() && chosen.is_some_and(|chosen| chosen.place == location.place);
    let settings = &location.settings;
    if !is_chosen || location.pass.is_some() || location.is_internal() || !is_open(settings, &location.conditions) {
        return None;
    }
    let own = |name: &str| !settings.own(name).is_empty();
    let returns_2xx = || settings.own("return").first().is_some_and(|answer| answer.arg(0).len() == 3 && answer.arg(0).starts_with('2'));
    if own("empty_gif") || own("stub_status") || returns_2xx() {
        return Some(OwnAnswer { path: path.to_owned(), directory: None, endings: Vec::new() });
    }
    if CONTENT.iter().any(|name| own(name)) || settings.own("try_files").first().is_some_and(|tries| tries.arg(0) != "$uri") {
        return None;
    }
    // File names can be appended only to a path that ends with a slash.
    let is_prefix = matches!(location.matcher, Matcher::Prefix { .. }) && path.ends_with('/');
    let directory = directory(settings, Some(path)).filter(|_| is_prefix)?;
    files(server, Some(location), path, directory)
}

/// The files of a directory that this location answers, or the server itself; none if other locations answer all of them.
fn files(server: &Server, location: Option<&Location>, path: &str, directory: String) -> Option<OwnAnswer> {
    let is_here = |ending: &&&'static str| {
        let (chosen, possible) = location_for(server, &format!("{path}name.{ending}"));
        possible.is_empty() && chosen.map(|chosen| &chosen.place) == location.map(|location| &location.place)
    };
    let endings: Vec<&'static str> = STATIC_EXTENSIONS.iter().filter(is_here).copied().collect();
    (!endings.is_empty()).then(|| OwnAnswer { path: path.to_owned(), directory: Some(directory), endings })
}

/// The directory of a location's files; none if it depends on variables, on an alias of an outer location, or on the prefix that nginx was built
/// with.
fn directory(settings: &Settings, path: Option<&str>) -> Option<String> {
    let directory = match settings.nearest(&["alias", "root"])? {
        ("alias", alias, true) => alias.arg(0).to_owned(),
        ("root", root, _) => format!("{}{}", root.arg(0).trim_end_matches('/'), path.unwrap_or("/")),
        _ => return None,
    };
    (directory.starts_with('/') && !directory.contains('$')).then_some(directory)
}
