//! `chokepoint experiment`: changes one thing at a time, lets the variants take turns, and says what the difference is and how sure that is.

mod kept;
mod looks;
mod outputs;
mod presets;
mod running;
mod session;
mod subject;
mod verify;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use chokepoint_experiment::analysis::{Aside, experiment};
use chokepoint_experiment::plan::PRECISION;
use chokepoint_experiment::report::{Ended, Experiment as Report, Host};
use chokepoint_experiment::{Metric, Plan};
use chokepoint_model::catalogue::Catalogue;

use self::kept::Kept;
use self::session::Session;
use self::subject::Subject;
use crate::Usage;
use crate::args::Experiment;
use crate::report;
use crate::run::{keeping, plan, settings};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;

/// Runs the verb.
pub(crate) fn run(args: &Experiment, words: &Catalogue, interrupt: &Interrupt) -> Result<()> {
    let (plan, near) = read(args)?;
    if args.print_plan {
        return print_plan(&plan, near.as_deref());
    }
    let files = outputs::open(args)?;
    let mut subject = Subject::of(&plan, near.as_deref(), args.yes)?;
    let measured = measured(&plan, &mut subject, args, words, interrupt);
    let put_back = subject.end();
    let (report, profiles) = measured?;
    put_back?;
    if args.json {
        output::print_json(&(serde_json::to_string(&report)? + "\n"))?;
    } else {
        output::print_painted(&report::text::experiment(&report, &output::style(), words))?;
    }
    files.write(&report, &profiles, words)
}

/// The plan, and the folder of its file.
fn read(args: &Experiment) -> Result<(Plan, Option<PathBuf>)> {
    let usage = |error: String| Usage(error);
    let (text, origin, near) = match (&args.preset, &args.plan[..]) {
        (Some(preset), values) => (presets::plan(preset, values)?, format!("preset {preset}"), None),
        (None, [file]) => {
            let path = Path::new(file);
            let text = String::from_utf8(plan::read_file("plan", path)?).with_context(|| format!("the plan {file} is not UTF-8 text"))?;
            (text, file.clone(), path.parent().map(Path::to_owned))
        }
        (None, []) => bail!(usage("write a plan's file, or --preset NAME: --help lists the presets".to_owned())),
        (None, _) => bail!(usage("write one plan".to_owned())),
    };
    let mut plan = Plan::parse(&text, &origin)?;
    if let Some(budget) = &args.budget {
        plan.budget = settings::duration(budget).map_err(|error| usage(output::once(&error)))?;
    }
    if let Some(precision) = args.precision {
        if !PRECISION.contains(&precision) {
            let (least, most) = (PRECISION.start(), PRECISION.end());
            bail!(usage(format!("--precision {precision} is out of range: write a percentage from {least} to {most}")));
        }
        plan.precision = precision;
    }
    Ok((plan, near))
}

fn print_plan(plan: &Plan, near: Option<&Path>) -> Result<()> {
    let mut text = plan.text.clone();
    if let Some(name) = &plan.stack.scenario {
        // As comments, so that the output can be stored as a plan as it is.
        let comment = |line: &str| format!("{}\n", format!("# {line}").trim_end());
        let scenario = presets::scenario(name, near)?.0;
        text += &format!("\n# The scenario \"{name}\", a file of its own:\n#\n{}", scenario.lines().map(comment).collect::<String>());
    }
    output::print(&text)
}

/// Measures, and takes the looks that are not part of the trials.
fn measured(
    plan: &Plan,
    subject: &mut Subject,
    args: &Experiment,
    words: &Catalogue,
    interrupt: &Interrupt,
) -> Result<(Report, looks::Profiles)> {
    let mut host = Host {
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        cores: std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX)),
        began: keeping::rfc3339(std::time::SystemTime::now()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let (mut kept, mut earlier) = Kept::begin(plan, &subject.name(), &host, args, words)?;
    if let Some(began) = earlier.began.take() {
        host.began = began;
    }
    let busy_before_cores = session::busy_before(interrupt)?;
    let mut session = Session::new(plan, earlier, interrupt, words, &mut kept);
    let ended = session.run(subject)?;
    if session.trials.is_empty() {
        bail!("interrupted before the first trial ended: nothing was measured");
    }
    let used_s = session.used_s();
    let (trials, planned, verified) = session.over();
    let looked = if ended == Ended::Interrupted { looks::Looked::default() } else { looks::take(plan, subject, interrupt, words)? };
    let aside = Aside {
        host,
        stack: subject.name(),
        used_s,
        busy_before_cores,
        verified,
        calls: looked.calls,
        bounds: looked.bounds,
        warnings: looked.warnings,
    };
    let mut report = experiment(plan, &trials, planned.as_ref(), ended, aside, words);
    add_functions(&mut report, &looked.profiles);
    kept.end(&report, words);
    Ok((report, looked.profiles))
}

/// Adds to each comparison what the profiles of its variants say.
fn add_functions(report: &mut Report, profiles: &looks::Profiles) {
    let cpu_us = |number: usize| report.variants.get(number)?.figures.get(&Metric::CpuPerRequest).map(|estimate| estimate.median);
    let profile = |number: usize| profiles.get(number).and_then(Option::as_ref);
    let of = |(baseline, variant): (usize, usize)| {
        let (before, after) = profile(baseline).zip(profile(variant))?;
        Some(looks::functions(after, before, cpu_us(baseline).zip(cpu_us(variant))?))
    };
    let all: Vec<_> = report.comparisons.iter().map(|one| of((one.baseline, one.variant)).unwrap_or_default()).collect();
    for (comparison, functions) in report.comparisons.iter_mut().zip(all) {
        comparison.functions = functions;
    }
}
