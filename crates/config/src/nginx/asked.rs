//! What nginx asks of the server behind it: FastCGI parameters or an HTTP request, with the variables filled in that follow from the
//! client's request and from the configuration (<https://nginx.org/en/docs/varindex.html>). A load that leaves nginx out sends the same.

use std::cell::Cell;
use std::fmt;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::location::Location;
use super::pass::{PassKind, first_variable};
use super::pattern::{Match, Pattern};
use super::route::{Candidate, Query, Step};
use super::select::{LocalAddress, Selection};
use super::server_name::ServerName;
use super::settings::{Occurrence, Settings};
use crate::SourceLine;

/// Variables within the values of `set` that are followed.
const SET_DEPTH_MAX: usize = 4;
/// Bytes that the variables of one request may come to, and values that are put in for them: `set` can double a text again and again.
const FILLED_MAX: usize = 1 << 20;
/// The client's address that the server behind is told: nobody is in front of a load that leaves nginx out.
const CLIENT: &str = "127.0.0.1";

/// Characters of a path that must not stand in a request as they are (RFC 3986, section 3.3).
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

/// The client's request, as far as variables tell it.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'r> {
    /// "http" or "https".
    pub scheme: &'r str,
    /// The Host header.
    pub host: &'r str,
    /// Request target in origin form, as it is sent.
    pub path_and_query: &'r str,
    /// Where it comes in.
    pub local: &'r LocalAddress,
}

/// What is asked behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Of FastCGI the script's file, of HTTP the request target; with the query.
    pub path_and_query: String,
    /// The Host header that is sent, of FastCGI the client's.
    pub host: String,
    /// Parameters of FastCGI, header fields of HTTP. What repeats the client's own (method, body, header fields) and what cannot be told here is
    /// left out. A header field without a value is not sent, whatever the client's is.
    pub fields: Vec<(String, String)>,
}

/// Why it cannot be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unasked {
    /// The line that decides.
    pub place: SourceLine,
    /// What stands there and cannot be told here.
    pub text: String,
}

impl fmt::Display for Unasked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.place)
    }
}

impl Candidate<'_> {
    /// What this pass asks for a request that was selected so. Nothing for protocols other than HTTP and FastCGI.
    pub fn asked(&self, selection: &Selection<'_>, asking: &Asking<'_>) -> Option<Result<Asked, Unasked>> {
        let variables = Variables { candidate: self, selection, asking, left: Cell::new(FILLED_MAX) };
        let asked = match self.pass.kind {
            PassKind::Fastcgi => Variables::fastcgi,
            PassKind::Proxy => Variables::http,
            PassKind::Uwsgi | PassKind::Scgi | PassKind::Grpc | PassKind::Memcached => return None,
        };
        Some(variables.unturned().and_then(|()| asked(&variables)))
    }
}

struct Variables<'a> {
    candidate: &'a Candidate<'a>,
    selection: &'a Selection<'a>,
    asking: &'a Asking<'a>,
    /// What is left of [`FILLED_MAX`].
    left: Cell<usize>,
}

impl Variables<'_> {
    fn settings(&self) -> &Settings {
        self.candidate.settings
    }

    fn unasked(&self, text: &str) -> Unasked {
        Unasked { place: self.candidate.pass.place.clone(), text: text.to_owned() }
    }

    /// An error where a `rewrite` may make another request of it, which was not followed here.
    fn unturned(&self) -> Result<(), Unasked> {
        let server = &self.selection.server.settings;
        let is_followed =
            |place: &SourceLine| self.candidate.via.iter().any(|step| matches!(step, Step::Rewrite(known, _) if known == place));
        let may_turn = |rewrite: &&Occurrence| {
            !is_followed(&rewrite.place) && Pattern::new(rewrite.arg(0), false).is_match(&self.candidate.sought.path) != Match::No
        };
        match self.settings().own("rewrite").iter().chain(server.own("rewrite")).find(may_turn) {
            Some(rewrite) => Err(Unasked { place: rewrite.place.clone(), text: format!("rewrite {}", rewrite.arg(0)) }),
            None => Ok(()),
        }
    }

    fn fastcgi(&self) -> Result<Asked, Unasked> {
        let mut fields = Vec::new();
        let mut script = None;
        for param in self.settings().all("fastcgi_param") {
            let (name, text) = (param.arg(0), param.arg(1));
            let value = self.filled(text);
            if name == "SCRIPT_FILENAME" {
                let known = value.clone().filter(|file| file.starts_with('/'));
                script = Some(known.ok_or_else(|| Unasked { place: param.place.clone(), text: text.to_owned() })?);
            }
            fields.extend(value.filter(|value| !value.is_empty() || !param.has("if_not_empty")).map(|value| (name.to_owned(), value)));
        }
        let script = script.ok_or_else(|| self.unasked("no fastcgi_param SCRIPT_FILENAME"))?;
        let path_and_query = format!("{}{}", encoded(&script), self.query_with_mark()?);
        Ok(Asked { path_and_query, host: self.asking.host.to_owned(), fields })
    }

    fn http(&self) -> Result<Asked, Unasked> {
        let pass = self.candidate.pass;
        // Its query may hold a key.
        let text = pass.text.split('?').next().unwrap_or_default();
        if pass.text.contains('$') {
            return Err(self.unasked(text));
        }
        let path = &self.candidate.sought.path;
        let path_and_query = match &pass.uri {
            Some(uri) => {
                let matched = self.candidate.location.and_then(Location::path).filter(|prefix| path.starts_with(*prefix));
                let matched = matched.ok_or_else(|| self.unasked(text))?;
                format!("{uri}{}{}", encoded(&path[matched.len()..]), self.query_with_mark()?)
            }
            // Without a URI the request goes on as it came, unless it was turned inside.
            None if self.candidate.via.is_empty() => self.asking.path_and_query.to_owned(),
            None => format!("{}{}", encoded(path), self.query_with_mark()?),
        };
        let mut host = self.proxy_host().to_owned();
        let mut fields = Vec::new();
        for header in self.settings().all("proxy_set_header") {
            let (name, Some(value)) = (header.arg(0), self.filled(header.arg(1))) else { continue };
            match name.to_ascii_lowercase().as_str() {
                "host" => host = value,
                // These follow from the connection and the body.
                "connection" | "upgrade" | "te" | "keep-alive" | "content-length" | "transfer-encoding" => {}
                _ => fields.push((name.to_owned(), value)),
            }
        }
        Ok(Asked { path_and_query, host, fields })
    }

    /// `$proxy_host`: the authority of `proxy_pass` as written.
    fn proxy_host(&self) -> &str {
        let rest = self.candidate.pass.text.split_once("://").map_or(self.candidate.pass.text.as_str(), |(_, rest)| rest);
        if rest.starts_with("unix:") { "localhost" } else { rest.split(['/', '?']).next().unwrap_or_default() }
    }

    fn host_name(&self) -> String {
        let host = self.asking.host;
        let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit())).map_or(host, |(name, _)| name);
        name.to_ascii_lowercase()
    }

    fn client_query(&self) -> &str {
        self.asking.path_and_query.split_once('?').map_or("", |(_, query)| query)
    }

    /// The query as it is at the pass; nothing where it cannot be told.
    fn query(&self) -> Option<String> {
        let (text, behind) = match &self.candidate.sought.query {
            Query::Client => return Some(self.client_query().to_owned()),
            Query::Instead(text) => (text, ""),
            Query::Before(text) => (text, self.client_query()),
        };
        // In a redirect's own text the arguments are those that the client sent.
        let own = ["$args", "$query_string"].iter().fold(text.clone(), |text, name| text.replace(name, self.client_query()));
        let own = own.replace("$uri", &self.selection.path);
        (!own.contains('$')).then(|| if behind.is_empty() { own } else { format!("{own}&{behind}") })
    }

    fn query_with_mark(&self) -> Result<String, Unasked> {
        let query = self.query().ok_or_else(|| match self.candidate.via.last() {
            Some(Step::TryFiles(place, text) | Step::Rewrite(place, text)) => Unasked { place: place.clone(), text: text.clone() },
            _ => self.unasked("the query"),
        })?;
        Ok(if query.is_empty() { query } else { format!("?{query}") })
    }

    /// A text with its variables filled in; nothing where one cannot be told here.
    fn filled(&self, text: &str) -> Option<String> {
        self.filled_within(text, SET_DEPTH_MAX)
    }

    fn filled_within(&self, text: &str, depth: usize) -> Option<String> {
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
        let asking = self.asking;
        let (address, port) = match asking.local {
            LocalAddress::Ip(ip, port) => (ip.to_string(), port.to_string()),
            LocalAddress::Unix(path) => (format!("unix:{path}"), String::new()),
        };
        let plain = match name {
            "uri" | "document_uri" => self.candidate.sought.path.clone(),
            "request_uri" => asking.path_and_query.to_owned(),
            "args" | "query_string" => self.query()?,
            "is_args" => if self.query()?.is_empty() { "" } else { "?" }.to_owned(),
            "scheme" | "request_scheme" => asking.scheme.to_owned(),
            "https" => if asking.scheme == "https" { "on" } else { "" }.to_owned(),
            "host" => self.host_name(),
            "http_host" => asking.host.to_owned(),
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
            _ => return self.given(name, depth),
        };
        Some(plain)
    }

    /// Arguments are those of the query, and other names those of `set`.
    fn given(&self, name: &str, depth: usize) -> Option<String> {
        if let Some(argument) = name.strip_prefix("arg_") {
            let query = self.query()?;
            let value = query.split('&').find_map(|pair| pair.strip_prefix(argument)?.strip_prefix('='));
            return Some(value.unwrap_or_default().to_owned());
        }
        let set = self.settings().own("set").iter().chain(self.selection.server.settings.own("set"));
        let value = set.into_iter().find(|set| set.arg(0).strip_prefix('$') == Some(name))?;
        self.filled_within(value.arg(1), depth.checked_sub(1)?)
    }

    /// `root` or `alias`, whichever is nearer; nothing where it is relative to the prefix that nginx was built with.
    fn document_root(&self) -> Option<String> {
        let (_, root, _) = self.settings().nearest(&["alias", "root"])?;
        let root = root.arg(0);
        (root.starts_with('/') && !root.contains('$')).then(|| root.to_owned())
    }

    fn request_filename(&self) -> Option<String> {
        let path = &self.candidate.sought.path;
        let root = self.document_root()?;
        let prefix = match self.settings().nearest(&["alias", "root"])? {
            ("root", ..) => return Some(format!("{}{path}", root.trim_end_matches('/'))),
            (_, _, true) => self.candidate.location.and_then(Location::path)?,
            // An alias further out takes the place of that location's path, which is not known here.
            (_, _, false) => return None,
        };
        Some(format!("{root}{}", path.strip_prefix(prefix)?))
    }

    /// The path, with `fastcgi_index` behind a directory. Where more stands behind the script's name only PCRE can part the two.
    fn script_name(&self) -> Option<String> {
        let path = &self.candidate.sought.path;
        if !self.settings().all("fastcgi_split_path_info").is_empty() && path.contains(".php/") {
            return None;
        }
        let index = self.settings().word("fastcgi_index").filter(|_| path.ends_with('/')).map(|index| index.value);
        Some(format!("{path}{}", index.unwrap_or_default()))
    }
}

/// A decoded path as it stands in a request.
fn encoded(path: &str) -> String {
    utf8_percent_encode(path, ESCAPED).to_string()
}
