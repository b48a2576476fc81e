//! Stacks drawn at random: servers, page, network, load, faults, and decoys that only look like faults.
//!
//! [`draw`] is a pure function of a seed and an index and uses whole numbers alone, so that it gives the same on every machine. Limits are drawn
//! relative to what the drawn load needs, from far too small to ample. Module `proof` finds by measurement whether a fault does harm.

mod decoy;
mod fault;
mod limits;
mod rng;
mod scenario_text;
mod stack;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chokepoint_lab::{Scenario, ScenarioError};
use serde::Serialize;

use crate::proof::Harm;
use decoy::{DECOYS, Decoy};
use fault::{FAULTS, Fault, FaultKind, Subject};
use limits::Limits;
use rng::Rng;
use stack::Stack;

/// Stacks drawn for given faults before giving up; one in three hundred fits the rarest pair.
const TRIES_MAX: u32 = 20_000;
/// Decoys tried for each draw.
const DECOYS_TRIED: u32 = 2;

/// Everything that was drawn.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Draw {
    /// Seed and index determine everything else.
    pub(crate) seed: u32,
    pub(crate) index: u32,
    /// Seconds of each load.
    pub(crate) load_s: u16,
    /// The stack and its load.
    pub(crate) stack: Stack,
    /// None, one or two.
    pub(crate) faults: Vec<Fault>,
    /// None, one or two.
    pub(crate) decoys: Vec<Decoy>,
}

/// What a diagnosis of a draw must and may name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Expected {
    /// One of these must be the first cause, unless this is empty.
    pub(crate) first: BTreeSet<&'static str>,
    /// These may be causes. Little harm is neither a false alarm nor a miss.
    pub(crate) causes: BTreeSet<&'static str>,
    /// These may be symptoms.
    pub(crate) symptoms: BTreeSet<&'static str>,
    /// The only tier at which a finding may be a cause, by the finding's id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) only_at: BTreeMap<&'static str, &'static str>,
}

impl Expected {
    /// True where the finding may be a cause at this tier.
    pub(crate) fn may_be_cause(&self, id: &str, tier: &str) -> bool {
        self.causes.contains(id) && self.only_at.get(id).is_none_or(|only| *only == tier)
    }

    /// True where the finding may be the first cause at this tier.
    pub(crate) fn may_be_first(&self, id: &str, tier: &str) -> bool {
        self.first.contains(id) && self.may_be_cause(id, tier)
    }
}

/// Draws one stack.
pub(crate) fn draw(seed: u32, index: u32) -> Draw {
    let mut rng = Rng::new(seed, index);
    let kinds = kinds(&mut rng);
    let fits = |stack: &Stack| kinds.iter().all(|kind| (kind.fits)(stack));
    let mut stack = Stack::draw(&mut rng);
    for _ in 0..TRIES_MAX {
        if fits(&stack) {
            break;
        }
        stack = Stack::draw(&mut rng);
    }
    // A fault that fits no stack is left out.
    let faults: Vec<Fault> = kinds.iter().filter(|kind| (kind.fits)(&stack)).map(|kind| (kind.draw)(&mut rng, &stack)).collect();
    let mut taken: Vec<Subject> = kinds.iter().map(|kind| kind.subject).collect();
    let mut decoys = Vec::new();
    for _ in 0..DECOYS_TRIED {
        let Some(kind) = rng.one(DECOYS) else { continue };
        if rng.percent(60) && (kind.fits)(&stack) && !taken.contains(&kind.subject) {
            taken.push(kind.subject);
            decoys.push((kind.draw)(&mut rng, &stack));
        }
    }
    Draw { seed, index, load_s: stack::LOAD_S, stack, faults, decoys }
}

/// The kinds of faults: none in a quarter of the draws, one in a half, two of different subjects in a quarter.
fn kinds(rng: &mut Rng) -> Vec<&'static FaultKind> {
    let wanted = match rng.below(4) {
        0 => 0,
        1 | 2 => 1,
        _ => 2,
    };
    let mut kinds: Vec<&FaultKind> = Vec::new();
    while kinds.len() < wanted {
        let Some(kind) = rng.one(FAULTS) else { break };
        if kinds.iter().all(|other| other.subject != kind.subject) {
            kinds.push(kind);
        }
    }
    kinds
}

/// Which of a draw's faults are in a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum With {
    /// All of them.
    All,
    /// None of them.
    None,
    /// Only the one at this index of [`Draw::faults`].
    Alone(usize),
}

impl Draw {
    /// The scenario's name, unique among the variants of all draws.
    pub(crate) fn name(&self, with: With) -> String {
        let variant = match with {
            With::All => String::new(),
            With::None => "-twin".to_owned(),
            With::Alone(at) => format!("-only-{at}"),
        };
        format!("random-{}-{}{variant}", self.seed, self.index)
    }

    /// How long a run waits after the stack is up until all faults have built up. Runs without faults wait as long.
    pub(crate) fn grows_for(&self) -> Duration {
        self.faults.iter().map(Fault::grows_for).max().unwrap_or_default()
    }

    /// The stack with some of its faults, as a scenario without expectations.
    ///
    /// # Errors
    /// Where the scenario is not valid: a bug of the draw, which a test looks for.
    pub(crate) fn scenario(&self, with: With) -> Result<Scenario, ScenarioError> {
        self.write(with, "A stack drawn at random; nothing is expected of it yet.", "")
    }

    /// The stack with all of its faults, as a scenario that expects what was measured. `description` sums up the measurement.
    ///
    /// # Errors
    /// As [`Draw::scenario`].
    pub(crate) fn scenario_with_expectation(&self, expected: &Expected, description: &str) -> Result<Scenario, ScenarioError> {
        let list = |ids: &mut dyn Iterator<Item = &'static str>| ids.map(|id| format!("\"{id}\"")).collect::<Vec<_>>().join(", ");
        let forbidden =
            finding_ids().filter(|id| !expected.causes.contains(id) && !expected.symptoms.contains(id) && !fault::HARMLESS.contains(id));
        let mut text = format!("forbidden = [{}]\n", list(&mut { forbidden }));
        if !expected.first.is_empty() {
            text.push_str(&format!("finding = [{}]\n", list(&mut expected.first.iter().copied())));
        } else if expected.causes.is_empty() {
            text.push_str("finding = \"none\"\n");
        }
        self.write(With::All, description, &text)
    }

    fn write(&self, with: With, description: &str, expect: &str) -> Result<Scenario, ScenarioError> {
        let mut limits = Limits::ample(&self.stack);
        self.decoys.iter().for_each(|decoy| decoy.apply(&mut limits));
        self.faults.iter().for_each(|fault| fault.prepare(&mut limits, &self.stack));
        for (at, fault) in self.faults.iter().enumerate() {
            if with == With::All || with == With::Alone(at) {
                fault.inject(&mut limits);
            }
        }
        let name = self.name(with);
        let title = format!("Draw {} of seed {}: {}.", self.index, self.seed, self.words());
        let head = scenario_text::Head { name: &name, title: &title, description, load_s: self.load_s, expect };
        Scenario::parse(&scenario_text::scenario(&self.stack, &limits, &head), &name)
    }

    /// The draw on one line.
    pub(crate) fn words(&self) -> String {
        let Stack { servers, transport, page, network, ip, connections, rate, keep_alive, .. } = self.stack;
        let load = rate.map_or(format!("{connections} clients"), |rate| format!("{rate} requests a second"));
        let kept = if keep_alive { "kept" } else { "not kept" };
        let mut text = format!(
            "{} over {}, page {}, {}, IPv{ip}, {load}, connections {kept}",
            word(&servers),
            word(&transport),
            word(&page),
            word(&network),
        );
        self.faults.iter().for_each(|fault| text.push_str(&format!("; fault {}", word(fault))));
        self.decoys.iter().for_each(|decoy| text.push_str(&format!("; decoy {}", word(decoy))));
        text
    }

    /// What a diagnosis must and may name. `harms` has the harm of each fault in their order, `together` that of all faults.
    pub(crate) fn expected(&self, harms: &[Harm], together: Harm) -> Expected {
        let mut expected = Expected::default();
        // Where only both faults together do harm, each is a cause.
        let none_alone = !harms.contains(&Harm::Hurt);
        for (at, fault) in self.faults.iter().enumerate() {
            let alone = harms.get(at).copied().unwrap_or(together);
            let harm = if none_alone { alone.max(together) } else { alone };
            let (findings, symptoms) = fault.findings();
            if harm == Harm::Hurt {
                expected.first.extend(findings);
            }
            if harm != Harm::None {
                expected.causes.extend(findings);
                expected.symptoms.extend(findings);
                expected.symptoms.extend(symptoms);
                // Every fault keeps requests waiting inside some program.
                expected.symptoms.insert(fault::INSIDE);
                expected.only_at.extend(fault.tier());
            }
        }
        // Another fault may cause the same finding at another tier.
        let others = self.faults.iter().filter(|fault| fault.tier().is_none()).map(Fault::findings);
        let elsewhere: BTreeSet<&str> = others.flat_map(|(findings, symptoms)| findings.iter().chain(symptoms).copied()).collect();
        expected.only_at.retain(|id, _| !elsewhere.contains(id));
        // Upstream churn belongs to the stack, not to a fault. It may be a cause where the cores are the limit.
        if self.stack.opens_each() {
            expected.causes.insert(fault::CHURN);
            expected.symptoms.insert(fault::CHURN);
        }
        // Where one fault hides or offsets the other, none must be named.
        if together != Harm::Hurt {
            expected.first.clear();
        }
        expected
    }
}

/// The ids of all findings of the model.
fn finding_ids() -> impl Iterator<Item = &'static str> {
    let findings = chokepoint_model::stations::STATIONS.iter().flat_map(|station| station.findings);
    let ids: BTreeSet<&str> = findings.map(|finding| finding.0).collect();
    ids.into_iter()
}

/// A value on one line: a unit variant's name, or the kind and the fields of another variant.
pub(crate) fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::Object(fields)) => {
            let values = fields.iter().filter(|(key, _)| *key != "kind").map(|(key, value)| format!("{key} {value}"));
            let kind = fields.get("kind").and_then(|kind| kind.as_str()).unwrap_or_default();
            [kind.to_owned()].into_iter().chain(values).collect::<Vec<_>>().join(" ")
        }
        Ok(serde_json::Value::String(text)) => text,
        _ => String::new(),
    }
}

#[cfg(test)]
mod live;
#[cfg(test)]
mod tests;
