//! The grade of a diagnosis of a drawn stack: a line for each draw, and one for all of them.

use std::time::Duration;

use anyhow::Result;
use chokepoint_model::report::{Diagnosis, Finding, LimitedBy, Role, Verdict};
use chokepoint_statistics::median;
use serde::Serialize;

use crate::draw::{Draw, Expected, word};
use crate::proof::{Figures, Harm, Proof, Proven};
use crate::share::{Share, wilson};

/// Name and version of the schema of a draw's line.
pub(crate) const SCHEMA: &str = "chokepoint/lab-random/1";
/// The limit of the load generator says nothing about the server. It may always be named.
const OWN_LIMIT: &str = "load-generator-limited";

/// What a diagnosis says, and whether that is right.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Answer {
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    limited_by: Option<LimitedBy>,
    causes: Vec<String>,
    symptoms: Vec<String>,
    pub(crate) right: bool,
    /// A harmful fault was not named first.
    missed: bool,
    /// A harmless thing was named as a cause.
    false_alarm: bool,
    /// A sentence for each error.
    why: Vec<String>,
    /// Figures of the diagnosis's own load.
    #[serde(skip_serializing_if = "Option::is_none")]
    goodput_rps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_share: Option<f64>,
    /// Share of the requests under way that the ledger does not account for. Negative where the ledger has too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    unaccounted_share: Option<f64>,
    /// True where zero lies outside the 95 % interval of that share.
    #[serde(skip_serializing_if = "Option::is_none")]
    unaccounted_surely: Option<bool>,
}

impl Answer {
    /// Grades a report. The first cause must be a harmful fault, no cause may be harmless, and every symptom must belong to a fault.
    pub(crate) fn new(report: &Diagnosis, expected: &Expected) -> Self {
        let of_role = |role: Role| -> Vec<&Finding> {
            report.findings.iter().filter(|finding| finding.role == role && finding.id != OWN_LIMIT).collect()
        };
        let (causes, symptoms) = (of_role(Role::Cause), of_role(Role::Symptom));
        let mut why = Vec::new();
        let wanted = expected.first.iter().copied().collect::<Vec<_>>().join(" or ");
        let is_hit = causes.first().is_some_and(|first| expected.may_be_first(&first.id, &first.tier));
        match causes.first() {
            _ if is_hit || expected.first.is_empty() => {}
            None => {
                let by = report.limited_by.as_ref().map(|by| format!(", limited by {}", word(by))).unwrap_or_default();
                why.push(format!("{wanted} was not found ({}{by})", word(&report.verdict)));
            }
            Some(first) => why.push(format!("{} of {} was named first, not {wanted}", first.id, first.tier)),
        }
        let false_causes: Vec<&&Finding> = causes.iter().filter(|cause| !expected.may_be_cause(&cause.id, &cause.tier)).collect();
        why.extend(false_causes.iter().map(|cause| format!("{} of {} was named as a cause and hurts nobody", cause.id, cause.tier)));
        let false_symptoms = symptoms.iter().filter(|symptom| !expected.symptoms.contains(symptom.id.as_str()));
        why.extend(false_symptoms.map(|symptom| format!("{} was named as a symptom of what is not there", symptom.id)));
        let ids = |findings: &[&Finding]| findings.iter().map(|finding| finding.id.clone()).collect::<Vec<_>>();
        let load = report.load.as_ref();
        Self {
            right: why.is_empty(),
            missed: !expected.first.is_empty() && !is_hit,
            false_alarm: !false_causes.is_empty(),
            verdict: report.verdict,
            limited_by: report.limited_by,
            causes: ids(&causes),
            symptoms: ids(&symptoms),
            why,
            goodput_rps: load.map(|load| load.goodput_rps),
            failed_share: load.map(|load| load.failed_share().unwrap_or(0.0)),
            unaccounted_share: report.ledger.as_ref().map(|ledger| ledger.unaccounted.share),
            unaccounted_surely: report.ledger.as_ref().and_then(|ledger| {
                let (low, high) = ledger.unaccounted.low.zip(ledger.unaccounted.high)?;
                Some(low > 0.0 || high < 0.0)
            }),
        }
    }
}

/// The result of one draw; a line of `scoreboard run --json`.
#[derive(Debug, Serialize)]
pub(crate) struct DrawResult {
    schema: &'static str,
    #[serde(flatten)]
    draw: Draw,
    passive: bool,
    proof: Proven,
    /// One for each fault, in their order.
    harms: Vec<Harm>,
    expected: Expected,
    #[serde(flatten)]
    answer: Answer,
    seconds: f64,
}

impl DrawResult {
    pub(crate) fn new(draw: &Draw, passive: bool, proof: Proven, expected: Expected, answer: Answer, took: Duration) -> Self {
        let harms = proof.harms();
        let draw = draw.clone();
        Self { schema: SCHEMA, draw, passive, proof, harms, expected, answer, seconds: took.as_secs_f64() }
    }

    pub(crate) fn line(&self, json: bool) -> Result<String> {
        if json {
            return Ok(format!("{}\n", serde_json::to_string(self)?));
        }
        let mut text = format!("{:>4}  {}\n      {}\n", self.draw.index, self.draw.words(), proof_in_words(&self.proof));
        let named = if self.answer.causes.is_empty() { "no cause".to_owned() } else { self.answer.causes.join(", ") };
        text.push_str(&format!("      {}: {}, {named}", if self.answer.right { "right" } else { "WRONG" }, word(&self.answer.verdict)));
        self.answer.why.iter().for_each(|why| text.push_str(&format!("; {why}")));
        text.push('\n');
        Ok(text)
    }
}

/// The figures of a proof on one line.
pub(crate) fn proof_in_words(proven: &Proven) -> String {
    let Some(together) = &proven.together else { return "no fault was drawn".to_owned() };
    let figures = |runs: &[Figures]| {
        let median_of = |value: fn(&Figures) -> f64| median(&runs.iter().map(value).collect::<Vec<_>>()).unwrap_or(0.0);
        format!(
            "{:.0} good/s, {:.1} % failed, p99 {:.0} ms",
            median_of(|run| run.goodput_rps),
            median_of(|run| run.failed_share) * 100.0,
            median_of(|run| run.latency_us_p99) / 1e3
        )
    };
    let unclear = if together.unclear { " (unclear)" } else { "" };
    let mut text =
        format!("harm {}{unclear}: without {}; with {}", word(&together.harm), figures(&together.without), figures(&together.with));
    let each = |proofs: &[Proof]| proofs.iter().map(|proof| word(&proof.harm)).collect::<Vec<_>>().join(", ");
    if !proven.alone.is_empty() {
        text.push_str(&format!("; each alone {}; each beside the other {}", each(&proven.alone), each(&proven.beside_other)));
    }
    if let (Some(suffered), Some(diagnosed)) = (proven.suffered, proven.diagnosed) {
        text.push_str(&format!("; diagnosed {}: {}", word(&diagnosed), figures(&[suffered])));
    }
    text
}

/// The score of all draws; the last line of `scoreboard run --json`.
#[derive(Debug, Serialize)]
pub(crate) struct Total {
    schema: &'static str,
    seed: u32,
    index: u32,
    /// Draws that were graded.
    draws: u64,
    /// Draws that could not be run.
    pub(crate) errors: u64,
    /// Draws whose faults did harm, little harm or none, and draws without a fault.
    hurt: u64,
    little: u64,
    harmless: u64,
    faultless: u64,
    /// Draws with the verdict "unknown".
    unknown: u64,
    /// Draws in which a harmful fault was not named first.
    missed: u64,
    /// Draws in which a harmless thing was named as a cause.
    false_alarms: u64,
    score: Share,
    /// Indices of the draws with a wrong verdict.
    wrong: Vec<u32>,
}

impl Total {
    pub(crate) fn new(seed: u32, index: u32) -> Self {
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

    pub(crate) fn count(&mut self, result: &DrawResult) {
        self.draws += 1;
        let counter = match (result.draw.faults.is_empty(), result.proof.together()) {
            (true, _) => &mut self.faultless,
            (false, Harm::Hurt) => &mut self.hurt,
            (false, Harm::Little) => &mut self.little,
            (false, Harm::None) => &mut self.harmless,
        };
        *counter += 1;
        let answer = &result.answer;
        self.unknown += u64::from(answer.verdict == Verdict::Unknown);
        self.missed += u64::from(answer.missed);
        self.false_alarms += u64::from(answer.false_alarm);
        if !answer.right {
            self.wrong.push(result.draw.index);
        }
        self.score = wilson(self.draws as usize - self.wrong.len(), self.draws as usize);
    }

    pub(crate) fn all_right(&self) -> bool {
        self.errors == 0 && self.wrong.is_empty()
    }

    pub(crate) fn line(&self, json: bool) -> Result<String> {
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
            text.push_str(&format!("again: scoreboard run --random 1 --seed {} --index {index}\n", self.seed));
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use chokepoint_model::catalogue::Catalogue;
    use chokepoint_model::diagnose::diagnose;
    use chokepoint_model::observation::Observation;
    use chokepoint_model::report::{At, Confidence};

    use crate::draw::draw;

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
    fn an_answer_is_right_where_it_names_harmful_faults_and_nothing_harmless() {
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
            let answer = Answer::new(&report(&findings), &expected());
            assert_eq!(answer.right, right, "{findings:?}: {:?}", answer.why);
            assert!(answer.why.join("; ").contains(why), "{findings:?}: {:?}", answer.why);
        }
        let none = Expected::default();
        assert!(Answer::new(&report(&[]), &none).right && Answer::new(&report(&[(OWN_LIMIT, cause)]), &none).right);
        assert!(!Answer::new(&report(&[("a", cause)]), &none).right);
    }

    #[test]
    fn the_total_counts_each_draw_once() {
        let mut total = Total::new(1, 0);
        for (index, findings) in [(0, vec![]), (1, vec![("accept-queue-full", Role::Cause)])] {
            let draw = draw(1, index);
            let proven = Proven::default();
            let answer = Answer::new(&report(&findings), &Expected::default());
            total.count(&DrawResult::new(&draw, false, proven, Expected::default(), answer, Duration::ZERO));
        }
        assert_eq!((total.draws, total.score.right, total.false_alarms, total.missed, total.wrong.clone()), (2, 1, 1, 0, vec![1]));
        assert!(total.line(false).unwrap().contains("--seed 1 --index 1") && !total.all_right());
        let json: serde_json::Value = serde_json::from_str(&total.line(true).unwrap()).unwrap();
        assert_eq!(json["score"]["of"], 2);
    }
}
