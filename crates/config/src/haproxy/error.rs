//! Errors that HAProxy would report, with file and line, and reasons why its files cannot be read.

use thiserror::Error;

use super::words::WORDS_MAX;

/// A file that HAProxy refuses to parse.
pub type SyntaxError = crate::syntax::SyntaxError<Syntax>;

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Syntax {
    /// A quote that is not closed on its line.
    #[error("the quote that opens here is not closed on its line")]
    QuoteOpen,
    /// `${` without `}`.
    #[error("the variable that begins here is not closed")]
    VariableOpen,
    /// `\x` without two hexadecimal digits.
    #[error("\\x is not followed by two hexadecimal digits")]
    BadHex,
    /// More words than HAProxy takes.
    #[error("the line has more than {WORDS_MAX} words")]
    TooManyWords,
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
    /// A line that HAProxy refuses.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// A file is missing or cannot be read.
    #[error("{path}: {why}")]
    Unreadable {
        /// Its path.
        path: String,
        /// The reason.
        why: String,
    },
    /// Lines between `.if` and `.endif`: which of them are in force depends on HAProxy's environment.
    #[error("{place}: lines between .if and .endif are not evaluated")]
    Conditional {
        /// File and line.
        place: String,
    },
    /// The values in force exceed the memory budget.
    #[error("the configuration has too many sections: parsed, they would take more than {} MiB", crate::PARSED_BYTES_MAX >> 20)]
    TooMuch,
    /// More than this reader accepts.
    #[error("the configuration has more than {limit} {what}")]
    TooMany {
        /// "files".
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}
