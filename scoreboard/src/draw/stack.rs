//! A drawn stack without faults: servers, page, network and load; and how much its load needs.

use serde::Serialize;

use super::rng::Rng;

/// Seconds of a load. Limits are drawn to be near their border after this time.
pub(crate) const LOAD_S: u16 = 4;
/// Rough rate of one core for a page that does not wait, requests a second.
const RATE_GUESS: u32 = 4_000;

/// The servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Servers {
    /// nginx alone.
    Nginx,
    /// nginx in front of php-fpm.
    NginxPhpFpm,
    /// nginx as a proxy in front of nginx.
    NginxNginx,
}

/// How nginx reaches its upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Transport {
    /// There is no upstream.
    None,
    /// TCP.
    Tcp,
    /// A unix socket.
    Unix,
}

/// Who closes a connection to the upstream after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Edge {
    /// The upstream: TIME_WAIT is on the accepting side.
    ClosedBehind,
    /// nginx: TIME_WAIT is on the dialling side.
    ClosedBefore,
    /// Nobody: it is kept.
    Kept,
}

/// The page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub(crate) enum DrawnPage {
    /// A small file, or a few words from php.
    Static {
        /// Size of the file; 0 for php.
        kib: u32,
    },
    /// It computes.
    Cpu {
        /// Prime numbers to find.
        primes: u32,
    },
    /// It waits.
    Waiting { ms: u32 },
    /// It waits and computes.
    Mixed { ms: u32, primes: u32 },
    /// A large answer.
    Large { kib: u32 },
    /// It asks a server on another host.
    Asking {
        /// Time that this server takes to answer.
        ms: u32,
    },
}

/// The network between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Network {
    /// One link.
    Pair,
    /// A router with address translation, and a bridge with the servers behind it.
    NatBridge,
}

/// The access log of nginx.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AccessLog {
    /// A format with request and upstream times.
    Timed,
    /// nginx's default format, without times.
    Combined,
    /// None.
    Off,
}

/// A stack and its load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Stack {
    pub(crate) servers: Servers,
    pub(crate) transport: Transport,
    pub(crate) edge: Edge,
    pub(crate) page: DrawnPage,
    pub(crate) network: Network,
    /// Version of the internet protocol, 4 or 6.
    pub(crate) ip: u8,
    /// Clients of a closed loop, or most connections of an open one.
    pub(crate) connections: u32,
    /// Requests a second of an open loop.
    pub(crate) rate: Option<u32>,
    /// True where clients keep their connections.
    pub(crate) keep_alive: bool,
    pub(crate) nginx_workers: u32,
    pub(crate) access_log: AccessLog,
}

impl Stack {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let servers = match rng.below(10) {
            0..3 => Servers::Nginx,
            3..8 => Servers::NginxPhpFpm,
            _ => Servers::NginxNginx,
        };
        let page = page(rng, servers);
        let transport = match servers {
            Servers::Nginx => Transport::None,
            Servers::NginxPhpFpm | Servers::NginxNginx if rng.percent(30) => Transport::Unix,
            Servers::NginxPhpFpm | Servers::NginxNginx => Transport::Tcp,
        };
        let edge = match (servers, rng.below(3)) {
            (Servers::NginxNginx, 1) => Edge::ClosedBefore,
            (Servers::NginxNginx, 2) => Edge::Kept,
            _ => Edge::ClosedBehind,
        };
        let network = if rng.percent(25) { Network::NatBridge } else { Network::Pair };
        let connections = rng.octaves(4, connections_max(page));
        let mut stack = Self {
            servers,
            transport,
            edge,
            page,
            network,
            ip: if rng.percent(30) { 6 } else { 4 },
            connections,
            rate: None,
            keep_alive: rng.percent(45),
            nginx_workers: rng.between(1, 2),
            access_log: match rng.below(10) {
                0..6 => AccessLog::Timed,
                6..8 => AccessLog::Combined,
                _ => AccessLog::Off,
            },
        };
        if rng.percent(25) {
            stack.rate = Some(stack.open_rate(rng));
        }
        stack
    }

    /// A rate that the clients' connections can carry.
    fn open_rate(&mut self, rng: &mut Rng) -> u32 {
        match self.wait_ms() {
            Some(ms) => rng.share_of(self.connections.saturating_mul(1000) / ms.max(1), 10, 60, 5),
            None => {
                self.connections = self.connections.max(50);
                rng.octaves(50, 1_500)
            }
        }
    }

    /// Milliseconds for which the page keeps a worker waiting.
    pub(crate) fn wait_ms(&self) -> Option<u32> {
        match self.page {
            DrawnPage::Waiting { ms } | DrawnPage::Mixed { ms, .. } | DrawnPage::Asking { ms } => Some(ms),
            DrawnPage::Static { .. } | DrawnPage::Cpu { .. } | DrawnPage::Large { .. } => None,
        }
    }

    /// True where nginx passes requests on.
    pub(crate) fn has_upstream(&self) -> bool {
        self.transport != Transport::None
    }

    /// True where nginx opens a connection to the upstream for each request.
    pub(crate) fn opens_each(&self) -> bool {
        self.has_upstream() && self.edge != Edge::Kept
    }

    /// Requests in flight while no limit is reached: all clients of a closed loop, Little's law in an open one.
    pub(crate) fn at_once(&self) -> u32 {
        match (self.rate, self.wait_ms()) {
            (Some(rate), Some(ms)) => (rate.saturating_mul(ms) / 1000).clamp(1, self.connections),
            (Some(_), None) => 4.min(self.connections),
            (None, _) => self.connections,
        }
    }

    /// Expected requests a second.
    pub(crate) fn rate_expected(&self) -> u32 {
        let most = self.wait_ms().map_or(RATE_GUESS, |ms| (self.connections.saturating_mul(1000) / ms.max(1)).min(RATE_GUESS));
        self.rate.unwrap_or(most).max(1)
    }

    /// Connections of a worker of nginx that serves all clients alone.
    pub(crate) fn nginx_connections(&self) -> u32 {
        self.connections * if self.has_upstream() { 2 } else { 1 }
    }

    /// Entries of a conntrack table on the way at the end of a load: closed connections stay for two minutes.
    pub(crate) fn tracked(&self) -> u32 {
        let edge_passes = self.network == Network::Pair && self.transport == Transport::Tcp;
        let a_request = u32::from(!self.keep_alive) + u32::from(edge_passes && self.edge != Edge::Kept);
        let standing = self.at_once() * (1 + u32::from(edge_passes && self.edge == Edge::Kept));
        standing.saturating_add(a_request.saturating_mul(self.rate_expected()).saturating_mul(u32::from(LOAD_S)))
    }
}

fn page(rng: &mut Rng, servers: Servers) -> DrawnPage {
    let large = |rng: &mut Rng| DrawnPage::Large { kib: rng.octaves(64, 1024) };
    if servers != Servers::NginxPhpFpm {
        return if rng.percent(25) { large(rng) } else { DrawnPage::Static { kib: rng.octaves(1, 32) } };
    }
    match rng.below(20) {
        0..4 => DrawnPage::Static { kib: 0 },
        4..8 => DrawnPage::Cpu { primes: rng.octaves(100, 1_000) },
        8..13 => DrawnPage::Waiting { ms: rng.octaves(5, 200) },
        13..16 => DrawnPage::Mixed { ms: rng.octaves(5, 100), primes: rng.octaves(50, 300) },
        16..18 => large(rng),
        _ => DrawnPage::Asking { ms: rng.octaves(10, 100) },
    }
}

/// Most clients: what one core can serve well within the timeout, or one per worker where the page waits.
fn connections_max(page: DrawnPage) -> u32 {
    match page {
        DrawnPage::Static { .. } => 1_000,
        DrawnPage::Cpu { .. } | DrawnPage::Large { .. } => 200,
        DrawnPage::Waiting { .. } => 150,
        DrawnPage::Mixed { .. } => 100,
        DrawnPage::Asking { .. } => 60,
    }
}
