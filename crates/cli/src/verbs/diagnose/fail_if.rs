//! `--fail-if` of `diagnose`: conditions on the verdict and on the load, for CI.

use anyhow::{Result, bail};
use chokepoint_load::{Figures, Threshold, ThresholdResult, Unit};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::report::{Diagnosis, FailIfCondition, FailIfReport, FailIfUnit, LoadReport, Round, RoundKind, Verdict};

use crate::report::view::Phrases;
use crate::report::view::bench::condition;

/// The conditions of which none may hold.
#[derive(Debug, Clone)]
pub(super) struct FailIf {
    /// As written.
    expression: String,
    /// Each as written, with its verdict; nothing if it is one of the threshold's, which has them in the same order.
    conditions: Vec<(String, Option<Verdict>)>,
    threshold: Option<Threshold>,
}

/// What came of the conditions.
pub(super) struct Judged {
    /// For the report.
    pub(super) report: FailIfReport,
    /// The conditions that held, in words.
    pub(super) failed: Vec<String>,
}

impl FailIf {
    /// Parses conditions joined by `||`: names of verdicts, and what [`Threshold`] knows.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let (mut conditions, mut others) = (Vec::new(), Vec::new());
        for one in text.split("||") {
            let verdict = match one.trim() {
                "choked" => Some(Verdict::Choked),
                "client-limited" => Some(Verdict::ClientLimited),
                "unknown" => Some(Verdict::Unknown),
                word if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') => {
                    bail!(
                        "--fail-if \"{word}\" is not a condition: write choked, client-limited, unknown, p99>250ms, errors>0.1% or goodput<1000"
                    )
                }
                _ => None,
            };
            others.extend(verdict.is_none().then_some(one));
            conditions.push((one.trim().to_owned(), verdict));
        }
        let threshold = if others.is_empty() { None } else { Some(Threshold::parse(&others.join("||"))?) };
        Ok(Self { expression: text.to_owned(), conditions, threshold })
    }

    /// True if a condition can only be judged under load.
    pub(super) fn needs_load(&self) -> bool {
        self.threshold.is_some()
    }

    /// Judges the conditions by the state in which the run left the server.
    pub(super) fn judge(&self, report: &Diagnosis, words: &Catalogue) -> Result<Judged> {
        let last = last(report);
        let (reached, summary) = last.map_or((report.verdict, &report.summary), |round| (round.verdict, &round.summary));
        let mut by_load = match (&self.threshold, last.map(|round| &round.load).or(report.load.as_ref())) {
            (None, _) => Vec::new(),
            (Some(_), None) => {
                bail!("--fail-if cannot be judged, because the report has no load: use only choked, client-limited and unknown")
            }
            (Some(threshold), Some(load)) => threshold
                .judge_figures(&figures(load))
                .into_iter()
                .map(|judged| (with_figure(&judged, load), condition(Phrases(words), &judged)))
                .collect(),
        }
        .into_iter();
        let judged: Vec<(FailIfCondition, String)> = (self.conditions.iter())
            .filter_map(|(text, verdict)| match verdict {
                Some(verdict) => Some((with_verdict(text, *verdict == reached, reached), format!("{text}: {summary}"))),
                None => by_load.next(),
            })
            .collect();
        let failed: Vec<String> = judged.iter().filter(|(condition, _)| condition.held).map(|(_, words)| words.clone()).collect();
        let conditions = judged.into_iter().map(|(condition, _)| condition).collect();
        Ok(Judged { report: FailIfReport { expression: self.expression.clone(), held: !failed.is_empty(), conditions }, failed })
    }
}

fn with_verdict(text: &str, held: bool, reached: Verdict) -> FailIfCondition {
    FailIfCondition { condition: text.to_owned(), held, measured: None, unit: None, verdict: Some(reached) }
}

fn with_figure(judged: &ThresholdResult, load: &LoadReport) -> FailIfCondition {
    let unit = match judged.unit {
        Unit::Us => FailIfUnit::Us,
        Unit::Share => FailIfUnit::Share,
        Unit::PerSecond => FailIfUnit::PerSecond,
    };
    // Without a request that ended, or a log that has them, there are no response times.
    let measured = Some(judged.measured).filter(|_| judged.unit != Unit::Us || load.latency_us.is_some());
    FailIfCondition { condition: judged.condition.clone(), held: judged.failed, measured, unit: Some(unit), verdict: None }
}

/// The last round with the changes that stayed; nothing if nothing was changed.
fn last(report: &Diagnosis) -> Option<&Round> {
    let stays = |round: &&Round| match round.kind {
        RoundKind::Confirm => true,
        RoundKind::Apply => round.kept.stays(),
        RoundKind::Without => false,
    };
    report.rounds.iter().rev().find(stays)
}

fn figures(load: &LoadReport) -> Figures<'_> {
    Figures {
        requests: load.requests,
        latency_us: load.latency_us.as_ref(),
        failed_share: load.failed_share().unwrap_or(1.0),
        throughput_rps: load.throughput_rps,
        goodput_rps: load.goodput_rps,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn verdicts_and_figures_are_judged_together() {
        let words = Catalogue::english();
        let report = samples::client_limited();
        let failed = |text: &str| FailIf::parse(text).unwrap().judge(&report, &words).unwrap().failed;
        assert_eq!(failed("choked || unknown || max>60m"), Vec::<String>::new());
        assert_eq!(failed("client-limited || choked").len(), 1);
        assert_eq!(failed("client-limited || p50>=1us || goodput<1").len(), 2);
        let unloaded = Diagnosis { load: None, ..report.clone() };
        assert!(FailIf::parse("p99>1s").unwrap().judge(&unloaded, &words).is_err());
        assert!(FailIf::parse("choked").unwrap().judge(&unloaded, &words).unwrap().failed.is_empty());
    }

    #[test]
    fn the_report_has_each_condition_with_what_was_measured() {
        let words = Catalogue::english();
        let mut report = samples::client_limited();
        let judge = |report: &Diagnosis, text: &str| FailIf::parse(text).unwrap().judge(report, &words).unwrap().report;
        let told = judge(&report, " p99>250ms||client-limited || errors > 1% ||choked|| goodput<1000");
        let (unit, limited) = (|unit| (None, Some(unit)), (Some(Verdict::ClientLimited), None));
        let each = |told: &FailIfReport| {
            told.conditions.iter().map(|one| (one.condition.clone(), one.held, (one.verdict, one.unit))).collect::<Vec<_>>()
        };
        let expected = [
            ("p99>250ms", false, unit(FailIfUnit::Us)),
            ("client-limited", true, limited),
            ("errors > 1%", false, unit(FailIfUnit::Share)),
            ("choked", false, limited),
            ("goodput<1000", false, unit(FailIfUnit::PerSecond)),
        ];
        assert_eq!(each(&told), expected.map(|(text, held, of)| (text.to_owned(), held, of)));
        assert_eq!((told.held, told.conditions[4].measured), (true, Some(74_211.0)));
        assert!(!judge(&report, "choked").held);
        report.load.as_mut().unwrap().latency_us = None;
        let told = judge(&report, "p99>1m");
        assert_eq!((told.conditions[0].held, told.conditions[0].measured), (true, None), "nothing shows that it was not");
    }

    #[test]
    fn malformed_conditions_are_refused() {
        for wrong in ["", "||", "chocked", "healthy", "p99", "choked||", "choked || p99>fast"] {
            assert!(FailIf::parse(wrong).is_err(), "{wrong} was accepted");
        }
        assert!(FailIf::parse("choked || p99>1s").unwrap().needs_load() && !FailIf::parse("choked").unwrap().needs_load());
    }
}
