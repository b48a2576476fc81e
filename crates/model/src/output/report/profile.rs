//! Where the CPU time went, as the report tells it.

use serde::{Deserialize, Serialize};

/// The profile of the last third of the window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileReport {
    /// What made the samples: "cycles" or "cpu-clock".
    pub clock: String,
    /// Samples a second on each busy core.
    pub frequency_hz: u32,
    /// Seconds that were sampled.
    pub duration_s: f64,
    /// Busy samples.
    pub samples: u64,
    /// Records that the kernel had no room for.
    pub lost: u64,
    /// Times that the kernel left samples out because they took too long.
    pub throttled: u64,
    /// Samples that have a user stack.
    pub user_samples: u64,
    /// Share of these whose stack breaks off.
    pub broken: f64,
    /// CPU time that it took, seconds.
    pub cost_cpu_s: f64,
    /// The same in one sentence.
    pub quality: String,
    /// The tiers of the path that ran, outermost first.
    pub tiers: Vec<ProfileTier>,
    /// All other programs and the kernel's own work together; nothing where nothing else ran.
    pub others: Option<ProfileTier>,
    /// The cores.
    pub cores: Vec<ProfileCore>,
    /// The most that could be gained, the most promising first; empty where CPU time is not what limits.
    pub bounds: Vec<ProfileBound>,
    /// Why there are no bounds, where there are none.
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
    /// CPU time for each good answer, microseconds, where enough were answered.
    pub cpu_us_per_request: Option<f64>,
    /// Its layers, the heaviest first.
    pub layers: Vec<ProfileLayer>,
}

/// A layer's part of that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileLayer {
    /// Its id.
    pub layer: String,
    /// Its name.
    pub title: String,
    /// Its share of the tier's or core's time.
    pub share: f64,
    /// CPU time for each good answer, microseconds.
    pub cpu_us_per_request: Option<f64>,
}

/// A core's time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileCore {
    /// Its number.
    pub cpu: u32,
    /// Share of the time in which it was busy, by its samples.
    pub busy: f64,
    /// What it did, the most first.
    pub layers: Vec<ProfileLayer>,
}

/// The most that throughput could gain if something cost nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileBound {
    /// The tier.
    pub tier: String,
    /// The layer's id, or that of something that goes across layers: "connection".
    pub what: String,
    /// Its name.
    pub title: String,
    /// Its share of the time of what limits.
    pub share: f64,
    /// The share's 95 % interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// By how much throughput could grow at most (Amdahl 1967).
    pub factor: f64,
    /// The same in one sentence.
    pub text: String,
}
