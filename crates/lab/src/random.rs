//! Stacks drawn at random: servers, page, network, load, limits that look small, and faults that may do harm or not.
//!
//! [`draw`] is a pure function of a seed and an index, in whole numbers alone: the same on every machine. Limits are drawn relative to what the
//! drawn load needs of them, from far too small to ample, so that no severity belongs to a scenario that somebody thought of. Whether a fault
//! does harm is not known here: it is measured, with the fault and without, and [`proof`] judges that.

mod decoy;
mod fault;
mod limits;
pub mod proof;
mod rng;
mod stack;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;

use crate::scenario::{Scenario, ScenarioError};
use decoy::DECOYS;
use fault::{About, FAULTS, FaultKind};
use limits::Limits;
use rng::Rng;

pub use decoy::Decoy;
pub use fault::Fault;
pub use stack::{AccessLog, DrawnPage, Edge, Network, Servers, Stack, Transport};

/// Stacks that are drawn for given faults before they are given up; one in three hundred fits the rarest pair.
const TRIES_MAX: u32 = 20_000;
/// Kinds of decoys that are tried for one place.
const DECOYS_TRIED: u32 = 2;

/// Everything that was drawn.
#[derive(Debug, Clone, Serialize)]
pub struct Draw {
    /// Seed and index, from which it follows.
    pub seed: u32,
    /// See `seed`.
    pub index: u32,
    /// Seconds of each load.
    pub load_s: u16,
    /// The stack and its load.
    pub stack: Stack,
    /// None, one or two.
    pub faults: Vec<Fault>,
    /// None, one or two.
    pub decoys: Vec<Decoy>,
}

/// What a diagnosis of a draw must and may say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Expected {
    /// One of these must be the first cause; none where this is empty.
    pub first: BTreeSet<&'static str>,
    /// These may be causes: what hurts but little is no false alarm and no miss.
    pub causes: BTreeSet<&'static str>,
    /// These may be symptoms.
    pub symptoms: BTreeSet<&'static str>,
    /// The only tier at which a finding may be a cause, by its id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub only_at: BTreeMap<&'static str, &'static str>,
}

impl Expected {
    /// True where a finding at this tier may be a cause.
    pub fn may_be_cause(&self, id: &str, tier: &str) -> bool {
        self.causes.contains(id) && self.only_at.get(id).is_none_or(|only| *only == tier)
    }

    /// True where a finding at this tier may be the first cause.
    pub fn may_be_first(&self, id: &str, tier: &str) -> bool {
        self.first.contains(id) && self.may_be_cause(id, tier)
    }
}

/// Draws one stack.
pub fn draw(seed: u32, index: u32) -> Draw {
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
    // A pair that fits no stack is no pair.
    let faults: Vec<Fault> = kinds.iter().filter(|kind| (kind.fits)(&stack)).map(|kind| (kind.draw)(&mut rng, &stack)).collect();
    let mut taken: Vec<About> = kinds.iter().map(|kind| kind.about).collect();
    let mut decoys = Vec::new();
    for _ in 0..DECOYS_TRIED {
        let Some(kind) = rng.one(DECOYS) else { continue };
        if rng.percent(60) && (kind.fits)(&stack) && !taken.contains(&kind.about) {
            taken.push(kind.about);
            decoys.push((kind.draw)(&mut rng, &stack));
        }
    }
    Draw { seed, index, load_s: stack::LOAD_S, stack, faults, decoys }
}

/// The kinds of faults: none in a quarter of the draws, one in a half, two of different stations in a quarter.
fn kinds(rng: &mut Rng) -> Vec<&'static FaultKind> {
    let wanted = match rng.below(4) {
        0 => 0,
        1 | 2 => 1,
        _ => 2,
    };
    let mut kinds: Vec<&FaultKind> = Vec::new();
    while kinds.len() < wanted {
        let Some(kind) = rng.one(FAULTS) else { break };
        if kinds.iter().all(|other| other.about != kind.about) {
            kinds.push(kind);
        }
    }
    kinds
}

/// Which of a draw's faults are in a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum With {
    /// All of them.
    All,
    /// None of them.
    None,
    /// That one alone, by its place in [`Draw::faults`].
    Alone(usize),
}

impl Draw {
    /// Its name, unique among the variants of all draws.
    pub fn name(&self, with: With) -> String {
        let variant = match with {
            With::All => String::new(),
            With::None => "-twin".to_owned(),
            With::Alone(at) => format!("-only-{at}"),
        };
        format!("random-{}-{}{variant}", self.seed, self.index)
    }

    /// How long a run waits, once the stack is up, for all of its faults to be there whole; the same for those without them.
    pub fn grows_for(&self) -> Duration {
        self.faults.iter().map(Fault::grows_for).max().unwrap_or_default()
    }

    /// The stack with some of its faults, as a scenario that expects nothing yet.
    ///
    /// # Errors
    /// Where the scenario that was written is not valid: a fault of the draw, and a test looks for it.
    pub fn scenario(&self, with: With) -> Result<Scenario, ScenarioError> {
        self.write(with, "A stack drawn at random; nothing is expected of it yet.", "")
    }

    /// The stack with all of its faults, as a scenario that expects what was proven. `proof` says in a few words what that was.
    ///
    /// # Errors
    /// As [`Draw::scenario`].
    pub fn kept(&self, expected: &Expected, proof: &str) -> Result<Scenario, ScenarioError> {
        let list = |ids: &mut dyn Iterator<Item = &'static str>| ids.map(|id| format!("\"{id}\"")).collect::<Vec<_>>().join(", ");
        let forbidden =
            ids().filter(|id| !expected.causes.contains(id) && !expected.symptoms.contains(id) && !fault::HARMLESS.contains(id));
        let mut text = format!("forbidden = [{}]\n", list(&mut { forbidden }));
        if !expected.first.is_empty() {
            text.push_str(&format!("finding = [{}]\n", list(&mut expected.first.iter().copied())));
        } else if expected.causes.is_empty() {
            text.push_str("finding = \"none\"\n");
        }
        self.write(With::All, proof, &text)
    }

    fn write(&self, with: With, description: &str, expect: &str) -> Result<Scenario, ScenarioError> {
        let mut limits = Limits::ample(&self.stack);
        self.decoys.iter().for_each(|decoy| decoy.place(&mut limits));
        self.faults.iter().for_each(|fault| fault.prepare(&mut limits, &self.stack));
        for (at, fault) in self.faults.iter().enumerate() {
            if with == With::All || with == With::Alone(at) {
                fault.inject(&mut limits);
            }
        }
        let name = self.name(with);
        let title = format!("Draw {} of seed {}: {}.", self.index, self.seed, self.words());
        let head = text::Head { name: &name, title: &title, description, load_s: self.load_s, expect };
        Scenario::parse(&text::scenario(&self.stack, &limits, &head), &name)
    }

    /// The draw on one line.
    pub fn words(&self) -> String {
        let word = |value: serde_json::Result<serde_json::Value>| match value {
            Ok(serde_json::Value::Object(fields)) => {
                let values = fields.iter().filter(|(key, _)| *key != "kind").map(|(key, value)| format!("{key} {value}"));
                let kind = fields.get("kind").and_then(|kind| kind.as_str()).unwrap_or_default();
                [kind.to_owned()].into_iter().chain(values).collect::<Vec<_>>().join(" ")
            }
            Ok(serde_json::Value::String(text)) => text,
            _ => String::new(),
        };
        let Stack { servers, transport, page, network, ip, connections, rate, keep_alive, .. } = self.stack;
        let load = rate.map_or(format!("{connections} clients"), |rate| format!("{rate} requests a second"));
        let kept = if keep_alive { "kept" } else { "not kept" };
        let mut text = format!(
            "{} over {}, page {}, {}, IPv{ip}, {load}, connections {kept}",
            word(serde_json::to_value(servers)),
            word(serde_json::to_value(transport)),
            word(serde_json::to_value(page)),
            word(serde_json::to_value(network)),
        );
        for (what, words) in [
            ("fault", self.faults.iter().map(|fault| word(serde_json::to_value(fault))).collect::<Vec<_>>()),
            ("decoy", self.decoys.iter().map(|decoy| word(serde_json::to_value(decoy))).collect()),
        ] {
            words.iter().for_each(|word| text.push_str(&format!("; {what} {word}")));
        }
        text
    }

    /// What is to be expected where each fault was judged: `harms` has one for each, in their order, and `together` is that of all of them.
    pub fn expected(&self, harms: &[proof::Harm], together: proof::Harm) -> Expected {
        use proof::Harm;
        let mut expected = Expected::default();
        // Faults that hurt only together are each a cause of it.
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
                // What holds requests back holds them inside a program.
                expected.symptoms.insert(fault::INSIDE);
                expected.only_at.extend(fault.tier());
            }
        }
        // Another fault may bring the same finding about elsewhere.
        let others = self.faults.iter().filter(|fault| fault.tier().is_none()).map(Fault::findings);
        let elsewhere: BTreeSet<&str> = others.flat_map(|(findings, symptoms)| findings.iter().chain(symptoms).copied()).collect();
        expected.only_at.retain(|id, _| !elsewhere.contains(id));
        // Drawn with the stack and no fault of the draw: where the cores are the limit it may be a cause.
        if self.stack.opens_each() {
            expected.causes.insert(fault::CHURN);
            expected.symptoms.insert(fault::CHURN);
        }
        // What hides another or makes up for it leaves nothing that must be named.
        if together != Harm::Hurt {
            expected.first.clear();
        }
        expected
    }
}

/// All ids of findings that the model knows, each once.
fn ids() -> impl Iterator<Item = &'static str> {
    let ids: BTreeSet<&str> = chokepoint_model::stations::STATIONS.iter().flat_map(|station| station.findings.iter().copied()).collect();
    ids.into_iter()
}

#[cfg(test)]
mod tests;
