//! Which trials were disturbed from outside.
//!
//! What others take of the cores can lower a figure by at most as much. A trial counts as disturbed if that is more than the precision asked for, and more
//! than other trials of the same experiment saw: what is there all the time is the same for all variants.

use chokepoint_statistics::median;

use crate::trial::{Disturbance, Trial};

/// Normal deviations of a robust spread (1.4826 times the median absolute deviation) from which on a value stands out.
const DEVIATIONS: f64 = 3.0;
const MAD_TO_SIGMA: f64 = 1.4826;
/// The fewest trials from which a usual value is known.
const TRIALS_MIN: usize = 4;

/// Marks the disturbed trials. `precision`: half width of the interval asked for, percent.
pub fn mark(trials: &mut [Trial], precision: f64) {
    let others: Vec<f64> = trials.iter().filter_map(|trial| trial.others_cores).collect();
    let steal: Vec<f64> = trials.iter().map(|trial| trial.steal_percent).collect();
    let (others, steal) = (Usual::of(&others), Usual::of(&steal));
    for trial in trials {
        trial.disturbed.clear();
        if let Some(usual) = &steal
            && usual.stands_out(trial.steal_percent, precision)
        {
            trial.disturbed.push(Disturbance::Steal { percent: trial.steal_percent });
        }
        if let (Some(usual), Some(cores)) = (&others, trial.others_cores)
            && usual.stands_out(cores, precision / 100.0)
        {
            trial.disturbed.push(Disturbance::OtherPrograms { cores, usual: usual.median });
        }
        if let Some(events) = trial.throttled.filter(|events| *events > 0) {
            trial.disturbed.push(Disturbance::Throttled { events });
        }
    }
}

/// What is usual.
struct Usual {
    median: f64,
    sigma: f64,
}

impl Usual {
    fn of(values: &[f64]) -> Option<Self> {
        let median_of = median(values).filter(|_| values.len() >= TRIALS_MIN)?;
        let deviations: Vec<f64> = values.iter().map(|value| (value - median_of).abs()).collect();
        Some(Self { median: median_of, sigma: MAD_TO_SIGMA * median(&deviations)? })
    }

    fn stands_out(&self, value: f64, harm: f64) -> bool {
        value - self.median > harm.max(DEVIATIONS * self.sigma)
    }
}
