//! `chokepoint lab`: scenarios with real servers. `run` builds one, diagnoses and fixes it, takes everything back, and checks what the scenario expects.

mod attack;
mod calls;
mod connections;
mod expectation;
pub(crate) mod outcome;
mod reference;
pub(crate) mod stack;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use chokepoint_lab::scenario::TimeSpan;
use chokepoint_lab::{DownOptions, Leftover, LeftoverKind, Scenario};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::report::Diagnosis;

use self::outcome::{Course, RunOutcome};
use crate::Usage;
use crate::args::{LabRun, LabVerb, RedactLevel};
use crate::run::changes::{Changes, UndoOutcome};
use crate::run::files::{self, Output};
use crate::run::recordings;
use crate::run::settings;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;
use crate::verbs::diagnose::{Live, drive};

/// The shortest load that shows a fault, and the longest.
const DURATION_MIN: Duration = Duration::from_secs(3);
const DURATION_MAX: Duration = Duration::from_secs(3600);
/// Changes beside those for the causes that a scenario names: other settings of the same cause, and improvements.
const CHANGES_BESIDE: u32 = 2;
/// What a measurement takes beside its load: until the host has settled, single requests, the diagnosis.
const MEASUREMENT_BESIDE: Duration = Duration::from_secs(3);

/// Runs a lab verb. True if it succeeded and, for `run`, every expectation held.
pub(crate) fn run(verb: &LabVerb, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    match verb {
        LabVerb::List { json } => list(*json).map(|()| true),
        LabVerb::Up { scenario } => up(scenario, interrupt).map(|()| true),
        LabVerb::Down { scenario } => down(scenario.as_deref()),
        LabVerb::Attack(args) => attack::run(args, interrupt),
        LabVerb::Run(args) => run_scenario(args, words, interrupt),
    }
}

fn run_scenario(args: &LabRun, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    let mut scenario = Scenario::find(&args.scenario)?;
    if args.https {
        scenario = scenario.over_https()?;
    }
    if let Some(text) = &args.duration {
        scenario.load.duration = TimeSpan(duration(text)?);
    }
    if let Some(directory) = &args.record {
        files::make_directory(directory)?;
    }
    let mut all_ok = true;
    for n in 1..=args.repeat {
        let outcome = run_once(&scenario, n, args, words, interrupt)?;
        // An interrupted run says nothing about the scenario.
        if interrupt.is_set() {
            bail!("interrupted; {}", if outcome.clean { "the lab was taken down" } else { "the lab could not be taken down" });
        }
        all_ok &= outcome.ok;
        outcome.print(args.json)?;
    }
    Ok(all_ok)
}

/// The time of each load.
fn duration(text: &str) -> Result<Duration> {
    let duration = settings::duration(text).map_err(|error| Usage(output::once(&error)))?;
    if !(DURATION_MIN..=DURATION_MAX).contains(&duration) {
        bail!(Usage(format!("--duration {text} is out of range: at least 3s and at most 1h")));
    }
    Ok(duration)
}

fn run_once(scenario: &Scenario, n: u32, args: &LabRun, words: &Catalogue, interrupt: &Interrupt) -> Result<RunOutcome> {
    let begin = Instant::now();
    let lab = stack::build(scenario, interrupt)?;
    let setup = stack::setup(&lab, args.passive)?;
    let owner = format!("lab:{}", scenario.name);
    let mut live = Live::new(&setup, interrupt, true, &owner, args.record.is_some());
    let fix = scenario.expect.asks_for_fix() && !args.passive && !args.no_fix;
    if fix {
        output::note(&estimate(scenario));
    }
    let diagnosed = connections::checked_during(&lab, || {
        stack::with_background(&lab, args.passive, || drive(&mut live, fix, words)).map(|(report, _)| report)
    });
    let wanted_reference = scenario.expect.reference.as_ref().filter(|_| fix && diagnosed.is_ok() && !interrupt.is_set());
    let compared = wanted_reference.map(|wanted| reference::compare(&lab, &setup, wanted, interrupt));
    let wanted_calls = scenario.expect.calls.as_ref().filter(|_| !args.passive && diagnosed.is_ok() && !interrupt.is_set());
    let calls = wanted_calls.map(|wanted| calls::count(&lab, setup.plan.as_ref(), wanted));
    let verdict_after_ms = live.verdict_after_ms;
    let recorded = args.record.as_deref().map_or(Ok(()), |directory| {
        let file = Output::open(&directory.join(format!("{}-{n}.rec", scenario.name)), "recording")?;
        recordings::save(file, &live.events, RedactLevel::Public)
    });
    drop(live);
    output::note("taking back the changes and the lab");
    // The changes and the lab are taken back before any error is returned.
    let undo = Changes::undo_all(Some(&owner));
    let down = lab.down();
    recorded?;
    let ((report, unlike), undo, down, compared, calls) = (diagnosed?, undo?, down?, compared.transpose()?, calls.transpose()?);
    if !args.json {
        output::print_painted(&crate::report::text::brief(&report, &output::style(), words))?;
    }
    let mut failures = expectation::check(&scenario.expect, &report, fix);
    failures.extend(unlike);
    if fix && !compared.as_ref().is_some_and(reference::Comparison::is_disturbed) {
        failures.extend(expectation::untried(&scenario.expect, &report));
    }
    failures.extend(not_undone(&report, &undo));
    failures.extend(compared.iter().flat_map(|compared| compared.failures(scenario.expect.reference.as_ref())));
    failures.extend(calls.iter().flat_map(|calls| calls.failures(scenario.expect.calls.as_ref())));
    if !down.is_clean() {
        failures.push(down.to_string());
    }
    let course = Course {
        n,
        passive: args.passive,
        fix,
        failures,
        reference: compared,
        calls,
        verdict_after_ms,
        undone: undo.problems.is_empty(),
        clean: down.is_clean(),
        seconds: begin.elapsed().as_secs_f64(),
    };
    Ok(RunOutcome::new(scenario, &report, course))
}

/// About how long a run with a fix takes: the first measurement, one with each change and one without it, a confirmation, and those of the reference.
fn estimate(scenario: &Scenario) -> String {
    let changes = scenario.expect.causes.len().max(1) as u32 + CHANGES_BESIDE;
    let pairs = scenario.expect.reference.as_ref().map_or(0, |reference| reference.pairs);
    let measurements = 2 + 2 * changes + 2 * pairs;
    let each = scenario.load.duration.0 + MEASUREMENT_BESIDE;
    let minutes = (each * measurements).as_secs().div_ceil(60);
    let load_s = scenario.load.duration.0.as_secs();
    format!("this takes about {minutes} min: some {measurements} measurements with a load of {load_s} s each")
}

/// What went wrong when the changes were undone.
fn not_undone(report: &Diagnosis, undo: &UndoOutcome) -> Option<String> {
    let stayed = expectation::kept(report).count();
    if !undo.problems.is_empty() {
        Some(format!("some changes were not undone: {}", undo.problems.join("; ")))
    } else if undo.restored.is_empty() && stayed > 0 {
        Some(format!("{stayed} changes were kept, but undo found none"))
    } else {
        None
    }
}

fn list(json: bool) -> Result<()> {
    let scenarios = Scenario::builtin()?;
    let up = chokepoint_lab::leftovers(&chokepoint_lab::run_root())?;
    if json {
        let scenarios: Vec<_> = scenarios
            .iter()
            .map(|one| serde_json::json!({ "name": one.name, "title": one.title, "fix": one.expect.asks_for_fix() }))
            .collect();
        let labs: Vec<_> = up.iter().map(|lab| serde_json::json!({ "name": lab.name, "state": lab.kind.to_string() })).collect();
        return output::print_json(&format!(
            "{:#}\n",
            serde_json::json!({ "schema": "chokepoint/lab/1", "scenarios": scenarios, "labs": labs })
        ));
    }
    let width = scenarios.iter().map(|scenario| scenario.name.len()).max().unwrap_or(0);
    let mut text: String = scenarios.iter().map(|scenario| format!("{:width$}  {}\n", scenario.name, scenario.title)).collect();
    for lab in up {
        text.push_str(&format!("\n{} is {}", lab.name, lab.kind));
    }
    output::print(&text)
}

fn up(name: &str, interrupt: &Interrupt) -> Result<()> {
    let scenario = Scenario::find(name)?;
    let lab = stack::build_with(&scenario, true, None, interrupt)?;
    let client = lab.netns_name(&scenario.client.host).unwrap_or_default();
    let text = format!(
        "{} is up. Try:\n\n    chokepoint diagnose --load --client-netns {client} {}\n\nTake it down with: chokepoint lab down {}\n",
        scenario.name,
        lab.url(),
        scenario.name
    );
    output::print(&text)
}

fn down(name: Option<&str>) -> Result<bool> {
    let root: PathBuf = chokepoint_lab::run_root();
    // A fix still applied in a lab is undone before the lab is taken down: each must restore its own value.
    let mut problems = Vec::new();
    let leftovers = chokepoint_lab::leftovers(&root)?;
    for lab in leftovers.iter().filter(|lab| name.is_none_or(|name| lab.name == name)) {
        problems.extend(Changes::undo_all(Some(&format!("lab:{}", lab.name)))?.problems);
    }
    let reports = match name {
        Some(name) => vec![chokepoint_lab::down(&root, name, DownOptions::default())?],
        None => chokepoint_lab::down_all(&root, DownOptions::default())?,
    };
    if reports.is_empty() {
        output::print("no lab is up\n")?;
    }
    for report in &reports {
        let text = if report.found { report.to_string() } else { no_such_lab(&report.name, &leftovers) };
        output::print(&format!("{text}\n"))?;
    }
    problems.iter().for_each(|problem| output::note(problem));
    Ok(problems.is_empty() && reports.iter().all(|report| report.is_clean() && report.found))
}

/// That a lab is not up, and which are.
fn no_such_lab(name: &str, up: &[Leftover]) -> String {
    let names: Vec<&str> = up.iter().map(|lab| lab.name.as_str()).collect();
    match names.is_empty() {
        true => format!("there is no lab \"{name}\": no lab is up"),
        false => format!("there is no lab \"{name}\"; up are {}", names.join(", ")),
    }
}

/// Labs whose builder died, one sentence each.
pub(crate) fn abandoned() -> Vec<String> {
    let leftovers = chokepoint_lab::leftovers(&chokepoint_lab::run_root()).unwrap_or_default();
    let abandoned = leftovers.into_iter().filter(|lab| lab.kind == LeftoverKind::Abandoned);
    abandoned.map(|lab| format!("lab \"{}\" was {}: chokepoint lab down {}", lab.name, lab.kind, lab.name)).collect()
}
