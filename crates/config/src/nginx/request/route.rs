//! The upstreams that a request may be passed to: by the selected location's own pass, or through `try_files`, `index`, `rewrite` and `error_page`.

use super::select::{Selection, location_for, named_location, normalized_path};
use crate::SourceLine;
use crate::nginx::effective::location::Location;
use crate::nginx::effective::pass::{Pass, first_variable};
use crate::nginx::effective::pattern::{Match, Pattern};
use crate::nginx::effective::server::Server;
use crate::nginx::effective::settings::Settings;

/// Internal redirects that nginx follows before it gives up (NGX_HTTP_MAX_URI_CHANGES).
const HOPS_MAX: usize = 10;
/// Pairs of a location and a path that are examined for one request.
const VISITS_MAX: usize = 256;
/// Passes that are listed for one request.
const CANDIDATES_MAX: usize = 64;

/// Directives by which a request causes others, or by which a program decides where it goes.
const SIDE_WAYS: &[&str] = &[
    "auth_request",
    "mirror",
    "post_action",
    "add_before_body",
    "add_after_body",
    "perl",
    "js_content",
    "content_by_lua_block",
    "content_by_lua_file",
    "rewrite_by_lua_block",
    "rewrite_by_lua_file",
    "access_by_lua_block",
    "access_by_lua_file",
];

/// One internal redirect on the way to a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A file or fallback of `try_files`, to this path or `@name`.
    TryFiles(SourceLine, String),
    /// An `index` file.
    Index(String),
    /// `rewrite ... last` or `break`.
    Rewrite(SourceLine, String),
    /// `error_page`.
    ErrorPage(SourceLine, String),
    /// An `if` or `limit_except` block.
    Condition(SourceLine, String),
    /// A location whose regular expression only PCRE can evaluate.
    MayMatch(SourceLine),
}

/// The query of a request at one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// The client's.
    Client,
    /// This one, as written with its variables, replaces the client's.
    Instead(String),
    /// This one as written, followed by the client's.
    Before(String),
}

/// Path and query at one step: after an internal redirect they differ from the client's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutedUri {
    /// The path, decoded.
    pub path: String,
    /// Its query.
    pub query: Query,
}

impl RoutedUri {
    fn at(&self, path: String) -> Self {
        Self { path, query: self.query.clone() }
    }
}

/// A pass that may answer the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// The pass.
    pub pass: &'a Pass,
    /// What is in force where it stands.
    pub settings: &'a Settings,
    /// The location where it stands; none if it stands in a condition.
    pub location: Option<&'a Location>,
    /// Path and query that are passed on.
    pub uri: RoutedUri,
    /// The steps to it. Empty: the request reaches it directly, and no other candidate can take the request.
    pub via: Vec<Step>,
}

impl<'a> Selection<'a> {
    /// Every pass that may answer the request, the most likely first. Which files exist and which conditions hold is unknown here, so all ways are
    /// followed. Empty for a request that nginx answers itself.
    pub fn candidates(&self) -> Vec<Candidate<'a>> {
        self.walked().found
    }

    /// [`Self::candidates`] if the request can take no other way: `None` if variables, programs or answers decide, or if there are too many ways.
    pub(crate) fn all_candidates(&self) -> Option<Vec<Candidate<'a>>> {
        let walk = self.walked();
        walk.is_complete.then_some(walk.found)
    }

    fn walked(&self) -> Walk<'a> {
        let mut walk = Walk { server: self.server, found: Vec::new(), seen: Vec::new(), is_complete: true };
        let via: Vec<Step> = Vec::new();
        let uri = RoutedUri { path: self.path.clone(), query: Query::Client };
        walk.conditions(&self.server.conditions, &uri, &via);
        walk.possible(&self.locations_possible, &via, &uri);
        match self.location {
            Some(location) => walk.location(location, &uri, via),
            None => {
                walk.note_side_ways(&self.server.settings);
                walk.redirects(&self.server.settings, &uri, &via);
            }
        }
        // A certain pass comes first; then the fewer steps, the more likely; a pass behind an unknown pattern comes last.
        walk.found.sort_by_key(|candidate| (candidate.via.iter().any(|step| matches!(step, Step::MayMatch(_))), candidate.via.len()));
        walk
    }
}

struct Walk<'a> {
    server: &'a Server,
    found: Vec<Candidate<'a>>,
    /// Locations and paths already examined, so that redirects in a circle end.
    seen: Vec<(SourceLine, String)>,
    /// No way was left out.
    is_complete: bool,
}

impl<'a> Walk<'a> {
    fn location(&mut self, location: &'a Location, uri: &RoutedUri, via: Vec<Step>) {
        let key = (location.place.clone(), uri.path.clone());
        if self.seen.contains(&key) {
            return;
        }
        if via.len() > HOPS_MAX || self.found.len() >= CANDIDATES_MAX || self.seen.len() >= VISITS_MAX {
            self.is_complete = false;
            return;
        }
        self.seen.push(key);
        self.note_side_ways(&location.settings);
        self.conditions(&location.conditions, uri, &via);
        self.redirects(&location.settings, uri, &via);
        match &location.pass {
            Some(pass) => self.add(Candidate { pass, settings: &location.settings, location: Some(location), uri: uri.clone(), via }),
            None => self.index(&location.settings, uri, &via),
        }
    }

    /// Requests may take ways that are not followed here.
    fn note_side_ways(&mut self, settings: &Settings) {
        let is_on = |name: &&str| !settings.all(name).is_empty();
        let has_includes = settings.flag("ssi").is_some_and(|ssi| ssi.value);
        self.is_complete &= !has_includes && !SIDE_WAYS.iter().any(is_on);
    }

    fn add(&mut self, candidate: Candidate<'a>) {
        if !self.found.iter().any(|known| known.pass == candidate.pass) {
            self.found.push(candidate);
        }
    }

    fn conditions(&mut self, conditions: &'a [crate::nginx::effective::location::Condition], uri: &RoutedUri, via: &[Step]) {
        for condition in conditions {
            // Where a rewrite in a condition leads is not followed.
            self.is_complete &= condition.settings.own("rewrite").is_empty();
            if let Some(pass) = &condition.pass {
                let via = longer(via, Step::Condition(condition.place.clone(), condition.text.clone()));
                self.add(Candidate { pass, settings: &condition.settings, location: None, uri: uri.clone(), via });
            }
        }
    }

    fn possible(&mut self, locations: &[&'a Location], via: &[Step], uri: &RoutedUri) {
        for location in locations {
            self.location(location, uri, longer(via, Step::MayMatch(location.place.clone())));
        }
    }

    /// Follows the internal redirects of a block.
    fn redirects(&mut self, settings: &Settings, uri: &RoutedUri, via: &[Step]) {
        for rewrite in settings.own("rewrite") {
            let to = rewrite.arg(1);
            let is_external = to.starts_with("http://") || to.starts_with("https://") || to.starts_with("$scheme");
            let flagged = matches!(rewrite.arg(2), "redirect" | "permanent");
            if !is_external && !flagged && Pattern::new(rewrite.arg(0), false).is_match(&uri.path) != Match::No {
                // The client's arguments are appended to those of a rewrite, unless it ends with a question mark.
                let query = |own: &str, closed: bool| match (own.is_empty(), closed) {
                    (true, false) => uri.query.clone(),
                    (_, true) => Query::Instead(own.to_owned()),
                    (false, false) => Query::Before(own.to_owned()),
                };
                self.redirect(to, uri, &query, longer(via, Step::Rewrite(rewrite.place.clone(), to.to_owned())));
            }
        }
        let instead = |own: &str, _: bool| Query::Instead(own.to_owned());
        // `try_files` of a server does not hold in its locations; `index` is inherited.
        if let Some(tries) = settings.own("try_files").first() {
            // nginx serves the named files directly; only the last argument is a redirect.
            let last = tries.args.last().map_or("", String::as_str);
            if !last.starts_with('=') {
                self.redirect(last, uri, &instead, longer(via, Step::TryFiles(tries.place.clone(), last.to_owned())));
            }
            if tries.args.iter().rev().skip(1).any(|file| file.ends_with('/')) && !uri.path.ends_with('/') {
                self.index(settings, &uri.at(format!("{}/", uri.path)), via);
            } else {
                self.index(settings, uri, via);
            }
        }
        for page in settings.all("error_page") {
            let to = page.args.last().map_or("", String::as_str);
            self.is_complete &= !to.starts_with('$');
            if to.starts_with(['/', '@']) {
                self.redirect(to, uri, &instead, longer(via, Step::ErrorPage(page.place.clone(), to.to_owned())));
            }
        }
    }

    /// Follows the index files of a directory, which are internal redirects; the query stays.
    fn index(&mut self, settings: &Settings, uri: &RoutedUri, via: &[Step]) {
        // An index file has no index of its own.
        if !uri.path.ends_with('/') || via.iter().any(|step| matches!(step, Step::Index(_))) {
            return;
        }
        let files = settings.words("index").map(|files| files.value).unwrap_or_default();
        for file in files {
            let to = if file.starts_with('/') { file.clone() } else { format!("{}{file}", uri.path) };
            self.redirect(&to, uri, &|_, _| uri.query.clone(), longer(via, Step::Index(file)));
        }
    }

    /// Follows an internal redirect to a path, a named location, or a text with variables, of which only `$uri` is known. `query` gives the new
    /// query from the target's own query and whether a question mark ends the target.
    fn redirect(&mut self, target: &str, uri: &RoutedUri, query: &dyn Fn(&str, bool) -> Query, via: Vec<Step>) {
        if target.starts_with('@') {
            if let Some(location) = named_location(&self.server.locations, target) {
                self.location(location, uri, via);
            }
            return;
        }
        // `$is_args$args` is a question mark and the arguments, if there are any.
        let target = ["$args", "$query_string"]
            .iter()
            .fold(target.to_owned(), |text, args| text.replace(&format!("$is_args{args}"), &format!("?{args}")));
        let is_closed = target.ends_with('?');
        let (path, own) = target.trim_end_matches('?').split_once('?').unwrap_or((target.trim_end_matches('?'), ""));
        let Some(path) = expanded(path, &uri.path) else {
            self.is_complete = false;
            return;
        };
        let uri = RoutedUri { path: normalized_path(&path), query: query(own, is_closed) };
        let (location, possible) = location_for(self.server, &uri.path);
        self.possible(&possible, &via, &uri);
        if let Some(location) = location {
            self.location(location, &uri, via);
        }
    }
}

fn longer(via: &[Step], step: Step) -> Vec<Step> {
    via.iter().cloned().chain([step]).collect()
}

/// A path with `$uri` and `$document_uri` expanded; none if it contains another variable or a capture.
fn expanded(target: &str, path: &str) -> Option<String> {
    let mut text = target.to_owned();
    while let Some((before, name, after)) = first_variable(&text) {
        if !matches!(name, "uri" | "document_uri" | "request_uri") || path.contains('$') {
            return None;
        }
        text = format!("{before}{path}{after}");
    }
    (!text.is_empty() && !text.contains('$')).then_some(text)
}
