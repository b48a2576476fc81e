//! Every limit of a stack that a draw can set: ample at first, then small where a decoy wants it so, then too small where a fault does.

use super::stack::{DrawnPage, Stack};

/// Room that no drawn load fills.
const AMPLE: u32 = 65_535;
/// The range of local ports that no drawn load fills.
pub(super) const PORTS_AMPLE: (u32, u32) = (10_000, 65_535);
/// Lowest port of a range that was made small.
const PORTS_FROM: u32 = 10_000;
/// Workers of a pool whose page only computes: more of them would wait for the core.
const WORKERS_COMPUTING: u32 = 24;

/// What lets so many requests a second pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RateLimit {
    pub(super) per_s: u32,
    pub(super) burst: u32,
    /// True where a burst is let through at once, false where it waits for its turn.
    pub(super) nodelay: bool,
}

/// A connection tracking table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Table {
    /// Its room; the machine's where none is set.
    pub(super) max: Option<u32>,
    /// Flows that are in it before the load.
    pub(super) prefill: u32,
    /// True where loopback is tracked too.
    pub(super) loopback: bool,
}

/// The limits of one variant of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Limits {
    /// The table of the server's host; without one nothing is tracked there. A router always has one.
    pub(super) table: Option<Table>,
    /// Handshakes a second that are begun from elsewhere and never completed.
    pub(super) calls_per_s: Option<u32>,
    pub(super) syn_backlog: u32,
    pub(super) syn_cookies: bool,
    pub(super) somaxconn: u32,
    /// True where `somaxconn` is raised after the servers have begun to listen.
    pub(super) somaxconn_raised_late: bool,
    pub(super) backlog: u32,
    pub(super) backlog_behind: u32,
    pub(super) worker_connections: u32,
    pub(super) nofile: u32,
    pub(super) rate: Option<RateLimit>,
    /// A narrow limit on another location than the one that is asked for.
    pub(super) rate_elsewhere: bool,
    pub(super) ports: (u32, u32),
    pub(super) tw_reuse: bool,
    pub(super) children: u32,
    /// What the pool's file says after the pool was started with `children`.
    pub(super) children_written: Option<u32>,
    /// Requests that the server on another host serves at once.
    pub(super) served_at_once: u32,
    /// CPU time that the last server of the path may use, hundredths of a core.
    pub(super) quota_percent: Option<u32>,
    /// A program that computes on the servers' core, and its nice value.
    pub(super) neighbour_nice: Option<u32>,
}

impl Limits {
    /// Nothing is short.
    pub(super) fn ample(stack: &Stack) -> Self {
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

    pub(super) fn set_ports(&mut self, ports: u32) {
        self.ports = (PORTS_FROM, (PORTS_FROM + ports - 1).min(AMPLE));
    }
}

/// Workers for all clients where the page holds them, else as many as a core has work for.
pub(super) fn children_ample(stack: &Stack) -> u32 {
    match stack.page {
        DrawnPage::Waiting { .. } | DrawnPage::Mixed { .. } | DrawnPage::Asking { .. } => stack.connections + 2,
        DrawnPage::Static { .. } | DrawnPage::Cpu { .. } | DrawnPage::Large { .. } => stack.connections.clamp(4, WORKERS_COMPUTING),
    }
}
