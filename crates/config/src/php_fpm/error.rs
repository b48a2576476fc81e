//! Errors that php-fpm would report, with file and line, and reasons why its files cannot be read.

use thiserror::Error;

/// The deepest nesting of files, including the main one, that php-fpm reads (fpm_conf_load_ini_file).
pub(super) const INCLUDE_DEPTH_MAX: usize = 5;

/// A file that php-fpm refuses to parse.
pub type SyntaxError = crate::syntax::SyntaxError<Syntax>;

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Syntax {
    /// A character that is not allowed here.
    #[error("syntax error, unexpected '{0}'")]
    Unexpected(char),
    /// `key` without a value; `#` begins no comment in this dialect.
    #[error("a key without a value")]
    MissingValue,
    /// `[` without `]`.
    #[error("syntax error, expecting ']'")]
    BracketOpen,
    /// A double quote that is not closed on its line; values never span several lines.
    #[error("the quote that opens here is not closed on its line")]
    QuoteOpen,
    /// `${` without `}`.
    #[error("syntax error, \"${{\" is not closed")]
    VariableOpen,
    /// A word like `yes` or `null` next to other words.
    #[error("a boolean word stands next to other text; quote it")]
    BareWord,
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
    /// A line that php-fpm refuses.
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
    /// More than five files include each other, the limit of php-fpm; a loop also ends here.
    #[error("more than {} files include each other: {chain}", INCLUDE_DEPTH_MAX)]
    IncludeDepth {
        /// "a.conf:3 -> b.conf:1 -> a.conf".
        chain: String,
    },
    /// The parsed configuration exceeds the memory budget. Each file counts once for each include of it.
    #[error("the configuration and its includes have too many lines: parsed, they would take more than {} MiB", crate::PARSED_BYTES_MAX >> 20)]
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
