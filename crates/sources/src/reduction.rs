//! How much a recording leaves out of the texts that it reduces.

use chokepoint_recording::Outcome;

/// How much was kept and left out, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reduction {
    /// Configuration files.
    pub configurations: usize,
    /// Directives in them that were kept.
    pub directives: usize,
    /// Values of directives that were hidden.
    pub values: usize,
    /// Comments in configurations that were left out.
    pub comments: usize,
    /// Words of command lines that were hidden.
    pub words: usize,
    /// Lines of logs that were left out.
    pub log_lines: usize,
    /// Values of status pages that were left out.
    pub page_values: usize,
}

/// The outcome for a text that could not be reduced.
pub(crate) fn unreadable() -> Outcome {
    Outcome::Failed("left out of this recording, because the part that is needed could not be found".to_owned(), None)
}
