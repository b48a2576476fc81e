//! One edge between two servers: whether connections on it are kept, why not, and what to change. Facts come in, words go out.

mod cycles;

use serde::{Deserialize, Serialize};

use crate::output::message::Message;

pub use cycles::{ClientKeeps, ServerKeeps, SocketFacts, keepalive_of_sockets};

/// Requests on connections that were used before, as a share of all, from which on connections count as kept.
const KEPT_SHARE: f64 = 0.9;
/// The same share below which they count as partly kept although nothing says why: a short capture of few requests has few to show.
const SHARE_MIN: f64 = 0.5;
/// A limit of requests from which on what it costs is not worth a word: nginx's own default (keepalive_requests 1000).
const REQUEST_LIMIT_FINE: u64 = 1000;
/// A gain below this is not worth a word.
const GAIN_MIN: f64 = 1.01;
/// Fewer answers than this allow no verdict.
const ANSWERS_MIN: u64 = 2;

/// What an edge carries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EdgeProtocol {
    /// HTTP/1.x.
    Http,
    /// FastCGI.
    Fastcgi,
    /// Something whose requests are not seen: counted by turns.
    #[default]
    Turns,
}

/// Connections that were closed, by how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closes {
    /// By FIN.
    pub fin: u64,
    /// By RST.
    pub rst: u64,
}

impl Closes {
    fn all(self) -> u64 {
        self.fin + self.rst
    }
}

/// What was seen of the connections of an edge.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EdgeFacts {
    /// What they carry.
    pub protocol: EdgeProtocol,
    /// Connections that carried a request.
    pub connections: u64,
    /// Requests.
    pub requests: u64,
    /// Whole answers.
    pub answers: u64,
    /// Connections with one request that were still open when the capture ended.
    pub single_open: u64,
    /// Requests with `Connection: close`.
    pub requests_close: u64,
    /// Requests of HTTP/1.0 that did not ask to keep the connection.
    pub requests_http10: u64,
    /// FastCGI requests without FCGI_KEEP_CONN.
    pub requests_unkept: u64,
    /// Answers that said that the connection ends.
    pub answers_close: u64,
    /// Answers that ended with the connection.
    pub answers_until_close: u64,
    /// Closed first by the client right after an answer.
    pub client_after_answer: Closes,
    /// Closed first by the server right after an answer.
    pub server_after_answer: Closes,
    /// Closed first by the client when idle.
    pub client_idle: Closes,
    /// Closed first by the server when idle.
    pub server_idle: Closes,
    /// Median idle time after which the server closed, s.
    pub server_idle_s: Option<f64>,
    /// The number of requests with which the server most often ended a used connection, and how many it ended so.
    pub request_limit: Option<(u64, u64)>,
    /// Requests that met a server which had just closed.
    pub races: u64,
    /// Mean time of a set-up, ms.
    pub setup_ms: Option<f64>,
    /// Mean time of a request without the set-up, ms.
    pub request_ms: Option<f64>,
}

/// Whether connections are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// They are.
    InForce,
    /// For some requests, or with an end that costs.
    Partly,
    /// Each request opens a connection of its own.
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
    /// The server says that it closes, after each answer.
    ServerCloses,
    /// The server closes without a word after each answer.
    ServerClosesSilently,
    /// The client closes after each answer though nobody asked for it: it has no pool.
    ClientCloses,
    /// The server closes after so many requests.
    RequestLimit,
    /// The server gives up idle connections that the client still holds.
    ServerIdle,
}

impl Reason {
    /// Its sentence and its configuration line in the catalogue.
    fn ids(self) -> (&'static str, &'static str) {
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

/// The verdict about an edge.
#[derive(Debug, Clone, PartialEq)]
pub struct Keepalive {
    /// Whether connections are kept.
    pub kept: Kept,
    /// Why not, the weightiest first.
    pub reasons: Vec<Reason>,
    /// One of the reasons is it: what was seen does not tell which.
    pub open: bool,
    /// The verdict in one sentence.
    pub summary: Message,
    /// Each reason in a sentence with its evidence.
    pub why: Vec<Message>,
    /// What to change, a line of configuration each.
    pub lines: Vec<Message>,
    /// What keeping connections would give, where that can be told.
    pub gain: Option<Gain>,
}

/// What keeping connections would give.
#[derive(Debug, Clone, PartialEq)]
pub struct Gain {
    /// As many times the requests of today in a closed loop whose limit is the time that requests take, not a resource.
    pub factor: f64,
    /// The same in words.
    pub text: Message,
}

/// The verdict about keepalive on an edge.
pub fn keepalive(facts: &EdgeFacts) -> Keepalive {
    let again = facts.requests.saturating_sub(facts.connections);
    let share = if facts.requests > 0 { again as f64 / facts.requests as f64 } else { 0.0 };
    let reasons = reasons(facts, share);
    let closed_singles = facts.connections.saturating_sub(facts.single_open);
    let kept = if facts.answers < ANSWERS_MIN || again == 0 && closed_singles == 0 {
        Kept::Unknown
    } else if again == 0 || share < 0.01 {
        Kept::Not
    } else if share < SHARE_MIN || share < KEPT_SHARE && !reasons.is_empty() || facts.races > 0 || reasons.contains(&Reason::RequestLimit) {
        Kept::Partly
    } else {
        Kept::InForce
    };
    let reasons = if matches!(kept, Kept::Not | Kept::Partly) { reasons } else { Vec::new() };
    let mut lines: Vec<Message> = Vec::new();
    for reason in &reasons {
        let line = Message::new(reason.ids().1);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let why = reasons.iter().map(|reason| sentence(*reason, facts)).collect();
    let summary = Message::new(match kept {
        Kept::InForce => "keepalive-in-force",
        Kept::Partly => "keepalive-partly",
        Kept::Not => "keepalive-not",
        Kept::Unknown => "keepalive-unknown",
    })
    .with("requests", facts.requests as f64)
    .with("connections", facts.connections as f64)
    .with("share", share * 100.0);
    Keepalive { kept, reasons, open: false, summary, why, lines, gain: gain(facts, share, kept) }
}

/// More than half of a whole that is not nothing.
fn most(part: u64, whole: u64) -> bool {
    part > 0 && part * 2 > whole
}

fn reasons(facts: &EdgeFacts, share: f64) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let closing = facts.requests_close + facts.requests_http10;
    let kept = share >= KEPT_SHARE;
    let singles = facts.requests < 2 * facts.connections;
    if !kept {
        // What the client asks for explains what the server does.
        if most(facts.requests_close, facts.requests) {
            reasons.push(Reason::CloseRequested);
        } else if most(facts.requests_http10, facts.requests) {
            reasons.push(Reason::Http10);
        } else if facts.protocol == EdgeProtocol::Fastcgi && most(facts.requests_unkept, facts.requests) {
            reasons.push(Reason::KeepConnUnset);
        } else if !singles {
            // Connections that carry several requests each have another reason to end, or none.
        } else if facts.request_limit.is_none() && most(facts.answers_close.saturating_sub(closing), facts.connections) {
            reasons.push(Reason::ServerCloses);
        } else if facts.request_limit.is_none() && most(facts.server_after_answer.all(), facts.connections) {
            reasons.push(Reason::ServerClosesSilently);
        } else if most(facts.client_after_answer.all(), facts.connections) {
            reasons.push(Reason::ClientCloses);
        }
    }
    if reasons.is_empty()
        && let Some((requests, _)) = facts.request_limit
        && requests < REQUEST_LIMIT_FINE
    {
        reasons.push(Reason::RequestLimit);
    }
    let idle = facts.server_idle.all();
    if facts.races > 0 || reasons.is_empty() && idle > 0 && idle > facts.client_idle.all() {
        reasons.push(Reason::ServerIdle);
    }
    reasons
}

fn sentence(reason: Reason, facts: &EdgeFacts) -> Message {
    let message = Message::new(reason.ids().0).with("requests", facts.requests as f64).with("connections", facts.connections as f64);
    match reason {
        Reason::CloseRequested => message.with("count", facts.requests_close as f64),
        Reason::Http10 => message.with("count", facts.requests_http10 as f64),
        Reason::KeepConnUnset => message.with("count", facts.requests_unkept as f64),
        Reason::ServerCloses => message.with("count", facts.answers_close as f64).with("answers", facts.answers as f64),
        Reason::ServerClosesSilently => {
            message.with("fin", facts.server_after_answer.fin as f64).with("rst", facts.server_after_answer.rst as f64)
        }
        Reason::ClientCloses => message.with("fin", facts.client_after_answer.fin as f64).with("rst", facts.client_after_answer.rst as f64),
        Reason::RequestLimit => {
            let (limit, ended) = facts.request_limit.unwrap_or_default();
            message.with("limit", limit as f64).with("count", ended as f64)
        }
        Reason::ServerIdle => message
            .with("count", facts.server_idle.all() as f64)
            .with("seconds", facts.server_idle_s.unwrap_or(0.0))
            .with("races", facts.races as f64),
    }
}

/// Mean times say how many more requests the same clients could send: each is spared the set-up.
fn gain(facts: &EdgeFacts, share: f64, kept: Kept) -> Option<Gain> {
    let (setup_ms, request_ms) = (facts.setup_ms?, facts.request_ms?);
    if !matches!(kept, Kept::Not | Kept::Partly) || request_ms <= 0.0 {
        return None;
    }
    let spared_ms = setup_ms * (1.0 - share);
    let factor = (request_ms + spared_ms) / request_ms;
    if factor < GAIN_MIN {
        return None;
    }
    let text = Message::new("keepalive-gain")
        .with("setup", setup_ms)
        .with("request", request_ms)
        .with("percent", (factor - 1.0) * 100.0)
        .with("factor", factor);
    Some(Gain { factor, text })
}

#[cfg(test)]
mod tests;
