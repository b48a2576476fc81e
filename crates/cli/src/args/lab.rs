//! The arguments of `chokepoint lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Look;

pub(super) const EXIT: &str = "Exit status: 0 done, 1 it could not be done, 2 usage.";

const RUN_EXIT: &str = "Exit status: 0 every expectation held, 1 one did not, or it could not be run, 2 usage.";

#[derive(Debug, Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    pub(crate) verb: LabVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabVerb {
    /// List the scenarios, and the labs that are up
    #[command(after_help = EXIT)]
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Build a scenario and leave it up
    #[command(after_help = EXIT)]
    Up {
        /// A scenario's name or a file
        scenario: String,
    },
    /// Take down one lab or all of them
    #[command(after_help = EXIT)]
    Down {
        /// A scenario's name; all where none is given
        scenario: Option<String>,
    },
    /// Build, diagnose, fix, undo, take down, and check a scenario
    ///
    /// Build a scenario, diagnose it, fix it, undo the fix, take it down, and check what it expects.
    #[command(after_help = RUN_EXIT)]
    Run(Box<LabRun>),
}

#[derive(Debug, Args)]
pub(crate) struct LabRun {
    /// A scenario's name or a file
    pub(crate) scenario: String,
    /// Run it this many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: u32,
    /// Only watch while a load runs that is not ours (no --load, no fix)
    #[arg(long)]
    pub(crate) passive: bool,
    /// Load over TLS: the scenario's front server speaks it on its ports
    #[arg(long, conflicts_with = "passive")]
    pub(crate) https: bool,
    /// Only diagnose: change nothing, whatever the scenario expects of a fix
    #[arg(long)]
    pub(crate) no_fix: bool,
    /// Time of each load instead of the scenario's, 3s to 1h
    #[arg(short = 'z', long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// Write a recording of each run into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    /// Print a JSON line a run instead of reports
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}
