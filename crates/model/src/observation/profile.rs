//! A CPU profile as counts by process, core and layer, small enough for a recording.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// CPU samples, sorted into layers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuProfile {
    /// Source of the samples: "cycles" (the hardware counter) or "cpu-clock" (the kernel timer; perf_event_open(2)).
    pub clock: String,
    /// Samples a second on each busy core.
    pub frequency_hz: u32,
    /// Begin and end, microseconds since the observation began.
    pub span_us: (u64, u64),
    /// Records that did not fit into the kernel's buffer.
    pub lost: u64,
    /// Times that the kernel throttled sampling because samples took too long.
    pub throttled: u64,
    /// Samples that have a user stack.
    pub user_samples: u64,
    /// User stacks that end before the thread's first function, or could not be unwound at all.
    pub broken: u64,
    /// Share of sampled kernel functions without a name. Without names the kernel's work is unknown.
    pub unnamed_kernel: f64,
    /// CPU time spent on collecting, unwinding and naming, seconds.
    pub cost_cpu_s: f64,
    /// What was left out of it for its size, in sentences: "symbols left out: rustc (140 MiB)".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The cores that were sampled.
    pub cores: Vec<u32>,
    /// The busy samples, each in exactly one part.
    pub parts: Vec<ProfilePart>,
    /// The hottest functions, by process name and layer.
    pub functions: Vec<ProfileFunction>,
    /// How many processes began in its time, by the process that was there before and started them, itself or through others. `None` in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<BTreeMap<u32, u64>>,
}

/// Samples of one process on one core in one layer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfilePart {
    /// The process, or the one that was there before and started it in the profile's time. 0 is the idle process: its samples are interrupts while nothing ran.
    pub pid: u32,
    /// True for a process that began in the profile's time, and for those that it started.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_started: bool,
    /// Its name.
    pub program: String,
    /// The core.
    pub cpu: u32,
    /// The layer's id: "port-search", "tcp-transmit" (docs/profile.md).
    pub layer: String,
    /// Aspects across layers that the samples belong to: "tls-handshake", "connection".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aspects: Vec<String>,
    /// Number of samples.
    pub samples: u64,
    /// Weight of the samples: nanoseconds of cpu-clock, or cycles.
    pub weight: u64,
}

/// A function's self time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileFunction {
    /// Name of the process.
    pub program: String,
    /// The layer's id.
    pub layer: String,
    /// Its name.
    pub name: String,
    /// Weight of its samples.
    pub weight: u64,
}

impl CpuProfile {
    /// Sampled seconds.
    pub fn seconds(&self) -> f64 {
        self.span_us.1.saturating_sub(self.span_us.0) as f64 / 1e6
    }
}
