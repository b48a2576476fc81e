//! What was predicted before a change against what was measured after it.

use chokepoint_lab::score::{Share, wilson};
use chokepoint_model::remedies::group_of;
use chokepoint_model::report::{Prediction, RoundKind};
use chokepoint_statistics::median;
use serde::Serialize;

use super::super::outcome::{RoundOutcome, RunOutcome};

/// Share of the intervals that need not hold: 85 % should (the aim that is published with the figures).
const MISSES: f64 = 0.15;

/// In place of a station: whatever was to limit next.
const ALL: &str = "(all)";

/// One change of one scenario over its runs.
#[derive(Debug, Serialize)]
pub(super) struct Change {
    pub(super) scenario: String,
    pub(super) remedy: String,
    /// Times that it was applied.
    pub(super) rounds: usize,
    /// Medians, requests a second.
    pub(super) before_rps: Option<f64>,
    pub(super) predicted_rps: Option<f64>,
    pub(super) measured_rps: Option<f64>,
    /// Median of how far the measured goodput was from the predicted one, as a share of that.
    pub(super) error: Option<f64>,
    /// Predictions within whose interval the measured goodput lay.
    pub(super) held: Share,
    /// Rounds for which a prediction was refused, and the reasons, each once.
    pub(super) refused: usize,
    pub(super) why: Vec<String>,
    /// Bounds that were given instead, and that the measured goodput kept to.
    pub(super) kept_to: Share,
    /// The same error of what the refused predictions would have said.
    pub(super) unsaid_error: Option<f64>,
}

/// All predictions with one station to limit next.
#[derive(Debug, Serialize)]
pub(super) struct Next {
    pub(super) station: String,
    pub(super) error: Option<f64>,
    pub(super) held: Share,
    /// Median of half of the interval's width over the prediction.
    pub(super) width: Option<f64>,
    /// Mean interval score over the measured goodput (Gneiting and Raftery, 2007): less is better.
    pub(super) score: Option<f64>,
    /// The same for "nothing changes", and for goodput over the busy share of the servers' cores, each with intervals as wide.
    pub(super) score_unchanged: Option<f64>,
    pub(super) score_by_cpu: Option<f64>,
}

/// What was predicted and what came of it.
#[derive(Debug, Serialize)]
pub(super) struct Predictions {
    pub(super) changes: Vec<Change>,
    pub(super) next: Vec<Next>,
    /// Changes without a prediction, of those that are no alternatives to each other.
    pub(super) refused: Share,
    /// Changes that were alternatives to each other: each was tried and measured, and none predicted.
    pub(super) tried: usize,
}

/// A prediction with the measurement that it is held against.
struct Said<'a> {
    station: &'a str,
    value: f64,
    low: f64,
    high: f64,
    measured: f64,
    before: Option<f64>,
    by_cpu: Option<f64>,
}

impl Predictions {
    pub(super) fn of(runs: &[RunOutcome]) -> Self {
        let mut applied: Vec<(&RunOutcome, &RoundOutcome, bool)> = Vec::new();
        for run in runs {
            let rounds = run.rounds.iter().filter(|round| round.kind == RoundKind::Apply);
            applied.extend(rounds.enumerate().map(|(at, round)| (run, round, at == 0)));
        }
        let mut keys: Vec<(&str, &str)> = applied.iter().map(|(run, round, _)| (run.scenario.as_str(), round.remedy.as_str())).collect();
        keys.sort_unstable();
        keys.dedup();
        let said: Vec<Said<'_>> = applied.iter().filter_map(|(run, round, first)| said(run, round, *first)).collect();
        let mut stations: Vec<&str> = said.iter().map(|said| said.station).collect();
        stations.sort_unstable();
        stations.dedup();
        let tried = applied.iter().filter(|(_, round, _)| group_of(&round.remedy).is_some()).count();
        let refused = applied.iter().filter(|(_, round, _)| is_refused(round) && group_of(&round.remedy).is_none()).count();
        let rounds_of = |(scenario, remedy): (&str, &str)| -> Vec<&RoundOutcome> {
            let own = applied.iter().filter(|(run, round, _)| run.scenario == scenario && round.remedy == remedy);
            own.map(|(_, round, _)| *round).collect()
        };
        Self {
            changes: keys.into_iter().map(|key| change(key, &rounds_of(key))).collect(),
            next: stations
                .into_iter()
                .map(Some)
                .chain([None])
                .map(|station| next(station, &said))
                .filter(|next| next.held.of > 0)
                .collect(),
            refused: wilson(refused as u64, (applied.len() - tried) as u64),
            tried,
        }
    }
}

fn is_refused(round: &RoundOutcome) -> bool {
    matches!(round.prediction, Prediction::Refused { .. })
}

fn said<'a>(run: &RunOutcome, round: &'a RoundOutcome, first: bool) -> Option<Said<'a>> {
    let Prediction::Goodput { goodput_rps, low, high, next_station } = &round.prediction else { return None };
    // The busy share is that of the first measurement.
    let busy = run.cpu_utilization.filter(|busy| first && *busy > 0.0);
    Some(Said {
        station: next_station,
        value: *goodput_rps,
        low: *low,
        high: *high,
        measured: round.measured_rps,
        before: round.before_rps,
        by_cpu: round.before_rps.zip(busy).map(|(before, busy)| before / busy),
    })
}

fn error(predicted: f64, measured: f64) -> f64 {
    (measured / predicted - 1.0).abs()
}

fn change((scenario, remedy): (&str, &str), rounds: &[&RoundOutcome]) -> Change {
    let (mut predicted, mut errors, mut unsaid_errors, mut why) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut kept_to = Vec::new();
    for round in rounds {
        match &round.prediction {
            Prediction::Goodput { goodput_rps, .. } => {
                predicted.push(*goodput_rps);
                errors.push(error(*goodput_rps, round.measured_rps));
            }
            Prediction::Refused { refused, at_most, unsaid } => {
                why.push(refused.clone());
                kept_to.extend(at_most.map(|most| round.measured_rps <= most));
                unsaid_errors.extend(unsaid.map(|unsaid| error(unsaid.value, round.measured_rps)));
            }
        }
    }
    let refused = why.len();
    why.sort();
    why.dedup();
    let held = rounds.iter().filter(|round| round.prediction_held == Some(true)).count();
    Change {
        scenario: scenario.to_owned(),
        remedy: remedy.to_owned(),
        rounds: rounds.len(),
        before_rps: median(&rounds.iter().filter_map(|round| round.before_rps).collect::<Vec<f64>>()),
        predicted_rps: median(&predicted),
        measured_rps: median(&rounds.iter().map(|round| round.measured_rps).collect::<Vec<f64>>()),
        error: median(&errors),
        held: wilson(held as u64, predicted.len() as u64),
        refused,
        why,
        kept_to: wilson(kept_to.iter().filter(|kept_to| **kept_to).count() as u64, kept_to.len() as u64),
        unsaid_error: median(&unsaid_errors),
    }
}

/// The score of an interval for what was measured, as a share of that: its width, and what it missed by, weighed with how seldom it may.
fn interval_score(low: f64, high: f64, measured: f64) -> f64 {
    ((high - low) + 2.0 / MISSES * ((low - measured).max(0.0) + (measured - high).max(0.0))) / measured
}

/// Those that a station was to limit next, or all of them.
fn next(station: Option<&str>, all: &[Said<'_>]) -> Next {
    let is_meant = |said: &&Said<'_>| said.measured > 0.0 && station.is_none_or(|station| said.station == station);
    let said: Vec<&Said<'_>> = all.iter().filter(is_meant).collect();
    let mean = |scores: Vec<f64>| (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64);
    // A rival's value with the same relative width.
    let rival = |said: &Said<'_>, value: f64| interval_score(value * said.low / said.value, value * said.high / said.value, said.measured);
    let held = said.iter().filter(|said| (said.low..=said.high).contains(&said.measured)).count();
    Next {
        station: station.unwrap_or(ALL).to_owned(),
        error: median(&said.iter().map(|said| error(said.value, said.measured)).collect::<Vec<f64>>()),
        held: wilson(held as u64, said.len() as u64),
        width: median(&said.iter().map(|said| (said.high - said.low) / 2.0 / said.value).collect::<Vec<f64>>()),
        score: mean(said.iter().map(|said| interval_score(said.low, said.high, said.measured)).collect()),
        score_unchanged: mean(said.iter().filter_map(|one| Some(rival(one, one.before?))).collect()),
        score_by_cpu: mean(said.iter().filter_map(|one| Some(rival(one, one.by_cpu?))).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_misses_pays_for_how_far() {
        assert!((interval_score(90.0, 110.0, 100.0) - 0.2).abs() < 1e-9);
        let missed = interval_score(90.0, 110.0, 120.0);
        assert!((missed - (20.0 + 2.0 / 0.15 * 10.0) / 120.0).abs() < 1e-9, "{missed}");
    }
}
