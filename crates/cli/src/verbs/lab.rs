//! `chokepoint lab`: scenarios with real servers; `run` is the whole proof: break, diagnose, fix, undo, take away, and check what was expected.

mod board;
mod calls;
mod expectation;
mod outcome;
mod random;
mod reference;
mod wire;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use chokepoint_lab::scenario::TimeSpan;
use chokepoint_lab::{DownOptions, Lab, LeftoverKind, Options, Scenario};
use chokepoint_load::{Control, Plan, Tls, Trust};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::load::{LoadResult, Loop};
use chokepoint_model::observation::Request;
use chokepoint_model::report::Diagnosis;
use chokepoint_sources::{Root, netns};

use self::outcome::{Course, RunOutcome};
use crate::Usage;
use crate::args::{LabRun, LabVerb, RedactLevel};
use crate::run::changes::{Changes, UndoOutcome};
use crate::run::files::{self, Output};
use crate::run::interrupt::Interrupt;
use crate::run::measure::Setup;
use crate::run::recordings;
use crate::run::settings::Target;
use crate::terminal::output;
use crate::verbs::diagnose::{Live, drive};

/// Connections where a scenario names none.
const CONNECTIONS_DEFAULT: u32 = 100;
/// How long the background load of a passive run is under way before it is watched.
const PASSIVE_LEAD: Duration = Duration::from_secs(1);

/// Runs a lab verb; true where it did what was asked and, for `run`, every expectation held.
pub(crate) fn run(verb: &LabVerb, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    match verb {
        LabVerb::List { json } => list(*json).map(|()| true),
        LabVerb::Up { scenario } => up(scenario, interrupt).map(|()| true),
        LabVerb::Down { scenario } => down(scenario.as_deref()),
        LabVerb::Score { runs, json } => board::run(runs, *json).map(|()| true),
        LabVerb::Run(args) => match (&args.scenario, args.random) {
            (_, Some(draws)) => random::run(args, draws, words, interrupt),
            (Some(scenario), None) => run_scenario(scenario, args, words, interrupt),
            (None, None) => bail!(Usage("a scenario or --random is wanted".to_owned())),
        },
    }
}

fn run_scenario(name: &str, args: &LabRun, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    let mut scenario = Scenario::find(name)?;
    if let Some(seconds) = args.duration {
        scenario.load.duration = TimeSpan(Duration::from_secs(u64::from(seconds)));
    }
    let wanted = Wanted { passive: args.passive, fix: !args.passive && !args.no_fix, record: args.record.as_deref(), json: args.json };
    if let Some(directory) = &args.record {
        files::make_directory(directory)?;
    }
    let mut held = true;
    for n in 1..=args.repeat {
        let outcome = run_once(&scenario, n, &wanted, words, interrupt)?;
        // What an interrupted run gave is no judgement on the scenario.
        if interrupt.is_set() {
            bail!("interrupted; {}", if outcome.is_clean() { "the lab was taken down" } else { "the lab could not be taken down" });
        }
        held &= outcome.is_ok();
        outcome.tell(args.json)?;
    }
    Ok(held)
}

/// How a scenario is to be run.
struct Wanted<'a> {
    passive: bool,
    fix: bool,
    record: Option<&'a Path>,
    json: bool,
}

fn run_once(scenario: &Scenario, n: u32, wanted: &Wanted<'_>, words: &Catalogue, interrupt: &Interrupt) -> Result<RunOutcome> {
    let begin = Instant::now();
    let lab = build(scenario, false, None, interrupt)?;
    let setup = setup(&lab, wanted.passive)?;
    let owner = format!("lab:{}", scenario.name);
    let mut live = Live::new(&setup, interrupt, true, &owner, wanted.record.is_some());
    let fix = scenario.expect.asks_for_fix() && wanted.fix;
    let report = wire::watched(&lab, || with_background(&lab, wanted.passive, || drive(&mut live, fix, words)).map(|(report, _)| report));
    let wanted_reference = scenario.expect.reference.as_ref().filter(|_| fix && report.is_ok() && !interrupt.is_set());
    let compared = wanted_reference.map(|wanted| reference::compare(&lab, &setup, wanted, interrupt));
    let wanted_calls = scenario.expect.calls.as_ref().filter(|_| !wanted.passive && report.is_ok() && !interrupt.is_set());
    let calls = wanted_calls.map(|wanted| calls::count(&lab, setup.plan.as_ref(), wanted));
    let verdict_after_ms = live.verdict_after_ms;
    let recorded = wanted.record.map_or(Ok(()), |directory| {
        let file = Output::open(&directory.join(format!("{}-{n}.rec", scenario.name)), "recording")?;
        recordings::save(file, &live.events, RedactLevel::Public)
    });
    drop(live);
    // Whatever came of the diagnosis, its changes and the lab are taken back first.
    let undo = Changes::undo_all(Some(&owner));
    let down = lab.down();
    recorded?;
    let ((report, unlike), undo, down, compared, calls) = (report?, undo?, down?, compared.transpose()?, calls.transpose()?);
    if !wanted.json {
        output::print_painted(&crate::report::text::render(&report, &output::style(), words))?;
    }
    let mut failures = expectation::check(&scenario.expect, &report, fix);
    failures.extend(unlike);
    failures.extend(not_undone(&report, &undo));
    failures.extend(compared.iter().flat_map(|compared| compared.failures(scenario.expect.reference.as_ref())));
    failures.extend(calls.iter().flat_map(|calls| calls.failures(scenario.expect.calls.as_ref())));
    if !down.is_clean() {
        failures.push(down.to_string());
    }
    let course = Course {
        n,
        passive: wanted.passive,
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

/// What is wrong with how the changes were taken back.
fn not_undone(report: &Diagnosis, undo: &UndoOutcome) -> Option<String> {
    let stayed = expectation::kept(report).count();
    if !undo.problems.is_empty() {
        Some(format!("not everything was undone: {}", undo.problems.join("; ")))
    } else if undo.restored.is_empty() && stayed > 0 {
        Some(format!("{stayed} changes were kept and none was found to undo"))
    } else {
        None
    }
}

fn build(scenario: &Scenario, outlive: bool, within: Option<&str>, interrupt: &Interrupt) -> Result<Lab> {
    output::note(&format!("building {}: {}", scenario.name, scenario.title));
    let mut quiet = |_: &str| {};
    let options = Options { run_root: chokepoint_lab::run_root(), outlive, within, cancelled: Some(interrupt.flag()), on_step: &mut quiet };
    let lab = Lab::up(scenario, options)?;
    for (key, found, set) in lab.host_sysctls() {
        output::note(&format!("{key} of this machine is {set} until the lab is taken down (it was {found})"));
    }
    for note in lab.notes() {
        output::note(note);
    }
    Ok(lab)
}

/// What is to be measured in a lab.
fn setup(lab: &Lab, passive: bool) -> Result<Setup> {
    let load = &lab.scenario().load;
    let target = Target::parse(lab.url())?;
    let client = netns::resolve(&Root::default(), &lab.client_netns_path().to_string_lossy())?;
    let request = Request {
        client_netns: client.id,
        expect: load.expect.0.clone(),
        slo_p99_us: load.slo_p99.map(|span| u64::try_from(span.0.as_micros()).unwrap_or(u64::MAX)),
        loaded: !passive,
        ..target.request()
    };
    let plan = if passive { None } else { Some(plan(lab, &target)?) };
    Ok(Setup { request, plan, duration: load.duration.0, foreign: true, profile: true, capture: None })
}

fn plan(lab: &Lab, target: &Target) -> Result<Plan> {
    let load = &lab.scenario().load;
    let connections = load.connections.unwrap_or(CONNECTIONS_DEFAULT);
    let plan = Plan {
        address: target.address()?,
        protocol: target.protocol(Vec::new())?,
        host_header: target.request().host_header(),
        path_and_query: target.path_and_query.clone(),
        method: load.method.clone(),
        headers: load.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        body: load.body.clone().unwrap_or_default().into_bytes(),
        shape: match load.rate {
            Some(rate_per_s) => Loop::Open { rate_per_s, connections },
            None => Loop::Closed { connections },
        },
        duration: Some(load.duration.0),
        requests: None,
        timeout: load.timeout.0,
        keep_alive: load.keep_alive,
        expect: load.expect.0.clone(),
        netns: Some(lab.client_netns_path()),
        cpus: lab.client_cpus().map(<[u32]>::to_vec),
        threads: load.threads.unwrap_or(1),
        guards: Vec::new(),
        options: chokepoint_load::Options {
            tls: tls(lab, target),
            objective: load.slo_p99.map(|span| span.0),
            ..chokepoint_load::Options::default()
        },
    };
    plan.check()?;
    Ok(plan)
}

/// TLS where the URL asks for it; the certificates are the lab's own, which nobody signed.
fn tls(lab: &Lab, target: &Target) -> Option<Tls> {
    let resume = lab.scenario().load.tls.is_none_or(|tls| tls.resume);
    (target.scheme == "https").then(|| Tls { server_name: target.host.clone(), trust: Trust::Anybody, resume })
}

/// Runs `work`; in a passive run while another load, which the diagnosis knows nothing of, is under way. What became of that load comes with it, without
/// its lead, but with the moments in which the verdict was worked out.
fn with_background<T>(lab: &Lab, passive: bool, work: impl FnOnce() -> Result<T>) -> Result<(T, Option<LoadResult>)> {
    if !passive {
        return Ok((work()?, None));
    }
    let mut plan = plan(lab, &Target::parse(lab.url())?)?;
    plan.duration = Some(plan.duration.unwrap_or_default() + Duration::from_secs(60));
    plan.options.warm_up = PASSIVE_LEAD;
    let control = Control::new();
    std::thread::scope(|scope| {
        let background = scope.spawn(|| chokepoint_load::run(&plan, &control));
        std::thread::sleep(PASSIVE_LEAD);
        let result = work();
        control.stop();
        match background.join() {
            Ok(load) => Ok((result?, Some(load?))),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
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
    let lab = build(&scenario, true, None, interrupt)?;
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
    // A fix that is still applied in a lab is taken back before the lab, so that neither finds the other's value.
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
        let text = if report.found { report.to_string() } else { format!("there is no lab \"{}\"", report.name) };
        output::print(&format!("{text}\n"))?;
    }
    problems.iter().for_each(|problem| output::note(problem));
    Ok(problems.is_empty() && reports.iter().all(|report| report.is_clean() && report.found))
}

/// Labs that a process that died left behind, one sentence each.
pub(crate) fn abandoned() -> Vec<String> {
    let leftovers = chokepoint_lab::leftovers(&chokepoint_lab::run_root()).unwrap_or_default();
    let abandoned = leftovers.into_iter().filter(|lab| lab.kind == LeftoverKind::Abandoned);
    abandoned.map(|lab| format!("lab \"{}\" was {}: chokepoint lab down {}", lab.name, lab.kind, lab.name)).collect()
}
