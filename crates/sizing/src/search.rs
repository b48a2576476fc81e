//! Which load to offer next: doubles the connections until goodput is flat, looks closer around the knee, then finds the rate at the objective.

use crate::knee::{Knee, is_flat, knee, most};
use crate::objective::{Bracket, Objective};
use crate::step::{Offered, Step, curve};

/// Fewest points of a curve for a fit of the scaling law: its three parameters and as many degrees of freedom.
const POINTS_MIN: usize = 6;
/// Points between the knee and its neighbours.
const REFINED: usize = 2;
/// Most rates that are tried.
const RATES_MAX: usize = 7;
/// Finest resolution of the rate at the objective, as a share: the standard deviation of equal runs (docs/measuring.md, "Noise floor").
const RESOLUTION_MIN: f64 = 0.03;
/// The first rate as a share of the most that the closed loop gave: near to it, and likely to be held.
const FIRST_SHARE: f64 = 0.9;

/// What is searched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// Most connections of a closed loop.
    pub connections_max: u32,
    /// The objective.
    pub objective: Objective,
}

/// What a step is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Double the connections.
    Doubling,
    /// Look closer.
    Refining,
    /// Find the rate at the objective.
    Rate,
}

impl Search {
    /// The next load; nothing once all is known that more steps could tell. A pure function of the steps so far.
    pub fn next(&self, steps: &[Step]) -> Option<(Offered, Purpose)> {
        if let Some(connections) = self.doubled(steps) {
            return Some((Offered::Closed(connections), Purpose::Doubling));
        }
        if let Some(connections) = self.refined(steps) {
            return Some((Offered::Closed(connections), Purpose::Refining));
        }
        self.rate(steps).map(|rate| (Offered::Open(rate), Purpose::Rate))
    }

    /// Twice the connections, until goodput is flat or the load generator is the limit.
    fn doubled(&self, steps: &[Step]) -> Option<u32> {
        if steps.iter().any(|step| step.rate_per_s().is_some() || !step.is_usable()) {
            return None;
        }
        let Some(most) = steps.iter().filter_map(Step::connections).max() else { return Some(1) };
        let gives_nothing = steps.iter().any(|step| step.goodput_rps.value == 0.0);
        let next = most.saturating_mul(2).min(self.connections_max);
        (next > most && !is_flat(steps) && !gives_nothing).then_some(next)
    }

    /// A number of connections between two that were measured: beside the knee, and wherever the curve has too few points.
    fn refined(&self, steps: &[Step]) -> Option<u32> {
        if steps.iter().any(|step| step.rate_per_s().is_some()) || most(steps).is_none_or(|most| most.value == 0.0) {
            return None;
        }
        let numbers: Vec<u32> = curve(steps).iter().filter_map(|step| step.connections()).collect();
        let gap = |pair: &[u32]| Some(between(pair[0], pair[1])).filter(|middle| !numbers.contains(middle));
        let is_doubled = |number: &&u32| number.is_power_of_two() || **number == self.connections_max;
        let refined = numbers.len() - numbers.iter().filter(is_doubled).count();
        if refined < REFINED
            && let Knee::At(at, _) = knee(steps)
            && let Some(place) = numbers.iter().position(|number| Some(*number) == at.connections())
            && let Some(middle) = numbers[place.saturating_sub(1)..(place + 2).min(numbers.len())].windows(2).find_map(gap)
        {
            return Some(middle);
        }
        if numbers.len() >= POINTS_MIN || numbers.len() < 2 {
            return None;
        }
        let last = *numbers.last()?;
        let beyond = last.saturating_mul(2).min(self.connections_max);
        let is_usable = steps.iter().all(Step::is_usable);
        numbers.windows(2).find_map(gap).or((beyond > last && is_usable).then_some(beyond))
    }

    /// The next rate: by halving the range between the highest that was held and the lowest that was not.
    fn rate(&self, steps: &[Step]) -> Option<f64> {
        let most = most(steps).filter(|most| most.value > 0.0)?;
        let tried: Vec<f64> = steps.iter().filter_map(Step::rate_per_s).collect();
        let is_hopeless = curve(steps).first().is_some_and(|step| !self.objective.is_quick(step));
        // The rate of a server that the load generator could not saturate is not known.
        let is_unknown = steps.iter().any(|step| !step.is_usable()) && !matches!(knee(steps), Knee::At(..));
        if tried.len() >= RATES_MAX || is_hopeless || is_unknown {
            return None;
        }
        if tried.is_empty() {
            return Some(rounded(FIRST_SHARE * most.value));
        }
        let bracket = Bracket::of(steps, self.objective);
        let (held, missed) = (bracket.held.unwrap_or(0.0), bracket.missed.unwrap_or(most.high.max(most.value)));
        let next = rounded((held + missed) / 2.0);
        let is_fine = missed - held <= most.relative().clamp(RESOLUTION_MIN, 1.0) * missed;
        (!is_fine && next > 0.0 && !tried.contains(&next)).then_some(next)
    }
}

/// The geometric mean of two numbers, rounded.
fn between(low: u32, high: u32) -> u32 {
    (f64::from(low) * f64::from(high)).sqrt().round() as u32
}

/// A rate with three significant digits: nobody can tell more of them apart.
fn rounded(rate: f64) -> f64 {
    let unit = 10_f64.powf(rate.max(1e-3).log10().floor() - 2.0);
    (rate / unit).round() * unit
}
