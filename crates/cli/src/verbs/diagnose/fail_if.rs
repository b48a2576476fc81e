//! `--fail-if` of `diagnose`: conditions on the verdict and on the load, for CI.

use anyhow::{Result, bail};
use chokepoint_load::{Figures, Threshold};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::report::{Diagnosis, Kept, LoadReport, Round, RoundKind, Verdict};

use crate::report::view::Phrases;
use crate::report::view::bench::condition;

/// The conditions of which none may hold.
#[derive(Debug, Clone)]
pub(super) struct FailIf {
    verdicts: Vec<Verdict>,
    threshold: Option<Threshold>,
}

impl FailIf {
    /// Parses conditions joined by `||`: names of verdicts, and what [`Threshold`] knows.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let (mut verdicts, mut others) = (Vec::new(), Vec::new());
        for one in text.split("||") {
            match one.trim() {
                "choked" => verdicts.push(Verdict::Choked),
                "client-limited" => verdicts.push(Verdict::ClientLimited),
                "unknown" => verdicts.push(Verdict::Unknown),
                word if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') => {
                    bail!(
                        "--fail-if \"{word}\" is not a condition: write choked, client-limited, unknown, p99>250ms, errors>0.1% or goodput<1000"
                    )
                }
                _ => others.push(one),
            }
        }
        let threshold = if others.is_empty() { None } else { Some(Threshold::parse(&others.join("||"))?) };
        Ok(Self { verdicts, threshold })
    }

    /// True if a condition can only be judged under load.
    pub(super) fn needs_load(&self) -> bool {
        self.threshold.is_some()
    }

    /// The conditions that hold, in words, judged by the state in which the run left the server.
    pub(super) fn failed(&self, report: &Diagnosis, words: &Catalogue) -> Result<Vec<String>> {
        let last = last(report);
        let (verdict, summary) = last.map_or((report.verdict, &report.summary), |round| (round.verdict, &round.summary));
        let mut failed: Vec<String> =
            self.verdicts.iter().filter(|one| **one == verdict).map(|one| format!("{}: {summary}", name(*one))).collect();
        if let Some(threshold) = &self.threshold {
            let Some(load) = last.map(|round| &round.load).or(report.load.as_ref()) else {
                bail!("--fail-if cannot be judged, because the report has no load: use only choked, client-limited and unknown");
            };
            let judged = threshold.judge_figures(&figures(load));
            failed.extend(judged.iter().filter(|judged| judged.failed).map(|judged| condition(Phrases(words), judged)));
        }
        Ok(failed)
    }
}

/// The last round with the changes that stayed; nothing if nothing was changed.
fn last(report: &Diagnosis) -> Option<&Round> {
    let stays = |round: &&Round| match round.kind {
        RoundKind::Confirm => true,
        RoundKind::Apply => round.kept != Kept::No,
        RoundKind::Without => false,
    };
    report.rounds.iter().rev().find(stays)
}

fn figures(load: &LoadReport) -> Figures<'_> {
    Figures {
        requests: load.requests,
        latency_us: &load.latency_us,
        failed_share: load.failed_share().unwrap_or(1.0),
        throughput_rps: load.throughput_rps,
        goodput_rps: load.goodput_rps,
    }
}

fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Choked => "choked",
        Verdict::Healthy => "healthy",
        Verdict::ClientLimited => "client-limited",
        Verdict::Unknown => "unknown",
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
        let failed = |text: &str| FailIf::parse(text).unwrap().failed(&report, &words).unwrap();
        assert_eq!(failed("choked || unknown || max>60m"), Vec::<String>::new());
        assert_eq!(failed("client-limited || choked").len(), 1);
        assert_eq!(failed("client-limited || p50>=1us || goodput<1").len(), 2);
        let unloaded = Diagnosis { load: None, ..report.clone() };
        assert!(FailIf::parse("p99>1s").unwrap().failed(&unloaded, &words).is_err());
        assert!(FailIf::parse("choked").unwrap().failed(&unloaded, &words).unwrap().is_empty());
    }

    #[test]
    fn malformed_conditions_are_refused() {
        for wrong in ["", "||", "chocked", "healthy", "p99", "choked||", "choked || p99>fast"] {
            assert!(FailIf::parse(wrong).is_err(), "{wrong} was accepted");
        }
        assert!(FailIf::parse("choked || p99>1s").unwrap().needs_load() && !FailIf::parse("choked").unwrap().needs_load());
    }
}
