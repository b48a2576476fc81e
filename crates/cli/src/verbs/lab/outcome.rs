//! What came of one run of a scenario: a line of `lab run --json`, or a sentence.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use chokepoint_lab::Scenario;
use chokepoint_model::report::{Diagnosis, Kept, Prediction, Round, RoundKind};
use serde::{Deserialize, Serialize};

use super::{calls, expectation, reference};
use crate::terminal::output;

/// Name and version of a line's schema.
pub(super) const SCHEMA: &str = "chokepoint/lab-run/1";

/// What came of one run; a line of `lab run --json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RunOutcome {
    pub(super) schema: String,
    /// Release of the kernel it ran on.
    #[serde(default)]
    pub(super) kernel: String,
    /// Cores of the machine.
    #[serde(default)]
    pub(super) cores: usize,
    /// When it ended, seconds since 1970.
    #[serde(default)]
    pub(super) ended_s: u64,
    pub(super) scenario: String,
    pub(super) n: u32,
    pub(super) passive: bool,
    /// True where it was asked to fix what it found.
    #[serde(default)]
    pub(super) fix: bool,
    /// The finding that the scenario expects first, or the several of which it expects one; "none" where there must be none.
    pub(super) expected: Option<String>,
    /// The causes that it expects over the rounds.
    pub(super) expected_causes: Vec<String>,
    pub(super) ok: bool,
    pub(super) failures: Vec<String>,
    pub(super) verdict: String,
    pub(super) limited_by: Option<String>,
    pub(super) first_cause: Option<String>,
    /// The causes named at first, and what was acted on over the rounds, each once.
    pub(super) named: Vec<String>,
    pub(super) goodput_rps: Option<f64>,
    pub(super) failed_share: Option<f64>,
    pub(super) latency_us_p99: Option<u64>,
    /// CPU time of the servers' cores per good answer, microseconds.
    pub(super) cpu_us_per_good: Option<f64>,
    /// Busy share of the servers' cores, the busiest of them where tiers have cores of their own.
    #[serde(default)]
    pub(super) cpu_utilization: Option<f64>,
    /// Share of its CPU that the generator used.
    pub(super) generator_share: Option<f64>,
    pub(super) goodput_rps_after: Option<f64>,
    pub(super) latency_us_p99_after: Option<u64>,
    /// Changes that were applied on the way, those taken back included.
    pub(super) changes_applied: usize,
    /// The changes that stay, by their remedies.
    pub(super) kept: Vec<String>,
    /// The measurements with a change, or without one.
    pub(super) rounds: Vec<RoundOutcome>,
    /// The result and the reference, measured by turns.
    pub(super) reference: Option<reference::Comparison>,
    /// Calls for each answer, where the scenario counts them.
    #[serde(default)]
    pub(super) calls: Option<calls::Calls>,
    /// From the end of the first load to its diagnosis, milliseconds.
    pub(super) verdict_after_ms: Option<u64>,
    pub(super) undone: bool,
    pub(super) clean: bool,
    pub(super) seconds: f64,
}

/// A round without its words.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RoundOutcome {
    pub(super) kind: RoundKind,
    pub(super) finding: String,
    pub(super) remedy: String,
    pub(super) before_rps: Option<f64>,
    pub(super) prediction: Prediction,
    pub(super) prediction_held: Option<bool>,
    pub(super) measured_rps: f64,
    pub(super) kept: Kept,
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

/// How a run went, apart from its report.
pub(super) struct Course {
    pub(super) n: u32,
    pub(super) passive: bool,
    pub(super) fix: bool,
    pub(super) failures: Vec<String>,
    pub(super) reference: Option<reference::Comparison>,
    pub(super) calls: Option<calls::Calls>,
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
        // Where no change stays, what the last one gave is told all the same.
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
            latency_us_p99: load.map(|load| load.latency_us.p99),
            cpu_us_per_good: station("cpu").and_then(|cpu| Some(cpu.used? / goodput.filter(|rate| *rate > 0.0)? * 1e6)),
            cpu_utilization: cores.filter_map(|cpu| cpu.utilization).reduce(f64::max),
            generator_share: station("load-generator").and_then(|generator| generator.utilization),
            goodput_rps_after: last.map(|load| load.goodput_rps),
            latency_us_p99_after: last.map(|load| load.latency_us.p99),
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

    /// True where every expectation held.
    pub(super) fn is_ok(&self) -> bool {
        self.ok
    }

    /// True where the lab was taken down and nothing of it is left.
    pub(super) fn is_clean(&self) -> bool {
        self.clean
    }

    /// Prints it.
    pub(super) fn tell(&self, json: bool) -> Result<()> {
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
