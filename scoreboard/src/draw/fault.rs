//! The faults that can be drawn: which stacks they fit, how severe they are, what they change, and which findings they allow.

use std::time::Duration;

use serde::Serialize;

use super::limits::{Limits, RateLimit, Table, children_ample};
use super::rng::Rng;
use super::stack::{DrawnPage, Edge, Network, Servers, Stack, Transport};

/// Longest time that a run waits for its faults to build up.
const GROWS_MAX: Duration = Duration::from_secs(10);

/// One fault with its severity. Severities lie on both sides of the border between harmless and harmful; a measurement decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub(crate) enum Fault {
    /// A small conntrack table.
    ConntrackTable { entries: u32 },
    /// Callers that never complete a handshake, with SYN cookies off.
    SynQueue {
        /// `net.ipv4.tcp_max_syn_backlog`.
        backlog: u32,
        calls_per_s: u32,
    },
    /// A short backlog of nginx.
    AcceptQueue {
        backlog: u32,
        /// True where `net.core.somaxconn` makes it short, false where `listen` does.
        by_somaxconn: bool,
    },
    /// A short backlog of the server behind nginx.
    AcceptQueueBehind { backlog: u32 },
    /// A configured backlog that is not in force: `somaxconn` was raised after the server began to listen.
    BacklogNotInForce {
        /// The backlog in force.
        backlog: u32,
    },
    /// Few connections per worker of nginx.
    WorkerConnections { connections: u32 },
    /// Few open files per worker of nginx.
    FileDescriptors { files: u32 },
    /// A rate limit of nginx.
    RateLimit {
        per_s: u32,
        /// Requests allowed beyond the rate.
        burst: u32,
        /// True where these pass at once.
        nodelay: bool,
    },
    /// Few local ports towards the server behind nginx.
    PortRange { ports: u32 },
    /// Ports in TIME_WAIT on the dialling side that may not be reused.
    PortSearch {
        /// How many ports there are.
        ports: u32,
    },
    /// Few workers of php-fpm.
    WorkerPool { children: u32 },
    /// Configured workers of php-fpm that are not in force.
    PoolNotInForce { children: u32 },
    /// A server on another host that serves few requests at once.
    SlowUpstream { served_at_once: u32 },
    /// Little CPU time for the last server of the path.
    CpuQuota {
        /// Hundredths of a core.
        percent: u32,
    },
}

/// The part of a stack that a fault or a decoy concerns. A draw has at most one of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
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

/// A kind of fault: which stacks it fits, and how one is drawn.
pub(crate) struct FaultKind {
    pub(crate) subject: Subject,
    pub(crate) fits: fn(&Stack) -> bool,
    pub(crate) draw: fn(&mut Rng, &Stack) -> Fault,
}

/// All kinds of faults.
pub(crate) const FAULTS: &[FaultKind] = &[
    FaultKind { subject: Subject::Table, fits: |_| true, draw: conntrack_table },
    FaultKind { subject: Subject::Queue, fits: |stack| stack.network == Network::Pair, draw: syn_queue },
    FaultKind { subject: Subject::Queue, fits: |_| true, draw: accept_queue },
    FaultKind { subject: Subject::QueueBehind, fits: Stack::opens_each, draw: accept_queue_behind },
    FaultKind { subject: Subject::Queue, fits: |_| true, draw: backlog_not_in_force },
    FaultKind { subject: Subject::Connections, fits: |_| true, draw: worker_connections },
    FaultKind { subject: Subject::Files, fits: |_| true, draw: file_descriptors },
    FaultKind { subject: Subject::Rate, fits: |_| true, draw: rate_limit },
    FaultKind { subject: Subject::Ports, fits: |stack| dials_tcp(stack) && stack.edge == Edge::ClosedBehind, draw: port_range },
    FaultKind { subject: Subject::Ports, fits: |stack| dials_tcp(stack) && stack.edge == Edge::ClosedBefore, draw: port_search },
    FaultKind { subject: Subject::Pool, fits: has_pool, draw: worker_pool },
    FaultKind { subject: Subject::Pool, fits: has_pool, draw: pool_not_in_force },
    FaultKind { subject: Subject::Upstream, fits: |stack| matches!(stack.page, DrawnPage::Asking { .. }), draw: slow_upstream },
    FaultKind { subject: Subject::Quota, fits: |_| true, draw: cpu_quota },
];

pub(crate) fn dials_tcp(stack: &Stack) -> bool {
    stack.transport == Transport::Tcp && stack.edge != Edge::Kept
}

pub(crate) fn has_pool(stack: &Stack) -> bool {
    stack.servers == Servers::NginxPhpFpm
}

fn conntrack_table(rng: &mut Rng, stack: &Stack) -> Fault {
    Fault::ConntrackTable { entries: rng.share_of(stack.tracked(), 5, 400, 64) }
}

fn syn_queue(rng: &mut Rng, _: &Stack) -> Fault {
    // The kernel reserves a quarter of the room for known clients, and an entry lives for a minute.
    Fault::SynQueue { backlog: 1 << rng.between(6, 12), calls_per_s: rng.octaves(20, 1_500) }
}

fn accept_queue(rng: &mut Rng, stack: &Stack) -> Fault {
    // In the worst case all clients connect at once.
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
        // So long that every client can wait.
        _ => (stack.connections + 1, false),
    };
    Fault::RateLimit { per_s, burst, nodelay }
}

fn port_range(rng: &mut Rng, stack: &Stack) -> Fault {
    Fault::PortRange { ports: rng.share_of(stack.at_once(), 20, 250, 8) }
}

fn port_search(rng: &mut Rng, _: &Stack) -> Fault {
    // With reuse a port is free again after a second, so these suffice for the rate of one core.
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
    /// Sets what the fault needs of the stack. Stacks with and without the fault share it.
    pub(crate) fn prepare(&self, limits: &mut Limits, stack: &Stack) {
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

    /// Sets the limit to what was drawn.
    pub(crate) fn inject(&self, limits: &mut Limits) {
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

    /// How long the fault takes to build up. Callers fill a SYN queue one by one: an early run would still find room there.
    pub(crate) fn grows_for(&self) -> Duration {
        match *self {
            Fault::SynQueue { backlog, calls_per_s } => {
                GROWS_MAX.min(Duration::from_secs_f64(f64::from(backlog) / f64::from(calls_per_s.max(1))))
            }
            _ => Duration::ZERO,
        }
    }

    /// Findings that name this fault as a cause, and findings that may be its symptoms.
    pub(crate) fn findings(&self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Fault::ConntrackTable { .. } => (&["conntrack-table-full"], &[]),
            Fault::SynQueue { .. } => (&["syn-queue-full"], &[]),
            Fault::AcceptQueue { .. } | Fault::AcceptQueueBehind { .. } => (&["accept-queue-full"], &[]),
            Fault::BacklogNotInForce { .. } => (&["setting-not-in-force"], &["accept-queue-full"]),
            Fault::WorkerConnections { .. } => (&["worker-connections-exhausted"], &["accept-queue-full"]),
            Fault::FileDescriptors { .. } => (&["file-descriptors-exhausted"], &["accept-queue-full", "setting-not-in-force"]),
            Fault::RateLimit { .. } => (&["rate-limited-by-config"], &[]),
            // Where all ports are in TIME_WAIT the search fails: the same fault, a step further.
            Fault::PortRange { .. } => (&["ephemeral-ports-exhausted"], &[]),
            Fault::PortSearch { .. } => (&["time-wait-port-search", "ephemeral-ports-exhausted"], &[]),
            // A throttled worker holds its request, and nobody accepts meanwhile.
            Fault::CpuQuota { .. } => (&["cgroup-cpu-throttled"], &["worker-pool-exhausted", "accept-queue-full"]),
            Fault::WorkerPool { .. } => (&["worker-pool-exhausted"], &["accept-queue-full"]),
            Fault::PoolNotInForce { .. } => (&["setting-not-in-force"], &["worker-pool-exhausted", "accept-queue-full"]),
            // The workers that wait for it, or its own threads: see `tier`.
            Fault::SlowUpstream { .. } => {
                (&["workers-blocked-on-upstream", "worker-pool-exhausted"], &["workers-blocked-on-upstream", "accept-queue-full"])
            }
        }
    }

    /// The tier at which one of its findings must be. The slow server's threads are too few, not the pool that waits for them.
    pub(crate) fn tier(&self) -> Option<(&'static str, &'static str)> {
        matches!(self, Fault::SlowUpstream { .. }).then_some(("worker-pool-exhausted", "python"))
    }
}

/// A connection to the upstream per request: many stacks are drawn so, and it costs CPU.
pub(crate) const CHURN: &str = "upstream-connection-churn";
/// Requests waiting inside a program: a possible symptom of any fault, and a cause in no draw.
pub(crate) const INSIDE: &str = "waits-inside";
/// Findings that are never wrong: the generator's own limit, and improvements.
pub(crate) const HARMLESS: &[&str] = &[
    "load-generator-limited",
    CHURN,
    "allocator-hot",
    "busy-polling",
    "compression-hot",
    "cores-taken-by-others",
    "lock-contention",
    "opcode-cache-off",
    "process-starts-hot",
    "single-core-saturated",
    "softirq-on-one-core",
    "tls-handshake-hot",
];
/// Causes of no drawn fault: always wrong.
#[cfg(test)]
pub(crate) const NOT_DRAWN: &[&str] = &[
    "packet-loss",
    "packets-filtered",
    "idle-close-race",
    "send-buffer-limited",
    "delayed-ack-stall",
    "small-initial-window",
    "receiver-limited",
    "egress-shaped",
    "server-limit-reached",
    INSIDE,
    "debug-log",
    "waits-for-clients",
    "workers-wait-for-each-other",
    "requests-hang",
    "accepts-none",
    "accepts-slowly",
    "processes-stopped",
    "processes-traced",
    "collects-garbage",
    "tasks-exhausted",
    "disk-limited",
    "answers-none",
    "upstream-unreachable",
    "calls-repeated",
    "answers-errors",
];
