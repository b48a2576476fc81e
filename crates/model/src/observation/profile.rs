//! Where the CPU time went while samples of what runs were taken: counts by process, core and layer, small enough for a recording.

use serde::{Deserialize, Serialize};

/// Samples of what ran, put into layers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuProfile {
    /// What made the samples: "cycles" (the hardware's counter) or "cpu-clock" (the kernel's timer; perf_event_open(2)).
    pub clock: String,
    /// Samples a second on each busy core.
    pub frequency_hz: u32,
    /// When it began and ended, microseconds since the observation began.
    pub span_us: (u64, u64),
    /// Records that the kernel had no room for.
    pub lost: u64,
    /// Times that the kernel left samples out because they took too long.
    pub throttled: u64,
    /// Samples that have a user stack.
    pub user_samples: u64,
    /// Of these, those whose stack ends before the thread's first function, or could not be walked at all.
    pub broken: u64,
    /// Share of the kernel's functions in the samples that have no name: without names nothing is known of what the kernel did.
    pub unnamed_kernel: f64,
    /// CPU time that gathering, unwinding and naming took, seconds.
    pub cost_cpu_s: f64,
    /// The cores that were sampled.
    pub cores: Vec<u32>,
    /// The busy samples, each in exactly one part.
    pub parts: Vec<ProfilePart>,
    /// The functions that ran most, by process name and layer.
    pub functions: Vec<ProfileFunction>,
}

/// Samples of one process on one core in one layer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfilePart {
    /// The process; 0 is the idle one, whose samples are interrupts that came while nothing ran.
    pub pid: u32,
    /// Its name.
    pub program: String,
    /// The core.
    pub cpu: u32,
    /// The layer's id: "port-search", "tcp-transmit" (docs/profile.md).
    pub layer: String,
    /// What else they are part of, across layers: "tls-handshake", "connection".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aspects: Vec<String>,
    /// How many.
    pub samples: u64,
    /// What they stand for: nanoseconds of cpu-clock, or cycles.
    pub weight: u64,
}

/// A function's own time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfileFunction {
    /// Name of the process.
    pub program: String,
    /// The layer's id.
    pub layer: String,
    /// Its name.
    pub name: String,
    /// What its samples stand for.
    pub weight: u64,
}

impl CpuProfile {
    /// Seconds that were sampled.
    pub fn seconds(&self) -> f64 {
        self.span_us.1.saturating_sub(self.span_us.0) as f64 / 1e6
    }
}
