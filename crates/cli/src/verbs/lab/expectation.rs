//! Compares a scenario's expectations with a run's report. The verdict is the model's.

use chokepoint_lab::scenario::{Effect, Expect};
use chokepoint_model::report::{Diagnosis, Kept, LoadReport, Mode, Role, Round, RoundKind};
use serde::Serialize;

/// A unit variant of the report as its JSON spells it.
pub(super) fn word<T: Serialize>(value: &T) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Id of the first cause.
pub(super) fn first_cause(report: &Diagnosis) -> Option<&str> {
    report.findings.iter().find(|finding| finding.role == Role::Cause).map(|finding| finding.id.as_str())
}

/// The causes of the first diagnosis, then the findings acted on in the rounds (improvements included), each once.
pub(super) fn named(report: &Diagnosis) -> Vec<&str> {
    let first = report.findings.iter().filter(|finding| finding.role == Role::Cause).map(|finding| finding.id.as_str());
    let acted_on = report.rounds.iter().map(|round| round.finding.as_str()).filter(|id| !id.is_empty());
    let mut named: Vec<&str> = Vec::new();
    for id in first.chain(acted_on) {
        if !named.contains(&id) {
            named.push(id);
        }
    }
    named
}

/// Share of the requests without an expected answer.
pub(super) fn failed_share(load: &LoadReport) -> f64 {
    load.failed_share().unwrap_or(0.0)
}

/// A number with at least so many digits, and as many as tell it from the limit that it missed.
pub(super) fn apart(number: f64, limit: f64, digits: usize) -> String {
    let shown = (digits..=17).map(|digits| format!("{number:.digits$}"));
    let differs = |text: &String| text.parse::<f64>().is_ok_and(|shown| shown != limit);
    shown.into_iter().find(differs).unwrap_or_else(|| number.to_string())
}

/// A sentence for every expectation that did not hold.
pub(super) fn check(expect: &Expect, report: &Diagnosis, fixed: bool) -> Vec<String> {
    let mut failures = Vec::new();
    let verdict = word(&report.verdict);
    let is_passive = report.mode == Mode::Passive && !expect.verdict_passive.is_empty();
    let verdicts: Vec<String> = if is_passive { &expect.verdict_passive } else { &expect.verdict }.iter().map(word).collect();
    if !verdicts.is_empty() && !verdicts.contains(&verdict) {
        failures.push(format!("verdict {verdict}, expected {}", verdicts.join(" or ")));
    }
    let limits: Vec<String> = expect.limited_by.iter().map(word).collect();
    let limit = report.limited_by.as_ref().map(word).unwrap_or_default();
    if !limits.is_empty() && verdict == "healthy" && !limits.contains(&limit) {
        failures.push(format!("limited by {limit}, expected {}", limits.join(" or ")));
    }
    let found = first_cause(report).unwrap_or("none");
    if expect.finding_none() && found != "none" {
        failures.push(format!("{found} was named as a cause, expected none"));
    } else if !expect.finding.is_empty() && !expect.finding.iter().any(|wanted| wanted == found) {
        failures.push(format!("first cause {found}, expected {}", expect.finding.join(" or ")));
    }
    for finding in report.findings.iter().filter(|finding| expect.forbidden.contains(&finding.id)) {
        failures.push(format!("{} was found and is forbidden", finding.id));
    }
    let is_reported = |id: &&String| report.improvements.iter().any(|finding| finding.id == **id);
    let missing = expect.improvements.iter().filter(|id| !is_reported(id));
    failures.extend(missing.map(|id| format!("{id} was not shown as an improvement")));
    let forbidden = expect.improvements_forbidden.iter().filter(is_reported);
    failures.extend(forbidden.map(|id| format!("{id} was shown as an improvement and is forbidden")));
    if fixed {
        failures.extend(remedy_failures(expect, report));
        failures.extend(round_failures(expect, report));
    }
    failures
}

/// Rounds whose changes were kept.
pub(super) fn kept(report: &Diagnosis) -> impl Iterator<Item = &Round> {
    report.rounds.iter().filter(|round| round.kind == RoundKind::Apply && round.kept.stays())
}

/// Changes applied over all rounds.
pub(super) fn changes_applied(report: &Diagnosis) -> usize {
    report.rounds.iter().filter(|round| round.kind == RoundKind::Apply).count()
}

/// Failures of the rounds as a whole: causes not named, a weak final result, and kept changes not shown to be needed.
fn round_failures(expect: &Expect, report: &Diagnosis) -> Vec<String> {
    let named = named(report);
    let missing = expect.causes.iter().filter(|cause| !named.contains(&cause.as_str()));
    let mut failures: Vec<String> = missing.map(|cause| format!("{cause} was not named as a cause in any round")).collect();
    let unproven = kept(report).filter(|round| round.kept != Kept::Final);
    failures.extend(unproven.map(|round| format!("{} was kept but not shown to be needed", round.remedy)));
    let (Some(wanted), Some(before)) = (&expect.result, &report.load) else { return failures };
    match report.result() {
        Some(last) => failures.extend(effect_failures(wanted, before, &last.load)),
        None => failures.push("no change stays".to_owned()),
    }
    let applied = changes_applied(report);
    if wanted.changes_at_most.is_some_and(|most| applied > most as usize) {
        failures.push(format!("{applied} changes were applied, expected at most {}", wanted.changes_at_most.unwrap_or(0)));
    }
    failures
}

/// Failures of the remedies that must be tried at least.
pub(super) fn untried(expect: &Expect, report: &Diagnosis) -> Vec<String> {
    let is_tried = |id: &&String| report.rounds.iter().any(|round| round.kind == RoundKind::Apply && round.remedy == **id);
    expect.tried.iter().filter(|id| !is_tried(id)).map(|id| format!("remedy {id} was not tried")).collect()
}

fn remedy_failures(expect: &Expect, report: &Diagnosis) -> Vec<String> {
    let is_kept = |id: &&String| kept(report).any(|round| round.remedy == **id);
    let missing = expect.kept.iter().filter(|id| !is_kept(id));
    let mut failures: Vec<String> = missing.map(|id| format!("remedy {id} was not applied and kept")).collect();
    failures.extend(effect_of_remedy(expect, report));
    failures
}

fn effect_of_remedy(expect: &Expect, report: &Diagnosis) -> Vec<String> {
    let Some(wanted) = &expect.remedy else { return Vec::new() };
    let Some(round) = report.rounds.iter().find(|round| round.remedy == *wanted && round.kept.stays()) else {
        return vec![format!("remedy {wanted} was not applied and kept")];
    };
    let (Some(wanted), Some(before)) = (&expect.effect, &report.load) else { return Vec::new() };
    effect_failures(wanted, before, &round.load)
}

/// Far below one request, far above the rounding of a product.
const ROUNDING: f64 = 1e-6;

fn effect_failures(wanted: &Effect, before: &LoadReport, after: &LoadReport) -> Vec<String> {
    let mut failures = Vec::new();
    if let Some(times) = wanted.goodput_times_at_least
        && after.goodput_rps < times * before.goodput_rps
    {
        let (from, to) = (before.goodput_rps, after.goodput_rps);
        let reached = apart(to / from, times, 2);
        failures.push(format!("goodput {from:.0} -> {to:.0}, {reached} times as much, expected {times} times"));
    }
    let (failed, requests) = ((failed_share(after) * after.requests as f64).round(), after.requests as f64);
    if let Some(most) = wanted.failed_share_at_most
        && failed > (most * requests + ROUNDING).floor()
    {
        let most = most * 100.0;
        let percent = apart(failed / requests * 100.0, most, 3);
        failures.push(format!("{failed:.0} of {requests} requests failed after the fix ({percent} %), expected at most {most} %"));
    }
    if let Some((most, p99_us)) = wanted.latency_p99_at_most.zip(after.p99_us())
        && u128::from(p99_us) > most.0.as_micros()
    {
        failures.push(format!("p99 {p99_us} us after the fix, expected at most {} us", most.0.as_micros()));
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    fn expect(fields: &str) -> Expect {
        toml::from_str(fields).unwrap()
    }

    /// A load of this many requests in ten seconds, of which so many failed.
    fn load(requests: u64, failed: u64) -> LoadReport {
        let load = samples::choked().load.unwrap();
        let per_s = |count: u64| count as f64 / 10.0;
        LoadReport { requests, throughput_rps: per_s(requests), goodput_rps: per_s(requests - failed), ..load }
    }

    #[test]
    fn a_miss_and_its_limit_are_never_printed_as_the_same_number() {
        let wanted = expect("result = { failed_share_at_most = 0.001, goodput_times_at_least = 10.0 }").result.unwrap();
        let failures = |after: &LoadReport| effect_failures(&wanted, &load(100_000, 90_000), after);
        assert_eq!(failures(&load(101_000, 101)), [""; 0], "at its limit");
        assert_eq!(failures(&load(1_000_000, 1_001)), ["1001 of 1000000 requests failed after the fix (0.1001 %), expected at most 0.1 %"]);
        assert_eq!(
            failures(&load(100_000_000, 100_001)),
            ["100001 of 100000000 requests failed after the fix (0.100001 %), expected at most 0.1 %"]
        );
        let none = expect("result = { failed_share_at_most = 0.0 }").result.unwrap();
        assert_eq!(
            effect_failures(&none, &load(1, 0), &load(1_000_000, 1)),
            ["1 of 1000000 requests failed after the fix (0.0001 %), expected at most 0 %"]
        );
        assert_eq!(failures(&load(99_999, 0)), ["goodput 1000 -> 10000, 9.9999 times as much, expected 10 times"]);
        assert_eq!(apart(0.9, 0.9, 2), "0.9", "equal numbers do not miss");
    }

    #[test]
    fn each_remedy_that_is_to_stay_must_stay_and_each_that_is_to_be_tried_must_be_tried() {
        let report = samples::fixed();
        let applied = || report.rounds.iter().filter(|round| round.kind == RoundKind::Apply);
        let stays = kept(&report).next().expect("a change that stays").remedy.clone();
        let wanted = expect(&format!("kept = ['{stays}', 'raise-nothing']\ntried = ['{stays}', 'move-nothing']"));
        assert!(wanted.asks_for_fix());
        assert_eq!(remedy_failures(&wanted, &report), ["remedy raise-nothing was not applied and kept"]);
        assert_eq!(untried(&wanted, &report), ["remedy move-nothing was not tried"]);
        // What was tried and taken back was tried.
        let rounds = applied().cloned().map(|round| Round { kept: Kept::No, ..round }).collect();
        let report = Diagnosis { rounds, ..report.clone() };
        assert_eq!(remedy_failures(&expect(&format!("kept = ['{stays}']")), &report).len(), 1);
        assert_eq!(untried(&expect(&format!("tried = ['{stays}']")), &report), [""; 0]);
    }
}
