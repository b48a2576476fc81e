//! The command line.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};

/// Grades the diagnoses of chokepoint on real servers: on scenarios and on stacks drawn at random.
#[derive(Debug, Parser)]
#[command(name = "scoreboard", version, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
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
pub(crate) struct Draws {
    /// Draw this many stacks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) random: u32,
    /// Seed of the draws; seed and index decide everything [default: taken from the clock]
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u32>,
    /// Index of the first draw
    #[arg(long, value_name = "I", default_value_t = 0)]
    pub(crate) index: u32,
}

impl Draws {
    /// The index of the last draw.
    pub(crate) fn last(&self) -> Result<u32> {
        self.index.checked_add(self.random - 1).context("the index of the last draw is too high")
    }
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) draws: Draws,
    /// Diagnose without load of our own, while a background load runs
    #[arg(long)]
    pub(crate) passive: bool,
    /// Seconds of each load
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u16).range(1..=3600))]
    pub(crate) duration: Option<u16>,
    /// Write each drawn stack into this directory as a scenario, and the recording of each wrong verdict
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Print a line of JSON per draw, and one for all of them
    #[arg(long)]
    pub(crate) json: bool,
}
