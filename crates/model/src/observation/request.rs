//! The request that a diagnosis is about.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::NetnsId;

/// What was asked for. A recording keeps it, so that a replay asks the same.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The URL as given. Recordings redact the query and user information.
    pub url: String,
    /// Scheme: "http".
    pub scheme: String,
    /// Host as given.
    pub host: String,
    /// Port.
    pub port: u16,
    /// The Host header, if it differs from the URL's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_host: Option<String>,
    /// Addresses of the host.
    pub addresses: Vec<IpAddr>,
    /// The unix socket to connect to instead, under all its names: as given (an abstract name begins with `@`), and with links resolved. Empty for a TCP
    /// target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unix: Vec<String>,
    /// Namespace of the client.
    pub client_netns: NetnsId,
    /// Namespace of the server, if the user named one.
    pub server_netns: Option<NetnsId>,
    /// Expected statuses, as inclusive ranges.
    pub expect: Vec<(u16, u16)>,
    /// The objective for the p99, microseconds.
    pub slo_p99_us: Option<u64>,
    /// True if load was applied.
    pub loaded: bool,
    /// For how long to watch, microseconds; nothing with load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch_us: Option<u64>,
    /// The usual time of a request before, milliseconds, if a history knows it (`watch`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual_ms: Option<f64>,
    /// True if nothing is to be redacted (`--redact none`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_clear: bool,
    /// The name of the host that measured, unless host names are redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// When the run began, seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_s: Option<i64>,
    /// The user who measured, by number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_uid: Option<u32>,
    /// The version of the program that measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

impl Request {
    /// True if the target speaks FastCGI, without a web server in front.
    pub fn is_fastcgi(&self) -> bool {
        self.scheme.starts_with("fcgi")
    }

    /// The Host header (RFC 9110, 7.2): the one asked for, else the URL's host, with the port only if it is not the scheme's default.
    pub fn host_header(&self) -> String {
        if let Some(host) = &self.sent_host {
            return host.clone();
        }
        let own = [("http", 80), ("https", 443)].contains(&(self.scheme.as_str(), self.port));
        if own || self.port == 0 || self.is_fastcgi() { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }

    /// The path of the URL with its query; "/" if it has none.
    pub fn path_and_query(&self) -> &str {
        let rest = match self.unix.first() {
            Some(name) => self.url.split_once(name.as_str()).map_or("", |(_, rest)| rest),
            None => self.url.split_once("://").map_or(self.url.as_str(), |(_, rest)| rest),
        };
        let end = rest.find('#').unwrap_or(rest.len());
        rest[..end].find('/').map_or("/", |at| &rest[at..end])
    }

    /// The path of the URL without its query.
    pub fn path(&self) -> &str {
        self.path_and_query().split('?').next().unwrap_or("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_any_url() {
        let of = |url: &str, unix: &[&str]| {
            let unix = unix.iter().map(|name| (*name).to_owned()).collect();
            Request { url: url.to_owned(), unix, ..Request::default() }
        };
        for (url, unix, with_query, path) in [
            ("http://a:1/b?c/d#e", &[][..], "/b?c/d", "/b"),
            ("http://a", &[], "/", "/"),
            ("", &[], "/", "/"),
            ("://", &[], "/", "/"),
            ("http://[::1]:80/\u{e4}", &[], "/\u{e4}", "/\u{e4}"),
            ("fcgi://a:9000/srv/x.php?y", &[], "/srv/x.php?y", "/srv/x.php"),
            ("http+unix:/run/a.sock", &["/run/a.sock"], "/", "/"),
            ("http+unix:/run/a.sock:/b/c?d", &["/run/a.sock", "/srv/a.sock"], "/b/c?d", "/b/c"),
            ("fcgi+unix:@app:/x.php", &["@app"], "/x.php", "/x.php"),
        ] {
            let request = of(url, unix);
            assert_eq!((request.path_and_query(), request.path()), (with_query, path), "{url}");
        }
    }
}
