//! Compares a lab that `--fix` has changed with a reference scenario. Both are loaded in turn, so that disturbances affect both alike.

use std::fmt;

use anyhow::{Context, Result, bail};
use chokepoint_lab::scenario::Reference;
use chokepoint_lab::{Lab, Scenario};
use chokepoint_model::report::LoadReport;
use serde::{Deserialize, Serialize};

use crate::run::measure::{self, Setup};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;

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
        comparison.latency_us_p99_reference.push(reference.latency_us.p99);
        comparison.failed_reference.push(failed(&reference));
        let result = load_report(own, &format!("result, turn {turn}"), interrupt)?;
        comparison.goodput_rps.push(result.goodput_rps);
        comparison.latency_us_p99.push(result.latency_us.p99);
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
    /// Expectations that did not hold.
    pub(super) fn failures(&self, wanted: Option<&Reference>) -> Vec<String> {
        let least = wanted.and_then(|wanted| wanted.goodput_times_at_least);
        let short = least.filter(|least| self.times < *least);
        let short = short.map(|least| format!("{:.2} times the goodput of {}, expected at least {least}", self.times, self.scenario));
        let most = wanted.and_then(|wanted| wanted.latency_p99_times_at_most).filter(|most| self.latency_p99_times > *most);
        let long = most.map(|most| format!("{:.2} times the p99 of {}, expected at most {most}", self.latency_p99_times, self.scenario));
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
