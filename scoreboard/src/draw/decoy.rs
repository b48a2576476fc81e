//! Decoys: what looks like a fault and is none. The stack has it with its faults and without.

use serde::Serialize;

use super::fault::{Subject, dials_tcp, has_pool};
use super::limits::{Limits, Table};
use super::rng::Rng;
use super::stack::{Edge, Network, Stack, Transport};

/// Most clients for which a limit with room for all of them looks small.
const SMALL_MAX: u32 = 60;

/// One decoy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub(crate) enum Decoy {
    /// A short backlog with room for all clients.
    ShortQueue { backlog: u32 },
    /// A small pool with a worker for each client.
    SmallPool { children: u32 },
    /// Few connections per worker of nginx, yet enough in one worker for all clients.
    FewConnections { connections: u32 },
    /// Few files per worker of nginx, yet enough in one worker for all clients.
    FewFiles { files: u32 },
    /// A short range of local ports with one for each client.
    FewPorts { ports: u32 },
    /// A narrow rate limit on another location.
    LimitElsewhere,
    /// A conntrack table that is well used but does not fill.
    UsedTable { entries: u32, flows: u32 },
    /// `tcp_tw_reuse` is off, but TIME_WAIT is on the accepting side.
    HarmlessTimeWait,
    /// Callers that never complete a handshake, with SYN cookies on.
    CookiesSent { calls_per_s: u32 },
    /// A busy program on the servers' core.
    Neighbour {
        /// 0 for one of equal weight, 19 for the lowest.
        nice: u32,
    },
}

/// A kind of decoy: which stacks it fits, and how one is drawn.
pub(crate) struct DecoyKind {
    pub(crate) subject: Subject,
    pub(crate) fits: fn(&Stack) -> bool,
    pub(crate) draw: fn(&mut Rng, &Stack) -> Decoy,
}

/// All kinds of decoys.
pub(crate) const DECOYS: &[DecoyKind] = &[
    DecoyKind { subject: Subject::Queue, fits: few_clients, draw: short_queue },
    DecoyKind { subject: Subject::Pool, fits: |stack| few_clients(stack) && has_pool(stack), draw: small_pool },
    DecoyKind { subject: Subject::Connections, fits: few_clients, draw: few_connections },
    DecoyKind { subject: Subject::Files, fits: few_clients, draw: few_files },
    DecoyKind {
        subject: Subject::Ports,
        fits: |stack| few_clients(stack) && dials_tcp(stack) && stack.edge == Edge::ClosedBehind,
        draw: few_ports,
    },
    DecoyKind { subject: Subject::Rate, fits: |_| true, draw: |_, _| Decoy::LimitElsewhere },
    DecoyKind { subject: Subject::Table, fits: |stack| stack.network == Network::Pair && stack.keep_alive, draw: used_table },
    DecoyKind {
        subject: Subject::Ports,
        fits: |stack| !dials_tcp(stack) || stack.edge == Edge::ClosedBehind,
        draw: |_, _| Decoy::HarmlessTimeWait,
    },
    DecoyKind { subject: Subject::Queue, fits: |stack| stack.network == Network::Pair, draw: cookies_sent },
    DecoyKind { subject: Subject::Neighbour, fits: |_| true, draw: neighbour },
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
    // A file being sent is open too.
    let sent = if stack.transport == Transport::None { stack.connections } else { 0 };
    Decoy::FewFiles { files: stack.nginx_connections() + sent + 30 + rng.between(0, stack.connections) }
}

fn few_ports(rng: &mut Rng, stack: &Stack) -> Decoy {
    // The page may call another server from the same ports.
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
    pub(crate) fn apply(&self, limits: &mut Limits) {
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
