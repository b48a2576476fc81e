//! What a scenario expects, held against what a run gave. It compares; the verdict is the model's.

use chokepoint_lab::scenario::Expect;
use chokepoint_model::report::{Diagnosis, Kept, LoadReport, Role};
use serde::Serialize;

/// A word of the report's own vocabulary, as its JSON spells it.
pub(super) fn word<T: Serialize>(value: &T) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Id of the first cause.
pub(super) fn first_cause(report: &Diagnosis) -> Option<&str> {
    report.findings.iter().find(|finding| finding.role == Role::Cause).map(|finding| finding.id.as_str())
}

/// Share of the requests that got no expected answer.
pub(super) fn failed_share(load: &LoadReport) -> f64 {
    if load.throughput_rps <= 0.0 { 0.0 } else { (1.0 - load.goodput_rps / load.throughput_rps).max(0.0) }
}

/// Every expectation that did not hold, a sentence each.
pub(super) fn check(expect: &Expect, report: &Diagnosis, fixed: bool) -> Vec<String> {
    let mut failures = Vec::new();
    let verdict = word(&report.verdict);
    let verdicts: Vec<String> = expect.verdict.iter().map(word).collect();
    if !verdicts.is_empty() && !verdicts.contains(&verdict) {
        failures.push(format!("verdict {verdict}, expected {}", verdicts.join(" or ")));
    }
    let limits: Vec<String> = expect.limited_by.iter().map(word).collect();
    let limit = report.limited_by.as_ref().map(word).unwrap_or_default();
    if !limits.is_empty() && verdict == "healthy" && !limits.contains(&limit) {
        failures.push(format!("limited by {limit}, expected {}", limits.join(" or ")));
    }
    match (&expect.finding, first_cause(report)) {
        (Some(_), Some(found)) if expect.finding_none() => failures.push(format!("{found} was named as a cause, expected none")),
        (Some(wanted), found) if !expect.finding_none() && found != Some(wanted) => {
            failures.push(format!("first cause {}, expected {wanted}", found.unwrap_or("none")));
        }
        _ => {}
    }
    for finding in report.findings.iter().filter(|finding| expect.forbidden.contains(&finding.id)) {
        failures.push(format!("{} was found and is forbidden", finding.id));
    }
    if fixed {
        failures.extend(effect(expect, report));
    }
    failures
}

fn effect(expect: &Expect, report: &Diagnosis) -> Vec<String> {
    let Some(wanted) = &expect.remedy else { return Vec::new() };
    let Some(round) = report.rounds.iter().find(|round| round.remedy == *wanted && round.kept != Kept::No) else {
        return vec![format!("remedy {wanted} was not applied and kept")];
    };
    let (Some(effect), Some(before)) = (&expect.effect, &report.load) else { return Vec::new() };
    let mut failures = Vec::new();
    if let Some(times) = effect.goodput_times_at_least
        && round.load.goodput_rps < times * before.goodput_rps
    {
        failures.push(format!("goodput {:.0} -> {:.0}, expected {times} times as much", before.goodput_rps, round.load.goodput_rps));
    }
    let share = failed_share(&round.load);
    if let Some(most) = effect.failed_share_at_most
        && share > most
    {
        failures.push(format!("{:.2} % failed after the fix, expected at most {:.2} %", share * 100.0, most * 100.0));
    }
    let p99_us = round.load.latency_us.p99;
    if let Some(most) = effect.latency_p99_at_most
        && u128::from(p99_us) > most.0.as_micros()
    {
        failures.push(format!("p99 {p99_us} us after the fix, expected at most {} us", most.0.as_micros()));
    }
    failures
}
