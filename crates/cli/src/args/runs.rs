//! The arguments of `chokepoint runs`.

mod keep;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Look;
pub(crate) use keep::Keep;

pub(super) const EXIT: &str = "Exit status: 0 done, 1 it could not be done, 2 usage.";

pub(super) const HELP: &str = "\
`diagnose`, `bench`, `size`, `experiment`, `streams` and `profile` keep each run, unless --no-keep is given. A replay is not kept. RUN is a number of the list, `last`, or \
`previous`: the run before the last one with the same kind and target.

Examples:
  chokepoint runs list
  chokepoint runs compare last            what changed since it was fast
  chokepoint runs compare 12 15
  chokepoint runs export last --markdown  for a ticket
  chokepoint runs rm --older-than 30d

docs/runs.md says what is kept, and where.

Exit status: 0 done, 1 it could not be done, 2 usage.";

#[derive(Debug, Args)]
pub(crate) struct Runs {
    #[command(subcommand)]
    pub(crate) verb: RunsVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsVerb {
    /// List the kept runs, newest first
    #[command(after_help = EXIT, disable_help_flag = true, disable_version_flag = true)]
    List(List),
    /// Show a run: its figures, and what it was measured on
    #[command(after_help = EXIT, disable_help_flag = true, disable_version_flag = true)]
    Show(Show),
    /// Compare two runs: figures, and everything that differs
    ///
    /// Compare two runs: their figures, and everything that differs between their loads, hosts, kernels, settings and versions. With one run, it is
    /// compared with the latest earlier run of the same kind and target that was faster by more than a tenth, or else with the one before.
    #[command(after_help = EXIT, disable_help_flag = true, disable_version_flag = true)]
    Compare(Compare),
    /// Write a run as Markdown, JSON or CSV
    #[command(after_help = EXIT, disable_help_flag = true, disable_version_flag = true)]
    Export(Export),
    /// Remove runs
    #[command(after_help = EXIT)]
    Rm(Remove),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only runs of this verb: diagnose, bench, size, experiment, streams or profile
    #[arg(long, value_name = "KIND", help_heading = "Selection")]
    pub(crate) kind: Option<String>,
    /// Only runs whose target contains this text
    #[arg(long, value_name = "TEXT", help_heading = "Selection")]
    pub(crate) target: Option<String>,
    /// At most this many [default: 20]
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, hide_default_value = true, help_heading = "Selection")]
    pub(crate) number: u32,
    /// Print the list as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Number of a run, last, or previous
    #[arg(help_heading = "Selection")]
    pub(crate) run: String,
    /// Print the kept JSON document of the run
    ///
    /// Print the JSON document of the run as it was kept: what the verb prints with --json, without values of queries and user information.
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub(crate) document: bool,
    /// Print the run as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Number of a run, last, or previous
    #[arg(help_heading = "Selection")]
    pub(crate) run: String,
    /// The run to compare it with
    ///
    /// The run to compare it with. [default: the latest earlier run of the same kind and target that was faster by more than a tenth, or else the one before]
    #[arg(help_heading = "Selection")]
    pub(crate) other: Option<String>,
    /// Print the comparison as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Number of a run, last, or previous
    #[arg(help_heading = "Selection")]
    pub(crate) run: String,
    /// As Markdown: figures and surroundings [default]
    #[arg(long, group = "format", help_heading = "Output")]
    pub(crate) markdown: bool,
    /// As JSON, with the kept document
    #[arg(long, group = "format", help_heading = "Output")]
    pub(crate) json: bool,
    /// As CSV: a line for each value
    #[arg(long, group = "format", help_heading = "Output")]
    pub(crate) csv: bool,
    /// Write into this file [default: stdout]
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) look: Look,
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// Numbers of runs
    #[arg(value_name = "RUN", required_unless_present_any = ["older_than", "all"], conflicts_with_all = ["older_than", "all"])]
    pub(crate) runs: Vec<String>,
    /// Remove all runs older than this: 30d, 12h
    #[arg(long, value_name = "TIME", conflicts_with = "all")]
    pub(crate) older_than: Option<String>,
    /// Remove all runs
    #[arg(long)]
    pub(crate) all: bool,
    /// Do not ask
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
    /// Print the removed runs as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
