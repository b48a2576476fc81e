//! What is drawn of a stack without a fault: servers, page, network, load; and how many requests want what at once.

use serde::Serialize;

use super::rng::Rng;

/// Seconds of a load: enough for what fills within them, and limits are drawn to be near their border then.
pub(super) const LOAD_S: u16 = 4;
/// Requests a second of a page that holds nothing, for limits that depend on a rate: the order of what one core gives.
const RATE_GUESS: u32 = 4_000;

/// The servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Servers {
    /// nginx alone.
    Nginx,
    /// nginx before php-fpm.
    NginxPhpFpm,
    /// nginx as a proxy before nginx.
    NginxNginx,
}

/// How nginx reaches the server behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// There is none behind it.
    None,
    /// TCP.
    Tcp,
    /// A unix socket.
    Unix,
}

/// What becomes of a connection between the servers after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Edge {
    /// The server behind closes it: TIME_WAIT is on the accepting side.
    ClosedBehind,
    /// nginx closes it: TIME_WAIT is on the dialling side.
    ClosedBefore,
    /// It is kept.
    Kept,
}

/// The page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum DrawnPage {
    /// A small file, or of php a few words.
    Static {
        /// Its size; of php nothing.
        kib: u32,
    },
    /// It computes.
    Cpu {
        /// How many prime numbers.
        primes: u32,
    },
    /// It waits.
    Waiting {
        /// Milliseconds.
        ms: u32,
    },
    /// It waits and computes.
    Mixed {
        /// Milliseconds of waiting.
        ms: u32,
        /// How many prime numbers.
        primes: u32,
    },
    /// A large answer.
    Large {
        /// Its size.
        kib: u32,
    },
    /// It asks a server on another host.
    Asking {
        /// Milliseconds that one takes to answer.
        ms: u32,
    },
}

/// The way from client to server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// One link.
    Pair,
    /// A router that translates addresses, and the servers on a bridge behind it.
    NatBridge,
}

/// The access log of nginx.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessLog {
    /// With request and upstream times.
    Timed,
    /// nginx's own format, without any time.
    Combined,
    /// None.
    Off,
}

/// A stack and its load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stack {
    /// The servers.
    pub servers: Servers,
    /// How nginx reaches the server behind it.
    pub transport: Transport,
    /// What becomes of a connection between them.
    pub edge: Edge,
    /// The page.
    pub page: DrawnPage,
    /// The way from client to server.
    pub network: Network,
    /// 4 or 6.
    pub ip: u8,
    /// Clients of a closed loop; the most connections of an open one.
    pub connections: u32,
    /// Requests a second of an open loop.
    pub rate: Option<u32>,
    /// True where clients keep their connections.
    pub keep_alive: bool,
    /// Worker processes of nginx.
    pub nginx_workers: u32,
    /// Its access log.
    pub access_log: AccessLog,
}

impl Stack {
    pub(super) fn draw(rng: &mut Rng) -> Self {
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

    /// A rate that the clients' connections can carry: the rest of the path has room for it, or what has not is a fault.
    fn open_rate(&mut self, rng: &mut Rng) -> u32 {
        match self.held_ms() {
            Some(ms) => rng.share_of(self.connections.saturating_mul(1000) / ms.max(1), 10, 60, 5),
            None => {
                self.connections = self.connections.max(50);
                rng.octaves(50, 1_500)
            }
        }
    }

    /// Milliseconds for which the page itself holds a worker without computing.
    pub(super) fn held_ms(&self) -> Option<u32> {
        match self.page {
            DrawnPage::Waiting { ms } | DrawnPage::Mixed { ms, .. } | DrawnPage::Asking { ms } => Some(ms),
            DrawnPage::Static { .. } | DrawnPage::Cpu { .. } | DrawnPage::Large { .. } => None,
        }
    }

    /// True where nginx passes requests on.
    pub(super) fn has_upstream(&self) -> bool {
        self.transport != Transport::None
    }

    /// True where nginx opens a connection for each request that it passes on.
    pub(super) fn opens_each(&self) -> bool {
        self.has_upstream() && self.edge != Edge::Kept
    }

    /// Requests that are under way at once while nothing is short: all clients of a closed loop, Little's law in an open one.
    pub(super) fn at_once(&self) -> u32 {
        match (self.rate, self.held_ms()) {
            (Some(rate), Some(ms)) => (rate.saturating_mul(ms) / 1000).clamp(1, self.connections),
            (Some(_), None) => 4.min(self.connections),
            (None, _) => self.connections,
        }
    }

    /// Requests a second that may be expected.
    pub(super) fn rate_expected(&self) -> u32 {
        let most = self.held_ms().map_or(RATE_GUESS, |ms| (self.connections.saturating_mul(1000) / ms.max(1)).min(RATE_GUESS));
        self.rate.unwrap_or(most).max(1)
    }

    /// Connections that a worker of nginx would hold at most if it alone served them all.
    pub(super) fn nginx_connections(&self) -> u32 {
        self.connections * if self.has_upstream() { 2 } else { 1 }
    }

    /// Entries that a tracking table on the way would have at the end of a load: closed connections stay for two minutes.
    pub(super) fn tracked(&self) -> u32 {
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

/// The most clients: as many as one core can serve well within the timeout, and of a page that holds its worker as many as there are workers.
fn connections_max(page: DrawnPage) -> u32 {
    match page {
        DrawnPage::Static { .. } => 1_000,
        DrawnPage::Cpu { .. } | DrawnPage::Large { .. } => 200,
        DrawnPage::Waiting { .. } => 150,
        DrawnPage::Mixed { .. } => 100,
        DrawnPage::Asking { .. } => 60,
    }
}
