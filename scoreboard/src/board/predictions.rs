//! Predictions made before changes, compared with the measurements after them.

use chokepoint::lab::{RoundOutcome, RunOutcome};
use chokepoint_model::remedies::group_of;
use chokepoint_model::report::{Prediction, RoundKind};
use chokepoint_statistics::median;
use serde::Serialize;

use crate::share::{Share, wilson};

/// Share of the intervals that may miss: the published aim is that 85 % hold.
const MISSES: f64 = 0.15;

/// Stands for all stations.
const ALL: &str = "(all)";

/// One change in all runs of one scenario.
#[derive(Debug, Serialize)]
pub(super) struct ChangeScore {
    pub(super) scenario: String,
    pub(super) remedy: String,
    /// How often it was applied.
    pub(super) rounds: usize,
    /// Medians, requests a second.
    pub(super) before_rps: Option<f64>,
    pub(super) predicted_rps: Option<f64>,
    pub(super) measured_rps: Option<f64>,
    /// Median distance of the measured goodput from the predicted one, as a share of the latter.
    pub(super) error: Option<f64>,
    /// Predictions whose interval held the measured goodput.
    pub(super) held: Share,
    /// Rounds without a prediction, and the distinct reasons.
    pub(super) refused: usize,
    pub(super) why: Vec<String>,
    /// Bounds given instead that the measured goodput stayed below.
    pub(super) kept_to: Share,
    /// The median error of the refused predictions' values.
    pub(super) unsaid_error: Option<f64>,
}

/// All predictions that name one station as the next limit.
#[derive(Debug, Serialize)]
pub(super) struct NextScore {
    pub(super) station: String,
    pub(super) error: Option<f64>,
    pub(super) held: Share,
    /// Median of half the interval's width over the prediction.
    pub(super) width: Option<f64>,
    /// Mean interval score over the measured goodput (Gneiting and Raftery, 2007). Less is better.
    pub(super) score: Option<f64>,
    /// The same for "nothing changes" and for goodput over the busy share of the servers' cores, with equally wide intervals.
    pub(super) score_unchanged: Option<f64>,
    pub(super) score_by_cpu: Option<f64>,
}

/// All predictions and their scores.
#[derive(Debug, Serialize)]
pub(super) struct Predictions {
    pub(super) changes: Vec<ChangeScore>,
    pub(super) next: Vec<NextScore>,
    /// Changes without a prediction, apart from alternatives to each other.
    pub(super) refused: Share,
    /// Changes that are alternatives to each other: each is measured and none predicted.
    pub(super) tried: usize,
}

/// A prediction and its measurement.
struct Predicted<'a> {
    station: &'a str,
    value: f64,
    low: f64,
    high: f64,
    measured: f64,
    before: Option<f64>,
    /// Goodput over the busy share of the servers' cores.
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
        let predictions: Vec<Predicted<'_>> = applied.iter().filter_map(|(run, round, first)| predicted(run, round, *first)).collect();
        let mut stations: Vec<&str> = predictions.iter().map(|one| one.station).collect();
        stations.sort_unstable();
        stations.dedup();
        let tried = applied.iter().filter(|(_, round, _)| group_of(&round.remedy).is_some()).count();
        let refused = applied.iter().filter(|(_, round, _)| is_refused(round) && group_of(&round.remedy).is_none()).count();
        let rounds_of = |(scenario, remedy): (&str, &str)| -> Vec<&RoundOutcome> {
            let own = applied.iter().filter(|(run, round, _)| run.scenario == scenario && round.remedy == remedy);
            own.map(|(_, round, _)| *round).collect()
        };
        Self {
            changes: keys.into_iter().map(|key| change_score(key, &rounds_of(key))).collect(),
            next: stations
                .into_iter()
                .map(Some)
                .chain([None])
                .map(|station| next_score(station, &predictions))
                .filter(|next| next.held.of > 0)
                .collect(),
            refused: wilson(refused, applied.len() - tried),
            tried,
        }
    }
}

fn is_refused(round: &RoundOutcome) -> bool {
    matches!(round.prediction, Prediction::Refused { .. })
}

fn predicted<'a>(run: &RunOutcome, round: &'a RoundOutcome, first: bool) -> Option<Predicted<'a>> {
    let Prediction::Goodput { goodput_rps, low, high, next_station } = &round.prediction else { return None };
    // The busy share belongs to the first measurement.
    let busy = run.cpu_utilization.filter(|busy| first && *busy > 0.0);
    Some(Predicted {
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

fn change_score((scenario, remedy): (&str, &str), rounds: &[&RoundOutcome]) -> ChangeScore {
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
    ChangeScore {
        scenario: scenario.to_owned(),
        remedy: remedy.to_owned(),
        rounds: rounds.len(),
        before_rps: median(&rounds.iter().filter_map(|round| round.before_rps).collect::<Vec<f64>>()),
        predicted_rps: median(&predicted),
        measured_rps: median(&rounds.iter().map(|round| round.measured_rps).collect::<Vec<f64>>()),
        error: median(&errors),
        held: wilson(held, predicted.len()),
        refused,
        why,
        kept_to: wilson(kept_to.iter().filter(|kept_to| **kept_to).count(), kept_to.len()),
        unsaid_error: median(&unsaid_errors),
    }
}

/// The score of an interval, as a share of the measured value: its width, plus its miss weighted by how rarely it may miss.
fn interval_score(low: f64, high: f64, measured: f64) -> f64 {
    ((high - low) + 2.0 / MISSES * ((low - measured).max(0.0) + (measured - high).max(0.0))) / measured
}

/// The score of the predictions that name a station as the next limit, or of all.
fn next_score(station: Option<&str>, all: &[Predicted<'_>]) -> NextScore {
    let is_next = |one: &&Predicted<'_>| one.measured > 0.0 && station.is_none_or(|station| one.station == station);
    let predictions: Vec<&Predicted<'_>> = all.iter().filter(is_next).collect();
    let mean = |scores: Vec<f64>| (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64);
    // A rival prediction with the same relative width.
    let rival = |one: &Predicted<'_>, value: f64| interval_score(value * one.low / one.value, value * one.high / one.value, one.measured);
    let held = predictions.iter().filter(|one| (one.low..=one.high).contains(&one.measured)).count();
    NextScore {
        station: station.unwrap_or(ALL).to_owned(),
        error: median(&predictions.iter().map(|one| error(one.value, one.measured)).collect::<Vec<f64>>()),
        held: wilson(held, predictions.len()),
        width: median(&predictions.iter().map(|one| (one.high - one.low) / 2.0 / one.value).collect::<Vec<f64>>()),
        score: mean(predictions.iter().map(|one| interval_score(one.low, one.high, one.measured)).collect()),
        score_unchanged: mean(predictions.iter().filter_map(|one| Some(rival(one, one.before?))).collect()),
        score_by_cpu: mean(predictions.iter().filter_map(|one| Some(rival(one, one.by_cpu?))).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_misses_is_charged_for_the_distance() {
        assert!((interval_score(90.0, 110.0, 100.0) - 0.2).abs() < 1e-9);
        let missed = interval_score(90.0, 110.0, 120.0);
        assert!((missed - (20.0 + 2.0 / 0.15 * 10.0) / 120.0).abs() < 1e-9, "{missed}");
    }
}
