//! The result of an experiment, as JSON (`chokepoint/experiment/1`).

use std::collections::BTreeMap;

use chokepoint_model::report::LedgerPlaceKind;
use serde::{Deserialize, Serialize};

use crate::plan::Load;
use crate::trial::{Metric, Trial};

/// Name and version of the JSON form.
pub const SCHEMA: &str = "chokepoint/experiment/1";

/// A whole experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// [`SCHEMA`].
    pub schema: String,
    /// The plan's name.
    pub name: String,
    /// The question.
    pub title: String,
    /// Where it ran.
    pub host: Host,
    /// What was done.
    pub design: Design,
    /// The variants.
    pub variants: Vec<VariantReport>,
    /// What was compared, and what came of it.
    pub comparisons: Vec<Comparison>,
    /// Why it ended.
    pub ended: Ended,
    /// What the reader has to know about the figures, in words.
    pub warnings: Vec<String>,
    /// Every trial, in order.
    pub trials: Vec<Trial>,
    /// The plan as written.
    pub plan: String,
}

/// Where it ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Kernel release.
    pub kernel: String,
    /// Online cores.
    pub cores: u32,
    /// When it began, RFC 3339 in UTC.
    pub began: String,
    /// Version of chokepoint.
    pub version: String,
}

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// The scenario or URL.
    pub stack: String,
    /// The factors and their levels; empty without factors.
    pub factors: Vec<(String, Vec<String>)>,
    /// The figure that decides.
    pub decide: String,
    /// Length of a trial and of the load before it, seconds.
    pub trial_s: f64,
    /// See `trial_s`.
    pub warm_up_s: f64,
    /// The longest time, seconds.
    pub budget_s: f64,
    /// Time used, seconds.
    pub used_s: f64,
    /// Half width of the interval at which it stops, percent.
    pub precision_percent: f64,
    /// Complete rounds of trials.
    pub blocks: usize,
    /// Rounds for which there was time.
    pub blocks_planned: usize,
    /// The rounds after which the figures were looked at.
    pub looks: Vec<usize>,
    /// True for an A/A experiment.
    pub same: bool,
    /// Cores used by other programs in the second before the first trial, if known.
    pub busy_before_cores: Option<f64>,
    /// Trials that were disturbed from outside.
    pub disturbed: usize,
    /// Of these, the trials that were repeated.
    pub repeated: usize,
}

/// A variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VariantReport {
    /// Its name.
    pub name: String,
    /// Its levels; empty without factors.
    pub levels: Vec<String>,
    /// The load of its trials.
    pub load: Load,
    /// What was verified, in words.
    pub verified: Vec<String>,
    /// Trials that count.
    pub trials: usize,
    /// Figures by name.
    pub figures: BTreeMap<Metric, Estimate>,
    /// Median response times, milliseconds, by percentile.
    pub percentiles_ms: Vec<(f64, f64)>,
    /// Where requests stood: mean numbers over the trials.
    pub ledger: Vec<Standing>,
    /// Share of the requests under way whose place is not known.
    pub unaccounted_share: Option<f64>,
    /// Calls of a function per good answer.
    pub calls: Vec<Calls>,
    /// What removing a layer from the profile could gain at most.
    pub bounds: Vec<Bound>,
    /// Trials in which the load generator was the limit.
    pub generator_limited: usize,
}

/// A figure over trials.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Median.
    pub median: f64,
    /// 95 % bootstrap interval of the median; the smallest and largest of fewer than three trials.
    pub low: f64,
    /// See `low`.
    pub high: f64,
}

/// Where requests stood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The tier, or "client".
    pub tier: String,
    /// The place.
    pub place: LedgerPlaceKind,
    /// Mean number of requests.
    pub mean: f64,
    /// Share of all requests under way, 0 to 1.
    pub share: f64,
}

/// Calls of a function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    /// The function as the plan names it.
    pub what: String,
    /// Calls per good answer: median of the counts.
    pub per_request: Option<f64>,
    /// The smallest and largest count.
    pub low: Option<f64>,
    /// See `low`.
    pub high: Option<f64>,
    /// Why nothing was counted.
    pub why_not: Option<String>,
}

/// What removing a layer could gain at most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// The tier: "nginx".
    pub tier: String,
    /// The layer: "allocator".
    pub layer: String,
    /// Its share of the CPU time of the measured server's cores, 0 to 1.
    pub share: f64,
    /// Goodput without it over goodput with it, less 1, if the cores were the limit: share / (1 - share), percent.
    pub gain_percent: f64,
}

/// Two variants beside each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Number of the variant that the other is compared with.
    pub baseline: usize,
    /// Number of the other.
    pub variant: usize,
    /// What the deciding figure shows.
    pub outcome: Outcome,
    /// The same in a sentence.
    pub sentence: String,
    /// Differences of all figures.
    pub differences: BTreeMap<Metric, Change>,
    /// Blocks in which both had an undisturbed trial.
    pub pairs: usize,
    /// The smallest true difference that so many pairs show in four of five experiments, percent.
    pub smallest_percent: Option<f64>,
    /// Functions whose CPU time for each request differs most between the two profiles, the largest difference first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<FunctionTime>,
    /// More time after which the interval would be as narrow as the precision asks for, seconds.
    pub more_time_s: Option<f64>,
}

/// CPU time of a function for each request, from the profiles of two variants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FunctionTime {
    /// The function's name.
    pub name: String,
    /// Microseconds for each request in the baseline: the function's share of the profile times the CPU time of a request.
    pub before_us: f64,
    /// The same in the other variant.
    pub after_us: f64,
}

/// What a comparison shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The deciding figure is better.
    Better,
    /// It is worse.
    Worse,
    /// It differs, and neither is better.
    Different,
    /// No difference could be seen.
    NoDifference,
    /// There are too few trials for any answer.
    TooFew,
}

/// A difference between two variants.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The difference: percent of the baseline, or points for figures that are shares.
    pub value: f64,
    /// Its interval at the level of this look. `None` if there are too few pairs.
    pub low: Option<f64>,
    /// See `low`.
    pub high: Option<f64>,
    /// True if `value` is a percentage of the baseline.
    pub is_percent: bool,
}

/// Why an experiment ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// The interval is as narrow as asked for, or the difference is clear.
    Precise,
    /// The time is used up.
    Budget,
    /// The user interrupted it.
    Interrupted,
}
