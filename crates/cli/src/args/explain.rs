//! The arguments of `chokepoint explain`.

use clap::Args;

use super::Look;

pub(super) const HELP: &str = "\
Examples:
  chokepoint explain                          list all ids with their titles
  chokepoint explain accept-queue-full        print one page

Exit status: 0 the page was printed, 1 there is no such id, 2 usage.";

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Id of a station or a finding [default: list all]
    #[arg(help_heading = "Target")]
    pub(crate) id: Option<String>,
    /// Print the page as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) look: Look,
}
