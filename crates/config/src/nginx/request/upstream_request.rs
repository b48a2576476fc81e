//! The request that nginx sends to the upstream: FastCGI parameters or an HTTP request. Variables are filled in that follow from the client's
//! request and from the configuration (<https://nginx.org/en/docs/varindex.html>). A load on the upstream itself sends the same request.

use std::cell::Cell;
use std::fmt;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::route::{Candidate, Query, Step};
use super::select::{LocalAddress, Selection};
use crate::SourceLine;
use crate::nginx::effective::location::Location;
use crate::nginx::effective::pass::{PassKind, first_variable};
use crate::nginx::effective::pattern::{Match, Pattern};
use crate::nginx::effective::server_name::ServerName;
use crate::nginx::effective::settings::{Occurrence, Settings};

/// Levels of variables within the values of `set` that are followed.
const SET_DEPTH_MAX: usize = 4;
/// Bytes and values that the variables of one request may expand to: `set` can double a text repeatedly.
const EXPANDED_MAX: usize = 1 << 20;
/// The client's address in the upstream request: a load on the upstream itself comes from this host.
const CLIENT: &str = "127.0.0.1";

/// Characters of a path that must be escaped in a request (RFC 3986, section 3.3).
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The client's request, as far as variables depend on it.
#[derive(Debug, Clone, Copy)]
pub struct ClientRequest<'r> {
    /// "http" or "https".
    pub scheme: &'r str,
    /// The Host header.
    pub host: &'r str,
    /// Request target in origin form, as sent.
    pub path_and_query: &'r str,
    /// The address that it arrives at.
    pub local: &'r LocalAddress,
}

/// The request that the upstream gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamRequest {
    /// FastCGI: the script's file. HTTP: the request target. Both with the query.
    pub path_and_query: String,
    /// The Host header that is sent; for FastCGI the client's.
    pub host: String,
    /// FastCGI parameters or HTTP header fields. Omitted are those that repeat the client's request (method, body, header fields) and those whose
    /// value is unknown here. A header field without a value is not sent, whatever the client sent.
    pub fields: Vec<(String, String)>,
}

/// Why the upstream request is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownRequest {
    /// The line that decides.
    pub place: SourceLine,
    /// Its text, which cannot be evaluated here.
    pub text: String,
}

impl fmt::Display for UnknownRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.place)
    }
}

impl Candidate<'_> {
    /// The request that this pass sends to the upstream; none for protocols other than HTTP and FastCGI.
    pub fn upstream_request(
        &self,
        selection: &Selection<'_>,
        client: &ClientRequest<'_>,
    ) -> Option<Result<UpstreamRequest, UnknownRequest>> {
        let variables = Variables { candidate: self, selection, client, left: Cell::new(EXPANDED_MAX) };
        let build = match self.pass.kind {
            PassKind::Fastcgi => Variables::fastcgi,
            PassKind::Proxy => Variables::http,
            PassKind::Uwsgi | PassKind::Scgi | PassKind::Grpc | PassKind::Memcached => return None,
        };
        Some(variables.check_rewrites().and_then(|()| build(&variables)))
    }
}

struct Variables<'a> {
    candidate: &'a Candidate<'a>,
    selection: &'a Selection<'a>,
    client: &'a ClientRequest<'a>,
    /// What is left of [`EXPANDED_MAX`].
    left: Cell<usize>,
}

impl Variables<'_> {
    fn settings(&self) -> &Settings {
        self.candidate.settings
    }

    fn unknown(&self, text: &str) -> UnknownRequest {
        UnknownRequest { place: self.candidate.pass.place.clone(), text: text.to_owned() }
    }

    /// An error if a `rewrite` that was not followed may change the request.
    fn check_rewrites(&self) -> Result<(), UnknownRequest> {
        let server = &self.selection.server.settings;
        let is_followed =
            |place: &SourceLine| self.candidate.via.iter().any(|step| matches!(step, Step::Rewrite(known, _) if known == place));
        let may_match = |rewrite: &&Occurrence| {
            !is_followed(&rewrite.place) && Pattern::new(rewrite.arg(0), false).is_match(&self.candidate.uri.path) != Match::No
        };
        match self.settings().own("rewrite").iter().chain(server.own("rewrite")).find(may_match) {
            Some(rewrite) => Err(UnknownRequest { place: rewrite.place.clone(), text: format!("rewrite {}", rewrite.arg(0)) }),
            None => Ok(()),
        }
    }

    fn fastcgi(&self) -> Result<UpstreamRequest, UnknownRequest> {
        let mut fields = Vec::new();
        let mut script = None;
        for param in self.settings().all("fastcgi_param") {
            let (name, text) = (param.arg(0), param.arg(1));
            let value = self.expanded(text);
            if name == "SCRIPT_FILENAME" {
                let known = value.clone().filter(|file| file.starts_with('/'));
                script = Some(known.ok_or_else(|| UnknownRequest { place: param.place.clone(), text: text.to_owned() })?);
            }
            fields.extend(value.filter(|value| !value.is_empty() || !param.has("if_not_empty")).map(|value| (name.to_owned(), value)));
        }
        let script = script.ok_or_else(|| self.unknown("no fastcgi_param SCRIPT_FILENAME"))?;
        let path_and_query = format!("{}{}", encoded(&script), self.query_with_mark()?);
        Ok(UpstreamRequest { path_and_query, host: self.client.host.to_owned(), fields })
    }

    fn http(&self) -> Result<UpstreamRequest, UnknownRequest> {
        let pass = self.candidate.pass;
        // The query may contain a key: it is not shown.
        let text = pass.text.split('?').next().unwrap_or_default();
        if pass.text.contains('$') {
            return Err(self.unknown(text));
        }
        let path = &self.candidate.uri.path;
        let path_and_query = match &pass.uri {
            Some(uri) => {
                let matched = self.candidate.location.and_then(Location::path).filter(|prefix| path.starts_with(*prefix));
                let matched = matched.ok_or_else(|| self.unknown(text))?;
                format!("{uri}{}{}", encoded(&path[matched.len()..]), self.query_with_mark()?)
            }
            // Without a URI the request is passed on unchanged, unless it was redirected internally.
            None if self.candidate.via.is_empty() => self.client.path_and_query.to_owned(),
            None => format!("{}{}", encoded(path), self.query_with_mark()?),
        };
        let mut host = self.proxy_host().to_owned();
        let mut fields = Vec::new();
        for header in self.settings().all("proxy_set_header") {
            let (name, Some(value)) = (header.arg(0), self.expanded(header.arg(1))) else { continue };
            match name.to_ascii_lowercase().as_str() {
                "host" => host = value,
                // These depend on the connection and the body.
                "connection" | "upgrade" | "te" | "keep-alive" | "content-length" | "transfer-encoding" => {}
                _ => fields.push((name.to_owned(), value)),
            }
        }
        Ok(UpstreamRequest { path_and_query, host, fields })
    }

    /// `$proxy_host`: the authority of `proxy_pass` as written.
    fn proxy_host(&self) -> &str {
        let rest = self.candidate.pass.text.split_once("://").map_or(self.candidate.pass.text.as_str(), |(_, rest)| rest);
        if rest.starts_with("unix:") { "localhost" } else { rest.split(['/', '?']).next().unwrap_or_default() }
    }

    fn host_name(&self) -> String {
        let host = self.client.host;
        let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit())).map_or(host, |(name, _)| name);
        name.to_ascii_lowercase()
    }

    fn client_query(&self) -> &str {
        self.client.path_and_query.split_once('?').map_or("", |(_, query)| query)
    }

    /// The query at the pass; none if unknown.
    fn query(&self) -> Option<String> {
        let (text, appended) = match &self.candidate.uri.query {
            Query::Client => return Some(self.client_query().to_owned()),
            Query::Instead(text) => (text, ""),
            Query::Before(text) => (text, self.client_query()),
        };
        // In the text of a redirect, arguments are those that the client sent.
        let own = ["$args", "$query_string"].iter().fold(text.clone(), |text, name| text.replace(name, self.client_query()));
        let own = own.replace("$uri", &self.selection.path);
        (!own.contains('$')).then(|| if appended.is_empty() { own } else { format!("{own}&{appended}") })
    }

    fn query_with_mark(&self) -> Result<String, UnknownRequest> {
        let query = self.query().ok_or_else(|| match self.candidate.via.last() {
            Some(Step::TryFiles(place, text) | Step::Rewrite(place, text)) => UnknownRequest { place: place.clone(), text: text.clone() },
            _ => self.unknown("the query"),
        })?;
        Ok(if query.is_empty() { query } else { format!("?{query}") })
    }

    /// A text with its variables expanded; none if one is unknown.
    fn expanded(&self, text: &str) -> Option<String> {
        self.expanded_within(text, SET_DEPTH_MAX)
    }

    fn expanded_within(&self, text: &str, depth: usize) -> Option<String> {
        let (mut rest, mut whole) = (text, String::new());
        while let Some((before, name, after)) = first_variable(rest) {
            whole.push_str(before);
            let value = self.value(name, depth)?;
            self.left.set(self.left.get().checked_sub(before.len() + value.len() + 1)?);
            whole.push_str(&value);
            rest = after;
        }
        whole.push_str(rest);
        (!rest.contains('$')).then_some(whole)
    }

    fn value(&self, name: &str, depth: usize) -> Option<String> {
        let client = self.client;
        let (address, port) = match client.local {
            LocalAddress::Ip(ip, port) => (ip.to_string(), port.to_string()),
            LocalAddress::Unix(path) => (format!("unix:{path}"), String::new()),
        };
        let plain = match name {
            "uri" | "document_uri" => self.candidate.uri.path.clone(),
            "request_uri" => client.path_and_query.to_owned(),
            "args" | "query_string" => self.query()?,
            "is_args" => if self.query()?.is_empty() { "" } else { "?" }.to_owned(),
            "scheme" | "request_scheme" => client.scheme.to_owned(),
            "https" => if client.scheme == "https" { "on" } else { "" }.to_owned(),
            "host" => self.host_name(),
            "http_host" => client.host.to_owned(),
            "proxy_host" => self.proxy_host().to_owned(),
            "server_name" => match self.selection.server.names.first() {
                Some(ServerName::Exact(name)) => name.clone(),
                _ => self.host_name(),
            },
            "server_addr" => address,
            "server_port" => port,
            "server_protocol" => "HTTP/1.1".to_owned(),
            "remote_addr" | "proxy_add_x_forwarded_for" => CLIENT.to_owned(),
            "remote_user" | "remote_port" | "fastcgi_path_info" => String::new(),
            "nginx_version" => self.settings().version().to_string(),
            "document_root" | "realpath_root" => self.document_root()?,
            "request_filename" => self.request_filename()?,
            "fastcgi_script_name" => self.script_name()?,
            _ => return self.argument_or_set(name, depth),
        };
        Some(plain)
    }

    /// `$arg_name` is an argument of the query; other variables are those of `set`.
    fn argument_or_set(&self, name: &str, depth: usize) -> Option<String> {
        if let Some(argument) = name.strip_prefix("arg_") {
            let query = self.query()?;
            let value = query.split('&').find_map(|pair| pair.strip_prefix(argument)?.strip_prefix('='));
            return Some(value.unwrap_or_default().to_owned());
        }
        let set = self.settings().own("set").iter().chain(self.selection.server.settings.own("set"));
        let value = set.into_iter().find(|set| set.arg(0).strip_prefix('$') == Some(name))?;
        self.expanded_within(value.arg(1), depth.checked_sub(1)?)
    }

    /// `root` or `alias`, whichever is set in the inner block; none if it is relative to the prefix that nginx was built with.
    fn document_root(&self) -> Option<String> {
        let (_, root, _) = self.settings().nearest(&["alias", "root"])?;
        let root = root.arg(0);
        (root.starts_with('/') && !root.contains('$')).then(|| root.to_owned())
    }

    fn request_filename(&self) -> Option<String> {
        let path = &self.candidate.uri.path;
        let root = self.document_root()?;
        let prefix = match self.settings().nearest(&["alias", "root"])? {
            ("root", ..) => return Some(format!("{}{path}", root.trim_end_matches('/'))),
            (_, _, true) => self.candidate.location.and_then(Location::path)?,
            // An alias of an outer location replaces that location's path, which is unknown here.
            (_, _, false) => return None,
        };
        Some(format!("{root}{}", path.strip_prefix(prefix)?))
    }

    /// The path, with `fastcgi_index` appended to a directory. Only PCRE can separate the script's name from a path that follows it.
    fn script_name(&self) -> Option<String> {
        let path = &self.candidate.uri.path;
        if !self.settings().all("fastcgi_split_path_info").is_empty() && path.contains(".php/") {
            return None;
        }
        let index = self.settings().word("fastcgi_index").filter(|_| path.ends_with('/')).map(|index| index.value);
        Some(format!("{path}{}", index.unwrap_or_default()))
    }
}

/// A decoded path, escaped for a request.
fn encoded(path: &str) -> String {
    utf8_percent_encode(path, ESCAPED).to_string()
}
