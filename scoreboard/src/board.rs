//! `scoreboard score`: sums up the lines of many runs, as a page and as JSON.

pub(crate) mod page;
mod predictions;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use chokepoint::lab::{RunOutcome, SCHEMA};
use chokepoint_statistics::median;
use serde::{Deserialize, Serialize};

use self::predictions::Predictions;
use crate::answer::SCHEMA as DRAW_SCHEMA;
use crate::share::{Share, wilson};

/// Longest line that is read. A run with all of its rounds takes some tens of kilobytes.
const LINE_BYTES_MAX: u64 = 4 << 20;
/// Most runs in one score.
const RUNS_MAX: usize = 100_000;

/// The scored fields of a drawn stack's line.
#[derive(Debug, Clone, Deserialize)]
struct DrawLine {
    index: u32,
    passive: bool,
    right: bool,
    why: Vec<String>,
}

/// The runs of some files.
#[derive(Debug, Default)]
struct Runs {
    scenarios: Vec<RunOutcome>,
    draws: Vec<DrawLine>,
    /// Lines with another schema.
    skipped: usize,
}

/// Median and range of some figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Range {
    median: f64,
    least: f64,
    most: f64,
}

impl Range {
    fn of(values: &[f64]) -> Option<Self> {
        let ends = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(*value), most.max(*value)));
        Some(Self { median: median(values)?, least: ends.0, most: ends.1 })
    }
}

/// All runs of one scenario in one way.
#[derive(Debug, Serialize)]
struct ScenarioScore {
    scenario: String,
    passive: bool,
    /// True where `--fix` was run.
    fixed: bool,
    expected: String,
    /// Runs in which every expectation held.
    right: Share,
    /// Runs by first cause, "none" where none was named.
    first_causes: BTreeMap<String, usize>,
    /// Runs by everything named over the rounds, in its order.
    named: BTreeMap<String, usize>,
    goodput_rps: Option<Range>,
    goodput_rps_after: Option<Range>,
    /// From the end of the load to the verdict, milliseconds.
    verdict_after_ms: Option<f64>,
    /// Distinct sentences for expectations that did not hold.
    failures: Vec<String>,
}

/// How often the first cause was the expected one, on servers with a fault and without.
#[derive(Debug, Serialize)]
struct Totals {
    passive: bool,
    fault: Share,
    healthy: Share,
}

/// The whole score-board.
#[derive(Debug, Serialize)]
pub(crate) struct Board {
    schema: &'static str,
    kernels: Vec<String>,
    cores: Vec<usize>,
    /// When the first and the last run ended, seconds since 1970.
    ended_s: Option<(u64, u64)>,
    totals: Vec<Totals>,
    scenarios: Vec<ScenarioScore>,
    predictions: Predictions,
    /// Right verdicts on drawn stacks, and the indices of the wrong ones with what was wrong.
    draws: Option<Share>,
    wrong_draws: Vec<(u32, String)>,
}

impl Runs {
    fn read(&mut self, file: &Path) -> Result<()> {
        let name = || file.display().to_string();
        let mut reader = BufReader::new(File::open(file).with_context(name)?);
        for number in 1.. {
            let mut line = Vec::new();
            if std::io::Read::take(&mut reader, LINE_BYTES_MAX).read_until(b'\n', &mut line).with_context(name)? == 0 {
                return Ok(());
            }
            if self.scenarios.len() + self.draws.len() >= RUNS_MAX {
                bail!("{}: more than {RUNS_MAX} runs", name());
            }
            self.add(&line).with_context(|| format!("{}:{number}", name()))?;
        }
        Ok(())
    }

    fn add(&mut self, line: &[u8]) -> Result<()> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        let value: serde_json::Value = serde_json::from_slice(line)?;
        match value["schema"].as_str() {
            Some(SCHEMA) => self.scenarios.push(serde_json::from_value(value)?),
            Some(DRAW_SCHEMA) => self.draws.push(serde_json::from_value(value)?),
            _ => self.skipped += 1,
        }
        Ok(())
    }
}

impl Board {
    /// Reads the files and sums up their runs.
    pub(crate) fn read(files: &[PathBuf]) -> Result<Self> {
        let mut runs = Runs::default();
        files.iter().try_for_each(|file| runs.read(file))?;
        if runs.scenarios.is_empty() && runs.draws.is_empty() {
            bail!("these files hold no line of `chokepoint lab run --json` or `scoreboard run --json`");
        }
        if runs.skipped > 0 {
            eprintln!("{} lines are no runs and were skipped", runs.skipped);
        }
        Ok(Self::of(&runs))
    }

    fn of(runs: &Runs) -> Self {
        let sorted = |mut all: Vec<String>| {
            all.sort();
            all.dedup();
            all
        };
        let mut cores: Vec<usize> = runs.scenarios.iter().map(|run| run.cores).filter(|cores| *cores > 0).collect();
        cores.sort_unstable();
        cores.dedup();
        let ended = || runs.scenarios.iter().map(|run| run.ended_s).filter(|at| *at > 0);
        let right = runs.draws.iter().filter(|draw| draw.right).count();
        let wrong = runs.draws.iter().filter(|draw| !draw.right);
        Self {
            schema: "chokepoint/scoreboard/1",
            kernels: sorted(runs.scenarios.iter().map(|run| run.kernel.clone()).filter(|kernel| !kernel.is_empty()).collect()),
            cores,
            ended_s: ended().min().zip(ended().max()),
            totals: [false, true].into_iter().filter_map(|passive| Totals::of(&runs.scenarios, passive)).collect(),
            scenarios: groups(&runs.scenarios).into_iter().map(|runs| ScenarioScore::of(&runs)).collect(),
            predictions: Predictions::of(&runs.scenarios),
            draws: (!runs.draws.is_empty()).then(|| wilson(right, runs.draws.len())),
            wrong_draws: wrong.map(|draw| (draw.index, errors(draw))).collect(),
        }
    }
}

fn errors(draw: &DrawLine) -> String {
    format!("{}{}", if draw.passive { "passive: " } else { "" }, draw.why.join("; "))
}

/// The runs grouped by scenario and kind of run, in the order of their first run.
fn groups(runs: &[RunOutcome]) -> Vec<Vec<&RunOutcome>> {
    let mut groups: Vec<Vec<&RunOutcome>> = Vec::new();
    for run in runs {
        let same = |other: &&mut Vec<&RunOutcome>| {
            other
                .first()
                .is_some_and(|other| (&other.scenario, other.passive, is_fixed(other)) == (&run.scenario, run.passive, is_fixed(run)))
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    groups
}

fn is_fixed(run: &RunOutcome) -> bool {
    run.fix || !run.rounds.is_empty()
}

/// The first cause, or "none".
fn first_cause(run: &RunOutcome) -> &str {
    run.first_cause.as_deref().unwrap_or("none")
}

impl Totals {
    /// Totals over the scenarios that name the cause they expect first.
    fn of(runs: &[RunOutcome], passive: bool) -> Option<Self> {
        let of_kind = |healthy: bool| {
            let expected = runs.iter().filter(|run| run.passive == passive).filter_map(|run| Some((run, run.expected.as_deref()?)));
            let all: Vec<bool> = expected
                .filter(|(_, expected)| (*expected == "none") == healthy)
                .map(|(run, expected)| expected.split(" or ").any(|one| one == first_cause(run)))
                .collect();
            wilson(all.iter().filter(|right| **right).count(), all.len())
        };
        runs.iter().any(|run| run.passive == passive).then(|| Self { passive, fault: of_kind(false), healthy: of_kind(true) })
    }
}

impl ScenarioScore {
    fn of(runs: &[&RunOutcome]) -> Self {
        let first = runs[0];
        let count_by = |of: &dyn Fn(&RunOutcome) -> String| {
            let mut counts = BTreeMap::new();
            runs.iter().for_each(|run| *counts.entry(of(run)).or_insert(0) += 1);
            counts
        };
        let figures = |of: fn(&RunOutcome) -> Option<f64>| runs.iter().filter_map(|run| of(run)).collect::<Vec<f64>>();
        let mut failures: Vec<String> = runs.iter().flat_map(|run| run.failures.clone()).collect();
        failures.sort();
        failures.dedup();
        let expected = match (&first.expected, first.expected_causes.as_slice()) {
            (Some(expected), _) => expected.clone(),
            (None, []) => "any".to_owned(),
            (None, causes) => causes.join(" and "),
        };
        Self {
            scenario: first.scenario.clone(),
            passive: first.passive,
            fixed: is_fixed(first),
            expected,
            right: wilson(runs.iter().filter(|run| run.ok).count(), runs.len()),
            first_causes: count_by(&|run| first_cause(run).to_owned()),
            named: count_by(&|run| if run.named.is_empty() { "none".to_owned() } else { run.named.join(", ") }),
            goodput_rps: Range::of(&figures(|run| run.goodput_rps)),
            goodput_rps_after: Range::of(&figures(|run| run.goodput_rps_after)),
            verdict_after_ms: median(&figures(|run| run.verdict_after_ms.map(|ms| ms as f64))),
            failures,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A run of a scenario that expects this first cause, named that one, and was right or not.
    fn line(scenario: &str, expected: &str, first: Option<&str>, ok: bool, rounds: &Value) -> Value {
        json!({
            "schema": SCHEMA, "kernel": "6.1", "cores": 2, "ended_s": 1_795_185_434, "scenario": scenario, "n": 1, "passive": false, "fix": false,
            "expected": expected, "expected_causes": [], "ok": ok, "failures": if ok { json!([]) } else { json!(["it was not as expected"]) },
            "verdict": "choked", "limited_by": null, "first_cause": first, "named": first.into_iter().collect::<Vec<_>>(),
            "goodput_rps": 100.0, "failed_share": 0.0, "latency_us_p99": 1000, "cpu_us_per_good": null, "cpu_utilization": 0.5,
            "generator_share": null, "goodput_rps_after": null, "latency_us_p99_after": null, "changes_applied": 0, "kept": [],
            "rounds": rounds, "reference": null, "verdict_after_ms": 7, "undone": true, "clean": true, "seconds": 9.0
        })
    }

    fn round(prediction: &Value, held: Option<bool>, measured: f64) -> Value {
        json!({
            "kind": "apply", "finding": "x", "remedy": "raise-it", "before_rps": 100.0, "prediction": prediction,
            "prediction_held": held, "measured_rps": measured, "kept": "final"
        })
    }

    fn board(lines: &[Value]) -> Board {
        let mut runs = Runs::default();
        lines.iter().for_each(|line| runs.add(line.to_string().as_bytes()).unwrap());
        Board::of(&runs)
    }

    #[test]
    fn servers_with_and_without_a_fault_are_counted_apart() {
        let none = json!([]);
        let board = board(&[
            line("full", "x", Some("x"), true, &none),
            line("full", "x", None, false, &none),
            line("either", "x or y", Some("y"), true, &none),
            line("fine", "none", None, true, &none),
            line("fine", "none", Some("z"), false, &none),
        ]);
        let totals = &board.totals[0];
        assert_eq!((totals.fault.right, totals.fault.of, totals.healthy.right, totals.healthy.of), (2, 3, 1, 2));
        let full = &board.scenarios[0];
        assert_eq!((full.right.right, full.right.of, full.first_causes["none"], full.failures.len()), (1, 2, 1, 1));
        let page = page::render(&board);
        for part in [
            "kernel 6.1 with 2 cores, 2026-11-20",
            "2 of 3 (21 to 94 %)",
            "| full | load | x | 1 of 2 | none: 1; x: 1 |",
            "- fine: it was not",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }

    #[test]
    fn predictions_and_refused_predictions_are_compared_with_the_measurement() {
        let said = |measured: f64, held: bool| {
            round(&json!({ "goodput_rps": 200.0, "low": 180.0, "high": 220.0, "next_station": "cpu" }), Some(held), measured)
        };
        let refused = round(
            &json!({ "refused": "hidden", "at_most": 290.0, "unsaid": { "value": 400.0, "low": 300.0, "high": 500.0 } }),
            None,
            300.0,
        );
        let rounds: Vec<Value> = [said(210.0, true), said(150.0, false), refused].into();
        let lines: Vec<Value> = rounds.iter().map(|round| line("full", "x", Some("x"), true, &json!([round]))).collect();
        let predictions = board(&lines).predictions;
        let change = &predictions.changes[0];
        assert_eq!(
            (change.rounds, change.held.right, change.held.of, change.refused, change.why.as_slice()),
            (3, 1, 2, 1, ["hidden".to_owned()].as_slice())
        );
        assert_eq!((change.kept_to.right, change.kept_to.of), (0, 1), "more than the bound was measured");
        assert!((change.error.unwrap() - 0.15).abs() < 1e-9 && (change.unsaid_error.unwrap() - 0.25).abs() < 1e-9);
        let next = &predictions.next[0];
        assert_eq!((next.station.as_str(), next.held.right, next.held.of), ("cpu", 1, 2));
        let all = predictions.next.last().unwrap();
        assert_eq!((all.station.as_str(), all.held.of, predictions.refused.right, predictions.refused.of), ("(all)", 2, 1, 3));
        // The prediction equals goodput over the busy share, and beats "nothing changes".
        assert!(next.score.unwrap() < next.score_unchanged.unwrap() && (next.score_by_cpu.unwrap() - next.score.unwrap()).abs() < 1e-9);
    }

    #[test]
    fn drawn_stacks_are_scored_and_other_lines_counted() {
        let mut runs = Runs::default();
        let draw = |index: u32, right: bool| json!({ "schema": DRAW_SCHEMA, "index": index, "passive": false, "right": right, "why": if right { vec![] } else { vec!["missed"] }, "more": 1 });
        for value in [draw(3, true), draw(4, false), json!({ "schema": "chokepoint/lab-random-total/1" }), json!(17)] {
            runs.add(value.to_string().as_bytes()).unwrap();
        }
        runs.add(b"  \n").unwrap();
        let board = Board::of(&runs);
        assert_eq!((board.draws.map(|share| (share.right, share.of)), runs.skipped), (Some((1, 2)), 2));
        assert!(page::render(&board).contains("- draw 4: missed"));
    }

    #[test]
    fn a_damaged_line_is_an_error() {
        let whole = line("full", "x", None, true, &json!([])).to_string();
        let mut runs = Runs::default();
        for cut in 1..whole.len() {
            assert!(runs.add(&whole.as_bytes()[..cut]).is_err(), "{}", &whole[..cut]);
        }
        assert!(runs.add(json!({ "schema": SCHEMA, "scenario": 3 }).to_string().as_bytes()).is_err());
    }
}
