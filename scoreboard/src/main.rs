//! For developers: draws stacks at random, diagnoses them and grades the verdicts; and sums up the runs of scenarios and of drawn stacks in a score-board.

mod answer;
mod board;
mod draw;
mod proof;
mod share;
mod trial;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use chokepoint::lab::Interrupt;
use chokepoint_model::catalogue::Catalogue;
use clap::{Args, Parser, Subcommand};

use draw::With;

/// Grades the diagnoses of chokepoint on real servers: on scenarios and on stacks drawn at random.
#[derive(Debug, Parser)]
#[command(name = "scoreboard", version, arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Draw stacks at random, measure with and without their faults whether these do harm, diagnose the stacks, and grade the verdicts
    Run(Run),
    /// Write drawn stacks with all of their faults into a directory, as scenario files
    Write {
        #[command(flatten)]
        draws: Draws,
        /// The directory
        directory: PathBuf,
    },
    /// Sum up many runs: verdicts, and predictions against measurements
    Score {
        /// Files of lines printed by `chokepoint lab run --json` and `scoreboard run --json`
        #[arg(required = true, value_name = "FILE")]
        runs: Vec<PathBuf>,
        /// Print JSON instead of a page of Markdown
        #[arg(long)]
        json: bool,
    },
}

/// Which stacks to draw.
#[derive(Debug, Args)]
struct Draws {
    /// Draw this many stacks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    random: u32,
    /// Seed of the draws; seed and index decide everything [default: taken from the clock]
    #[arg(long, value_name = "S")]
    seed: Option<u32>,
    /// Index of the first draw
    #[arg(long, value_name = "I", default_value_t = 0)]
    index: u32,
}

impl Draws {
    /// The index of the last draw.
    fn last(&self) -> Result<u32> {
        self.index.checked_add(self.random - 1).context("the index of the last draw is too high")
    }
}

#[derive(Debug, Args)]
struct Run {
    #[command(flatten)]
    draws: Draws,
    /// Diagnose without load of our own, while a background load runs
    #[arg(long)]
    passive: bool,
    /// Seconds of each load
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u16).range(1..=3600))]
    duration: Option<u16>,
    /// Write each drawn stack into this directory as a scenario, and the recording of each wrong verdict
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Print a line of JSON per draw, and one for all of them
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let interrupt = match Interrupt::install() {
        Ok(interrupt) => interrupt,
        Err(error) => return fail(&error),
    };
    let ended = match run(&cli.verb, &interrupt) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => fail(&error),
    };
    interrupt.status().map_or(ended, ExitCode::from)
}

fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("scoreboard: {error:#}");
    ExitCode::FAILURE
}

/// Runs the verb; false where a verdict on a drawn stack was wrong.
fn run(verb: &Verb, interrupt: &Interrupt) -> Result<bool> {
    match verb {
        Verb::Run(args) => trial::run(args, &Catalogue::english(), interrupt),
        Verb::Write { draws, directory } => write(draws, directory).map(|()| true),
        Verb::Score { runs, json } => board::run(runs, *json).map(|()| true),
    }
}

fn write(draws: &Draws, directory: &std::path::Path) -> Result<()> {
    let seed = draws.seed.context("--seed is needed to write draws")?;
    std::fs::create_dir_all(directory).with_context(|| format!("{} cannot be created", directory.display()))?;
    for index in draws.index..=draws.last()? {
        let scenario = draw::draw(seed, index).scenario(With::All)?;
        std::fs::write(directory.join(format!("draw-{index:03}.toml")), scenario.text())?;
    }
    Ok(())
}
