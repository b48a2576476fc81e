//! Limits set by the configuration: `limit_req` and `limit_conn` with their zones.

use super::settings::{Occurrence, Settings};
use crate::{SourceLine, quantity};

/// A shared memory zone of `limit_req_zone` or `limit_conn_zone`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitZone {
    /// Its position.
    pub place: SourceLine,
    /// Its name.
    pub name: String,
    /// The key that is counted: "$binary_remote_addr".
    pub key: String,
    /// Its size in bytes.
    pub size_bytes: Option<u64>,
    /// Requests per minute and key (`10r/s` is 600); `None` for a zone of connections.
    pub rate_per_minute: Option<u64>,
}

/// The treatment of requests above the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delay {
    /// All requests within the burst wait.
    All,
    /// None wait.
    None,
    /// Requests beyond this number wait.
    Beyond(u64),
}

/// One effective `limit_req`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateLimit {
    /// Its position.
    pub place: SourceLine,
    /// Name of its zone.
    pub zone: String,
    /// Requests that may exceed the rate before further ones are refused.
    pub burst: u64,
    /// Which of these requests wait.
    pub delay: Delay,
}

/// One effective `limit_conn`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnLimit {
    /// Its position.
    pub place: SourceLine,
    /// Name of its zone.
    pub zone: String,
    /// Connections per key; with HTTP/2, concurrent requests.
    pub connections: u64,
}

impl Settings {
    /// The effective request rate limits.
    pub fn rate_limits(&self) -> Vec<RateLimit> {
        self.all("limit_req").iter().filter_map(rate_limit).collect()
    }

    /// The effective connection limits.
    pub fn conn_limits(&self) -> Vec<ConnLimit> {
        let limit = |directive: &Occurrence| {
            let connections = quantity::number(directive.arg(1))?;
            Some(ConnLimit { place: directive.place.clone(), zone: directive.arg(0).to_owned(), connections })
        };
        self.all("limit_conn").iter().filter_map(limit).collect()
    }
}

fn rate_limit(directive: &Occurrence) -> Option<RateLimit> {
    let delay = match directive.option("delay").map(quantity::number) {
        Some(beyond) => Delay::Beyond(beyond?),
        None if directive.has("nodelay") => Delay::None,
        None => Delay::All,
    };
    let burst = directive.option("burst").map_or(Some(0), quantity::number)?;
    Some(RateLimit { place: directive.place.clone(), zone: directive.option("zone")?.to_owned(), burst, delay })
}

/// The zones of the http block.
pub(crate) fn zones(settings: &Settings) -> Vec<LimitZone> {
    let all = settings.own("limit_req_zone").iter().chain(settings.own("limit_conn_zone"));
    all.filter_map(|directive| {
        let (name, size) = directive.option("zone")?.split_once(':').map_or((directive.option("zone")?, ""), |(name, size)| (name, size));
        Some(LimitZone {
            place: directive.place.clone(),
            name: name.to_owned(),
            key: directive.arg(0).to_owned(),
            size_bytes: quantity::size_bytes(size),
            rate_per_minute: directive.option("rate").and_then(rate_per_minute),
        })
    })
    .collect()
}

/// Requests per minute of `10r/s` or `30r/m`.
fn rate_per_minute(text: &str) -> Option<u64> {
    let (number, per) = text.split_once("r/")?;
    match per {
        "s" => quantity::number(number)?.checked_mul(60),
        "m" => quantity::number(number),
        _ => None,
    }
}
