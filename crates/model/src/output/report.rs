//! The report of a diagnosis: the `chokepoint/diagnosis/1` document, field by field as docs/schema/diagnosis-1.json describes it.
//!
//! Its sentences come from the message catalogue. Code that renders it must not judge.

mod bisect;
mod ledger;
mod outcome;
mod profile;
mod whereabouts;
mod wire;

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::facts::spread::Spread;
use crate::fix::change::{Activation, Change};
use crate::observation::load::{Errors, Percentiles, TlsLoad};

pub use bisect::{Bisect, ExplainedBy, PartKind, PartReport};
pub use ledger::{LedgerClient, LedgerLoss, LedgerLossKind, LedgerPlace, LedgerPlaceKind, LedgerReport, LedgerUnaccounted};
pub use outcome::{FailIfCondition, FailIfReport, FailIfUnit, HarmRule, NotApplied, RunReport, Served, SettingChange};
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
    /// True if nothing speaks against a server that was only watched, and nothing for it: more of its traffic may tell. No part of the document.
    #[serde(skip)]
    pub undecided: bool,
    /// Where the data came from.
    pub mode: Mode,
    /// The load and its results; `None` in passive mode if no log shows it.
    pub load: Option<LoadReport>,
    /// The stations in the order in which a request passes them.
    pub path: Vec<Station>,
    /// Causes first, in the order in which to fix them; then symptoms, those nearest to their cause first.
    pub findings: Vec<Finding>,
    /// Which findings cause which; empty if each stands alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub couplings: Vec<Coupling>,
    /// Why the causes are in this order, which is the order in which to fix them; empty unless there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<CausePosition>,
    /// From what cost on a place counts as harm; `None` in reports of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harm: Option<HarmRule>,
    /// What could be faster although nothing is choked, each as a cause of what it costs. Reported, but tried only after something else was fixed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub improvements: Vec<Finding>,
    /// Where requests were; `None` if their sockets were not sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerReport>,
    /// Where the CPU time went; `None` if no profile was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileReport>,
    /// What packets showed; `None` without `--capture`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<WireReport>,
    /// The result of each source.
    pub readings: Vec<SourceReport>,
    /// Things to know that are no findings.
    pub warnings: Vec<String>,
    /// Remedies that `--fix` could not apply; each is a warning as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_applied: Vec<NotApplied>,
    /// What the tiers give by themselves; `None` without `--bisect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bisect: Option<Bisect>,
    /// The rounds of `--fix`; empty without it.
    pub rounds: Vec<Round>,
    /// How the server served as found; `None` if no change stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Served>,
    /// How it serves with all changes that stay; `None` if no change stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Served>,
    /// When and where the run was; `None` in reports of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunReport>,
    /// What came of `--fail-if`; `None` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_if: Option<FailIfReport>,
}

impl Diagnosis {
    /// The round that measured the host as the run left it; `None` if no change stays.
    pub fn result(&self) -> Option<&Round> {
        let applied = self.rounds.iter().rfind(|round| round.kind == RoundKind::Apply && round.kept.stays())?;
        // Rounds after the chain measured only a part of what stays, except the confirmation and a round whose left-out change was then dropped. A change that was
        // tried last and did not stay is taken back.
        match self.rounds.iter().rfind(|round| round.kind != RoundKind::Apply || round.kept.stays()) {
            Some(last) if last.kind == RoundKind::Confirm || (last.kind == RoundKind::Without && !last.kept.stays()) => Some(last),
            _ => Some(applied),
        }
    }
}

/// What was diagnosed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The URL.
    pub url: String,
    /// The addresses that it resolves to.
    pub addresses: Vec<IpAddr>,
    /// The listener that answers it, if one was found on this host.
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
    /// At least one cause has a limit that can be acted on.
    Choked,
    /// Nothing holds it back except what `limited_by` says.
    Healthy,
    /// The load generator was the limit: no verdict about the server's rate.
    ClientLimited,
    /// No verdict is possible; the summary says what is missing.
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
    /// Existing traffic was watched.
    Passive,
}

/// The load and its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// Requests that ended.
    pub requests: u64,
    /// Seconds.
    pub duration_s: f64,
    /// Requests that ended per second, with any result.
    pub throughput_rps: f64,
    /// Expected answers within the timeout, per second.
    pub goodput_rps: f64,
    /// Answers by status.
    pub status: BTreeMap<String, u64>,
    /// Requests without an answer, by reason.
    pub errors: Errors,
    /// Response times, timed-out requests included; `None` if none were read: no request ended, or the access log of watched traffic has no times.
    pub latency_us: Option<Percentiles>,
    /// Share of the clients' time, 0 to 1, lost in requests that failed or took too long to be useful ([`crate::observation::load::LoadResult::lost_share`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_share: Option<f64>,
    /// The TLS handshakes; `None` without TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsLoad>,
    /// How certain these figures are; `None` if the load does not say.
    #[serde(skip)]
    pub spread: Option<Spread>,
}

impl LoadReport {
    /// Goodput as far as it reaches: expected answers per second times the share of the clients' time that was not lost. It decides which of two states
    /// serves better, because goodput alone rises if some clients are turned away and leave the cores to the rest.
    pub fn reaching_rps(&self) -> f64 {
        self.goodput_rps * (1.0 - self.lost_share.unwrap_or(0.0))
    }

    /// Share of the ended requests that were not answered as expected; `None` if nothing ended.
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
    /// It has a ceiling in requests per second.
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

/// The most requests per second that a station can pass.
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
    /// Refusals per second over the window.
    pub refused_per_s: Option<f64>,
    /// used / limit.
    pub utilization: Option<f64>,
    /// The unit of limit and used: "entries", "connections", "cores", "bits/s".
    pub unit: String,
    /// Its ceiling, if it has one that is known.
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

/// How certain a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// One indirect signal.
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
    /// The value, if it is one number.
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
    /// The findings that cause it, if it is a symptom: the root first, then what lies between, in the order of the links in `couplings`.
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

/// The cause of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A finding, by its index in [`Diagnosis::findings`].
    Finding(usize),
    /// A station at its limit that is no fault in itself, by its index in [`Diagnosis::path`]: for example cores that are all busy.
    Station(usize),
}

/// One link of a chain from cause to symptom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coupling {
    /// What causes the symptom.
    pub cause: Cause,
    /// The symptom, by its index in [`Diagnosis::findings`].
    pub symptom: usize,
    /// What distinguishes cause from symptom; one or two sentences.
    pub why: String,
}

/// Why a cause is fixed before or after the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CausePosition {
    /// The cause, by its index in [`Diagnosis::findings`].
    pub finding: usize,
    /// Why it has this position; one or two sentences.
    pub why: String,
}

/// One remedy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Remedy {
    /// Id, kebab-case: "raise-conntrack-max".
    pub id: String,
    /// What it changes, machine-readable; empty for advice, which is not applied automatically.
    pub change: Vec<Change>,
    /// One sentence saying what it does.
    pub text: String,
    /// The steps that do it now.
    pub runtime: Vec<Step>,
    /// The steps that keep it across a reboot.
    pub persistent: Vec<Step>,
    /// When it takes effect.
    pub activation: Activation,
    /// What could go wrong, and what it costs.
    pub risk: String,
    /// The steps that take it back, those of `persistent` included.
    pub undo: Vec<Step>,
    /// What shows that it worked.
    pub signal: Signal,
    /// The goodput that it should give.
    pub prediction: Prediction,
    /// The group of alternatives that it belongs to. Of the remedies with the same group under one finding, each is tried without the others and at most one
    /// is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Those whom it serves last; nothing where it serves all alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starved: Option<Starved>,
}

/// What a remedy costs the requests that it serves last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Starved {
    /// The longest that such a request should wait, seconds.
    pub wait_s: f64,
    /// Why they wait, as the end of a sentence.
    pub why: String,
}

/// One step of a person who carries a remedy out. It has at least one of the three.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What it does, or what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The command to paste into a shell of the host, as root; several lines where it writes a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Lines that belong into a file, to be edited by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<String>,
}

impl Step {
    /// A command without words.
    pub fn of_command(command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), ..Self::default() }
    }
}

/// The success signal that a remedy names in advance.
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
        /// Upper bound of the answers per second: in a closed loop the requests' time at other places remains, and so do the known ceilings.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_most: Option<f64>,
        /// What the ceilings alone would have predicted, requests per second. A scoreboard compares it with the measurement to see whether the refusal was
        /// right. Users do not see it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unsaid: Option<Ceiling>,
    },
    /// A prediction.
    Goodput {
        /// Requests per second.
        goodput_rps: f64,
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
        /// The station that will limit next.
        next_station: String,
    },
}

/// The result of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceReport {
    /// The source's name, with its namespace or process if it has one.
    pub source: String,
    /// The result.
    pub status: SourceStatus,
    /// Why it is missing.
    pub why: Option<String>,
    /// The privilege that would give it.
    pub needs: Option<String>,
}

/// The result of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceStatus {
    /// Read.
    Ok,
    /// Not on this host or not available to this user.
    Absent,
    /// Could not be read or understood.
    Failed,
}

/// Whether a change was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// Kept for now; judged again when the chain ends.
    Provisional,
    /// Kept permanently.
    Final,
    /// It stayed until a later change set the same setting again.
    Replaced,
    /// Taken back.
    No,
}

impl Kept {
    /// True while the change is in force, for now or for good.
    pub fn stays(self) -> bool {
        matches!(self, Self::Provisional | Self::Final)
    }
}

/// What a round of `--fix` measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoundKind {
    /// The host with one more change.
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
    /// The finding that was acted on; empty if everything that stays was measured.
    pub finding: String,
    /// The remedy that was applied or left out; empty if everything that stays was measured.
    pub remedy: String,
    /// The prediction; refused if nothing was applied.
    pub prediction: Prediction,
    /// Whether the measured goodput was within the predicted interval; `None` if there was no prediction.
    #[serde(default)]
    pub prediction_held: Option<bool>,
    /// Goodput of the measurement that this one is compared with: before the change, or with the change if it was left out.
    #[serde(default)]
    pub before_rps: Option<f64>,
    /// Goodput measured.
    pub measured_rps: f64,
    /// The fate of the change, including one that was left out.
    pub kept: Kept,
    /// Why.
    pub why: String,
    /// The verdict of this round's measurement.
    pub verdict: Verdict,
    /// What limits the server afterwards, if it is healthy.
    pub limited_by: Option<LimitedBy>,
    /// That verdict in one sentence.
    pub summary: String,
    /// What limits the server in this round, in a few words.
    #[serde(default)]
    pub limit: String,
    /// What the change set, from what to what; empty if nothing was applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<SettingChange>,
}
