//! Compares a lab that `--fix` has changed with a reference scenario. Both are loaded in turn, so that disturbances affect both alike.

use std::fmt;

use anyhow::{Context, Result, bail};
use chokepoint_lab::scenario::Reference;
use chokepoint_lab::{Lab, Scenario};
use chokepoint_model::harm::NOISE_SHARE;
use chokepoint_model::report::LoadReport;
use serde::{Deserialize, Serialize};

use crate::run::measure::{self, Setup};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;

use super::expectation::apart;
use super::stack;

/// Two labs measured in turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Comparison {
    /// The reference's scenario.
    scenario: String,
    /// Goodput of the result in each turn, requests a second.
    goodput_rps: Vec<f64>,
    /// Goodput of the reference in each turn.
    goodput_rps_reference: Vec<f64>,
    /// p99 of the result in each turn, microseconds.
    latency_us_p99: Vec<u64>,
    /// p99 of the reference in each turn.
    latency_us_p99_reference: Vec<u64>,
    /// Failed requests of the result in each turn.
    failed: Vec<u64>,
    /// Failed requests of the reference in each turn.
    #[serde(default)]
    failed_reference: Vec<u64>,
    /// Median goodput of the result over the reference's.
    times: f64,
    /// Median p99 of the result over the reference's.
    #[serde(default)]
    latency_p99_times: f64,
}

/// Builds the reference while `own` stays up, measures both in turn, and takes the reference down. It is loaded over TLS where `own` is.
pub(super) fn compare(own: &Lab, own_setup: &Setup, wanted: &Reference, interrupt: &Interrupt) -> Result<Comparison> {
    let mut scenario = Scenario::find(&wanted.scenario)?;
    if own_setup.request.scheme == "https" {
        scenario = scenario.over_https()?;
    }
    output::note(&format!("comparing with {} in turn: {} measurements", wanted.scenario, 2 * wanted.pairs));
    let other = stack::build_with(&scenario, false, Some(&own.scenario().name), interrupt)?;
    let result = measure_in_turn(own_setup, &stack::setup(&other, false)?, wanted, interrupt);
    let down = other.down()?;
    let mut comparison = result?;
    if !down.is_clean() {
        bail!("the reference could not be taken down: {down}");
    }
    comparison.scenario = scenario.name.clone();
    Ok(comparison)
}

fn measure_in_turn(own: &Setup, other: &Setup, wanted: &Reference, interrupt: &Interrupt) -> Result<Comparison> {
    let mut comparison = Comparison {
        scenario: String::new(),
        goodput_rps: Vec::new(),
        goodput_rps_reference: Vec::new(),
        latency_us_p99: Vec::new(),
        latency_us_p99_reference: Vec::new(),
        failed: Vec::new(),
        failed_reference: Vec::new(),
        times: 0.0,
        latency_p99_times: 0.0,
    };
    for turn in 1..=wanted.pairs {
        let reference = load_report(other, &format!("reference, turn {turn}"), interrupt)?;
        comparison.goodput_rps_reference.push(reference.goodput_rps);
        comparison.latency_us_p99_reference.extend(reference.p99_us());
        comparison.failed_reference.push(failed(&reference));
        let result = load_report(own, &format!("result, turn {turn}"), interrupt)?;
        comparison.goodput_rps.push(result.goodput_rps);
        comparison.latency_us_p99.extend(result.p99_us());
        comparison.failed.push(failed(&result));
    }
    comparison.times = median(&comparison.goodput_rps) / median(&comparison.goodput_rps_reference).max(f64::MIN_POSITIVE);
    comparison.latency_p99_times = median_us(&comparison.latency_us_p99) / median_us(&comparison.latency_us_p99_reference).max(1.0);
    Ok(comparison)
}

fn load_report(setup: &Setup, label: &str, interrupt: &Interrupt) -> Result<LoadReport> {
    if interrupt.is_set() {
        bail!("interrupted");
    }
    measure::tell(setup, label);
    measure::settle(setup, interrupt)?;
    let (entries, _) = measure::measure(setup, label, interrupt)?;
    let load = measure::observation(&entries).load.context("no load was measured")?;
    Ok(chokepoint_model::traffic::load_report(&load))
}

/// The result over the reference in each turn.
fn in_turn<T>(own: &[T], reference: &[T], number: impl Fn(&T) -> f64) -> Vec<f64> {
    own.iter().zip(reference).map(|(own, reference)| number(own) / number(reference).max(f64::MIN_POSITIVE)).collect()
}

/// The median of all turns.
fn median(values: &[f64]) -> f64 {
    chokepoint_statistics::median(values).unwrap_or(0.0)
}

/// The median p99 of all turns, microseconds.
fn median_us(values: &[u64]) -> f64 {
    median(&values.iter().map(|value| *value as f64).collect::<Vec<f64>>())
}

/// Requests without an expected answer.
fn failed(load: &LoadReport) -> u64 {
    (super::expectation::failed_share(load) * load.requests as f64).round() as u64
}

impl Comparison {
    /// True if the turns of the reference, which nothing changes, differ by more than two equal runs may: other programs took cores of this machine.
    pub(super) fn is_disturbed(&self) -> bool {
        let (least, most) =
            self.goodput_rps_reference.iter().fold((f64::MAX, 0.0_f64), |(least, most), rps| (least.min(*rps), most.max(*rps)));
        most > least * (1.0 + NOISE_SHARE)
    }

    /// Expectations that did not hold in any turn. What one turn disproves is disturbance: both are loaded one right after the other.
    pub(super) fn failures(&self, wanted: Option<&Reference>) -> Vec<String> {
        let goodput: Vec<f64> = in_turn(&self.goodput_rps, &self.goodput_rps_reference, |rps| *rps);
        let p99: Vec<f64> = in_turn(&self.latency_us_p99, &self.latency_us_p99_reference, |us| *us as f64);
        let said = |times: &[f64], limit: f64| times.iter().map(|times| apart(*times, limit, 2)).collect::<Vec<_>>().join(", ");
        let least = wanted.and_then(|wanted| wanted.goodput_times_at_least);
        let short = least.filter(|least| goodput.iter().all(|times| times < least));
        let short =
            short.map(|least| format!("{} times the goodput of {}, expected at least {least}", said(&goodput, least), self.scenario));
        let most = wanted.and_then(|wanted| wanted.latency_p99_times_at_most);
        let long = most.filter(|most| p99.iter().all(|times| times > most));
        let long = long.map(|most| format!("{} times the p99 of {}, expected at most {most}", said(&p99, most), self.scenario));
        short.into_iter().chain(long).collect()
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (own, other) = (median(&self.goodput_rps), median(&self.goodput_rps_reference));
        write!(f, "in turn with {}: {own:.0} against {other:.0} requests/s, {:.2} times as much", self.scenario, self.times)?;
        let (own, other) = (median_us(&self.latency_us_p99) / 1e3, median_us(&self.latency_us_p99_reference) / 1e3);
        let failed = |failed: &[u64]| failed.iter().sum::<u64>();
        let (lost, lost_reference) = (failed(&self.failed), failed(&self.failed_reference));
        write!(f, ", p99 {own:.0} against {other:.0} ms, {lost} against {lost_reference} requests failed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(goodput: [f64; 3], p99: [u64; 3]) -> Comparison {
        Comparison {
            scenario: "by-hand".to_owned(),
            goodput_rps: goodput.to_vec(),
            goodput_rps_reference: vec![1_000.0; 3],
            latency_us_p99: p99.to_vec(),
            latency_us_p99_reference: vec![100; 3],
            failed: vec![0; 3],
            failed_reference: vec![0; 3],
            times: 0.0,
            latency_p99_times: 0.0,
        }
    }

    #[test]
    fn worse_than_the_reference_is_what_every_turn_shows() {
        let wanted =
            Reference { scenario: "by-hand".to_owned(), pairs: 3, goodput_times_at_least: Some(0.9), latency_p99_times_at_most: Some(1.5) };
        let failures = |goodput, p99| comparison(goodput, p99).failures(Some(&wanted));
        assert_eq!(failures([1_200.0; 3], [90; 3]), [""; 0]);
        assert_eq!(failures([920.0, 720.0, 910.0], [105, 340, 114]), [""; 0], "one turn was disturbed");
        assert_eq!(
            failures([850.0, 880.0, 860.0], [151, 190, 170]),
            [
                "0.85, 0.88, 0.86 times the goodput of by-hand, expected at least 0.9",
                "1.51, 1.90, 1.70 times the p99 of by-hand, expected at most 1.5"
            ]
        );
        assert_eq!(
            failures([899.9, 899.99, 860.0], [90; 3]),
            ["0.8999, 0.89999, 0.86 times the goodput of by-hand, expected at least 0.9"],
            "a miss can be seen"
        );
        assert_eq!(comparison([1.0; 3], [900; 3]).failures(None), [""; 0]);
    }

    #[test]
    fn a_machine_that_others_use_shows_in_the_turns_of_the_reference() {
        let of = |reference: [f64; 3]| Comparison { goodput_rps_reference: reference.to_vec(), ..comparison([1.0; 3], [1; 3]) };
        // A quiet machine, and one beside builds.
        assert!(!of([7_303.8, 7_404.8, 7_093.0]).is_disturbed());
        assert!(of([5_677.8, 5_727.0, 9_262.6]).is_disturbed() && !of([0.0; 3]).is_disturbed());
    }
}
