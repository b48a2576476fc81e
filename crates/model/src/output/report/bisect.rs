//! The part of the report about what each tier gives by itself.

use serde::{Deserialize, Serialize};

use super::{LimitedBy, LoadReport, Verdict};

/// What the tiers give by themselves, and how far that explains the whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bisect {
    /// What explains the whole's goodput.
    pub explained_by: ExplainedBy,
    /// The tier that explains it, if it is a single one.
    pub tier: Option<String>,
    /// The explanation in a sentence or two.
    pub summary: String,
    /// The parts, in the order of the path.
    pub parts: Vec<PartReport>,
}

/// What explains the goodput of the whole, after each part was loaded by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExplainedBy {
    /// One tier gives no more by itself.
    Tier,
    /// The parts share cores, and these are full.
    SharedCores,
    /// Too few connections: a request spends its time in one part after another.
    Series,
    /// No more was offered.
    Demand,
    /// Each part gives more by itself: the limit lies between them.
    Between,
    /// A part gives less by itself: not every request reaches it.
    Beyond,
    /// No part could be loaded.
    Untold,
}

/// How a tier is loaded by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartKind {
    /// With requests that it answers without any server behind it.
    Own,
    /// With the requests that it gets within the whole, without the servers in front of it.
    Direct,
}

/// One tier by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartReport {
    /// The tier's name.
    pub tier: String,
    /// How it was loaded.
    pub kind: PartKind,
    /// The URL; `None` if it was not loaded.
    pub url: Option<String>,
    /// The load and its results; `None` if there was none.
    pub load: Option<LoadReport>,
    /// CPU time of its processes, and of those behind it, per good answer, microseconds.
    pub cpu_us_per_good: Option<f64>,
    /// The verdict about it.
    pub verdict: Option<Verdict>,
    /// True if it explains the whole.
    pub explains: bool,
    /// What limits it if it is healthy.
    pub limited_by: Option<LimitedBy>,
    /// The verdict in one sentence, or why it was not loaded.
    pub summary: String,
}
