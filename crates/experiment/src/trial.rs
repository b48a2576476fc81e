//! One trial: a load on one variant, and the figures that it gave.

use std::collections::BTreeMap;

use chokepoint_model::report::LedgerReport;
use serde::{Deserialize, Serialize};

/// A figure of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Requests that ended a second.
    Throughput,
    /// Expected answers within the timeout a second.
    Goodput,
    /// Share of the requests without an expected answer, percent.
    Failed,
    /// Response times, milliseconds.
    P50,
    /// See [`Metric::P50`].
    P99,
    /// See [`Metric::P50`].
    Max,
    /// CPU time of the path's servers for a good answer, softirqs included, microseconds.
    CpuPerRequest,
    /// Shares of the time of the measured server's cores, percent.
    CoreUser,
    /// See [`Metric::CoreUser`].
    CoreSystem,
    /// See [`Metric::CoreUser`].
    CoreSoftirq,
    /// See [`Metric::CoreUser`].
    CoreIdle,
    /// Bits a second that the first tier sends.
    Link,
    /// Resident memory of the measured server's processes, megabytes. Shared pages count in each.
    Memory,
    /// Connections opened by the load for a good answer.
    Connections,
}

/// Whether more of a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More.
    More,
    /// Less.
    Less,
    /// Neither: it only describes.
    Neither,
}

impl Metric {
    /// All, in the order of the table.
    pub const ALL: &'static [Self] = &[
        Self::Throughput,
        Self::Goodput,
        Self::Failed,
        Self::P50,
        Self::P99,
        Self::Max,
        Self::CpuPerRequest,
        Self::CoreUser,
        Self::CoreSystem,
        Self::CoreSoftirq,
        Self::CoreIdle,
        Self::Link,
        Self::Memory,
        Self::Connections,
    ];

    /// Its name in plans and in JSON, the message with its name for people, its unit, whether more is better, and whether two values are compared by their ratio.
    fn definition(self) -> (&'static str, &'static str, &'static str, Better, bool) {
        match self {
            Self::Throughput => ("throughput", "metric-throughput", "/s", Better::More, true),
            Self::Goodput => ("goodput", "metric-goodput", "/s", Better::More, true),
            Self::Failed => ("failed", "metric-failed", "%", Better::Less, false),
            Self::P50 => ("p50", "metric-p50", "ms", Better::Less, true),
            Self::P99 => ("p99", "metric-p99", "ms", Better::Less, true),
            Self::Max => ("max", "metric-max", "ms", Better::Less, true),
            Self::CpuPerRequest => ("cpu_per_request", "metric-cpu-per-request", "us", Better::Less, true),
            Self::CoreUser => ("core_user", "metric-core-user", "%", Better::Neither, false),
            Self::CoreSystem => ("core_system", "metric-core-system", "%", Better::Neither, false),
            Self::CoreSoftirq => ("core_softirq", "metric-core-softirq", "%", Better::Neither, false),
            Self::CoreIdle => ("core_idle", "metric-core-idle", "%", Better::Neither, false),
            Self::Link => ("link", "metric-link", "Mbit/s", Better::Neither, true),
            Self::Memory => ("memory", "metric-memory", "MB", Better::Less, true),
            Self::Connections => ("connections", "metric-connections", "a request", Better::Neither, false),
        }
    }

    /// Its name in plans and in JSON.
    pub fn name(self) -> &'static str {
        self.definition().0
    }

    /// The message with its name for people.
    pub fn message(self) -> &'static str {
        self.definition().1
    }

    /// Its unit.
    pub fn unit(self) -> &'static str {
        self.definition().2
    }

    /// The figure of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|metric| metric.name() == name)
    }

    /// The names of the figures that may decide.
    pub fn names() -> String {
        Self::ALL.iter().map(|metric| metric.name()).collect::<Vec<_>>().join(", ")
    }

    /// Whether more of it is better.
    pub fn better(self) -> Better {
        self.definition().3
    }

    /// True if two values are compared by their ratio, so that a difference is a percentage. Shares are compared by their difference.
    pub fn is_ratio(self) -> bool {
        self.definition().4
    }
}

/// What disturbed a trial from outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Disturbance {
    /// The hypervisor took a part of the cores' time.
    Steal {
        /// Share of the cores' time, percent.
        percent: f64,
    },
    /// Programs outside of the path used more of the cores than in the other trials.
    OtherPrograms {
        /// Cores used by them.
        cores: f64,
        /// Cores used by them in the other trials (median).
        usual: f64,
    },
    /// The processor was throttled because of heat or power.
    Throttled {
        /// Events of all cores.
        events: u64,
    },
}

/// One trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The round of trials to which it belongs, from 0. Every variant has one trial in each.
    pub block: usize,
    /// The number of its variant.
    pub variant: usize,
    /// Seconds from the beginning of the experiment.
    pub at_s: f64,
    /// The figures; those that could not be read are missing.
    pub figures: BTreeMap<Metric, f64>,
    /// Response times, milliseconds, by percentile: for the plot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub percentiles_ms: Vec<(f64, f64)>,
    /// Where requests stood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerReport>,
    /// What the hypervisor took of the cores' time, percent.
    pub steal_percent: f64,
    /// Cores used by programs outside of the path and of the load, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_cores: Option<f64>,
    /// Throttle events of the processor, if it counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled: Option<u64>,
    /// What disturbed it. A disturbed trial is repeated once and does not count if the repetition was undisturbed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbed: Vec<Disturbance>,
    /// True if another trial took its place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaced: bool,
    /// The load generator was the limit, so that the figures are its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub generator_limited: bool,
}
