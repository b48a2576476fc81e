//! What load to offer.

pub(crate) mod check;

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use chokepoint_model::load::Loop;

use crate::engine::stages::Stages;
use crate::host::address::Address;
use crate::limits::guard::Guard;
use crate::protocol::tls::Tls;
use crate::targets::Targets;

/// The protocol of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 (RFC 9112).
    Http,
    /// FastCGI 1.0, to a responder. The parameters are those that a web server sends. The path names the script (SCRIPT_FILENAME and
    /// SCRIPT_NAME) unless `params` does.
    FastCgi {
        /// Additional or replacing parameters: name and value.
        params: Vec<(String, String)>,
    },
}

/// A load: target, requests, amount and duration.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where to connect to.
    pub address: Address,
    /// The protocol.
    pub protocol: Protocol,
    /// Value of the Host header, unless `headers` has one.
    pub host_header: String,
    /// Request target in origin form, such as `/index.php?a=b`.
    pub path_and_query: String,
    /// Method, such as `GET`; any except CONNECT.
    pub method: String,
    /// Additional header fields, sent in this order. Content-Length and Transfer-Encoding follow from `body` and must not be given.
    pub headers: Vec<(String, String)>,
    /// Body of each request.
    pub body: Vec<u8>,
    /// Closed loop (concurrency) or open loop (rate).
    pub shape: Loop,
    /// Time for which load is offered. This or `requests` must be given; whichever is reached first ends the load.
    pub duration: Option<Duration>,
    /// Total number of requests.
    pub requests: Option<u64>,
    /// Maximum time of a request, including connecting.
    pub timeout: Duration,
    /// Reuses connections (FastCGI: FCGI_KEEP_CONN). Otherwise each request has its own connection and says `Connection: close`.
    pub keep_alive: bool,
    /// Expected statuses, as inclusive ranges.
    pub expect: Vec<(u16, u16)>,
    /// Network namespace to send from, such as `/run/netns/client` or `/proc/PID/ns/net`. Entering it needs CAP_SYS_ADMIN.
    pub netns: Option<PathBuf>,
    /// Cores on which the generator threads may run; by default those of the process.
    pub cpus: Option<Vec<u32>>,
    /// Generator threads; no more than one for each connection is started. `None`: one, and more as long as the generator is the limit while cores are idle.
    pub threads: Option<u32>,
    /// Conditions that stop the load.
    pub guards: Vec<Guard>,
    /// Special options.
    pub options: Options,
}

/// Special options of a load; none by default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Load is offered for this long before counting starts, on the same connections. The duration and the number of requests count from its end. Requests with an
    /// earlier intended start are not counted. A multiple of 100 ms.
    pub warm_up: Duration,
    /// Maximum number of requests on a kept connection. The last one asks the server to close it (HTTP: `Connection: close`, FastCGI: without FCGI_KEEP_CONN).
    pub requests_per_connection: Option<u32>,
    /// TLS on each connection, only over TCP.
    pub tls: Option<Tls>,
    /// Changing rates of an open loop. They replace the rate of its shape, which is then only reported. A warm-up uses the rate at which they start. The plan's
    /// duration must be theirs.
    pub stages: Option<Stages>,
    /// Requests that replace the plan's method and path.
    pub targets: Option<Targets>,
    /// Slower answers are of no use to clients ([`chokepoint_model::load::patience_us`]): the objective, if there is one.
    pub objective: Option<Duration>,
    /// Source addresses, used in turn by the connections; by default the kernel chooses.
    pub bind: Vec<IpAddr>,
}

impl Plan {
    /// Maximum connections of all threads together.
    pub fn connections(&self) -> u32 {
        match self.shape {
            Loop::Closed { connections } | Loop::Open { connections, .. } => connections,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn plan() -> Plan {
        Plan {
            address: Address::Tcp(([127, 0, 0, 1], 80).into()),
            protocol: Protocol::Http,
            host_header: "example.org:8080".to_owned(),
            path_and_query: "/a?b=c".to_owned(),
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            shape: Loop::Closed { connections: 1 },
            duration: Some(Duration::from_secs(1)),
            requests: None,
            timeout: Duration::from_secs(2),
            keep_alive: true,
            expect: vec![(200, 399)],
            netns: None,
            cpus: None,
            threads: None,
            guards: Vec::new(),
            options: Options::default(),
        }
    }
}
