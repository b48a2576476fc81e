//! The faults that can be drawn: whom they fit, how severe they are, what they change, and which findings they allow.

use std::time::Duration;

use serde::Serialize;

use super::limits::{Limits, RateLimit, Table, children_ample};
use super::rng::Rng;
use super::stack::{DrawnPage, Edge, Network, Servers, Stack, Transport};

/// The longest that a run waits for its faults to be there whole.
const GROWS_MAX: Duration = Duration::from_secs(10);

/// One fault with its severity. Severities are drawn on both sides of the border between harmless and harmful; whether one does harm is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Fault {
    /// A connection tracking table with room for so many entries.
    ConntrackTable {
        /// Its room.
        entries: u32,
    },
    /// Callers who never complete a handshake, and no SYN cookies.
    SynQueue {
        /// `net.ipv4.tcp_max_syn_backlog`.
        backlog: u32,
        /// Such calls a second.
        calls_per_s: u32,
    },
    /// A short backlog of nginx.
    AcceptQueue {
        /// Its length.
        backlog: u32,
        /// True where `net.core.somaxconn` makes it short, false where `listen` does.
        by_somaxconn: bool,
    },
    /// A short backlog of the server behind nginx.
    AcceptQueueBehind {
        /// Its length.
        backlog: u32,
    },
    /// A backlog that is written and not in force: the kernel's bound was raised after the server began to listen.
    BacklogNotInForce {
        /// The length in force.
        backlog: u32,
    },
    /// Few connections for each worker of nginx.
    WorkerConnections {
        /// How many.
        connections: u32,
    },
    /// Few open files for each worker of nginx.
    FileDescriptors {
        /// How many.
        files: u32,
    },
    /// A rate limit of nginx.
    RateLimit {
        /// Requests a second.
        per_s: u32,
        /// Requests beyond.
        burst: u32,
        /// True where those pass at once.
        nodelay: bool,
    },
    /// Few local ports towards the server behind nginx.
    PortRange {
        /// How many.
        ports: u32,
    },
    /// Ports in TIME_WAIT on the dialling side that may not be taken over.
    PortSearch {
        /// How many ports there are.
        ports: u32,
    },
    /// Few workers of php-fpm.
    WorkerPool {
        /// How many.
        children: u32,
    },
    /// Workers of php-fpm that are written and not in force.
    PoolNotInForce {
        /// How many run.
        children: u32,
    },
    /// A server on another host that serves few at once.
    SlowUpstream {
        /// How many.
        served_at_once: u32,
    },
    /// Little CPU time for the last server of the path.
    CpuQuota {
        /// Hundredths of a core.
        percent: u32,
    },
}

/// What of a stack a fault or a decoy is about; no two of a draw are about the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    Table,
    Queue,
    QueueBehind,
    Connections,
    Files,
    Rate,
    Ports,
    Pool,
    Upstream,
    Quota,
    Neighbour,
}

/// A kind of fault: whom it fits, and how one is drawn.
pub(super) struct FaultKind {
    pub(super) about: About,
    pub(super) fits: fn(&Stack) -> bool,
    pub(super) draw: fn(&mut Rng, &Stack) -> Fault,
}

/// All kinds of faults.
pub(super) const FAULTS: &[FaultKind] = &[
    FaultKind { about: About::Table, fits: |_| true, draw: conntrack_table },
    FaultKind { about: About::Queue, fits: |stack| stack.network == Network::Pair, draw: syn_queue },
    FaultKind { about: About::Queue, fits: |_| true, draw: accept_queue },
    FaultKind { about: About::QueueBehind, fits: dials, draw: accept_queue_behind },
    FaultKind { about: About::Queue, fits: |_| true, draw: backlog_not_in_force },
    FaultKind { about: About::Connections, fits: |_| true, draw: worker_connections },
    FaultKind { about: About::Files, fits: |_| true, draw: file_descriptors },
    FaultKind { about: About::Rate, fits: |_| true, draw: rate_limit },
    FaultKind { about: About::Ports, fits: |stack| dials_tcp(stack) && stack.edge == Edge::ClosedBehind, draw: port_range },
    FaultKind { about: About::Ports, fits: |stack| dials_tcp(stack) && stack.edge == Edge::ClosedBefore, draw: port_search },
    FaultKind { about: About::Pool, fits: has_pool, draw: worker_pool },
    FaultKind { about: About::Pool, fits: has_pool, draw: pool_not_in_force },
    FaultKind { about: About::Upstream, fits: |stack| matches!(stack.page, DrawnPage::Asking { .. }), draw: slow_upstream },
    FaultKind { about: About::Quota, fits: |_| true, draw: cpu_quota },
];

/// True where nginx opens a connection for each request that it passes on.
fn dials(stack: &Stack) -> bool {
    stack.has_upstream() && stack.edge != Edge::Kept
}

pub(super) fn dials_tcp(stack: &Stack) -> bool {
    stack.transport == Transport::Tcp && stack.edge != Edge::Kept
}

pub(super) fn has_pool(stack: &Stack) -> bool {
    stack.servers == Servers::NginxPhpFpm
}

fn conntrack_table(rng: &mut Rng, stack: &Stack) -> Fault {
    Fault::ConntrackTable { entries: rng.share_of(stack.tracked(), 5, 400, 64) }
}

fn syn_queue(rng: &mut Rng, _: &Stack) -> Fault {
    // A quarter of the room is kept free for those who are known from before, and a place is held for a minute.
    Fault::SynQueue { backlog: 1 << rng.between(6, 12), calls_per_s: rng.octaves(20, 1_500) }
}

fn accept_queue(rng: &mut Rng, stack: &Stack) -> Fault {
    // All clients come at once in the worst case, and never more.
    Fault::AcceptQueue { backlog: rng.share_of(stack.connections, 1, 200, 1), by_somaxconn: rng.percent(50) }
}

fn accept_queue_behind(rng: &mut Rng, stack: &Stack) -> Fault {
    Fault::AcceptQueueBehind { backlog: rng.share_of(stack.at_once(), 1, 200, 1) }
}

fn backlog_not_in_force(rng: &mut Rng, stack: &Stack) -> Fault {
    Fault::BacklogNotInForce { backlog: rng.share_of(stack.connections, 1, 150, 1) }
}

fn worker_connections(rng: &mut Rng, stack: &Stack) -> Fault {
    let held = stack.at_once() * if stack.has_upstream() { 2 } else { 1 };
    // nginx itself needs some for its listeners and between its processes.
    Fault::WorkerConnections { connections: rng.share_of(held / stack.nginx_workers + 6, 30, 250, 12) }
}

fn file_descriptors(rng: &mut Rng, stack: &Stack) -> Fault {
    let held = stack.at_once() * if stack.has_upstream() { 2 } else { 1 };
    // Its logs, listeners, epoll and channels take about fifteen.
    Fault::FileDescriptors { files: rng.share_of(held / stack.nginx_workers + 15, 40, 250, 24) }
}

fn rate_limit(rng: &mut Rng, stack: &Stack) -> Fault {
    let per_s = rng.share_of(stack.rate_expected(), 5, 400, 2);
    let (burst, nodelay) = match rng.below(3) {
        0 => (0, true),
        1 => (rng.share_of(stack.connections, 10, 100, 1), true),
        // So long that every client has room to wait.
        _ => (stack.connections + 1, false),
    };
    Fault::RateLimit { per_s, burst, nodelay }
}

fn port_range(rng: &mut Rng, stack: &Stack) -> Fault {
    Fault::PortRange { ports: rng.share_of(stack.at_once(), 20, 250, 8) }
}

fn port_search(rng: &mut Rng, _: &Stack) -> Fault {
    // With reuse a port is free again after a second: so many must do for the rate of one core.
    Fault::PortSearch { ports: rng.octaves(12_000, 55_000) }
}

fn worker_pool(rng: &mut Rng, stack: &Stack) -> Fault {
    Fault::WorkerPool { children: rng.share_of(stack.at_once(), 2, 150, 1).min(children_ample(stack)) }
}

fn pool_not_in_force(rng: &mut Rng, stack: &Stack) -> Fault {
    Fault::PoolNotInForce { children: rng.share_of(stack.at_once(), 2, 80, 1).min(children_ample(stack).saturating_sub(1)).max(1) }
}

fn slow_upstream(rng: &mut Rng, stack: &Stack) -> Fault {
    Fault::SlowUpstream { served_at_once: rng.share_of(stack.at_once(), 4, 200, 1) }
}

fn cpu_quota(rng: &mut Rng, _: &Stack) -> Fault {
    Fault::CpuQuota { percent: rng.octaves(3, 90) }
}

impl Fault {
    /// What belongs to the stack whether the fault is there or not: without it the fault would mean nothing.
    pub(super) fn prepare(&self, limits: &mut Limits, stack: &Stack) {
        match *self {
            Fault::ConntrackTable { .. } if stack.network == Network::Pair => {
                limits.table = Some(Table { loopback: true, ..Table::default() });
            }
            Fault::SynQueue { backlog, calls_per_s } => {
                limits.syn_backlog = backlog;
                limits.calls_per_s = Some(calls_per_s);
            }
            Fault::PortSearch { ports } => limits.set_ports(ports),
            _ => {}
        }
    }

    /// Makes what was ample too small, or as small as was drawn.
    pub(super) fn inject(&self, limits: &mut Limits) {
        match *self {
            Fault::ConntrackTable { entries } => limits.table.get_or_insert_default().max = Some(entries),
            Fault::SynQueue { .. } => limits.syn_cookies = false,
            Fault::AcceptQueue { backlog, by_somaxconn: false } => limits.backlog = backlog,
            Fault::AcceptQueue { backlog, by_somaxconn: true } => limits.somaxconn = backlog,
            Fault::AcceptQueueBehind { backlog } => limits.backlog_behind = backlog,
            Fault::BacklogNotInForce { backlog } => {
                limits.somaxconn = backlog;
                limits.somaxconn_raised_late = true;
            }
            Fault::WorkerConnections { connections } => limits.worker_connections = connections,
            Fault::FileDescriptors { files } => limits.nofile = files,
            Fault::RateLimit { per_s, burst, nodelay } => limits.rate = Some(RateLimit { per_s, burst, nodelay }),
            Fault::PortRange { ports } => limits.set_ports(ports),
            Fault::PortSearch { .. } => limits.tw_reuse = false,
            Fault::WorkerPool { children } => limits.children = children,
            Fault::PoolNotInForce { children } => {
                limits.children_written = Some(limits.children);
                limits.children = children;
            }
            Fault::SlowUpstream { served_at_once } => limits.served_at_once = served_at_once,
            Fault::CpuQuota { percent } => limits.quota_percent = Some(percent),
        }
    }

    /// How long it takes to be there whole: a queue that callers fill one by one would be found short by a run that begins late, and ample by one that
    /// begins at once.
    pub(super) fn grows_for(&self) -> Duration {
        match *self {
            Fault::SynQueue { backlog, calls_per_s } => {
                GROWS_MAX.min(Duration::from_secs_f64(f64::from(backlog) / f64::from(calls_per_s.max(1))))
            }
            _ => Duration::ZERO,
        }
    }

    /// The findings that may be its cause, and those that may stand beside it as symptoms.
    pub fn findings(&self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Fault::ConntrackTable { .. } => (&["conntrack-table-full"], &[]),
            Fault::SynQueue { .. } => (&["syn-queue-full"], &[]),
            Fault::AcceptQueue { .. } | Fault::AcceptQueueBehind { .. } => (&["accept-queue-full"], &[]),
            Fault::BacklogNotInForce { .. } => (&["setting-not-in-force"], &["accept-queue-full"]),
            Fault::WorkerConnections { .. } => (&["worker-connections-exhausted"], &["accept-queue-full"]),
            Fault::FileDescriptors { .. } => (&["file-descriptors-exhausted"], &["accept-queue-full", "setting-not-in-force"]),
            Fault::RateLimit { .. } => (&["rate-limited-by-config"], &[]),
            // Where all ports are in TIME_WAIT the search ends in an error: the same fault, a step further.
            Fault::PortRange { .. } => (&["ephemeral-ports-exhausted"], &[]),
            Fault::PortSearch { .. } => (&["time-wait-port-search", "ephemeral-ports-exhausted"], &[]),
            // Workers that are stopped in the middle of a request hold it, and nobody accepts meanwhile.
            Fault::CpuQuota { .. } => (&["cgroup-cpu-throttled"], &["worker-pool-exhausted", "accept-queue-full"]),
            Fault::WorkerPool { .. } => (&["worker-pool-exhausted"], &["accept-queue-full"]),
            Fault::PoolNotInForce { .. } => (&["setting-not-in-force"], &["worker-pool-exhausted", "accept-queue-full"]),
            // Those who wait for it, or its own threads, see `tier`.
            Fault::SlowUpstream { .. } => {
                (&["workers-blocked-on-upstream", "worker-pool-exhausted"], &["workers-blocked-on-upstream", "accept-queue-full"])
            }
        }
    }
}

impl Fault {
    /// The tier at which one of its findings must be: that another server's threads are few is not that the pool is too small which waits for them.
    pub(super) fn tier(&self) -> Option<(&'static str, &'static str)> {
        matches!(self, Fault::SlowUpstream { .. }).then_some(("worker-pool-exhausted", "python"))
    }
}

/// A connection for each request to the server behind: so many stacks are drawn, and it costs what it costs.
pub(super) const CHURN: &str = "upstream-connection-churn";
/// Requests that stand inside a program: as a symptom it may stand beside any fault, as a cause none of the draws brings it about.
pub(super) const INSIDE: &str = "waits-inside";
/// Findings that may stand beside any verdict: the generator's own limit, and improvements, which hold nothing back.
pub(super) const HARMLESS: &[&str] = &[
    "load-generator-limited",
    CHURN,
    "allocator-hot",
    "busy-polling",
    "compression-hot",
    "lock-contention",
    "opcode-cache-off",
    "single-core-saturated",
    "softirq-on-one-core",
    "tls-handshake-hot",
];
/// Causes that no fault of a draw brings about: wrong wherever they are named.
#[cfg(test)]
pub(super) const NOT_DRAWN: &[&str] = &[
    "packet-loss",
    "idle-close-race",
    "send-buffer-limited",
    "delayed-ack-stall",
    "small-initial-window",
    "receiver-limited",
    INSIDE,
    "debug-log",
];
