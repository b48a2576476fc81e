//! The loss of a server's goodput while it is watched: the same load alternately with and without the observer, compared in pairs.

use std::time::Duration;

use chokepoint_model::load::LoadResult;

use crate::Failure;
use crate::stack::Stack;
use crate::watch::Watcher;

/// Slices of 100 ms to skip at the beginning of each load, in which connections are made and caches warm up.
const WARM_UP_SLICES: usize = 10;
/// Pairs drawn for each bootstrap.
const DRAWS: usize = 10_000;
/// 97.5th percentiles of Student's t by degrees of freedom, from 1 on; 1.96 approximates further ones.
const T_975: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093,
    2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// Runs the pairs and prints them. The order alternates, so that a drift of the machine affects both equally.
pub(crate) fn run(stack: &Stack, active: u32, pairs: u32, duration: Duration) -> Result<(), Failure> {
    println!("\n| pair | without, requests/s | watched, requests/s | cost, % | observer, % of a core |\n|---|---|---|---|---|");
    let mut costs = Vec::new();
    for pair in 0..pairs {
        let without = || -> Result<f64, Failure> { Ok(goodput(&stack.offer(stack.closed(active, duration))?)) };
        let watched = || -> Result<(f64, f64), Failure> {
            let watcher = Watcher::start(stack)?;
            let result = stack.offer(stack.closed(active, duration))?;
            Ok((goodput(&result), watcher.finish()?.share()))
        };
        let (without, (watched, share)) = if pair.is_multiple_of(2) {
            let without = without()?;
            (without, watched()?)
        } else {
            let watched = watched()?;
            (without()?, watched)
        };
        let cost = 100.0 * (without - watched) / without;
        println!("| {} | {without:.0} | {watched:.0} | {cost:.2} | {:.2} |", pair + 1, 100.0 * share);
        costs.push(cost);
    }
    let (mean, half) = mean_and_half(&costs);
    let (low, high) = bootstrap(&costs);
    println!("\ncost to goodput: mean {mean:.2} %, 95 % interval {:.2} to {:.2} % (Student's t)", mean - half, mean + half);
    println!("                 median {:.2} %, 95 % interval {low:.2} to {high:.2} % (bootstrap of {DRAWS})", median(&costs));
    Ok(())
}

/// Good responses a second after the warm-up.
fn goodput(result: &LoadResult) -> f64 {
    let whole = usize::try_from(result.duration_us / 100_000).unwrap_or(0).min(result.slices.len());
    let counted = &result.slices[WARM_UP_SLICES.min(whole)..whole];
    counted.iter().map(|slice| f64::from(slice.good)).sum::<f64>() * 10.0 / counted.len().max(1) as f64
}

/// The mean and half of its 95 % interval.
fn mean_and_half(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return (mean, f64::INFINITY);
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let t = T_975.get(values.len() - 2).copied().unwrap_or(1.96);
    (mean, t * (variance / count).sqrt())
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if !sorted.len().is_multiple_of(2) { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

/// The 2.5th and 97.5th percentile of the medians of samples drawn with replacement; the draws are the same each time.
fn bootstrap(values: &[f64]) -> (f64, f64) {
    // Knuth's constants for a linear congruential generator of 64 bits; the upper half of its state is even enough for this.
    let mut state: u64 = 1;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        values[(state >> 33) as usize % values.len()]
    };
    let mut medians: Vec<f64> = (0..DRAWS).map(|_| median(&(0..values.len()).map(|_| draw()).collect::<Vec<_>>())).collect();
    medians.sort_by(f64::total_cmp);
    (medians[DRAWS / 40], medians[DRAWS - 1 - DRAWS / 40])
}
