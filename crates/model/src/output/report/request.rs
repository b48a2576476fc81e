//! What a diagnosis was asked for.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::observation::NetnsId;

/// What was asked for. Kept in a recording, so that a replay asks the same.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The URL as given; query and user information redacted in recordings.
    pub url: String,
    /// Scheme: "http".
    pub scheme: String,
    /// Host as given.
    pub host: String,
    /// Port.
    pub port: u16,
    /// The Host header that is sent, where it is another than the URL's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_host: Option<String>,
    /// Addresses the host stands for.
    pub addresses: Vec<IpAddr>,
    /// The unix socket that is connected to instead, by each name that it goes by: as given (an abstract name begins with `@`), and as links
    /// lead. Empty for a TCP target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unix: Vec<String>,
    /// Namespace from which the client connects.
    pub client_netns: NetnsId,
    /// Namespace in which the server is to be looked for, where the user named one.
    pub server_netns: Option<NetnsId>,
    /// Expected statuses, as ranges that include both ends.
    pub expect: Vec<(u16, u16)>,
    /// The objective's p99, microseconds.
    pub slo_p99_us: Option<u64>,
    /// True where load was applied.
    pub loaded: bool,
    /// True where the user wants nothing to be hidden (`--redact none`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_clear: bool,
}

impl Request {
    /// True where the target speaks FastCGI and no web server is asked.
    pub fn is_fastcgi(&self) -> bool {
        self.scheme.starts_with("fcgi")
    }

    /// The Host header (RFC 9110, 7.2): as it was asked for, else the URL's, with the port only where it is not the scheme's own.
    pub fn host_header(&self) -> String {
        if let Some(host) = &self.sent_host {
            return host.clone();
        }
        let own = [("http", 80), ("https", 443)].contains(&(self.scheme.as_str(), self.port));
        if own || self.port == 0 || self.is_fastcgi() { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }

    /// The path in the URL, with its query; "/" where it has none.
    pub fn path_and_query(&self) -> &str {
        let rest = match self.unix.first() {
            Some(name) => self.url.split_once(name.as_str()).map_or("", |(_, rest)| rest),
            None => self.url.split_once("://").map_or(self.url.as_str(), |(_, rest)| rest),
        };
        let end = rest.find('#').unwrap_or(rest.len());
        rest[..end].find('/').map_or("/", |at| &rest[at..end])
    }

    /// The path in the URL, without its query.
    pub fn path(&self) -> &str {
        self.path_and_query().split('?').next().unwrap_or("/")
    }
}
