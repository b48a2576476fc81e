//! The report of `size`: the `chokepoint/size/1` document, field by field as docs/schema/size-1.json describes it. Its sentences come from the catalogue.

use chokepoint_model::report::{LimitedBy, Verdict};
use serde::{Deserialize, Serialize};

use crate::interval::Interval;
use crate::law::ScalingLaw;
use chokepoint_servers::advice::WorkerUnit;

/// Name and version of the schema.
pub const SCHEMA: &str = "chokepoint/size/1";

/// The whole report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Size {
    /// "chokepoint/size/1".
    pub schema: String,
    /// The URL.
    pub url: String,
    /// How far it came.
    pub outcome: Outcome,
    /// The answer in one sentence.
    pub summary: String,
    /// The objective.
    pub objective: ObjectiveReport,
    /// What the server gives.
    pub capacity: Capacity,
    /// Where goodput stops to rise; null if it does not within the range, or if that is unknown.
    pub knee: Option<KneeReport>,
    /// One sentence about the knee, or why there is none.
    pub knee_text: String,
    /// The scaling law; null if the data do not support a fit.
    pub scaling: Option<ScalingLaw>,
    /// Why it is null.
    pub scaling_refused: Option<String>,
    /// What limits first; null if nothing was measured.
    pub limits_first: Option<LimitReport>,
    /// The servers on the path, outermost first.
    pub tiers: Vec<TierReport>,
    /// The steps in the order in which they were measured.
    pub steps: Vec<StepReport>,
    /// Things to know.
    pub warnings: Vec<String>,
}

/// How far the run came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Everything was measured.
    Measured,
    /// The user stopped it, or its time was used up, before the last step.
    Partial,
    /// The load generator was the limit: no capacity is given.
    ClientLimited,
    /// Nothing answered as expected.
    NothingAnswered,
}

/// The objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectiveReport {
    /// Microseconds.
    pub latency_us_p99: u64,
    /// False if it is the default: half of the request timeout, at most a second.
    pub given: bool,
}

/// Rates that the server gives, requests per second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// The highest measured goodput of the closed loop, whatever the response times.
    pub most_rps: Option<Interval>,
    /// The highest rate that held the objective. The upper end is the lowest rate that did not.
    pub at_objective_rps: Option<Interval>,
    /// The rate that holds the objective if requests arrive at random; at most the lower end of the rate above.
    pub safe_rps: Option<f64>,
    /// One sentence.
    pub text: String,
}

/// The knee.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KneeReport {
    /// Fewest connections with which goodput is not below the best beyond noise.
    pub connections: u32,
    /// Goodput there.
    pub goodput_rps: Interval,
    /// p99 there, microseconds.
    pub latency_us_p99: u64,
}

/// What limits first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitReport {
    /// The finding; null if it is the cores, the link or the demand.
    pub finding: Option<String>,
    /// Its station.
    pub station: Option<String>,
    /// Its tier.
    pub tier: Option<String>,
    /// What limits a healthy server.
    pub limited_by: Option<LimitedBy>,
    /// One sentence, of the diagnosis at the step past the knee.
    pub text: String,
}

/// Advice for one tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TierReport {
    /// Its name.
    pub tier: String,
    /// The server, if it is known: its id in crate `servers`.
    pub server: Option<String>,
    /// What serves requests; null if that is not known.
    pub unit: Option<WorkerUnit>,
    /// Workers now; null if that is not known.
    pub workers_now: Option<u32>,
    /// Workers that keep its cores full, as far as memory allows; null for event loops, and where it is not known.
    pub workers: Option<u32>,
    /// True if memory allows no more.
    pub memory_limits: bool,
    /// The time of a request here; null if it could not be measured.
    pub service: Option<ServiceReport>,
    /// Memory.
    pub memory: Option<MemoryReport>,
    /// The file with the lines below.
    pub file: Option<String>,
    /// The line of the setting that decides in that file: the number of workers, or of the connections of event loops; null where it was not read, and the file is
    /// where it usually is.
    pub line: Option<u32>,
    /// What to configure.
    pub config: Vec<ConfigReport>,
    /// The documentation of these settings.
    pub source: Option<String>,
    /// The advice in one sentence.
    pub text: String,
    /// More sentences: how it was computed, memory, and what to watch out for.
    pub notes: Vec<String>,
}

/// The time of a request at one tier.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ServiceReport {
    /// Microseconds that it holds a worker while no other request is under way, the tiers behind included.
    pub held_us: f64,
    /// CPU time, microseconds, at the highest load.
    pub cpu_us: f64,
    /// Part of it in the kernel.
    pub system_us: Option<f64>,
    /// The rest, microseconds.
    pub wait_us: f64,
    /// Cores of the tier.
    pub cores: f64,
    /// Requests per second that these cores have time for.
    pub core_ceiling_rps: f64,
}

/// Memory of the workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryReport {
    /// Private memory of the largest worker, bytes; null if it could not be read, or if the workers are threads, which share it.
    pub worker_bytes: Option<u64>,
    /// Private memory of all workers that are advised, bytes.
    pub needed_bytes: Option<u64>,
    /// Private memory of the process, if the workers are threads, bytes.
    pub process_bytes: Option<u64>,
    /// MemAvailable, bytes.
    pub available_bytes: Option<u64>,
    /// One sentence.
    pub text: String,
}

/// A line to configure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigReport {
    /// The line.
    pub text: String,
    /// What it is for.
    pub why: String,
}

/// One measured step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepReport {
    /// Connections of a closed loop.
    pub connections: Option<u32>,
    /// Requests per second of an open loop.
    pub rate_per_s: Option<f64>,
    /// Seconds.
    pub duration_s: f64,
    /// Expected answers per second.
    pub goodput_rps: Interval,
    /// Share of the requests that failed.
    pub failed_share: f64,
    /// Response times, microseconds.
    pub latency_us_p50: u64,
    /// Response times, microseconds.
    pub latency_us_p99: u64,
    /// Whether it held the objective.
    pub held: bool,
    /// The verdict of its diagnosis.
    pub verdict: Verdict,
    /// The first cause.
    pub finding: Option<String>,
    /// What limited it.
    pub text: String,
}
