//! The report of a diagnosis: the `chokepoint/diagnosis/1` document, field by field as docs/schema/diagnosis-1.json describes it.
//!
//! Sentences in it come out of the message catalogue; nothing that renders it may judge.

mod bisect;
mod ledger;
mod profile;
mod whereabouts;
mod wire;

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::facts::spread::Spread;
use crate::fix::change::{Activation, Change};
use crate::observation::load::{Errors, Percentiles};

pub use bisect::{Bisect, ExplainedBy, PartKind, PartReport};
pub use ledger::{LedgerClient, LedgerLoss, LedgerLossKind, LedgerPlace, LedgerPlaceKind, LedgerReport, LedgerUnaccounted};
pub use profile::{ProfileBound, ProfileCore, ProfileLayer, ProfileReport, ProfileTier};
pub use whereabouts::{WhereWindow, Whereabouts};
pub use wire::{WireEdgeReport, WireEvidence, WireReport};

/// The whole report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// "chokepoint/diagnosis/1".
    pub schema: String,
    /// What was diagnosed.
    pub target: Target,
    /// The verdict.
    pub verdict: Verdict,
    /// What limits a healthy server.
    pub limited_by: Option<LimitedBy>,
    /// The verdict in one sentence.
    pub summary: String,
    /// Where the data came from.
    pub mode: Mode,
    /// The load and what became of it; nothing in passive mode where no log tells it.
    pub load: Option<LoadReport>,
    /// The stations in the order in which a request passes them.
    pub path: Vec<Station>,
    /// Causes first, in the order in which they are to be mended; then symptoms, those nearest to their cause first.
    pub findings: Vec<Finding>,
    /// What brings about what among the findings; empty where each stands alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub couplings: Vec<Coupling>,
    /// Why the causes stand in this order, which is the one in which they are to be mended; empty where there are not several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<Turn>,
    /// From what on a place counts as harm; nothing in reports of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harm: Option<HarmRule>,
    /// What could be faster though nothing is choked, each as a cause of what it costs. Told, and tried only once something else was mended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub improvements: Vec<Finding>,
    /// Where requests stood; nothing where their sockets were not sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerReport>,
    /// Where the CPU time went; nothing where no profile was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileReport>,
    /// What packets showed; nothing without `--capture`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<WireReport>,
    /// How each source fared.
    pub readings: Vec<SourceReport>,
    /// Things to know that are no findings.
    pub warnings: Vec<String>,
    /// What the tiers give by themselves; nothing without `--bisect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bisect: Option<Bisect>,
    /// The rounds of `--fix`; empty without it.
    pub rounds: Vec<Round>,
}

/// What a place must cost to be worth a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HarmRule {
    /// The share by which goodput would rise without it, from 0 to 1.
    pub goodput_share: f64,
    /// Or the share of the requests that fail there, or are slow for it.
    pub requests_share: f64,
    /// One sentence.
    pub text: String,
}

impl Diagnosis {
    /// The round that measured the host as the run left it; nothing where no change stays.
    pub fn result(&self) -> Option<&Round> {
        let stays = |round: &&Round| round.kind == RoundKind::Apply && round.kept != Kept::No;
        let applied = self.rounds.iter().rfind(stays)?;
        // What came after the chain measured less than all that stays, unless it is the confirmation or left out what was then dropped.
        match self.rounds.last() {
            Some(last) if last.kind == RoundKind::Confirm || (last.kind == RoundKind::Without && last.kept == Kept::No) => Some(last),
            _ => Some(applied),
        }
    }
}

/// What was diagnosed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The URL.
    pub url: String,
    /// Addresses it stands for.
    pub addresses: Vec<IpAddr>,
    /// The listener that answers for it, where one was found on this host.
    pub listener: Option<String>,
    /// Name of the namespace of that listener.
    pub netns: Option<String>,
    /// Tiers on the request's path, outermost first.
    pub tiers: Vec<TierReport>,
}

/// One tier of the request's path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TierReport {
    /// Name, unique in this report: "nginx", "php-fpm", "python3".
    pub name: String,
    /// Listeners that lead to it.
    pub listeners: Vec<String>,
    /// Its processes.
    pub pids: Vec<u32>,
    /// Its namespace's name.
    pub netns: String,
    /// The tiers it calls.
    pub upstreams: Vec<String>,
}

/// The verdict (DESIGN.md, "Verdicts").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// At least one cause with a limit that can be acted on.
    Choked,
    /// Nothing holds it back but what `limited_by` says.
    Healthy,
    /// The load generator was the limit: no verdict about the server's rate.
    ClientLimited,
    /// It cannot be told; the summary says what is missing.
    Unknown,
}

/// What limits a healthy server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitedBy {
    /// All cores that the servers may use are busy.
    Cpu,
    /// The link is full.
    Link,
    /// Too few connections or too little offered load to reach any limit.
    Demand,
}

/// Where the data came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Load was applied.
    Load,
    /// The traffic that was there was watched.
    Passive,
}

/// The load and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// Requests ended.
    pub requests: u64,
    /// Seconds.
    pub duration_s: f64,
    /// Requests ended a second, whatever their end.
    pub throughput_rps: f64,
    /// Expected answers within the timeout a second.
    pub goodput_rps: f64,
    /// Answers by status.
    pub status: BTreeMap<String, u64>,
    /// Requests without an answer, by what went wrong.
    pub errors: Errors,
    /// Response times, timed-out requests included.
    pub latency_us: Percentiles,
    /// Share of the clients' time, 0 to 1, that was lost in requests which failed or took longer than is of use ([`crate::observation::load::LoadResult::lost_share`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_share: Option<f64>,
    /// How surely they are known; nothing where the load does not tell it.
    #[serde(skip)]
    pub spread: Option<Spread>,
}

impl LoadReport {
    /// Goodput as far as it reaches: expected answers a second times the share of the clients' time that was not lost. Of two states it is this that says which
    /// serves better, for goodput alone rises where some are turned away and leave the cores to the rest.
    pub fn reaching_rps(&self) -> f64 {
        self.goodput_rps * (1.0 - self.lost_share.unwrap_or(0.0))
    }

    /// Share of what ended that was not answered as expected; nothing where nothing ended.
    pub fn failed_share(&self) -> Option<f64> {
        (self.throughput_rps > 0.0).then(|| (1.0 - self.goodput_rps / self.throughput_rps).clamp(0.0, 1.0))
    }
}

/// Where a station is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct At {
    /// Namespace's name.
    pub netns: Option<String>,
    /// Process.
    pub pid: Option<u32>,
    /// Listener.
    pub listener: Option<String>,
    /// Edge, "nginx->php-fpm".
    pub edge: Option<String>,
    /// Cores, "1" or "0-3".
    pub cpu: Option<String>,
    /// The cgroup's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
}

/// The two kinds of station (DESIGN.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StationKind {
    /// It has a ceiling in requests a second.
    Rate,
    /// It is harmless until it refuses.
    Cliff,
}

/// A station's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StationState {
    /// Headroom.
    Ok,
    /// Little headroom; no harm yet.
    Near,
    /// A rate station at its limit.
    Saturated,
    /// It turned requests away.
    Refusing,
    /// It could not be read.
    Unknown,
}

/// The most requests a second that a station can pass.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Best estimate.
    pub value: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// One station of one tier with its reading.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Station {
    /// The tier it belongs to: a tier's name, "client" or "host".
    pub tier: String,
    /// Station id, kebab-case: "conntrack-table".
    pub station: String,
    /// Where it is.
    pub at: At,
    /// Rate or cliff.
    pub kind: StationKind,
    /// Its limit, in the station's own unit.
    pub limit: Option<f64>,
    /// Peak use in the window, same unit.
    pub used: Option<f64>,
    /// Mean number waiting in the window.
    pub waiting: Option<f64>,
    /// Refused a second, over the window.
    pub refused_per_s: Option<f64>,
    /// used / limit.
    pub utilization: Option<f64>,
    /// The unit of limit and used: "entries", "connections", "cores", "bits/s".
    pub unit: String,
    /// Its ceiling, where it has one and it can be told.
    pub ceiling_rps: Option<Ceiling>,
    /// Its state.
    pub state: StationState,
    /// Why it is in that state, or why it is unknown; one sentence.
    pub why: String,
}

/// Cause or symptom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It holds the server back by itself.
    Cause,
    /// Something else causes it.
    Symptom,
}

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// One signal, indirect.
    Low,
    /// The deciding signals, some of them indirect.
    Medium,
    /// Every deciding signal, read directly.
    High,
}

/// One piece of evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// One sentence.
    pub text: String,
    /// Where it was read: a path or an interface of the kernel.
    pub source: String,
    /// The value, where it is one number.
    pub value: Option<f64>,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Id: names the bad thing, kebab-case.
    pub id: String,
    /// The station's id.
    pub station: String,
    /// The station's tier.
    pub tier: String,
    /// Where.
    pub at: At,
    /// Cause or symptom.
    pub role: Role,
    /// The findings that bring it about, where it is a symptom: the root first, then what lies between, as `couplings` has it link by link.
    pub symptom_of: Vec<String>,
    /// How sure.
    pub confidence: Confidence,
    /// One line.
    pub title: String,
    /// What shows it.
    pub evidence: Vec<Evidence>,
    /// The cause in plain words.
    pub explanation: String,
    /// What would remove it, the best first.
    pub remedies: Vec<Remedy>,
}

/// What a finding is brought about by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A finding, by its place in [`Diagnosis::findings`], from 0.
    Finding(usize),
    /// A station at its limit that is no fault, by its place in [`Diagnosis::path`], from 0: cores that are all busy.
    Station(usize),
}

/// One link of a chain from cause to symptom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coupling {
    /// What brings the symptom about.
    pub cause: Cause,
    /// The symptom, by its place in [`Diagnosis::findings`], from 0.
    pub symptom: usize,
    /// What tells the one from the other; one or two sentences.
    pub why: String,
}

/// Why a cause has its turn before or after the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// The cause, by its place in [`Diagnosis::findings`], from 0.
    pub finding: usize,
    /// Why it stands there; one or two sentences.
    pub why: String,
}

/// One remedy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Remedy {
    /// Id, kebab-case: "raise-conntrack-max".
    pub id: String,
    /// What it changes, machine-readable; empty for advice that is not applied by itself.
    pub change: Vec<Change>,
    /// One sentence saying what it does.
    pub text: String,
    /// The exact commands that do it now.
    pub runtime: Vec<String>,
    /// The exact lines that make it last, with the file they belong to.
    pub persistent: Vec<String>,
    /// When it takes effect.
    pub activation: Activation,
    /// What could go wrong, what it costs.
    pub risk: String,
    /// How it is taken back.
    pub undo: String,
    /// What will tell that it worked.
    pub signal: Signal,
    /// What goodput it should give.
    pub prediction: Prediction,
    /// The group of alternatives that it belongs to: of those with the same name under one finding, each is tried without the others and at
    /// most one is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// The success signal that a remedy names beforehand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "measure")]
pub enum Signal {
    /// Refusals at this station fall to zero.
    Refusals {
        /// Station id.
        station: String,
    },
    /// Goodput rises beyond noise.
    Goodput,
    /// The p99 of response time falls beyond noise.
    LatencyP99,
}

/// A predicted goodput, or why none is given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Prediction {
    /// A refusal with its reason.
    Refused {
        /// Why.
        refused: String,
        /// No more than so many answers a second, for the requests' time at other places stays (a closed loop), and so do the ceilings that are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_most: Option<f64>,
        /// What the ceilings would have given all the same, requests a second: what a score-board holds against the measurement to see whether
        /// the refusal was right. It is not shown to users.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unsaid: Option<Ceiling>,
    },
    /// A prediction.
    Goodput {
        /// Requests a second.
        goodput_rps: f64,
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
        /// The station that will limit next.
        next_station: String,
    },
}

/// How a source fared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceReport {
    /// Source's name, with its namespace or process where it has one.
    pub source: String,
    /// How it fared.
    pub status: SourceStatus,
    /// Why it is not there.
    pub why: Option<String>,
    /// The privilege that would give it.
    pub needs: Option<String>,
}

/// How a source fared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceStatus {
    /// Read.
    Ok,
    /// Not on this host or not for this user.
    Absent,
    /// Could not be read or understood.
    Failed,
}

/// Whether a change was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// For now; judged again when the chain ends.
    Provisional,
    /// For good.
    Final,
    /// Taken back.
    No,
}

/// What a round of `--fix` measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoundKind {
    /// The host with one change more.
    #[default]
    Apply,
    /// The host without one of the changes that were kept for now.
    Without,
    /// The host with every change that stays.
    Confirm,
}

/// One round of `--fix`: a measurement after something was changed or taken back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Number, from 1; round 0 is the first measurement and is in `load`.
    pub n: u32,
    /// What was measured.
    #[serde(default)]
    pub kind: RoundKind,
    /// The load of this round.
    pub load: LoadReport,
    /// The finding that was acted on; empty where all that stays was measured.
    pub finding: String,
    /// The remedy that was applied or left out; empty where all that stays was measured.
    pub remedy: String,
    /// What was predicted; refused where nothing was applied.
    pub prediction: Prediction,
    /// Whether the measured goodput was within the predicted interval; nothing where none was predicted.
    #[serde(default)]
    pub prediction_held: Option<bool>,
    /// Goodput of the measurement that this one is held against: before the change, or with it where it is left out.
    #[serde(default)]
    pub before_rps: Option<f64>,
    /// Goodput measured.
    pub measured_rps: f64,
    /// What became of the change, the one that was left out included.
    pub kept: Kept,
    /// Why.
    pub why: String,
    /// The verdict of this round's measurement.
    pub verdict: Verdict,
    /// What limits the server after it, where it is healthy.
    pub limited_by: Option<LimitedBy>,
    /// That verdict in one sentence.
    pub summary: String,
}
