//! One measured step: a load, what came of it, and what each tier spent on it.

use chokepoint_model::PoolMemory;
use chokepoint_model::load::Percentiles;
use chokepoint_model::report::{LimitedBy, Verdict};

use crate::interval::Interval;
use chokepoint_servers::ServerDef;

/// The load of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Offered {
    /// Connections, each of which sends its next request after the answer to the last one.
    Closed(u32),
    /// Requests per second, however fast the answers are.
    Open(f64),
}

/// What a step found.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The load.
    pub offered: Offered,
    /// How long it was offered and counted, seconds.
    pub duration_s: f64,
    /// Expected answers per second.
    pub goodput_rps: Interval,
    /// Share of the ended requests without an expected answer, 0 to 1.
    pub failed_share: f64,
    /// Response times.
    pub latency_us: Percentiles,
    /// Median response time of single requests before this step, microseconds. `None` if too few were answered.
    pub alone_us: Option<f64>,
    /// The verdict of the diagnosis of this step.
    pub verdict: Verdict,
    /// What limited it, as the diagnosis says.
    pub limit: Limit,
    /// The tiers of the path.
    pub tiers: Vec<TierStep>,
    /// MemAvailable of the host, bytes.
    pub available_bytes: Option<u64>,
    /// Warnings of the diagnosis of this step.
    pub warnings: Vec<String>,
    /// True if the user interrupted it.
    pub interrupted: bool,
}

/// What limits, as the diagnosis of a step says. Nothing is judged anew.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limit {
    /// The first cause.
    pub finding: Option<String>,
    /// Its station.
    pub station: Option<String>,
    /// Its tier.
    pub tier: Option<String>,
    /// What limits a healthy server.
    pub limited_by: Option<LimitedBy>,
    /// One sentence: the title of the cause, or the summary of the verdict.
    pub text: String,
}

/// A tier in a step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TierStep {
    /// Its name in the report.
    pub name: String,
    /// Which known server it is.
    pub server: Option<&'static ServerDef>,
    /// Processes that are not the parent of another one.
    pub processes: u32,
    /// Threads of these processes.
    pub threads: u32,
    /// Workers of its pool that the diagnosis counted: all were seen busy, or its configuration says so.
    pub pool: Option<f64>,
    /// True if the workers of that pool are threads.
    pub is_pool_threads: bool,
    /// True if the lock of their interpreter lets only one thread of a process compute at a time.
    pub has_one_lock: bool,
    /// True if the diagnosis says that its pool is at its limit.
    pub is_pool_full: bool,
    /// Cores that it used, by its processes' clocks.
    pub cores_used: Option<f64>,
    /// Share of that in the kernel, 0 to 1.
    pub system_share: Option<f64>,
    /// Number of cores that it may run on.
    pub cores: Option<f64>,
    /// Busy share of these cores.
    pub cores_busy: Option<f64>,
    /// Expected answers per second that these cores have time for.
    pub core_ceiling_rps: Option<Interval>,
    /// Memory of its workers, as far as read.
    pub memory: Option<PoolMemory>,
    /// Requests at this tier on average, waiting to be accepted or read not included.
    pub inside: Option<f64>,
    /// Connections that fit into the accept queue of its listener.
    pub accept_queue_limit: Option<f64>,
    /// Its settings in force, as far as its configuration was read.
    pub in_force: Settings,
}

/// A setting in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InForce {
    /// Its value.
    pub value: u64,
    /// The file that sets it; empty for a default.
    pub file: String,
    /// The line.
    pub line: u32,
}

/// Settings of a known server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Workers that each have one request at a time.
    pub workers: Option<InForce>,
    /// Event loops.
    pub loops: Option<InForce>,
    /// Connections of each event loop.
    pub connections: Option<InForce>,
    /// Descriptors of each event loop: as configured, else as its processes have them.
    pub files: Option<InForce>,
}

impl Step {
    /// Number of connections of a closed loop.
    pub fn connections(&self) -> Option<u32> {
        match self.offered {
            Offered::Closed(connections) => Some(connections),
            Offered::Open(_) => None,
        }
    }

    /// Requests per second of an open loop.
    pub fn rate_per_s(&self) -> Option<f64> {
        match self.offered {
            Offered::Open(rate_per_s) => Some(rate_per_s),
            Offered::Closed(_) => None,
        }
    }

    /// True if its rates say something about the server: it was not cut short, and the load generator was not the limit.
    pub fn is_usable(&self) -> bool {
        !self.interrupted && self.verdict != Verdict::ClientLimited
    }

    /// The tier of this name.
    pub fn tier(&self, name: &str) -> Option<&TierStep> {
        self.tiers.iter().find(|tier| tier.name == name)
    }

    /// CPU time of this tier for an expected answer, seconds. `None` if either is unknown.
    pub fn cpu_s(&self, name: &str) -> Option<f64> {
        let used = self.tier(name)?.cores_used?;
        (self.goodput_rps.value > 0.0).then(|| used / self.goodput_rps.value)
    }
}

/// The usable closed-loop steps by ascending number of connections, of several with the same number the last.
pub fn curve(steps: &[Step]) -> Vec<&Step> {
    let mut curve: Vec<&Step> = Vec::new();
    for step in steps.iter().filter(|step| step.is_usable() && step.connections().is_some()) {
        curve.retain(|other| other.connections() != step.connections());
        curve.push(step);
    }
    curve.sort_by_key(|step| step.connections());
    curve
}
