//! Looks at each variant after the trials: calls of functions, and a profile. They slow a server down, so they are no part of the trials.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result};
use chokepoint_experiment::Plan;
use chokepoint_experiment::report::{Bound, Calls, FunctionTime};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::diagnose::diagnose;
use chokepoint_model::message::Message;
use chokepoint_profile::analysis::difference;
use chokepoint_profile::{Counting, Options, Profile, Sampler, Scope, What};

use super::subject::{Ready, Subject};
use super::verify;
use crate::run::{calls, measure};
use crate::terminal::interrupt::Interrupt;

/// How long a profile is taken.
const PROFILE: Duration = Duration::from_secs(4);
/// How long calls are counted, and how often for each variant.
const COUNT: Duration = Duration::from_secs(2);
const COUNTS: usize = 2;
/// Functions that are named for each comparison.
const FUNCTIONS_MAX: usize = 8;
/// Samples a second on each core.
const FREQUENCY_HZ: u32 = 199;

/// The profile of each variant, if one was taken.
pub(super) type Profiles = Vec<Option<Profile>>;

/// What the looks showed of each variant.
#[derive(Default)]
pub(super) struct Looked {
    pub(super) calls: Vec<Vec<Calls>>,
    pub(super) bounds: Vec<Vec<Bound>>,
    pub(super) profiles: Profiles,
    pub(super) warnings: Vec<String>,
}

/// Takes the looks that the plan asks for.
pub(super) fn take(plan: &Plan, subject: &mut Subject, interrupt: &Interrupt, words: &Catalogue) -> Result<Looked> {
    let mut looked = Looked::default();
    for (number, variant) in plan.variants.iter().enumerate() {
        let mut calls: Vec<Calls> = Vec::new();
        for what in &plan.calls {
            let counted = counted(plan, subject, number, what, interrupt)?;
            if let Some(why) = &counted.why_not {
                let message = Message::new("experiment-calls-failed").with("what", what.as_str()).with("why", why.as_str());
                let sentence = words.text(&message);
                if !looked.warnings.contains(&sentence) {
                    looked.warnings.push(sentence);
                }
            }
            calls.push(counted);
        }
        looked.calls.push(calls);
        let (mut bounds, mut profile) = (Vec::new(), None);
        if plan.profile
            && !interrupt.is_set()
            && let Some(ready) = subject.ready(plan, number, interrupt)?
        {
            let taken = profiled(&ready, &format!("profile, {}", variant.name), interrupt, words);
            ready.over()?;
            (bounds, profile) = taken?;
        }
        looked.bounds.push(bounds);
        looked.profiles.push(profile);
    }
    Ok(looked)
}

/// Counts calls a few times, each on a server of its own.
fn counted(plan: &Plan, subject: &mut Subject, number: usize, what: &str, interrupt: &Interrupt) -> Result<Calls> {
    let (mut counts, mut why_not) = (Vec::new(), None);
    for _ in 0..COUNTS {
        if interrupt.is_set() || why_not.is_some() {
            break;
        }
        let Some(ready) = subject.ready(plan, number, interrupt)? else { break };
        let counted = count(&ready, what);
        ready.over()?;
        match counted? {
            Ok(count) => counts.push(count),
            Err(why) => why_not = Some(why),
        }
    }
    let ends = counts.iter().fold((f64::MAX, f64::MIN), |(low, high), count| (low.min(*count), high.max(*count)));
    Ok(Calls {
        what: what.to_owned(),
        per_request: chokepoint_statistics::median(&counts),
        low: (!counts.is_empty()).then_some(ends.0),
        high: (!counts.is_empty()).then_some(ends.1),
        why_not,
    })
}

/// Calls for each good answer, or why they could not be counted.
fn count(ready: &Ready, what: &str) -> Result<std::result::Result<f64, String>> {
    let parsed: What = what.parse()?;
    let Some(pid) = ready.pid else { return Ok(Err("the plan names no server (stack.server)".to_owned())) };
    let mut load = ready.setup.plan.clone().context("nothing is loaded")?;
    (load.duration, load.options.warm_up) = (Some(COUNT), Duration::ZERO);
    let counting = match Counting::open(&Scope::Processes(vec![pid]), &[parsed]) {
        Ok(counting) => counting,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let (counts, good) = calls::counted(counting, &load)?;
    let not_counted = counts.not_counted.into_iter().next().map(|(_, why)| why);
    Ok(match counts.counts.first() {
        Some(count) => Ok(count.programs.iter().map(|program| program.count as f64).sum::<f64>() / good.max(1) as f64),
        None => not_counted.map_or(Ok(0.0), Err),
    })
}

/// A profile with stacks, and the bounds of a diagnosis, which takes a profile of its own.
fn profiled(ready: &Ready, label: &str, interrupt: &Interrupt, words: &Catalogue) -> Result<(Vec<Bound>, Option<Profile>)> {
    let mut setup = ready.setup.clone();
    setup.profile = true;
    setup.duration = PROFILE;
    if let Some(load) = &mut setup.plan {
        load.duration = Some(PROFILE);
    }
    let (entries, _) = measure::measure(&setup, label, interrupt)?;
    let diagnosis = diagnose(&measure::observation(&entries), words);
    let bounds = diagnosis.profile.map(|profile| profile.bounds).unwrap_or_default();
    let bounds = bounds.into_iter().map(|bound| {
        let gain_percent = (bound.factor - 1.0) * 100.0;
        Bound { tier: bound.tier, layer: bound.title, share: bound.share, gain_percent }
    });
    let load = setup.plan.clone().context("nothing is loaded")?;
    // The generator's cores would show the generator.
    let cores = ready.pid.and_then(|pid| verify::cores(pid).ok());
    let (profile, _) = calls::beside(&load, |_, over| {
        Sampler::open(Options { scope: Scope::System, cores, frequency_hz: FREQUENCY_HZ })
            .and_then(|sampler| sampler.run(|_| !over.load(Ordering::Relaxed) && !interrupt.is_set()))
    })?;
    // Without the right to sample there is no flame graph, which the diagnosis tells as well.
    Ok((bounds.collect(), profile.ok()))
}

/// The functions whose CPU time for each request differs most between two variants. `cpu_us`: CPU time of a request of the baseline and of the other.
pub(super) fn functions(after: &Profile, before: &Profile, cpu_us: (f64, f64)) -> Vec<FunctionTime> {
    let time = |change: difference::Change| FunctionTime {
        before_us: change.before * cpu_us.0,
        after_us: change.now * cpu_us.1,
        name: change.name,
    };
    let mut all: Vec<FunctionTime> = difference::functions(after, before).into_iter().map(time).collect();
    let size = |function: &FunctionTime| (function.after_us - function.before_us).abs();
    all.sort_by(|one, other| size(other).total_cmp(&size(one)));
    all.truncate(FUNCTIONS_MAX);
    all
}
