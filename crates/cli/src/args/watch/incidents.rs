//! The arguments of `chokepoint incidents`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::Look;

pub(in crate::args) const EXIT: &str = "Exit status: 0 done, 1 it could not be done, 2 usage.";

pub(in crate::args) const HELP: &str = "\
`chokepoint watch` keeps them. An exported incident is a recording of the seconds in which it was diagnosed.

Examples:
  chokepoint incidents list
  chokepoint incidents show 3
  chokepoint incidents export 3 --output incident.cprec --flame flame.html
  chokepoint diagnose --replay incident.cprec

Exit status: 0 done, 1 it could not be done, 2 usage.";

#[derive(Debug, Args)]
pub(crate) struct Incidents {
    #[command(subcommand)]
    pub(crate) verb: IncidentsVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum IncidentsVerb {
    /// List the kept incidents, newest first
    #[command(after_help = EXIT, disable_help_flag = true, disable_version_flag = true)]
    List(ListIncidents),
    /// Show an incident: what dropped, what changed, and the diagnosis
    #[command(after_help = EXIT, disable_help_flag = true, disable_version_flag = true)]
    Show(ShowIncident),
    /// Write an incident's recording, for diagnose --replay, or its flame graph
    #[command(after_help = EXIT)]
    Export(ExportIncident),
}

#[derive(Debug, Args)]
pub(crate) struct ListIncidents {
    /// At most this many [default: 20]
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, hide_default_value = true, help_heading = "Selection")]
    pub(crate) number: u32,
    /// Also bursts that were over before they were diagnosed
    #[arg(long, help_heading = "Selection")]
    pub(crate) all: bool,
    /// Directory of what is kept
    #[arg(long, value_name = "DIR", help_heading = "Selection")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Print the list as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}

#[derive(Debug, Args)]
pub(crate) struct ShowIncident {
    /// Number of an incident, or last
    #[arg(help_heading = "Selection")]
    pub(crate) incident: String,
    /// Directory of what is kept
    #[arg(long, value_name = "DIR", help_heading = "Selection")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Print the incident as JSON (docs/schema/incident-1.json)
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}

#[derive(Debug, Args)]
pub(crate) struct ExportIncident {
    /// Number of an incident, or last
    #[arg(help_heading = "Selection")]
    pub(crate) incident: String,
    /// Directory of what is kept
    #[arg(long, value_name = "DIR", help_heading = "Selection")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Write the recording into this file
    #[arg(short, long, value_name = "FILE", required_unless_present = "flame", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// Write the flame graph into this file: the drop against before
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) flame: Option<PathBuf>,
}
