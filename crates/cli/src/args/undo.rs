//! The arguments of `chokepoint undo`.

use clap::Args;

pub(super) const EXIT: &str = "\
Exit status: 0 no change is left, 1 some could not be taken back, 2 usage.
Examples: --help";

pub(super) const HELP: &str = "\
A setting that somebody else changed in the meantime is left alone and stays in the journal. Each undo reports it and exits with 1 until you \
either set it to one of the two values by hand, or give it up with --forget. In a file that somebody else edited, only the change itself is reverted.

Only root can take back what root applied. For other users, undo only lists those changes.

Examples:
  chokepoint undo               take back every change
  chokepoint undo --list        show the changes with their numbers
  chokepoint undo --forget 3    keep the settings of change 3 as they are, for good

Exit status: 0 no change is left, 1 some could not be taken back, 2 usage.";

#[derive(Debug, Args)]
pub(crate) struct Undo {
    /// Accepted as in diagnose: undo never asks
    #[arg(short = 'y', long = "yes", hide = true)]
    pub(crate) _yes: bool,
    /// Print what was done as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// List the applied changes; change nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// Forget change N: keep its settings as they are
    ///
    /// Forget change N (see --list): keep its settings as they are, and remove it from the journal. It cannot be undone after that.
    #[arg(long, value_name = "N", conflicts_with = "list")]
    pub(crate) forget: Option<u64>,
}
