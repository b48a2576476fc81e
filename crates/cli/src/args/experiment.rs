//! The arguments of `chokepoint experiment`.

use std::path::PathBuf;

use clap::Args;

use super::{Keep, Look};

pub(super) const EXIT: &str = "\
Exit status: 0 it was measured, 1 it could not be, 2 usage.
Examples: --help";

pub(super) const HELP: &str = "\
Presets, each in a lab of its own:
  same                       two variants that are the same: what noise looks like
  allocator [NAME=LIBRARY]   malloc of glibc, of jemalloc, and of any library
  keepalive                  five ways to connect two servers, 0 to 150 ms apart
  workers, workers-waiting   number of workers, for pages that compute or wait
  cores                      a page that computes, on more and more cores
  fastcgi                    TCP or unix socket, connections kept or not
  nginx-io                   sendfile, tcp_nopush, log buffers, open_file_cache
  pacing                     sendfile with tcp_nopush, under BBR and Reno
  sysctl NAME=A,B            a kernel parameter of the server

Examples:
  chokepoint experiment --preset allocator
  chokepoint experiment --preset sysctl net.ipv4.tcp_tw_reuse=0,1
  chokepoint experiment plan.toml --budget 10m --html result.html

docs/experiments has the plan, the statistics, and what each preset
gave.

Exit status: 0 it was measured, 1 it could not be, 2 usage.";

#[derive(Debug, Args)]
pub(crate) struct Experiment {
    /// Plan (TOML), or what a preset takes: NAME=A,B
    ///
    /// Plan (TOML, docs/experiments). With --preset: what the preset takes, as in `--preset sysctl net.ipv4.tcp_tw_reuse=0,1`.
    #[arg(value_name = "PLAN", help_heading = "Experiment")]
    pub(crate) plan: Vec<String>,
    /// Run a built-in experiment; --help lists them
    #[arg(long, value_name = "NAME", help_heading = "Experiment")]
    pub(crate) preset: Option<String>,
    /// Longest time for all trials [default: plan's]
    ///
    /// Longest time for all trials: 90s, 10m. More time makes intervals narrower. [default: that of the plan, or 3m]
    #[arg(long, value_name = "TIME", help_heading = "Experiment")]
    pub(crate) budget: Option<String>,
    /// Stop early at this half width of the interval
    ///
    /// Stop early once the interval of every comparison is plus or minus this many percent, or once a difference is clear. [default: that of the plan, or 1]
    #[arg(long, value_name = "PERCENT", help_heading = "Experiment")]
    pub(crate) precision: Option<f64>,
    /// Go on with the last unfinished run of this plan
    ///
    /// Go on with the last experiment of this plan that was interrupted, killed or failed. Its trials count, and so does its time.
    #[arg(long, conflicts_with = "no_keep", help_heading = "Experiment")]
    pub(crate) resume: bool,
    /// Print the plan, and measure nothing
    ///
    /// Print the plan that would be carried out, with its scenario, and measure nothing: a preset is a good start for a plan of your own.
    #[arg(long, help_heading = "Experiment")]
    pub(crate) print_plan: bool,
    /// Do not ask before loading another host
    #[arg(long, short = 'y', help_heading = "Experiment")]
    pub(crate) yes: bool,
    /// Print the result as JSON
    ///
    /// Print the result as JSON (docs/schema/experiment-1.json), with every trial, instead of text.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Write the result as a page with plots
    ///
    /// Write the result as one HTML page with tables and plots, which needs no other file and no network.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,
    /// Write the result as Markdown
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write every trial as a line of CSV
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) csv: Option<PathBuf>,
    /// Write plots (SVG) and flame graphs into DIR
    ///
    /// Write the plots as SVG into this directory, and the differential flame graph of each comparison if the plan asks for profiles.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) plots: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keep: Keep,
    #[command(flatten)]
    pub(crate) look: Look,
}
