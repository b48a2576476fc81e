//! The verdict on keepalive of one edge: whether connections are kept, and the reasons why not.

use serde::{Deserialize, Serialize};

use crate::output::message::Message;

/// Share of requests sent on connections that had already carried one. Connections count as kept from this share.
pub(super) const KEPT_SHARE: f64 = 0.9;
/// Below this share connections count as partly kept even if no reason was found: a short capture of few requests shows little reuse.
pub(super) const SHARE_MIN: f64 = 0.5;
/// A limit of requests per connection from this number on costs too little to mention: nginx's own default (keepalive_requests 1000).
pub(super) const REQUEST_LIMIT_FINE: u64 = 1000;
/// Smallest gain worth mentioning, as a factor.
pub(super) const GAIN_MIN: f64 = 1.01;

/// Whether connections are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectionReuse {
    /// For all requests.
    InForce,
    /// For some requests, or with costly ends.
    Partly,
    /// For none: each request opens a connection.
    Not,
    /// Too little was seen.
    Unknown,
}

/// Why connections are not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The client says `Connection: close`.
    CloseRequested,
    /// The client speaks HTTP/1.0.
    Http10,
    /// The client does not set FCGI_KEEP_CONN.
    KeepConnUnset,
    /// The server announces that it closes, after each answer.
    ServerCloses,
    /// The server closes after each answer without announcing it.
    ServerClosesSilently,
    /// The client closes after each answer unasked: it has no pool.
    ClientCloses,
    /// The server closes after so many requests.
    RequestLimit,
    /// The server closes idle connections that the client still keeps.
    ServerIdle,
}

impl Reason {
    /// The ids of its sentence and of its configuration line in the catalogue.
    pub(super) fn ids(self) -> (&'static str, &'static str) {
        match self {
            Reason::CloseRequested => ("keepalive-reason-close-requested", "keepalive-line-proxy"),
            Reason::Http10 => ("keepalive-reason-http10", "keepalive-line-proxy"),
            Reason::KeepConnUnset => ("keepalive-reason-keep-conn-unset", "keepalive-line-fastcgi"),
            Reason::ServerCloses => ("keepalive-reason-server-closes", "keepalive-line-backend"),
            Reason::ServerClosesSilently => ("keepalive-reason-server-closes-silently", "keepalive-line-backend"),
            Reason::ClientCloses => ("keepalive-reason-client-closes", "keepalive-line-pool"),
            Reason::RequestLimit => ("keepalive-reason-request-limit", "keepalive-line-requests"),
            Reason::ServerIdle => ("keepalive-reason-server-idle", "keepalive-line-idle"),
        }
    }
}

/// The verdict on an edge.
#[derive(Debug, Clone, PartialEq)]
pub struct Keepalive {
    /// Whether connections are kept.
    pub kept: ConnectionReuse,
    /// Reasons why not, the most important first.
    pub reasons: Vec<Reason>,
    /// True if only one of the reasons applies and it is unknown which.
    pub open: bool,
    /// The verdict in one sentence.
    pub summary: Message,
    /// A sentence with evidence for each reason.
    pub why: Vec<Message>,
    /// What to change: a line of configuration each.
    pub lines: Vec<Message>,
    /// The gain from keeping connections, if known.
    pub gain: Option<Gain>,
}

/// The gain from keeping connections.
#[derive(Debug, Clone, PartialEq)]
pub struct Gain {
    /// Factor on today's requests, for a closed loop limited by the requests' time and not by a resource.
    pub factor: f64,
    /// The same in words.
    pub text: Message,
}

/// True if `part` is more than half of `whole`.
pub(super) fn most(part: u64, whole: u64) -> bool {
    part > 0 && part * 2 > whole
}
