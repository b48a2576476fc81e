//! Where a request may end up being passed on: the chosen location's own pass, and those behind `try_files`, `index`, `rewrite` and `error_page`.

use super::location::Location;
use super::pass::{Pass, first_variable};
use super::pattern::{Match, Pattern};
use super::select::{Selection, location_for, named_location, normalized_path};
use super::server::Server;
use super::settings::Settings;
use crate::SourceLine;

/// Internal redirects that nginx follows before it gives up (NGX_HTTP_MAX_URI_CHANGES).
const HOPS_MAX: usize = 10;
/// Locations that are looked at for one request, each with every path that leads to it.
const VISITS_MAX: usize = 256;
/// Passes that are listed for one request.
const CANDIDATES_MAX: usize = 64;

/// One internal redirect on the way.
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
    /// A location whose regular expression only PCRE can judge.
    MayMatch(SourceLine),
}

/// The query behind a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// The client's.
    Client,
    /// This one as written, variables and all, in its place.
    Instead(String),
    /// This one as written, and the client's behind it.
    Before(String),
}

/// What is asked for on the way: another thing than the client asked for behind an internal redirect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sought {
    /// The path, decoded.
    pub path: String,
    /// Its query.
    pub query: Query,
}

impl Sought {
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
    /// The location where it stands; nothing where it stands in a condition.
    pub location: Option<&'a Location>,
    /// What is asked for there.
    pub sought: Sought,
    /// The way to it. Empty: nothing stands between the request and it, and no other candidate can take the request.
    pub via: Vec<Step>,
}

impl<'a> Selection<'a> {
    /// Every pass that may answer the request, the likeliest first. Which files exist and which conditions hold is not known here, so all ways are
    /// followed. Empty for a request that nginx answers itself.
    pub fn candidates(&self) -> Vec<Candidate<'a>> {
        let mut walk = Walk { server: self.server, found: Vec::new(), seen: Vec::new() };
        let via: Vec<Step> = Vec::new();
        let sought = Sought { path: self.path.clone(), query: Query::Client };
        walk.conditions(&self.server.conditions, &sought, &via);
        walk.possible(&self.locations_possible, &via, &sought);
        match self.location {
            Some(location) => walk.location(location, &sought, via),
            None => walk.redirects(&self.server.settings, &sought, &via),
        }
        // What is certain goes first; otherwise the fewer the turns, the likelier, and what is only a guess comes last.
        walk.found.sort_by_key(|candidate| (candidate.via.iter().any(|step| matches!(step, Step::MayMatch(_))), candidate.via.len()));
        walk.found
    }
}

struct Walk<'a> {
    server: &'a Server,
    found: Vec<Candidate<'a>>,
    /// Locations and paths that were looked at, so that redirects in a circle end.
    seen: Vec<(SourceLine, String)>,
}

impl<'a> Walk<'a> {
    fn location(&mut self, location: &'a Location, sought: &Sought, via: Vec<Step>) {
        let key = (location.place.clone(), sought.path.clone());
        if via.len() > HOPS_MAX || self.found.len() >= CANDIDATES_MAX || self.seen.len() >= VISITS_MAX || self.seen.contains(&key) {
            return;
        }
        self.seen.push(key);
        self.conditions(&location.conditions, sought, &via);
        self.redirects(&location.settings, sought, &via);
        match &location.pass {
            Some(pass) => self.add(Candidate { pass, settings: &location.settings, location: Some(location), sought: sought.clone(), via }),
            None => self.index(&location.settings, sought, &via),
        }
    }

    fn add(&mut self, candidate: Candidate<'a>) {
        if !self.found.iter().any(|known| known.pass == candidate.pass) {
            self.found.push(candidate);
        }
    }

    fn conditions(&mut self, conditions: &'a [super::location::Condition], sought: &Sought, via: &[Step]) {
        for condition in conditions {
            if let Some(pass) = &condition.pass {
                let via = longer(via, Step::Condition(condition.place.clone(), condition.text.clone()));
                self.add(Candidate { pass, settings: &condition.settings, location: None, sought: sought.clone(), via });
            }
        }
    }

    fn possible(&mut self, locations: &[&'a Location], via: &[Step], sought: &Sought) {
        for location in locations {
            self.location(location, sought, longer(via, Step::MayMatch(location.place.clone())));
        }
    }

    /// The ways out of a block that are no pass.
    fn redirects(&mut self, settings: &Settings, sought: &Sought, via: &[Step]) {
        for rewrite in settings.own("rewrite") {
            let to = rewrite.arg(1);
            let elsewhere = to.starts_with("http://") || to.starts_with("https://") || to.starts_with("$scheme");
            let flagged = matches!(rewrite.arg(2), "redirect" | "permanent");
            if !elsewhere && !flagged && Pattern::new(rewrite.arg(0), false).is_match(&sought.path) != Match::No {
                // The client's arguments go behind those of a rewrite, unless that ends in a question mark.
                let query = |own: &str, closed: bool| match (own.is_empty(), closed) {
                    (true, false) => sought.query.clone(),
                    (_, true) => Query::Instead(own.to_owned()),
                    (false, false) => Query::Before(own.to_owned()),
                };
                self.to(to, sought, &query, longer(via, Step::Rewrite(rewrite.place.clone(), to.to_owned())));
            }
        }
        let instead = |own: &str, _: bool| Query::Instead(own.to_owned());
        // `try_files` and `index` belong to what is in force; a server's hold in locations that have none of their own pass only by inheritance.
        if let Some(tries) = settings.own("try_files").first() {
            // nginx serves the named files where they are; only the last is a redirect.
            let last = tries.args.last().map_or("", String::as_str);
            if !last.starts_with('=') {
                self.to(last, sought, &instead, longer(via, Step::TryFiles(tries.place.clone(), last.to_owned())));
            }
            if tries.args.iter().rev().skip(1).any(|file| file.ends_with('/')) && !sought.path.ends_with('/') {
                self.index(settings, &sought.at(format!("{}/", sought.path)), via);
            } else {
                self.index(settings, sought, via);
            }
        }
        for page in settings.all("error_page") {
            let to = page.args.last().map_or("", String::as_str);
            if to.starts_with(['/', '@']) {
                self.to(to, sought, &instead, longer(via, Step::ErrorPage(page.place.clone(), to.to_owned())));
            }
        }
    }

    /// A directory's index files are internal redirects; the query stays.
    fn index(&mut self, settings: &Settings, sought: &Sought, via: &[Step]) {
        // An index file is a file: it has no index of its own.
        if !sought.path.ends_with('/') || via.iter().any(|step| matches!(step, Step::Index(_))) {
            return;
        }
        let files = settings.words("index").map(|files| files.value).unwrap_or_default();
        for file in files {
            let to = if file.starts_with('/') { file.clone() } else { format!("{}{file}", sought.path) };
            self.to(&to, sought, &|_, _| sought.query.clone(), longer(via, Step::Index(file)));
        }
    }

    /// An internal redirect to a path, a named location, or something with variables, of which `$uri` is known. `query` says what becomes of
    /// the query, given the target's own and whether a question mark ends it.
    fn to(&mut self, target: &str, sought: &Sought, query: &dyn Fn(&str, bool) -> Query, via: Vec<Step>) {
        if target.starts_with('@') {
            if let Some(location) = named_location(&self.server.locations, target) {
                self.location(location, sought, via);
            }
            return;
        }
        // `$is_args$args` is a question mark and the arguments where there are any.
        let target = ["$args", "$query_string"]
            .iter()
            .fold(target.to_owned(), |text, args| text.replace(&format!("$is_args{args}"), &format!("?{args}")));
        let is_closed = target.ends_with('?');
        let (path, own) = target.trim_end_matches('?').split_once('?').unwrap_or((target.trim_end_matches('?'), ""));
        let Some(path) = filled(path, &sought.path) else { return };
        let sought = Sought { path: normalized_path(&path), query: query(own, is_closed) };
        let (location, possible) = location_for(self.server, &sought.path);
        self.possible(&possible, &via, &sought);
        if let Some(location) = location {
            self.location(location, &sought, via);
        }
    }
}

fn longer(via: &[Step], step: Step) -> Vec<Step> {
    via.iter().cloned().chain([step]).collect()
}

/// A path with `$uri` and `$document_uri` filled in; nothing where another variable or a capture decides.
fn filled(target: &str, path: &str) -> Option<String> {
    let mut text = target.to_owned();
    while let Some((before, name, after)) = first_variable(&text) {
        if !matches!(name, "uri" | "document_uri" | "request_uri") || path.contains('$') {
            return None;
        }
        text = format!("{before}{path}{after}");
    }
    (!text.is_empty() && !text.contains('$')).then_some(text)
}
