//! The targets of a location's requests: `proxy_pass`, `fastcgi_pass` and similar directives, and whether their connections are reused.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::listen::Address;
use super::settings::{Occurrence, Settings};
use crate::SourceLine;

/// Most targets stored for a pass with variables.
const POSSIBLE_MAX: usize = 32;
/// Most levels of variables in variables that are followed.
pub(crate) const VARIABLE_DEPTH_MAX: usize = 4;
/// Longest text of a pass after substitution, bytes. A host name has at most 255.
const VARIABLE_BYTES_MAX: usize = 320;
/// Most values substituted for the variables of one pass.
const VARIABLE_TRIES_MAX: usize = 1_000;

/// The protocol spoken to the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassKind {
    /// `proxy_pass`, in http or stream.
    Proxy,
    /// `fastcgi_pass`.
    Fastcgi,
    /// `uwsgi_pass`.
    Uwsgi,
    /// `scgi_pass`.
    Scgi,
    /// `grpc_pass`.
    Grpc,
    /// `memcached_pass`.
    Memcached,
}

impl PassKind {
    /// Directive and kind of every pass.
    pub(crate) const ALL: &'static [(&'static str, Self)] = &[
        ("proxy_pass", Self::Proxy),
        ("fastcgi_pass", Self::Fastcgi),
        ("uwsgi_pass", Self::Uwsgi),
        ("scgi_pass", Self::Scgi),
        ("grpc_pass", Self::Grpc),
        ("memcached_pass", Self::Memcached),
    ];
}

/// The target of the connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An upstream block, by name.
    Upstream(String),
    /// A literal address. nginx resolves a name in it once, at start.
    Address(Address),
    /// Variables decide for each request. This lists the values possible through `set` and `map` of the same configuration; others may exist.
    Variable(Vec<Target>),
}

/// One pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// Its position.
    pub place: SourceLine,
    /// Its protocol.
    pub kind: PassKind,
    /// Its argument as written.
    pub text: String,
    /// Whether it uses TLS to the upstream.
    pub tls: bool,
    /// The target of the connections.
    pub target: Target,
    /// The URI that replaces the location's part of the request's URI, if `proxy_pass` has one.
    pub uri: Option<String>,
}

/// Names for resolving a pass: upstream blocks, and the values of variables from `set` and `map`.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    /// The name as written, by its lower case.
    upstreams: Arc<BTreeMap<String, String>>,
    /// A variable without its dollar sign, and one value, of every `map`.
    maps: Arc<Vec<(String, String)>>,
    /// The same for every `set` of the server.
    sets: Vec<(String, String)>,
}

impl Names {
    pub(crate) fn new<'n>(upstreams: impl Iterator<Item = &'n str>, maps: Vec<(String, String)>) -> Self {
        let upstreams = upstreams.map(|name| (name.to_ascii_lowercase(), name.to_owned())).collect();
        Self { upstreams: Arc::new(upstreams), maps: Arc::new(maps), sets: Vec::new() }
    }

    /// The same names with the variables of one server.
    pub(crate) fn with_sets(&self, sets: Vec<(String, String)>) -> Self {
        Self { sets, ..self.clone() }
    }

    fn values<'n>(&'n self, variable: &'n str) -> impl Iterator<Item = &'n str> {
        self.sets.iter().chain(self.maps.iter()).filter(move |(known, _)| known == variable).map(|(_, value)| value.as_str())
    }
}

impl Pass {
    /// The pass directly in a block; `None` if there is none. The error is for an argument that nginx would refuse.
    pub(crate) fn read(settings: &Settings, names: &Names) -> Option<Result<Self, (Occurrence, &'static str)>> {
        let (directive, name, kind) = PassKind::ALL.iter().find_map(|(name, kind)| Some((settings.own(name).last()?, *name, *kind)))?;
        Some(Self::parse(directive, kind, names).ok_or_else(|| (directive.clone(), name)))
    }

    pub(crate) fn parse(directive: &Occurrence, kind: PassKind, names: &Names) -> Option<Self> {
        let text = directive.arg(0);
        let (tls, target, uri) = target(text, kind, names)?;
        Some(Self { place: directive.place.clone(), kind, text: text.to_owned(), tls, target, uri })
    }

    /// Every upstream name or address that it may connect to.
    pub fn targets(&self) -> Vec<&Target> {
        match &self.target {
            Target::Variable(possible) => possible.iter().collect(),
            one => vec![one],
        }
    }
}

/// TLS, target and URI of an argument.
fn target(text: &str, kind: PassKind, names: &Names) -> Option<(bool, Target, Option<String>)> {
    if text.contains('$') {
        let mut tls = text.starts_with("https://") || text.starts_with("grpcs://");
        let mut possible = Vec::new();
        for value in expanded(text, names, 0, &mut VARIABLE_TRIES_MAX.clone()) {
            if let Some((value_tls, found, _)) = plain_target(&value, kind, names).filter(|_| value.len() <= VARIABLE_BYTES_MAX) {
                tls |= value_tls;
                if !possible.contains(&found) {
                    possible.push(found);
                }
            }
        }
        return Some((tls, Target::Variable(possible), None));
    }
    plain_target(text, kind, names)
}

/// The same for an argument without variables.
fn plain_target(text: &str, kind: PassKind, names: &Names) -> Option<(bool, Target, Option<String>)> {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
        None => (None, text),
    };
    let (tls, port) = match (kind, scheme.as_deref()) {
        (PassKind::Proxy, Some("http")) => (false, Some(80)),
        (PassKind::Proxy, Some("https")) => (true, Some(443)),
        (PassKind::Grpc, Some("grpcs")) => (true, Some(443)),
        (PassKind::Grpc, Some("grpc") | None) => (false, Some(80)),
        (PassKind::Uwsgi, Some("suwsgi")) => (true, None),
        (PassKind::Uwsgi, Some("uwsgi") | None) | (PassKind::Fastcgi | PassKind::Scgi | PassKind::Memcached | PassKind::Proxy, None) => {
            (false, None)
        }
        _ => return None,
    };
    let (authority, uri) = split_uri(rest, kind == PassKind::Proxy && scheme.is_some());
    // An upstream's name has priority. With a port, it is the upstream only if the upstream's name includes the port.
    if let Some(name) = names.upstreams.get(&authority.to_ascii_lowercase()) {
        return Some((tls, Target::Upstream(name.clone()), uri));
    }
    Address::parse(authority, port, false).map(|address| (tls, Target::Address(address), uri))
}

/// Host part and URI. In `unix:/path:/uri` the URI follows a second colon.
fn split_uri(rest: &str, has_uri: bool) -> (&str, Option<String>) {
    if !has_uri {
        return (rest, None);
    }
    if let Some(path) = rest.strip_prefix("unix:") {
        return match path.split_once(':') {
            Some((path, uri)) => (&rest[.."unix:".len() + path.len()], Some(uri.to_owned())),
            None => (rest, None),
        };
    }
    match rest.find(['/', '?']) {
        Some(index) => (&rest[..index], Some(rest[index..].to_owned())),
        None => (rest, None),
    }
}

/// The results of replacing an argument's first variable with its known values.
fn expanded(text: &str, names: &Names, depth: usize, tries: &mut usize) -> Vec<String> {
    let Some((before, name, after)) = first_variable(text) else { return vec![text.to_owned()] };
    if depth >= VARIABLE_DEPTH_MAX {
        return Vec::new();
    }
    // Variables of the URI do not affect the target.
    if before.split_once("://").is_some_and(|(_, rest)| rest.contains('/')) {
        return vec![before.to_owned()];
    }
    let mut results = Vec::new();
    for value in names.values(name) {
        if results.len() >= POSSIBLE_MAX || *tries == 0 {
            break;
        }
        *tries -= 1;
        results.extend(expanded(&format!("{before}{value}{after}"), names, depth + 1, tries));
    }
    results.truncate(POSSIBLE_MAX);
    results
}

/// The text before, the name in, and the text after the first `$name` or `${name}`.
pub(crate) fn first_variable(text: &str) -> Option<(&str, &str, &str)> {
    let at = text.find('$')?;
    let (before, rest) = (&text[..at], &text[at + 1..]);
    if let Some(inner) = rest.strip_prefix('{') {
        let (name, after) = inner.split_once('}')?;
        return Some((before, name, after));
    }
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    (end > 0).then(|| (before, &rest[..end], &rest[end..]))
}
