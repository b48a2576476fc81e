//! What packets or sockets showed about the connections of one edge between two servers.

use serde::{Deserialize, Serialize};

/// The protocol of an edge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EdgeProtocol {
    /// HTTP/1.x.
    Http,
    /// FastCGI.
    Fastcgi,
    /// A protocol whose requests are not parsed: turns are counted instead.
    #[default]
    Turns,
}

/// Closed connections, by how they were closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closes {
    /// By FIN.
    pub fin: u64,
    /// By RST.
    pub rst: u64,
}

impl Closes {
    pub(crate) fn total(self) -> u64 {
        self.fin + self.rst
    }
}

/// What was observed of the connections of an edge.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EdgeFacts {
    /// The protocol they carry.
    pub protocol: EdgeProtocol,
    /// Connections that carried a request.
    pub connections: u64,
    /// Requests.
    pub requests: u64,
    /// Complete answers.
    pub answers: u64,
    /// Connections with one request that were still open at the end of the capture.
    pub single_open: u64,
    /// Requests with `Connection: close`.
    pub requests_close: u64,
    /// HTTP/1.0 requests that did not ask to keep the connection.
    pub requests_http10: u64,
    /// FastCGI requests without FCGI_KEEP_CONN.
    pub requests_unkept: u64,
    /// Answers that announced the end of the connection.
    pub answers_close: u64,
    /// Answers whose end was the end of the connection.
    pub answers_until_close: u64,
    /// Connections that the client closed first, right after an answer.
    pub client_after_answer: Closes,
    /// Connections that the server closed first, right after an answer.
    pub server_after_answer: Closes,
    /// Idle connections that the client closed first.
    pub client_idle: Closes,
    /// Idle connections that the server closed first.
    pub server_idle: Closes,
    /// Median idle time before the server closed, s.
    pub server_idle_s: Option<f64>,
    /// The number of requests after which the server most often closed a reused connection, and how many connections it closed there.
    pub request_limit: Option<(u64, u64)>,
    /// Requests sent to a server that had just closed the connection.
    pub races: u64,
    /// Mean time to set up a connection, ms.
    pub setup_ms: Option<f64>,
    /// Mean time of a request without connection set-up, ms.
    pub request_ms: Option<f64>,
}
