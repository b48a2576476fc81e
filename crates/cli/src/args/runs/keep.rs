//! Whether and under which label a run is kept: the arguments of every verb that keeps its runs.

use clap::Args;

// Not a documentation comment: clap would begin the help of the verb with it.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Keep {
    /// Do not keep this run
    ///
    /// Do not keep this run. By default `chokepoint runs` lists it, and compares it with others.
    #[arg(long, hide_short_help = true)]
    pub(crate) no_keep: bool,
    /// Label under which the run is kept
    ///
    /// Label under which the run is kept, for example "before the update". `chokepoint runs list` shows it.
    #[arg(long, value_name = "TEXT", conflicts_with = "no_keep", hide_short_help = true, value_parser = label)]
    pub(crate) label: Option<String>,
}

/// The longest label, bytes.
const LABEL_BYTES_MAX: usize = 200;

fn label(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("must not be empty".to_owned()),
        text if text.len() > LABEL_BYTES_MAX => Err(format!("must have at most {LABEL_BYTES_MAX} bytes")),
        text => Ok(text.to_owned()),
    }
}
