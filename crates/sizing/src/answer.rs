//! The answers: capacity at the objective, a safe rate, the knee, what limits first, and the advice for each tier.

mod tier;

use std::collections::BTreeMap;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_model::report::Verdict;

use crate::interval::Interval;
use crate::knee::{Knee, knee, most};
use crate::law;
use crate::objective::{Bracket, Objective, random_arrivals_rps};
use crate::report::{Capacity, KneeReport, LimitReport, ObjectiveReport, Outcome, SCHEMA, Size, StepReport};
use crate::step::{Step, curve};
use crate::workers::WorkerMemory;

/// What the run was asked for, and what was read besides the steps.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The URL, without secrets.
    pub url: String,
    /// The objective.
    pub objective: Objective,
    /// Most connections that were to be tried.
    pub connections_max: u32,
    /// The rate that its workers have to carry, requests per second; nothing for all that the cores carry.
    pub rate_rps: Option<f64>,
    /// True if more steps were planned.
    pub is_cut: bool,
    /// Memory of the tiers' workers by the tier's name, or why it is unknown.
    pub memory: BTreeMap<String, Result<WorkerMemory, String>>,
    /// Further warnings.
    pub warnings: Vec<String>,
}

/// The time of a request while no other is under way, seconds: the shortest of the medians of single requests before each step, and of the step with one
/// connection. A program that is still warming up answers the first ones more slowly.
pub fn alone_s(steps: &[Step]) -> Option<f64> {
    let single = steps.iter().filter_map(|step| step.alone_us);
    let one = curve(steps).into_iter().filter(|step| step.connections() == Some(1)).map(|step| step.latency_us.p50 as f64);
    single.chain(one).filter(|us| *us > 0.0).reduce(f64::min).map(|us| us / 1e6)
}

/// The step that shows what limits: the first past the knee, else the one with the highest goodput. A step whose diagnosis could not tell gives way to the next one
/// that could: past the knee the same limit holds.
fn past_knee(steps: &[Step]) -> Option<&Step> {
    let curve = curve(steps);
    match knee(steps) {
        Knee::At(at, best) => {
            let after = |step: &&Step| step.connections() > at.connections().max(best.connections());
            let between = |step: &&Step| !after(step) && step.connections() > at.connections();
            // Those furthest past the knee show it most clearly.
            let past: Vec<&Step> =
                curve.iter().copied().filter(after).chain([best]).chain(curve.iter().rev().copied().filter(between)).collect();
            let could_tell = |step: &&&Step| step.verdict != Verdict::Unknown && (step.connections() > at.connections() || past.len() == 1);
            past.iter().find(could_tell).or(past.first()).copied()
        }
        Knee::Beyond(best) => Some(best),
        Knee::Unknown => None,
    }
}

/// The report.
pub fn report(asked: &Asked, steps: &[Step], words: &Catalogue) -> Size {
    let say = |message: Message| words.text(&message);
    let outcome = outcome(asked, steps);
    let has_answer = matches!(outcome, Outcome::Measured | Outcome::Partial);
    let capacity = if has_answer { capacity(asked, steps, words) } else { Capacity::none(say(without(outcome, steps))) };
    let limit = past_knee(steps).filter(|_| has_answer);
    let (law, refused) = match law::fit(steps) {
        Ok(law) if has_answer => (Some(law), None),
        Ok(_) => (None, None),
        Err(why) => (None, Some(say(why))),
    };
    let (knee, knee_text) = if has_answer { knee_report(asked, steps) } else { (None, without(outcome, steps)) };
    let mut warnings = asked.warnings.clone();
    if outcome == Outcome::Partial {
        warnings.push(say(Message::new("size-partial").with("steps", steps.len() as f64)));
    }
    warnings.extend(limit.iter().flat_map(|step| &step.warnings).cloned());
    Size {
        schema: SCHEMA.to_owned(),
        url: asked.url.clone(),
        outcome,
        summary: capacity.text.clone(),
        objective: ObjectiveReport { latency_us_p99: asked.objective.p99_us, given: asked.objective.given },
        knee,
        knee_text: say(knee_text),
        scaling: law,
        scaling_refused: refused,
        limits_first: limit.map(|step| LimitReport {
            finding: step.limit.finding.clone(),
            station: step.limit.station.clone(),
            tier: step.limit.tier.clone(),
            limited_by: step.limit.limited_by,
            text: step.limit.text.clone(),
        }),
        tiers: if has_answer { tier::advice(asked, steps, limit, words) } else { Vec::new() },
        steps: steps.iter().map(|step| step_report(step, asked.objective)).collect(),
        warnings,
        capacity,
    }
}

fn outcome(asked: &Asked, steps: &[Step]) -> Outcome {
    // A generator at its limit of wrong answers says nothing of a server that gives no right one.
    if steps.iter().all(|step| step.goodput_rps.value == 0.0) {
        return Outcome::NothingAnswered;
    }
    match knee(steps) {
        Knee::Unknown if steps.iter().any(|step| step.verdict == Verdict::ClientLimited) => Outcome::ClientLimited,
        Knee::Unknown => Outcome::NothingAnswered,
        Knee::Beyond(_) if steps.iter().any(|step| step.verdict == Verdict::ClientLimited) => Outcome::ClientLimited,
        _ if asked.is_cut || steps.iter().any(|step| step.interrupted) => Outcome::Partial,
        _ => Outcome::Measured,
    }
}

/// Why there is no answer.
fn without(outcome: Outcome, steps: &[Step]) -> Message {
    let limited = steps.iter().find(|step| step.verdict == Verdict::ClientLimited);
    match (outcome, limited) {
        (Outcome::ClientLimited, Some(step)) => Message::new("size-client-limited").with("why", step.limit.text.as_str()),
        _ => {
            let why = steps.first().map(|step| step.limit.text.as_str()).unwrap_or_default();
            Message::new("size-nothing-answered").with("why", why)
        }
    }
}

impl Capacity {
    fn none(text: String) -> Self {
        Self { most_rps: None, at_objective_rps: None, safe_rps: None, text }
    }
}

fn capacity(asked: &Asked, steps: &[Step], words: &Catalogue) -> Capacity {
    let objective = asked.objective;
    let most_rps = most(steps);
    let bracket = Bracket::of(steps, objective);
    let at_objective_rps = bracket.capacity(steps);
    let alone = alone_s(steps);
    let first_p99_s = curve(steps).first().map(|step| step.latency_us.p99 as f64 / 1e6);
    let random = most_rps.zip(alone).and_then(|(most, alone)| {
        random_arrivals_rps(most.value, alone, first_p99_s.unwrap_or(alone).max(alone), objective.p99_us as f64 / 1e6)
    });
    let safe_rps = at_objective_rps.zip(random).map(|(held, random)| held.low.min(random));
    let kind = if objective.given { "given" } else { "default" };
    let args = |id: &'static str| Message::new(id).with("objective", objective.p99_us as f64 / 1e3).with("kind", kind);
    let text = match (at_objective_rps, safe_rps, most_rps) {
        (Some(held), Some(safe), _) => args("size-capacity").with("rate", held.value).with("safe", safe),
        (Some(held), None, _) => args("size-capacity-unsafe").with("rate", held.value),
        (None, _, Some(most)) if bracket.missed.is_none() && is_quick_alone(steps, objective) => {
            args("size-capacity-untried").with("rate", most.value)
        }
        (None, _, Some(most)) => match tried(steps) {
            Some((low, high)) => args("size-capacity-missed").with("rate", most.value).with("lowest", low).with("highest", high),
            None => args("size-capacity-hopeless").with("rate", most.value),
        },
        (None, _, None) => Message::new("size-nothing-answered").with("why", ""),
    };
    Capacity { most_rps, at_objective_rps, safe_rps, text: words.text(&text) }
}

/// The lowest and the highest rate that was tried and measured.
fn tried(steps: &[Step]) -> Option<(f64, f64)> {
    let rates = || steps.iter().filter(|step| step.is_usable()).filter_map(Step::rate_per_s);
    rates().reduce(f64::min).zip(rates().reduce(f64::max))
}

fn is_quick_alone(steps: &[Step], objective: Objective) -> bool {
    curve(steps).first().is_some_and(|step| objective.is_quick(step))
}

fn knee_report(asked: &Asked, steps: &[Step]) -> (Option<KneeReport>, Message) {
    let args = |id: &'static str, step: &Step| {
        let message = Message::new(id).with("connections", f64::from(step.connections().unwrap_or(0)));
        message.with("rate", step.goodput_rps.value).with("ms", step.latency_us.p99 as f64 / 1e3)
    };
    match knee(steps) {
        Knee::At(at, best) => {
            let last = curve(steps).last().copied().unwrap_or(best);
            let falls = best.goodput_rps.is_above(&last.goodput_rps);
            let id = if falls { "size-knee-falls" } else { "size-knee" };
            let text = args(id, at).with("last", f64::from(last.connections().unwrap_or(0))).with("last_rate", last.goodput_rps.value);
            let text = text.with("last_ms", last.latency_us.p99 as f64 / 1e3);
            let connections = at.connections().unwrap_or(0);
            (Some(KneeReport { connections, goodput_rps: at.goodput_rps, latency_us_p99: at.latency_us.p99 }), text)
        }
        Knee::Beyond(best) => {
            let is_bound = best.connections().is_some_and(|connections| connections >= asked.connections_max);
            (None, args(if is_bound { "size-knee-bound" } else { "size-knee-beyond" }, best))
        }
        Knee::Unknown => (None, Message::new("size-knee-unknown")),
    }
}

fn step_report(step: &Step, objective: Objective) -> StepReport {
    // A document has no infinite numbers: the interval of a step that was too short is not known beyond its value.
    let Interval { value, low, high } = step.goodput_rps;
    StepReport {
        connections: step.connections(),
        rate_per_s: step.rate_per_s(),
        duration_s: step.duration_s,
        goodput_rps: Interval { value, low, high: if high.is_finite() { high } else { value } },
        failed_share: step.failed_share,
        latency_us_p50: step.latency_us.p50,
        latency_us_p99: step.latency_us.p99,
        held: objective.is_held(step),
        verdict: step.verdict,
        finding: step.limit.finding.clone(),
        text: step.limit.text.clone(),
    }
}
