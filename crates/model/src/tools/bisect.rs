//! Loads each tier by itself, to measure what it can pass alone and to explain the whole by its parts. nginx serves content of its own; the servers behind it
//! get the requests that nginx would send them. A pure state machine like [`crate::fix`]: it says which part to load next and takes the result, live or in a
//! replay.

mod explain;
mod part;
mod plan;

use std::collections::VecDeque;

use crate::facts::Context;
use crate::facts::cores::{CoreGroup, SATURATED_UTILIZATION, busy};
use crate::facts::path::{self, Path, Tier};
use crate::judge::id::StationId;
use crate::observation::Observation;
use crate::observation::load::Loop;
use crate::output::catalogue::Catalogue;
use crate::output::diagnose::diagnose;
use crate::output::message::Message;
use crate::output::report::{Diagnosis, PartKind, PartReport, StationState};
use explain::Whole;
pub use part::Part;
use plan::Step;

/// Most parts that are loaded.
const PARTS_MAX: usize = 8;

/// One bisection under way.
pub struct Session<'w> {
    words: &'w Catalogue,
    whole: Diagnosis,
    cost_us: Option<f64>,
    /// True if requests were sent at a rate.
    at_rate: bool,
    /// The tiers of each full group of cores.
    full_cores: Vec<Vec<String>>,
    path: Path,
    pending: VecDeque<Step>,
    taken: usize,
    /// The result of each part, and whether it is a part of a part.
    parts: Vec<(bool, PartReport)>,
}

impl<'w> Session<'w> {
    /// For a whole that was measured under load.
    pub fn new(whole: &Observation, words: &'w Catalogue) -> Self {
        let path = path::discover(whole);
        let ctx = Context::new(whole, &path, words);
        let pending = plan::steps(&ctx).into();
        let cost_us = cost_us(&ctx);
        let at_rate = whole.load.as_ref().is_some_and(|load| matches!(load.shape, Loop::Open { .. }));
        let diagnosis = diagnose(whole, words);
        let full_cores = full_cores(&ctx, &diagnosis);
        Self { words, whole: diagnosis, cost_us, at_rate, full_cores, pending, taken: 0, parts: Vec::new(), path }
    }

    /// The next part to load. `None` once all are done.
    pub fn next_part(&mut self) -> Option<Part> {
        loop {
            match self.pending.pop_front()? {
                Step::Load(part) if self.is_known(&part.tier, part.kind) || self.taken >= PARTS_MAX => {}
                Step::Load(part) => return Some(part),
                Step::Leave { tier, kind, why } if !self.is_known(&tier, kind) => self.leave(tier, kind, &why),
                Step::Leave { .. } => {}
            }
        }
    }

    fn is_known(&self, tier: &str, kind: PartKind) -> bool {
        self.parts.iter().any(|(_, part)| part.tier == tier && part.kind == kind && part.load.is_some())
    }

    /// Takes the observation of a loaded part.
    pub fn measured(&mut self, part: &Part, obs: &Observation) {
        let path = path::discover(obs);
        let ctx = Context::new(obs, &path, self.words);
        if let Some(why) = self.spoiled(part, &ctx) {
            return self.leave(part.tier.clone(), part.kind, &why);
        }
        self.taken += 1;
        if part.kind == PartKind::Direct {
            // A part may have parts of its own. The report of the whole has other names for them.
            let inner = plan::steps(&ctx).into_iter().filter_map(|step| step.within(&|name| self.known_as(&path, name)));
            let inner: Vec<Step> = inner.filter(|step| !matches!(step, Step::Leave { kind: PartKind::Own, .. })).collect();
            self.pending.extend(inner);
        }
        let diagnosis = diagnose(obs, self.words);
        let report = PartReport {
            url: Some(obs.request.shown(&obs.request.url)),
            load: diagnosis.load,
            cpu_us_per_good: cost_us(&ctx),
            verdict: Some(diagnosis.verdict),
            limited_by: diagnosis.limited_by,
            ..unloaded(part.tier.clone(), part.kind, diagnosis.summary)
        };
        self.put(part.is_inner, report);
    }

    /// The reason why a measurement says nothing about the part, if there is one.
    fn spoiled(&self, part: &Part, ctx: &Context<'_>) -> Option<Message> {
        let load = ctx.obs.load.as_ref();
        if load.is_some_and(|load| load.interrupted) {
            return Some(Message::new("bisect-interrupted"));
        }
        if let Some(guard) = load.and_then(|load| load.stopped_by.as_ref()) {
            return Some(Message::new("bisect-guard").with("guard", guard.as_str()));
        }
        // Seen from here, a socket's path may lead to another server than in the intended container.
        let is_here = self.path.tiers.iter().any(|tier| tier.name == part.tier);
        let found = ctx.path.tiers.first().map(|first| self.known_as(ctx.path, &first.name));
        let is_another = is_here && found.is_some_and(|found| found.as_ref() != Some(&part.tier));
        is_another.then(|| Message::new("bisect-another").with("tier", part.tier.as_str()))
    }

    /// Records that a part could not be loaded. Another way to load the same may follow.
    pub fn failed(&mut self, part: &Part, why: &str) {
        let why = Message::new("bisect-failed").with("why", why);
        self.leave(part.tier.clone(), part.kind, &why);
    }

    fn leave(&mut self, tier: String, kind: PartKind, why: &Message) {
        let report = unloaded(tier, kind, self.words.text(why));
        self.put(false, report);
    }

    /// The last result of a part replaces an earlier one.
    fn put(&mut self, is_inner: bool, part: PartReport) {
        self.parts.retain(|(_, known)| known.tier != part.tier || known.kind != part.kind);
        self.parts.push((is_inner, part));
    }

    /// The name of a tier of a part's path in the report of the whole: the tier with the same listener.
    fn known_as(&self, path: &Path, name: &str) -> Option<String> {
        let tier = path.tiers.iter().find(|tier| tier.name == name)?;
        let same = |other: &&Tier| {
            other.listeners.iter().any(|ours| {
                tier.listeners.iter().any(|theirs| ours.netns == theirs.netns && ours.listener.address == theirs.listener.address)
            })
        };
        self.path.tiers.iter().find(same).map(|tier| tier.name.clone())
    }

    /// The report of the whole, with its parts and what they explain.
    pub fn report(mut self) -> Diagnosis {
        let order = |tier: &str| self.path.tiers.iter().position(|other| other.name == tier);
        self.parts.sort_by_key(|(_, part)| (order(&part.tier).unwrap_or(usize::MAX), part.kind));
        let whole = Whole { report: &self.whole, cost_us: self.cost_us, at_rate: self.at_rate, full_cores: &self.full_cores };
        let bisect = explain::explain(&whole, self.parts, self.words);
        Diagnosis { bisect: Some(bisect), ..self.whole }
    }
}

/// A part that was not loaded, and the reason.
fn unloaded(tier: String, kind: PartKind, summary: String) -> PartReport {
    PartReport { tier, kind, url: None, load: None, cpu_us_per_good: None, verdict: None, explains: false, limited_by: None, summary }
}

/// The tiers of each full group of cores, by name.
fn full_cores(ctx: &Context<'_>, whole: &Diagnosis) -> Vec<Vec<String>> {
    let are_busy = |group: &CoreGroup<'_>| busy(ctx, &group.cores).is_some_and(|busy| busy >= SATURATED_UTILIZATION * group.count());
    // Station `cpu` reads the groups of cores in their order.
    let readings = whole.path.iter().filter(|station| station.station == StationId::CPU.0);
    let full = ctx.core_groups().iter().zip(readings).filter(|(group, cores)| cores.state == StationState::Saturated && are_busy(group));
    full.map(|(group, _)| group.tiers.iter().map(|tier| tier.name.clone()).collect()).collect()
}

/// CPU time of the path's processes per good answer, microseconds. `None` if it could not be read, or with too few good answers.
fn cost_us(ctx: &Context<'_>) -> Option<f64> {
    let load = ctx.obs.load.as_ref().filter(|_| ctx.can_divide_by_good())?;
    let cores = crate::facts::cores::own_cores(ctx, ctx.path.tiers.iter().flat_map(|tier| &tier.pids))?;
    Some(cores * 1e6 / load.goodput_rps())
}
