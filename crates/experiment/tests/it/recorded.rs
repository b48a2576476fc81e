//! Deterministic: how often an experiment calls a difference where there is none, in the noise of a real machine.
//!
//! `tests/data/same.txt` has the goodput of every trial of 40 experiments of the preset `same`, an experiment on each line, in the order of time. It was made by
//! `scripts/experiment/noise.sh` on a shared virtual machine with two cores. Resampled experiments are put together from pieces of these lines. Within a
//! piece the trials keep their order, so drift and bursts stay what they were; only the names of the variants are dealt anew, in the order of an experiment.

use chokepoint_experiment::analysis::{Looks, is_clear, looks, seen};
use chokepoint_experiment::{Metric, Plan, Trial, order};
use chokepoint_statistics::Random;

/// Trials of a piece: four rounds, two in each order.
const PIECE: usize = 8;
const EXPERIMENTS: u64 = 2_000;
/// Rounds of an experiment: from the fewest that can show a difference to what two minutes give.
const ROUNDS: [usize; 5] = [6, 10, 16, 25, 50];

fn plan() -> Plan {
    let text = "schema = 1\nname = \"same\"\ntitle = \"same\"\nsame = true\nstack.scenario = \"x\"\n[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n";
    Plan::parse(text, "plan").unwrap()
}

fn recorded() -> Vec<Vec<f64>> {
    let lines = include_str!("../data/same.txt").lines();
    lines.map(|line| line.split_ascii_whitespace().map(|goodput| goodput.parse().unwrap()).collect()).collect()
}

fn trial(block: usize, variant: usize, goodput: f64) -> Trial {
    let json = serde_json::json!({
        "block": block, "variant": variant, "at_s": block, "figures": { "goodput": goodput }, "percentiles_ms": [], "steal_percent": 0.0,
        "disturbed": [], "replaced": false, "generator_limited": false,
    });
    serde_json::from_value(json).unwrap()
}

/// Trials of so many rounds, put together from pieces of the recorded ones.
fn resampled(recorded: &[Vec<f64>], rounds: usize, random: &mut Random) -> Vec<Trial> {
    let mut goodput = Vec::new();
    while goodput.len() < 2 * rounds {
        let line = &recorded[random.index(recorded.len())];
        let from = random.index(line.len() - PIECE + 1);
        goodput.extend_from_slice(&line[from..from + PIECE]);
    }
    let places = (0..rounds).flat_map(|block| order::block(block, 2).into_iter().map(move |variant| (block, variant)));
    places.zip(goodput).map(|((block, variant), goodput)| trial(block, variant, goodput)).collect()
}

/// The difference that an experiment calls, which ends early if its answer is clear: percent, positive if the second variant is better.
fn called(plan: &Plan, trials: &[Trial], looks: &Looks) -> Option<f64> {
    let rounds = trials.len() / 2;
    let clear = looks.at().iter().position(|at| *at < rounds && is_clear(plan, &trials[..2 * at], looks));
    let (rounds, level) = clear.map_or_else(|| (rounds, looks.level_at_end(rounds)), |look| (looks.at()[look], looks.level(look)));
    let seen = seen(&trials[..2 * rounds], 0, 1, Metric::Goodput, level)?;
    seen.interval.filter(|(low, high)| *low > 0.0 || *high < 0.0).map(|_| seen.value)
}

#[test]
fn five_of_a_hundred_experiments_with_recorded_noise_call_a_difference() {
    let (plan, recorded) = (plan(), recorded());
    assert!(recorded.len() >= 40 && recorded.iter().all(|line| line.len() >= PIECE && line.iter().all(|goodput| *goodput > 0.0)));
    let each = EXPERIMENTS / ROUNDS.len() as u64;
    let calls = |rounds: usize| {
        let looks = looks(&plan, rounds);
        let calls = |seed: &u64| {
            let trials = resampled(&recorded, rounds, &mut Random::new(*seed * 7919 + rounds as u64));
            called(&plan, &trials, &looks).is_some()
        };
        let found = (0..each).filter(calls).count();
        println!("{rounds} rounds: {found} of {each}");
        found
    };
    let share = ROUNDS.into_iter().map(calls).sum::<usize>() as f64 / EXPERIMENTS as f64;
    assert!((share - 0.05).abs() <= 0.015, "{share}");
}

#[test]
fn a_difference_among_recorded_noise_is_found() {
    let (plan, recorded) = (plan(), recorded());
    let (rounds, experiments) = (40, 200);
    let looks = looks(&plan, rounds);
    let finds = |seed: &u64| {
        let mut trials = resampled(&recorded, rounds, &mut Random::new(*seed));
        // Every second variant is a third slower.
        for trial in trials.iter_mut().filter(|trial| trial.variant == 1) {
            trial.figures.entry(Metric::Goodput).and_modify(|goodput| *goodput /= 1.5);
        }
        called(&plan, &trials, &looks).is_some_and(|percent| percent < 0.0)
    };
    let found = (0..experiments).filter(finds).count();
    assert!(found * 10 >= experiments as usize * 9, "{found} of {experiments}");
}
