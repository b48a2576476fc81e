//! What a diagnosis said of a drawn stack, held against what was proven of it; a line for each draw, and one for all of them.

use std::time::Duration;

use anyhow::Result;
use chokepoint_lab::random::proof::{Figures, Harm, Proof};
use chokepoint_lab::random::{Draw, Expected};
use chokepoint_lab::score::{Share, wilson};
use chokepoint_model::report::{Diagnosis, Finding, Role};
use chokepoint_statistics::median;
use serde::Serialize;

use super::super::expectation;
use super::Proven;

/// The load generator's own limit says nothing about the server, and may always be told.
const OWN_LIMIT: &str = "load-generator-limited";

/// What a diagnosis said.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Answer {
    verdict: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    limited_by: Option<String>,
    causes: Vec<String>,
    symptoms: Vec<String>,
    pub(super) right: bool,
    /// A fault that hurt was not named first.
    missed: bool,
    /// Something was named that hurts nobody.
    false_alarm: bool,
    /// What is wrong with it, a sentence each.
    why: Vec<String>,
    /// The watched load's own figures, where load was applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    goodput_rps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_share: Option<f64>,
    /// Share of the requests under way that the ledger does not account for, 0 to 1; below zero where it has too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    unaccounted_share: Option<f64>,
    /// True where chance alone does not make it so, by the 95 % interval of what was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    unaccounted_surely: Option<bool>,
}

impl Answer {
    /// Holds a report against what is expected: the first cause about the server one of those that hurt, no cause that does nothing, and no
    /// symptom that belongs to none.
    pub(super) fn of(report: &Diagnosis, expected: &Expected) -> Self {
        let of_role = |role: Role| -> Vec<&Finding> {
            report.findings.iter().filter(|finding| finding.role == role && finding.id != OWN_LIMIT).collect()
        };
        let (causes, symptoms) = (of_role(Role::Cause), of_role(Role::Symptom));
        let verdict = expectation::word(&report.verdict);
        let limited_by = report.limited_by.as_ref().map(expectation::word);
        let mut why = Vec::new();
        let wanted = expected.first.iter().copied().collect::<Vec<_>>().join(" or ");
        let is_hit = causes.first().is_some_and(|first| expected.may_be_first(&first.id, &first.tier));
        match causes.first() {
            _ if is_hit || expected.first.is_empty() => {}
            None => {
                let by = limited_by.as_ref().map(|by| format!(", limited by {by}")).unwrap_or_default();
                why.push(format!("{wanted} was not found ({verdict}{by})"));
            }
            Some(first) => why.push(format!("{} of {} was named first, not {wanted}", first.id, first.tier)),
        }
        let is_false = |cause: &&&Finding| !expected.may_be_cause(&cause.id, &cause.tier);
        let false_causes: Vec<&&Finding> = causes.iter().filter(is_false).collect();
        why.extend(false_causes.iter().map(|cause| format!("{} of {} was named as a cause and hurts nobody", cause.id, cause.tier)));
        let strange = symptoms.iter().filter(|symptom| !expected.symptoms.contains(symptom.id.as_str()));
        why.extend(strange.map(|symptom| format!("{} was named as a symptom of what is not there", symptom.id)));
        let ids = |findings: &[&Finding]| findings.iter().map(|finding| finding.id.clone()).collect::<Vec<_>>();
        let (is_false_alarm, is_missed) = (!false_causes.is_empty(), !expected.first.is_empty() && !is_hit);
        let load = report.load.as_ref();
        Self {
            right: why.is_empty(),
            missed: is_missed,
            false_alarm: is_false_alarm,
            verdict,
            limited_by,
            causes: ids(&causes),
            symptoms: ids(&symptoms),
            why,
            goodput_rps: load.map(|load| load.goodput_rps),
            failed_share: load.map(expectation::failed_share),
            unaccounted_share: report.ledger.as_ref().map(|ledger| ledger.unaccounted.share),
            unaccounted_surely: report.ledger.as_ref().and_then(|ledger| {
                let (low, high) = ledger.unaccounted.low.zip(ledger.unaccounted.high)?;
                Some(low > 0.0 || high < 0.0)
            }),
        }
    }
}

/// What came of one draw; a line of `lab run --random --json`.
#[derive(Debug, Serialize)]
pub(super) struct DrawResult {
    schema: &'static str,
    #[serde(flatten)]
    draw: Draw,
    passive: bool,
    proof: Proven,
    /// Of each fault, in their order.
    harms: Vec<Harm>,
    expected: Expected,
    #[serde(flatten)]
    answer: Answer,
    seconds: f64,
}

impl DrawResult {
    pub(super) fn new(draw: &Draw, passive: bool, proof: Proven, expected: Expected, answer: Answer, took: Duration) -> Self {
        let harms = proof.harms();
        let draw = draw.clone();
        Self { schema: super::SCHEMA, draw, passive, proof, harms, expected, answer, seconds: took.as_secs_f64() }
    }

    pub(super) fn line(&self, json: bool) -> Result<String> {
        if json {
            return Ok(format!("{}\n", serde_json::to_string(self)?));
        }
        let mut text = format!("{:>4}  {}\n      {}\n", self.draw.index, self.draw.words(), proof_in_words(&self.proof));
        let named = if self.answer.causes.is_empty() { "no cause".to_owned() } else { self.answer.causes.join(", ") };
        text.push_str(&format!("      {}: {}, {named}", if self.answer.right { "right" } else { "WRONG" }, self.answer.verdict));
        self.answer.why.iter().for_each(|why| text.push_str(&format!("; {why}")));
        text.push('\n');
        Ok(text)
    }
}

/// The figures of a proof on one line.
pub(super) fn proof_in_words(proven: &Proven) -> String {
    let Some(together) = &proven.together else { return "no fault was drawn".to_owned() };
    let harm = |harm: Harm| expectation::word(&harm);
    let figures = |runs: &[Figures]| {
        let middle = |value: fn(&Figures) -> f64| median(&runs.iter().map(value).collect::<Vec<_>>()).unwrap_or(0.0);
        format!(
            "{:.0} good/s, {:.1} % failed, p99 {:.0} ms",
            middle(|run| run.goodput_rps),
            middle(|run| run.failed_share) * 100.0,
            middle(|run| run.latency_us_p99) / 1e3
        )
    };
    let unclear = if together.unclear { " (unclear)" } else { "" };
    let mut text =
        format!("harm {}{unclear}: without {}; with {}", harm(together.harm), figures(&together.without), figures(&together.with));
    let each = |proofs: &[Proof]| proofs.iter().map(|proof| harm(proof.harm)).collect::<Vec<_>>().join(", ");
    if !proven.alone.is_empty() {
        text.push_str(&format!("; each alone {}; each beside the other {}", each(&proven.alone), each(&proven.background_task)));
    }
    if let (Some(suffered), Some(diagnosed)) = (proven.suffered, proven.diagnosed) {
        text.push_str(&format!("; diagnosed {}: {}", harm(diagnosed), figures(&[suffered])));
    }
    text
}

/// The score of all draws.
#[derive(Debug, Serialize)]
pub(super) struct Total {
    schema: &'static str,
    seed: u32,
    index: u32,
    /// Draws that were judged.
    draws: u64,
    /// Draws that could not be run.
    errors: u64,
    /// Those with a fault that hurt, that hurt little, that did not hurt, and without any.
    hurt: u64,
    little: u64,
    harmless: u64,
    faultless: u64,
    /// Where the verdict was "unknown".
    unknown: u64,
    /// A fault that hurt and was not named first.
    missed: u64,
    /// A cause that hurt nobody.
    false_alarms: u64,
    score: Share,
    /// Numbers of the draws with a wrong verdict.
    wrong: Vec<u32>,
}

impl Total {
    pub(super) fn new(seed: u32, index: u32) -> Self {
        Self {
            schema: "chokepoint/lab-random-total/1",
            seed,
            index,
            draws: 0,
            errors: 0,
            hurt: 0,
            little: 0,
            harmless: 0,
            faultless: 0,
            unknown: 0,
            missed: 0,
            false_alarms: 0,
            score: wilson(0, 0),
            wrong: Vec::new(),
        }
    }

    pub(super) fn error(&mut self) {
        self.errors += 1;
    }

    pub(super) fn count(&mut self, outcome: &DrawResult) {
        self.draws += 1;
        let of = match (outcome.draw.faults.is_empty(), outcome.proof.together()) {
            (true, _) => &mut self.faultless,
            (false, Harm::Hurt) => &mut self.hurt,
            (false, Harm::Little) => &mut self.little,
            (false, Harm::None) => &mut self.harmless,
        };
        *of += 1;
        let answer = &outcome.answer;
        self.unknown += u64::from(answer.verdict == "unknown");
        self.missed += u64::from(answer.missed);
        self.false_alarms += u64::from(answer.false_alarm);
        if !answer.right {
            self.wrong.push(outcome.draw.index);
        }
        self.score = wilson(self.draws - self.wrong.len() as u64, self.draws);
    }

    pub(super) fn all_right(&self) -> bool {
        self.errors == 0 && self.wrong.is_empty()
    }

    pub(super) fn line(&self, json: bool) -> Result<String> {
        if json {
            return Ok(format!("{}\n", serde_json::to_string(self)?));
        }
        let Share { right, of, low, high } = self.score;
        let mut text = format!(
            "\n{right} of {of} verdicts were right (95 %: {low:.2} to {high:.2}); {} missed, {} false alarms, {} unknown\n\
             faults that hurt {}, that hurt little {}, harmless {}; without a fault {}\n",
            self.missed, self.false_alarms, self.unknown, self.hurt, self.little, self.harmless, self.faultless
        );
        if self.errors > 0 {
            text.push_str(&format!("{} draws could not be run\n", self.errors));
        }
        for index in &self.wrong {
            text.push_str(&format!("again: chokepoint lab run --random 1 --seed {} --index {index}\n", self.seed));
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use chokepoint_lab::random::draw;
    use chokepoint_model::catalogue::Catalogue;
    use chokepoint_model::diagnose::diagnose;
    use chokepoint_model::observation::Observation;
    use chokepoint_model::report::{At, Confidence};

    use super::*;

    fn report(findings: &[(&str, Role)]) -> Diagnosis {
        let mut report = diagnose(&Observation::default(), &Catalogue::english());
        let finding = |(id, role): &(&str, Role)| Finding {
            id: (*id).to_owned(),
            station: String::new(),
            tier: String::new(),
            at: At::default(),
            role: *role,
            symptom_of: Vec::new(),
            confidence: Confidence::High,
            title: String::new(),
            evidence: Vec::new(),
            explanation: String::new(),
            remedies: Vec::new(),
        };
        report.findings = findings.iter().map(finding).collect();
        report
    }

    fn expected() -> Expected {
        Expected { first: ["a"].into(), causes: ["a", "little"].into(), symptoms: ["a", "little", "s"].into(), ..Expected::default() }
    }

    #[test]
    fn an_answer_is_right_where_it_names_what_hurts_and_nothing_that_does_not() {
        let (cause, symptom) = (Role::Cause, Role::Symptom);
        for (findings, right, why) in [
            (vec![("a", cause)], true, ""),
            (vec![("a", cause), ("little", cause), ("s", symptom)], true, ""),
            (vec![(OWN_LIMIT, cause), ("a", cause)], true, ""),
            (vec![], false, "a was not found (unknown)"),
            (vec![(OWN_LIMIT, cause)], false, "a was not found"),
            (vec![("little", cause), ("a", cause)], false, "little of  was named first, not a"),
            (vec![("a", cause), ("b", cause)], false, "b of  was named as a cause"),
            (vec![("a", cause), ("b", symptom)], false, "b was named as a symptom"),
            (vec![("a", symptom)], false, "a was not found"),
            (vec![("s", cause)], false, "s of  was named first"),
        ] {
            let answer = Answer::of(&report(&findings), &expected());
            assert_eq!(answer.right, right, "{findings:?}: {:?}", answer.why);
            assert!(answer.why.join("; ").contains(why), "{findings:?}: {:?}", answer.why);
        }
        let none = Expected::default();
        assert!(Answer::of(&report(&[]), &none).right && Answer::of(&report(&[(OWN_LIMIT, cause)]), &none).right);
        assert!(!Answer::of(&report(&[("a", cause)]), &none).right);
    }

    #[test]
    fn the_total_counts_each_draw_once() {
        let mut total = Total::new(1, 0);
        for (index, findings) in [(0, vec![]), (1, vec![("accept-queue-full", Role::Cause)])] {
            let draw = draw(1, index);
            let proven = Proven { together: None, alone: Vec::new(), background_task: Vec::new(), suffered: None, diagnosed: None };
            let answer = Answer::of(&report(&findings), &Expected::default());
            total.count(&DrawResult::new(&draw, false, proven, Expected::default(), answer, Duration::ZERO));
        }
        assert_eq!((total.draws, total.score.right, total.false_alarms, total.missed, total.wrong.clone()), (2, 1, 1, 0, vec![1]));
        assert!(total.line(false).unwrap().contains("--seed 1 --index 1") && !total.all_right());
        let json: serde_json::Value = serde_json::from_str(&total.line(true).unwrap()).unwrap();
        assert_eq!(json["score"]["of"], 2);
    }
}
