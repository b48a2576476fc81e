//! Every limit of a stack that a draw can set. All start ample; decoys and faults lower some.

use super::stack::{DrawnPage, Stack};

/// More than any drawn load uses.
const AMPLE: u32 = 65_535;
/// More local ports than any drawn load uses.
pub(crate) const PORTS_AMPLE: (u32, u32) = (10_000, 65_535);
/// Lowest port of a small range.
const PORTS_FROM: u32 = 10_000;
/// Most workers of a pool whose page only computes: more would wait for the core.
const WORKERS_COMPUTING: u32 = 24;

/// A rate limit of nginx.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RateLimit {
    pub(crate) per_s: u32,
    pub(crate) burst: u32,
    /// True where a burst passes at once, false where it waits.
    pub(crate) nodelay: bool,
}

/// A conntrack table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Table {
    /// Its size; the machine's own where none is set.
    pub(crate) max: Option<u32>,
    /// Flows in it before the load.
    pub(crate) prefill: u32,
    /// True where loopback is tracked too.
    pub(crate) loopback: bool,
}

/// The limits of one variant of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The table of the server's host. Without one only a router tracks connections.
    pub(crate) table: Option<Table>,
    /// Handshakes a second that another host begins and never completes.
    pub(crate) calls_per_s: Option<u32>,
    pub(crate) syn_backlog: u32,
    pub(crate) syn_cookies: bool,
    pub(crate) somaxconn: u32,
    /// True where `somaxconn` is raised after the servers began to listen.
    pub(crate) somaxconn_raised_late: bool,
    pub(crate) backlog: u32,
    pub(crate) backlog_behind: u32,
    pub(crate) worker_connections: u32,
    pub(crate) nofile: u32,
    pub(crate) rate: Option<RateLimit>,
    /// A narrow rate limit on a location that the load does not request.
    pub(crate) rate_elsewhere: bool,
    pub(crate) ports: (u32, u32),
    pub(crate) tw_reuse: bool,
    pub(crate) children: u32,
    /// `pm.max_children` written into the pool's file after its start with `children`.
    pub(crate) children_written: Option<u32>,
    /// Requests served at once by the server on another host.
    pub(crate) served_at_once: u32,
    /// CPU quota of the last server of the path, hundredths of a core.
    pub(crate) quota_percent: Option<u32>,
    /// Nice value of a busy program on the servers' core.
    pub(crate) neighbour_nice: Option<u32>,
}

impl Limits {
    /// Limits that no drawn load reaches.
    pub(crate) fn ample(stack: &Stack) -> Self {
        Self {
            table: None,
            calls_per_s: None,
            syn_backlog: AMPLE,
            syn_cookies: true,
            somaxconn: AMPLE,
            somaxconn_raised_late: false,
            backlog: 4_096,
            backlog_behind: 4_096,
            worker_connections: 8_192,
            nofile: 16_384,
            rate: None,
            rate_elsewhere: false,
            ports: PORTS_AMPLE,
            tw_reuse: true,
            children: children_ample(stack),
            children_written: None,
            served_at_once: stack.connections + 2,
            quota_percent: None,
            neighbour_nice: None,
        }
    }

    pub(crate) fn set_ports(&mut self, ports: u32) {
        self.ports = (PORTS_FROM, (PORTS_FROM + ports - 1).min(AMPLE));
    }
}

/// A worker for each client where the page waits, else as many as a core can use.
pub(crate) fn children_ample(stack: &Stack) -> u32 {
    match stack.page {
        DrawnPage::Waiting { .. } | DrawnPage::Mixed { .. } | DrawnPage::Asking { .. } => stack.connections + 2,
        DrawnPage::Static { .. } | DrawnPage::Cpu { .. } | DrawnPage::Large { .. } => stack.connections.clamp(4, WORKERS_COMPUTING),
    }
}
