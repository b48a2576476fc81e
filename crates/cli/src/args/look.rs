//! How reports look on the terminal, and help: the arguments of every verb that prints a report.

use clap::{Args, ValueEnum};

// Not a documentation comment: clap would begin the help of the verb with it.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Look {
    /// Colours: auto, always or never [default: auto]
    ///
    /// Colours: auto (on a terminal, unless NO_COLOR is set), always or never. [default: auto]
    #[arg(long, value_name = "WHEN", default_value = "auto", hide_default_value = true, hide_possible_values = true)]
    pub(crate) color: ColorWhen,
    /// Plain ASCII instead of line drawing
    ///
    /// Plain ASCII in text reports: no line drawing and no other characters beyond ASCII. This is the default if the locale is not UTF-8.
    #[arg(long)]
    pub(crate) ascii: bool,
    /// Print help; --help says more
    #[arg(short = 'h', long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

/// When text reports have colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Also into pipes and files
    Always,
    /// Nowhere
    Never,
}
