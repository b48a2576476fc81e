//! The outcome of one run of a scenario: a line of `lab run --json`, or a sentence.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use chokepoint_lab::Scenario;
use chokepoint_model::report::{Diagnosis, Kept, Prediction, Round, RoundKind};
use serde::{Deserialize, Serialize};

use super::{calls, expectation, reference};
use crate::terminal::output;

/// Name and version of the schema of a run's line.
pub const SCHEMA: &str = "chokepoint/lab-run/1";

/// The outcome of one run of a scenario; a line of `lab run --json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunOutcome {
    /// [`SCHEMA`].
    pub schema: String,
    /// Release of the kernel.
    #[serde(default)]
    pub kernel: String,
    /// Cores of the machine.
    #[serde(default)]
    pub cores: usize,
    /// When the run ended, seconds since 1970.
    #[serde(default)]
    pub ended_s: u64,
    /// The scenario's name.
    pub scenario: String,
    /// Number of the run, from 1.
    pub n: u32,
    /// True if a background load was only watched.
    pub passive: bool,
    /// True if the run tried to fix its findings.
    #[serde(default)]
    pub fix: bool,
    /// The finding that the scenario expects first, or several joined by " or "; "none" if there must be none.
    pub expected: Option<String>,
    /// The causes that the scenario expects over all rounds.
    pub expected_causes: Vec<String>,
    /// True if every expectation held.
    pub ok: bool,
    /// A sentence for every expectation that did not hold.
    pub failures: Vec<String>,
    /// The verdict.
    pub verdict: String,
    /// The limit of a healthy server.
    pub limited_by: Option<String>,
    /// Id of the first cause.
    pub first_cause: Option<String>,
    /// The causes of the first diagnosis, then the findings acted on in the rounds, each once.
    pub named: Vec<String>,
    /// Expected answers a second.
    pub goodput_rps: Option<f64>,
    /// Share of the requests without an expected answer.
    pub failed_share: Option<f64>,
    /// 99 % of the answers came within this time, microseconds.
    pub latency_us_p99: Option<u64>,
    /// CPU time of the servers' cores per good answer, microseconds.
    pub cpu_us_per_good: Option<f64>,
    /// Busy share of the servers' cores; of the busiest if tiers have separate cores.
    #[serde(default)]
    pub cpu_utilization: Option<f64>,
    /// Share of its CPU that the generator used.
    pub generator_share: Option<f64>,
    /// Goodput after the last change that stays, or after the last one if none stays.
    pub goodput_rps_after: Option<f64>,
    /// The p99 of that measurement.
    pub latency_us_p99_after: Option<u64>,
    /// Changes applied over all rounds, including those taken back.
    pub changes_applied: usize,
    /// Remedies of the changes that stay.
    pub kept: Vec<String>,
    /// The measurements after the first.
    pub rounds: Vec<RoundOutcome>,
    /// The result and the reference, measured in turn.
    pub(super) reference: Option<reference::Comparison>,
    /// Calls per answer, if the scenario counts them.
    #[serde(default)]
    pub(super) calls: Option<calls::CallCount>,
    /// From the end of the first load to its diagnosis, milliseconds.
    pub verdict_after_ms: Option<u64>,
    /// True if every change was undone.
    pub undone: bool,
    /// True if nothing of the lab is left on this machine.
    pub clean: bool,
    /// Duration of the run, seconds.
    pub seconds: f64,
}

/// A round without its texts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RoundOutcome {
    /// What the round did.
    pub kind: RoundKind,
    /// Id of the finding that it acted on.
    pub finding: String,
    /// Id of the remedy.
    pub remedy: String,
    /// Goodput before, requests a second.
    pub before_rps: Option<f64>,
    /// What was predicted.
    pub prediction: Prediction,
    /// True if the measured goodput lay in the predicted interval.
    pub prediction_held: Option<bool>,
    /// Goodput after, requests a second.
    pub measured_rps: f64,
    /// Whether the change stays.
    pub kept: Kept,
}

impl RoundOutcome {
    fn of(round: &Round) -> Self {
        Self {
            kind: round.kind,
            finding: round.finding.clone(),
            remedy: round.remedy.clone(),
            before_rps: round.before_rps,
            prediction: round.prediction.clone(),
            prediction_held: round.prediction_held,
            measured_rps: round.measured_rps,
            kept: round.kept,
        }
    }
}

/// The facts about a run that its report does not hold.
pub(super) struct Course {
    pub(super) n: u32,
    pub(super) passive: bool,
    pub(super) fix: bool,
    pub(super) failures: Vec<String>,
    pub(super) reference: Option<reference::Comparison>,
    pub(super) calls: Option<calls::CallCount>,
    pub(super) verdict_after_ms: Option<u64>,
    pub(super) undone: bool,
    pub(super) clean: bool,
    pub(super) seconds: f64,
}

impl RunOutcome {
    pub(super) fn new(scenario: &Scenario, report: &Diagnosis, course: Course) -> Self {
        let load = report.load.as_ref();
        let station = |id: &str| report.path.iter().find(|station| station.station == id);
        let cores = report.path.iter().filter(|station| station.station == "cpu");
        let goodput = load.map(|load| load.goodput_rps);
        // If no change stays, the last one is reported.
        let last = report.result().or(report.rounds.last()).map(|round| &round.load);
        Self {
            schema: SCHEMA.to_owned(),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            ended_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            scenario: scenario.name.clone(),
            n: course.n,
            passive: course.passive,
            fix: course.fix,
            expected: (!scenario.expect.finding.is_empty()).then(|| scenario.expect.finding.join(" or ")),
            expected_causes: scenario.expect.causes.clone(),
            ok: course.failures.is_empty(),
            failures: course.failures,
            verdict: expectation::word(&report.verdict),
            limited_by: report.limited_by.as_ref().map(expectation::word),
            first_cause: expectation::first_cause(report).map(str::to_owned),
            named: expectation::named(report).into_iter().map(str::to_owned).collect(),
            goodput_rps: goodput,
            failed_share: load.map(expectation::failed_share),
            latency_us_p99: load.and_then(|load| load.p99_us()),
            cpu_us_per_good: station("cpu").and_then(|cpu| Some(cpu.used? / goodput.filter(|rate| *rate > 0.0)? * 1e6)),
            cpu_utilization: cores.filter_map(|cpu| cpu.utilization).reduce(f64::max),
            generator_share: station("load-generator").and_then(|generator| generator.utilization),
            goodput_rps_after: last.map(|load| load.goodput_rps),
            latency_us_p99_after: last.and_then(|load| load.p99_us()),
            changes_applied: expectation::changes_applied(report),
            kept: expectation::kept(report).map(|round| round.remedy.clone()).collect(),
            rounds: report.rounds.iter().map(RoundOutcome::of).collect(),
            reference: course.reference,
            calls: course.calls,
            verdict_after_ms: course.verdict_after_ms,
            undone: course.undone,
            clean: course.clean,
            seconds: course.seconds,
        }
    }

    /// Prints it as a line of JSON or as text.
    pub(super) fn print(&self, json: bool) -> Result<()> {
        if json {
            return output::print_json(&format!("{}\n", serde_json::to_string(self)?));
        }
        let mut text = format!("\nScenario {}, run {}: ", self.scenario, self.n);
        text.push_str(if self.ok { "as expected" } else { "NOT as expected" });
        if let (Some(before), Some(after)) = (self.goodput_rps, self.goodput_rps_after) {
            text.push_str(&format!("; goodput {before:.0} -> {after:.0} requests/s with the fix"));
        }
        if let Some(reference) = &self.reference {
            text.push_str(&format!("; {reference}"));
        }
        if let Some(calls) = &self.calls {
            text.push_str(&format!("; {calls}"));
        }
        if self.goodput_rps_after.is_some() && self.undone {
            text.push_str("; the fix was undone and verified undone");
        }
        text.push_str(if self.clean { "; nothing is left on this machine.\n" } else { "; SOMETHING IS LEFT on this machine.\n" });
        for failure in &self.failures {
            text.push_str(&format!("  - {failure}\n"));
        }
        output::print(&text)
    }
}
