//! The part of the report about where requests were.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::At;

/// The account of the requests under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerReport {
    /// Mean number of requests under way: as the load generator counted them, or the sum over the sockets, whichever is more: other clients have some as well.
    pub under_way: f64,
    /// Requests per second; null if neither a load nor logs nor sockets show it.
    pub rate_rps: Option<f64>,
    /// Mean response time by Little's law, milliseconds.
    pub response_time_ms: Option<f64>,
    /// The places in the order of the path, without those where no request was.
    pub places: Vec<LedgerPlace>,
    /// Requests under way that were at none of these places.
    pub unaccounted: LedgerUnaccounted,
    /// What was lost.
    pub losses: Vec<LedgerLoss>,
}

/// What kind of place it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LedgerPlaceKind {
    /// The client has not sent the request, or has not read its answer.
    Client,
    /// The first packet of a connection has not been answered.
    Connecting,
    /// The connection's handshake is not complete at the server.
    Handshake,
    /// The TLS handshake.
    TlsHandshake,
    /// The connection was not accepted.
    AcceptQueue,
    /// The request was not read.
    Unread,
    /// The request is still coming.
    Receiving,
    /// In the tier, on a CPU.
    Cpu,
    /// In the tier, ready to run or queued behind others at a thread.
    Ready,
    /// In the tier, stopped by a quota.
    Throttled,
    /// In the tier, waiting for something else.
    Waiting,
    /// The answer is leaving.
    Sending,
    /// It is not known whether a request is under way.
    Undecided,
}

/// One place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerPlace {
    /// The tier, or "client".
    pub tier: String,
    /// Where it is.
    pub at: At,
    /// What kind of place.
    pub place: LedgerPlaceKind,
    /// Mean number of requests at this place.
    pub mean: f64,
    /// Share of all requests under way.
    pub share: f64,
    /// 95 % interval of the mean, by batch means: lower end,
    pub low: f64,
    /// upper end.
    pub high: f64,
    /// Mean age of the tier's requests in service, milliseconds. Not their response time.
    pub age_ms: Option<f64>,
}

/// What does not add up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LedgerUnaccounted {
    /// Mean number.
    pub mean: f64,
    /// Share of all requests under way.
    pub share: f64,
    /// Lower end of the mean's 95 % interval, by batch means of what was seen; `None` without load or with too few samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// The requests of one client at the first tier.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LedgerClient {
    /// Its address, as the server sees it.
    pub address: IpAddr,
    /// Mean number of its requests under way.
    pub mean: f64,
    /// Share of all requests under way.
    pub share: f64,
}

/// Requests that were lost in one way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerLoss {
    /// The tier that refused them; null if it is not known.
    pub tier: Option<String>,
    /// The place that refused them, as a station's name; null if it is not known.
    pub place: Option<String>,
    /// How.
    pub kind: LedgerLossKind,
    /// Requests, or attempts, per second.
    pub per_s: f64,
}

/// How a request was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LedgerLossKind {
    /// The connection was refused.
    Refused,
    /// A packet of a new connection was dropped and the client tries again. Reported only if traffic is watched.
    Dropped,
    /// The connection was not established within the timeout.
    ConnectTimeout,
    /// The connection was reset or closed before the answer.
    Reset,
    /// The answer did not come within the timeout.
    ResponseTimeout,
    /// The answer had an unexpected status.
    Wrong,
    /// The TLS handshake failed.
    Tls,
    /// The response was not HTTP.
    BadResponse,
    /// The client had no port, descriptor or memory.
    Client,
}
