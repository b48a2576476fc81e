//! Flags, wiring and reports of `chokepoint`; the only crate that knows all others. [`lab`] is public for the developers' score-board.

mod args;
mod report;
mod run;
mod terminal;
mod verbs;

use std::process::ExitCode;

use anyhow::Result;
use chokepoint_model::catalogue::Catalogue;
use clap::FromArgMatches;

/// Builds, loads and diagnoses labs one step at a time; and the line that `lab run --json` prints.
pub mod lab {
    pub use crate::run::measure::{load, watch};
    pub use crate::terminal::interrupt::Interrupt;
    pub use crate::verbs::lab::outcome::{RoundOutcome, RunOutcome, SCHEMA};
    pub use crate::verbs::lab::stack::{Diagnosed, PASSIVE_LEAD, build, diagnose, plan};
}

use crate::args::{Cli, IncidentsVerb, LabVerb, Look, RunsVerb, Verb};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;
use crate::verbs::{
    bench, capacity, diagnose, experiment, explain, incidents, profile, runs, size, streams, tcp, undo, watch, whereabouts,
};

/// Exit status: the verb failed.
const EXIT_FAILED: u8 = 1;
/// Exit status: the command line is invalid.
const EXIT_USAGE: u8 = 2;
/// Exit status: a condition of `--fail-if` held.
const EXIT_THRESHOLD: u8 = 99;

/// An invalid command line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// The command line with the flags of all verbs, from which man pages and completions are made.
pub fn command() -> clap::Command {
    let mut command = args::program();
    command.build();
    command
}

/// Runs the command line of this process, or reads files for another one.
pub fn main() -> ExitCode {
    if let Some(status) = chokepoint_confined::begin(run::readers::READERS) {
        return status;
    }
    let parsed = args::program().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) if error.kind() == clap::error::ErrorKind::DisplayVersion => return version(&error),
        Err(error) => return refuse(&error),
    };
    if let Some(look) = look(&cli.verb) {
        output::set_look(look);
    }
    let words = Catalogue::english();
    let interrupt = match Interrupt::install() {
        Ok(interrupt) => interrupt,
        Err(error) => return fail(&error),
    };
    let status = match run(&cli, &words, &interrupt) {
        Ok(status) => ExitCode::from(status),
        Err(error) => fail(&error),
    };
    interrupt.status().map_or(status, ExitCode::from)
}

/// Prints what clap says of the command line: help, or why it is invalid and how the flag is spelled here.
fn refuse(error: &clap::Error) -> ExitCode {
    match (args::hint(error), args::in_words(error)) {
        (Some((flag, hint)), _) => output::note(&format!("chokepoint: there is no flag {flag}: {hint}; --help lists the flags")),
        (None, Some(sentence)) => output::note(&format!("chokepoint: {sentence}")),
        // A closed terminal takes nothing.
        (None, None) => drop(error.print()),
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(EXIT_USAGE))
}

/// How the verb's report is to look; nothing for verbs that print plain lines.
fn look(verb: &Verb) -> Option<Look> {
    match verb {
        Verb::Bench(args) => Some(args.look),
        Verb::Size(args) => Some(args.look),
        Verb::Capacity(args) => Some(args.look),
        Verb::Diagnose(args) => Some(args.look),
        Verb::Experiment(args) => Some(args.look),
        Verb::Explain(args) => Some(args.look),
        Verb::Profile(args) => Some(args.look),
        Verb::Streams(args) => Some(args.look),
        Verb::Tcp(args) => Some(args.look),
        Verb::Where(args) => Some(args.look),
        Verb::Lab(args) => match &args.verb {
            LabVerb::Run(run) => Some(run.look),
            LabVerb::List { .. } | LabVerb::Up { .. } | LabVerb::Down { .. } | LabVerb::Attack(_) => None,
        },
        Verb::Runs(args) => match &args.verb {
            RunsVerb::List(list) => Some(list.look),
            RunsVerb::Show(show) => Some(show.look),
            RunsVerb::Compare(compare) => Some(compare.look),
            RunsVerb::Export(export) => Some(export.look),
            RunsVerb::Rm(_) => None,
        },
        Verb::Watch(args) => Some(args.look),
        Verb::Incidents(args) => match &args.verb {
            IncidentsVerb::List(list) => Some(list.look),
            IncidentsVerb::Show(show) => Some(show.look),
            IncidentsVerb::Export(_) => None,
        },
        Verb::Undo(_) => None,
    }
}

/// Prints the version, whether BPF is built in, and what this build and kernel lack for counting and sampling.
fn version(message: &clap::Error) -> ExitCode {
    let lacking = chokepoint_profile::lacking().into_iter().chain(chokepoint_confined::lacking());
    let lacking = lacking.map(|sentence| sentence + "\n").collect::<String>();
    let built = if cfg!(feature = "bpf") { "built with BPF (cargo feature `bpf`)\n" } else { "" };
    match output::print(&format!("{message}{built}{lacking}")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Prints an error; the exit status says whether the command line was invalid.
fn fail(error: &anyhow::Error) -> ExitCode {
    output::note(&format!("chokepoint: {}", output::once(error)));
    ExitCode::from(if error.is::<Usage>() { EXIT_USAGE } else { EXIT_FAILED })
}

/// Runs the verb and gives the exit status.
fn run(cli: &Cli, words: &Catalogue, interrupt: &Interrupt) -> Result<u8> {
    let is_done = match &cli.verb {
        Verb::Bench(args) => return bench::run(args, words, interrupt),
        Verb::Diagnose(args) => {
            if args.replay.is_none() {
                undo::report_leftovers();
            }
            return diagnose::run(args, words, interrupt);
        }
        Verb::Size(args) => size::run(args, words, interrupt)?,
        Verb::Capacity(args) => capacity::run(args, words, interrupt)?,
        Verb::Undo(args) => undo::run(args, interrupt)?,
        Verb::Streams(args) => streams::run(args, words, interrupt)?,
        Verb::Tcp(args) => tcp::run(args, words, interrupt)?,
        Verb::Lab(args) => verbs::lab::run(&args.verb, words, interrupt)?,
        Verb::Profile(args) => profile::run(args, words, interrupt).map(|()| true)?,
        Verb::Watch(args) => watch::run(args, words, interrupt)?,
        Verb::Incidents(args) => incidents::run(&args.verb, words).map(|()| true)?,
        Verb::Where(args) => whereabouts::run(args, words, interrupt)?,
        Verb::Experiment(args) => experiment::run(args, words, interrupt).map(|()| true)?,
        Verb::Runs(args) => runs::run(&args.verb, words, interrupt).map(|()| true)?,
        Verb::Explain(args) => explain::run(args, words).map(|()| true)?,
    };
    Ok(if is_done { 0 } else { EXIT_FAILED })
}
