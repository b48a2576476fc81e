//! The part of the report about where the CPU time went.

use serde::{Deserialize, Serialize};

/// The profile of the last third of the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileReport {
    /// The event that triggered the samples: "cycles" or "cpu-clock".
    pub clock: String,
    /// Samples per second on each busy core.
    pub frequency_hz: u32,
    /// Seconds that were sampled.
    pub duration_s: f64,
    /// Busy samples.
    pub samples: u64,
    /// Records that the kernel had no room for.
    pub lost: u64,
    /// How often the kernel left samples out because they took too long.
    pub throttled: u64,
    /// Samples that have a user stack.
    pub user_samples: u64,
    /// Share of these with an incomplete stack.
    pub broken: f64,
    /// CPU time that sampling took, seconds.
    pub cost_cpu_s: f64,
    /// The same in one sentence.
    pub quality: String,
    /// The tiers of the path that ran, outermost first.
    pub tiers: Vec<ProfileTier>,
    /// All other programs and the kernel's own work together; `None` if nothing else ran.
    pub others: Option<ProfileTier>,
    /// The cores.
    pub cores: Vec<ProfileCore>,
    /// The most that could be gained, the most promising first; empty if CPU time is not the limit.
    pub bounds: Vec<ProfileBound>,
    /// Why there are no bounds, if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_bound: Option<String>,
}

/// A tier's CPU time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileTier {
    /// The tier's name.
    pub tier: String,
    /// Its samples.
    pub samples: u64,
    /// Cores that it kept busy on average.
    pub cores: f64,
    /// CPU time per good answer, microseconds, if there were enough answers.
    pub cpu_us_per_request: Option<f64>,
    /// Its layers, the heaviest first.
    pub layers: Vec<ProfileLayer>,
}

/// A layer's part of a tier's or core's time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileLayer {
    /// Its id.
    pub layer: String,
    /// Its name.
    pub title: String,
    /// Its share of the tier's or core's time.
    pub share: f64,
    /// CPU time per good answer, microseconds.
    pub cpu_us_per_request: Option<f64>,
}

/// A core's time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileCore {
    /// Its number.
    pub cpu: u32,
    /// Share of the time that it was busy, by its samples.
    pub busy: f64,
    /// What it did, the most frequent first.
    pub layers: Vec<ProfileLayer>,
}

/// The most that throughput could gain if something cost nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileBound {
    /// The tier.
    pub tier: String,
    /// The layer's id, or the id of an aspect across layers: "connection".
    pub what: String,
    /// Its name.
    pub title: String,
    /// Its share of the limiting time.
    pub share: f64,
    /// Lower end of the share's 95 % interval.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// By how much throughput could grow at most (Amdahl 1967).
    pub factor: f64,
    /// The same in one sentence.
    pub text: String,
}
