//! Errors that PostgreSQL would report, with file and line, and reasons why its files cannot be read.

use thiserror::Error;

/// Most files that include each other in a row (CONF_FILE_MAX_DEPTH in src/include/utils/conffiles.h).
pub(super) const INCLUDE_DEPTH_MAX: usize = 10;

/// A file that PostgreSQL refuses to parse.
pub type SyntaxError = crate::syntax::SyntaxError<Syntax>;

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Syntax {
    /// The line does not begin with a name.
    #[error("the line does not begin with the name of a setting")]
    NoName,
    /// No value follows the name, or what follows is none.
    #[error("no value follows the name")]
    NoValue,
    /// More than a comment follows the value.
    #[error("something follows the value")]
    Rest,
    /// A file larger than this reader accepts.
    #[error("the file has more than {} MiB", crate::FILE_BYTES_MAX >> 20)]
    TooLarge,
    /// The parsed configuration exceeds the memory budget, all files together.
    #[error("the configuration has too many lines: parsed, they would take more than {} MiB", crate::PARSED_BYTES_MAX >> 20)]
    TooMuch,
}

/// Why a configuration could not be read as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoadError {
    /// A line that PostgreSQL refuses.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The main file is missing or cannot be read.
    #[error("{path}: {why}")]
    Unreadable {
        /// Its path.
        path: String,
        /// The reason.
        why: String,
    },
    /// Files that include each other too deeply.
    #[error("{file}: more than {INCLUDE_DEPTH_MAX} files include each other in a row")]
    IncludeDepth {
        /// The file that is one too many.
        file: String,
    },
    /// More files than this reader accepts.
    #[error("the configuration has more than {} files", crate::FILE_COUNT_MAX)]
    TooMany,
}
