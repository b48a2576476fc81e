//! What looks like a fault and is none: it belongs to a stack with the fault and without.

use serde::Serialize;

use super::fault::{About, dials_tcp, has_pool};
use super::limits::{Limits, Table};
use super::rng::Rng;
use super::stack::{Edge, Network, Stack, Transport};

/// Clients up to which a limit that all of them fit into looks small.
const SMALL_MAX: u32 = 60;

/// One decoy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Decoy {
    /// A short backlog that all clients fit into.
    ShortQueue {
        /// Its length.
        backlog: u32,
    },
    /// A pool that all clients fit into.
    SmallPool {
        /// Its workers.
        children: u32,
    },
    /// Few connections for each worker of nginx, and all clients fit into one's.
    FewConnections {
        /// How many.
        connections: u32,
    },
    /// Few files for each worker of nginx, and all clients fit into one's.
    FewFiles {
        /// How many.
        files: u32,
    },
    /// A short range of local ports that has one for each client.
    FewPorts {
        /// How many.
        ports: u32,
    },
    /// A narrow rate limit on another location.
    LimitElsewhere,
    /// A tracking table that is well used and stays so.
    UsedTable {
        /// Its room.
        entries: u32,
        /// What is in it.
        flows: u32,
    },
    /// `tcp_tw_reuse` is off, and the accepting side has the TIME_WAIT.
    HarmlessTimeWait,
    /// Callers who never complete a handshake, and SYN cookies.
    CookiesSent {
        /// Such calls a second.
        calls_per_s: u32,
    },
    /// A program that computes on the servers' core.
    Neighbour {
        /// 0 for one of equal weight, 19 for the lowest.
        nice: u32,
    },
}

/// A kind of decoy: whom it fits, and how one is drawn.
pub(super) struct DecoyKind {
    pub(super) about: About,
    pub(super) fits: fn(&Stack) -> bool,
    pub(super) draw: fn(&mut Rng, &Stack) -> Decoy,
}

/// All kinds of decoys.
pub(super) const DECOYS: &[DecoyKind] = &[
    DecoyKind { about: About::Queue, fits: few_clients, draw: short_queue },
    DecoyKind { about: About::Pool, fits: |stack| few_clients(stack) && has_pool(stack), draw: small_pool },
    DecoyKind { about: About::Connections, fits: few_clients, draw: few_connections },
    DecoyKind { about: About::Files, fits: few_clients, draw: few_files },
    DecoyKind {
        about: About::Ports,
        fits: |stack| few_clients(stack) && dials_tcp(stack) && stack.edge == Edge::ClosedBehind,
        draw: few_ports,
    },
    DecoyKind { about: About::Rate, fits: |_| true, draw: |_, _| Decoy::LimitElsewhere },
    DecoyKind { about: About::Table, fits: |stack| stack.network == Network::Pair && stack.keep_alive, draw: used_table },
    DecoyKind {
        about: About::Ports,
        fits: |stack| !dials_tcp(stack) || stack.edge == Edge::ClosedBehind,
        draw: |_, _| Decoy::HarmlessTimeWait,
    },
    DecoyKind { about: About::Queue, fits: |stack| stack.network == Network::Pair, draw: cookies_sent },
    DecoyKind { about: About::Neighbour, fits: |_| true, draw: neighbour },
];

fn few_clients(stack: &Stack) -> bool {
    stack.connections <= SMALL_MAX
}

fn short_queue(rng: &mut Rng, stack: &Stack) -> Decoy {
    Decoy::ShortQueue { backlog: stack.connections + rng.between(0, stack.connections) }
}

fn small_pool(rng: &mut Rng, stack: &Stack) -> Decoy {
    Decoy::SmallPool { children: stack.connections + rng.between(0, stack.connections / 4) }
}

fn few_connections(rng: &mut Rng, stack: &Stack) -> Decoy {
    Decoy::FewConnections { connections: stack.nginx_connections() + 12 + rng.between(0, stack.connections) }
}

fn few_files(rng: &mut Rng, stack: &Stack) -> Decoy {
    // A file that is being sent is open too.
    let sent = if stack.transport == Transport::None { stack.connections } else { 0 };
    Decoy::FewFiles { files: stack.nginx_connections() + sent + 30 + rng.between(0, stack.connections) }
}

fn few_ports(rng: &mut Rng, stack: &Stack) -> Decoy {
    // The page may call a further server from the same ports.
    Decoy::FewPorts { ports: stack.connections * 2 + 16 + rng.between(0, stack.connections) }
}

fn used_table(rng: &mut Rng, _: &Stack) -> Decoy {
    let entries = rng.octaves(8_000, 30_000);
    Decoy::UsedTable { entries, flows: entries / 100 * rng.between(40, 70) }
}

fn cookies_sent(rng: &mut Rng, _: &Stack) -> Decoy {
    Decoy::CookiesSent { calls_per_s: rng.octaves(50, 1_000) }
}

fn neighbour(rng: &mut Rng, _: &Stack) -> Decoy {
    Decoy::Neighbour { nice: [0, 10, 19][rng.below(3) as usize] }
}

impl Decoy {
    pub(super) fn place(&self, limits: &mut Limits) {
        match *self {
            Decoy::ShortQueue { backlog } => limits.backlog = backlog,
            Decoy::SmallPool { children } => limits.children = children,
            Decoy::FewConnections { connections } => limits.worker_connections = connections,
            Decoy::FewFiles { files } => limits.nofile = files,
            Decoy::FewPorts { ports } => limits.set_ports(ports),
            Decoy::LimitElsewhere => limits.rate_elsewhere = true,
            Decoy::UsedTable { entries, flows } => {
                limits.table = Some(Table { max: Some(entries), prefill: flows, loopback: false });
            }
            Decoy::HarmlessTimeWait => limits.tw_reuse = false,
            Decoy::CookiesSent { calls_per_s } => {
                limits.syn_backlog = 128;
                limits.calls_per_s = Some(calls_per_s);
            }
            Decoy::Neighbour { nice } => limits.neighbour_nice = Some(nice),
        }
    }
}
