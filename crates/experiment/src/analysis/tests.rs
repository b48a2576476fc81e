//! Tests of the analysis: pairs, disturbed trials, outcomes, and the level over many experiments.

use std::collections::BTreeMap;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_statistics::Random;

use super::*;
use crate::report::{Ended, Outcome};
use crate::trial::{Disturbance, Metric};

fn plan(rest: &str) -> Plan {
    let head = "schema = 1\nname = \"x\"\ntitle = \"x\"\nstack.scenario = \"x\"\n";
    let two = "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nset = { n = 1 }\n";
    Plan::parse(&format!("{head}{rest}{two}"), "plan").unwrap()
}

fn trial(block: usize, variant: usize, goodput: f64) -> Trial {
    Trial {
        block,
        variant,
        at_s: block as f64,
        figures: BTreeMap::from([(Metric::Goodput, goodput), (Metric::CoreIdle, 10.0 + variant as f64)]),
        percentiles_ms: vec![(50.0, 1.0), (99.0, 2.0)],
        ledger: None,
        steal_percent: 0.0,
        others_cores: Some(0.1),
        throttled: None,
        disturbed: Vec::new(),
        replaced: false,
        generator_limited: false,
    }
}

/// Blocks of two variants; the second one is better by a factor.
fn trials(blocks: usize, times: f64, noise: f64, seed: u64) -> Vec<Trial> {
    let mut random = Random::new(seed);
    let mut one = |block, variant| trial(block, variant, 1000.0 * if variant == 1 { times } else { 1.0 } * (noise * random.normal()).exp());
    let both = (0..blocks).flat_map(|block| [(block, 0), (block, 1)]);
    both.map(|(block, variant)| one(block, variant)).collect()
}

fn result(trials: &[Trial], plan: &Plan) -> crate::report::Experiment {
    experiment(plan, trials, None, Ended::Budget, Aside::default(), &Catalogue::english())
}

#[test]
fn a_clear_difference_is_called_with_its_size_and_direction() {
    let report = result(&trials(12, 1.10, 0.01, 1), &plan(""));
    let comparison = &report.comparisons[0];
    assert_eq!(comparison.outcome, Outcome::Better, "{comparison:?}");
    let change = comparison.differences[&Metric::Goodput];
    assert!((9.0..11.0).contains(&change.value) && change.low.unwrap() > 7.0, "{change:?}");
    assert!(comparison.sentence.contains("goodput is better than with a by +"), "{}", comparison.sentence);
    // Shares are compared by their difference, in points.
    let idle = comparison.differences[&Metric::CoreIdle];
    assert!(!idle.is_percent && (idle.value - 1.0).abs() < 1e-9);
    assert_eq!(result(&trials(12, 0.9, 0.01, 1), &plan("")).comparisons[0].outcome, Outcome::Worse);
}

#[test]
fn no_difference_says_how_large_one_may_be() {
    let report = result(&trials(12, 1.0, 0.02, 2), &plan(""));
    let comparison = &report.comparisons[0];
    assert_eq!(comparison.outcome, Outcome::NoDifference);
    assert!(comparison.sentence.contains("no difference in goodput from a larger than"), "{}", comparison.sentence);
    assert!(comparison.smallest_percent.unwrap() > 0.5 && comparison.more_time_s.is_some(), "{comparison:?}");
}

#[test]
fn too_few_trials_are_no_answer() {
    let report = result(&trials(5, 2.0, 0.01, 3), &plan(""));
    assert_eq!(report.comparisons[0].outcome, Outcome::TooFew);
    assert!(report.comparisons[0].sentence.contains("6 are needed"), "{}", report.comparisons[0].sentence);
    assert!(result(&[], &plan("")).comparisons[0].pairs == 0);
}

#[test]
fn an_incomplete_block_is_no_pair() {
    let mut all = trials(6, 1.0, 0.01, 4);
    all.push(trial(6, 0, 5.0));
    assert_eq!((blocks(&plan(""), &all), paired(&all, 0, 1, Metric::Goodput).len()), (6, 6));
}

#[test]
fn a_ratio_with_zero_is_left_out() {
    let all = [trial(0, 0, 0.0), trial(0, 1, 5.0), trial(1, 0, 5.0), trial(1, 1, 5.0)];
    assert_eq!(paired(&all, 0, 1, Metric::Goodput), [0.0]);
}

#[test]
fn the_repetition_of_a_disturbed_trial_counts() {
    let mut all = trials(6, 1.0, 0.01, 5);
    all[3].steal_percent = 20.0;
    all[3].figures.insert(Metric::Goodput, 100.0);
    mark_disturbed(&mut all, 1.0);
    assert!(matches!(all[3].disturbed[..], [Disturbance::Steal { .. }]));
    assert!(all.iter().enumerate().all(|(place, trial)| place == 3 || trial.disturbed.is_empty()));
    all.push(trial(1, 1, 1000.0));
    assert!(paired(&all, 0, 1, Metric::Goodput)[1].abs() < 0.05);
}

#[test]
fn what_disturbs_all_trials_alike_disturbs_none() {
    let mut all = trials(8, 1.0, 0.01, 6);
    for (place, trial) in all.iter_mut().enumerate() {
        trial.others_cores = Some(0.5 + 0.005 * (place % 2) as f64);
    }
    all[2].throttled = Some(7);
    mark_disturbed(&mut all, 1.0);
    assert_eq!(all.iter().filter(|trial| !trial.disturbed.is_empty()).count(), 1);
    assert!(matches!(all[2].disturbed[..], [Disturbance::Throttled { events: 7 }]));
}

/// Runs an experiment on made-up trials as the caller does: looks as planned, and stops when the answer is clear. True if it calls a difference.
fn calls_a_difference(all: &[Trial], plan: &Plan, most: usize) -> bool {
    let looks = looks(plan, most);
    let is_called = |so_far: &[Trial], is_over| {
        let alpha = level_after(&looks, blocks(plan, so_far), is_over);
        let interval = seen(so_far, 0, 1, Metric::Goodput, alpha).and_then(|seen| seen.interval);
        interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    };
    for block in looks.at().iter().filter(|block| **block < most) {
        let so_far: Vec<Trial> = all.iter().filter(|trial| trial.block < *block).cloned().collect();
        if is_clear(plan, &so_far, &looks) {
            return is_called(&so_far, false);
        }
    }
    is_called(all, true)
}

#[test]
fn experiments_without_a_difference_call_one_in_five_of_a_hundred() {
    let plan = plan("");
    let calls = |seed: &u64| calls_a_difference(&trials(16, 1.0, 0.03, *seed), &plan, 16);
    let called = (0..2000).filter(calls).count();
    assert!((70..=130).contains(&called), "{called}");
}
