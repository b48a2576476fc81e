//! The arguments of `chokepoint lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Look;

pub(super) const EXIT: &str = "Exit status: 0 done, 1 it could not be done, 2 usage.";

const ATTACK_EXIT: &str = "\
Exit status: 0 all held or were skipped, 1 one did not, or it could not run,
2 usage.";

const RUN_EXIT: &str = "\
Exit status: 0 every expectation was met, 1 one was not, or it could not run,
2 usage.";

#[derive(Debug, Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    pub(crate) verb: LabVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabVerb {
    /// List all scenarios and the labs that are up
    #[command(after_help = EXIT)]
    List {
        /// Print the list as JSON
        #[arg(long)]
        json: bool,
    },
    /// Build a scenario and leave it up
    #[command(after_help = EXIT)]
    Up {
        /// Name of a scenario, or a scenario file (TOML)
        scenario: String,
    },
    /// Take down one lab or all of them
    #[command(after_help = EXIT)]
    Down {
        /// Name of a scenario [default: all labs]
        scenario: Option<String>,
    },
    /// Attack this program as another user of the host would
    ///
    /// Attack this program as another user of the host would, and check what must hold: which bytes of files changed, what was executed, whom it connected to,
    /// what it printed, and how long and how much memory it took. Each attack runs in a network namespace of its own, which is removed at its end. Without a
    /// name, all attacks are listed.
    #[command(after_help = ATTACK_EXIT)]
    Attack(LabAttack),
    /// Build, diagnose, fix, undo and take down a scenario
    ///
    /// Build a scenario, diagnose it, fix it, undo the fix, take it down, and check that the results are as the scenario expects.
    #[command(after_help = RUN_EXIT, disable_help_flag = true, disable_version_flag = true)]
    Run(Box<LabRun>),
}

#[derive(Debug, Args)]
pub(crate) struct LabAttack {
    /// Names of attacks or of kinds of them, or attack files (TOML) [default: list all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Carry out all attacks
    #[arg(long)]
    pub(crate) all: bool,
    /// The program that is attacked [default: this one]
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    /// Print one JSON line per attack
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabRun {
    /// Name of a scenario, or a scenario file (TOML)
    #[arg(help_heading = "Target")]
    pub(crate) scenario: String,
    /// Run it this many times
    #[arg(long, help_heading = "Run", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: u32,
    /// Diagnose by watching only, and fix nothing
    ///
    /// Diagnose by watching only, as `chokepoint diagnose` does without a load. The load runs in the background. Nothing is fixed.
    #[arg(long, help_heading = "Run")]
    pub(crate) passive: bool,
    /// Load over TLS
    ///
    /// Load over TLS: the scenario's front nginx speaks TLS on its ports, with a certificate of the lab.
    #[arg(long, conflicts_with = "passive", help_heading = "Run")]
    pub(crate) https: bool,
    /// Only diagnose, and fix nothing
    ///
    /// Only diagnose, and fix nothing. What the scenario expects of a fix is not checked.
    #[arg(long, help_heading = "Run")]
    pub(crate) no_fix: bool,
    /// Time of each load, 3s to 1h [default: scenario's]
    #[arg(help_heading = "Run", short = 'z', long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// Write a recording of each run into this directory
    #[arg(long, help_heading = "Output", value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
    /// Print one JSON line per run, not reports
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}
