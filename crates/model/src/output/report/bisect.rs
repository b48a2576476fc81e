//! The part of the report that tells what each tier gives by itself.

use serde::{Deserialize, Serialize};

use super::{LimitedBy, LoadReport, Verdict};

/// What the tiers give by themselves, and how far that explains the whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bisect {
    /// What explains the whole's goodput.
    pub explained_by: ExplainedBy,
    /// The tier that does, where it is one.
    pub tier: Option<String>,
    /// The explanation in a sentence or two.
    pub summary: String,
    /// The parts, in the order of the path.
    pub parts: Vec<PartReport>,
}

/// What explains the goodput of a whole whose parts were loaded by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExplainedBy {
    /// One tier gives no more by itself.
    Tier,
    /// They share cores, which are full.
    SharedCores,
    /// Too few connections: a request spends its time in one part after the other.
    Series,
    /// No more was offered.
    Demand,
    /// Each part gives more by itself: it lies between them.
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
    /// For something that it answers without any server behind it.
    Own,
    /// For what it is asked within the whole, without the servers before it.
    Direct,
}

/// One tier by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PartReport {
    /// The tier's name.
    pub tier: String,
    /// How it was asked.
    pub kind: PartKind,
    /// The URL; nothing where it was not loaded.
    pub url: Option<String>,
    /// The load and what became of it; nothing where there was none.
    pub load: Option<LoadReport>,
    /// CPU time of its processes, and of those behind it, for each good answer, microseconds.
    pub cpu_us_per_good: Option<f64>,
    /// The verdict about it.
    pub verdict: Option<Verdict>,
    /// True where it explains the whole.
    pub explains: bool,
    /// What limits it where it is healthy.
    pub limited_by: Option<LimitedBy>,
    /// The verdict in one sentence, or why it was not loaded.
    pub summary: String,
}
