//! What php-fpm would refuse, with file and line, and what keeps its files from being read.

use thiserror::Error;

/// A file that php-fpm refuses to parse.
pub type SyntaxError = crate::syntax::SyntaxError<Syntax>;

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Syntax {
    /// A character that cannot stand here.
    #[error("syntax error, unexpected '{0}'")]
    Unexpected(char),
    /// `key` without a value; `#` begins no comment in this dialect.
    #[error("a key without a value")]
    MissingValue,
    /// `[` without `]`.
    #[error("syntax error, expecting ']'")]
    BracketOpen,
    /// A double quote that its line does not close; values never go over several lines.
    #[error("the quote that opens here is not closed on its line")]
    QuoteOpen,
    /// `${` without `}`.
    #[error("syntax error, \"${{\" is not closed")]
    VariableOpen,
    /// A word like `yes` or `null` next to other words.
    #[error("a boolean word stands next to other text; quote it")]
    BareWord,
    /// A file larger than this reader takes.
    #[error("the file has more than {} MiB", crate::FILE_BYTES_MAX >> 20)]
    TooLarge,
    /// More than may be taken in memory, all files together.
    #[error("the configuration has more lines than are read: parsed they would take more than {} MiB", crate::PARSED_BYTES_MAX >> 20)]
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
        /// Why.
        why: String,
    },
    /// More than five files include each other, as php-fpm allows; a loop ends here too.
    #[error("more than {} files include each other: {chain}", super::tree::INCLUDE_DEPTH_MAX)]
    IncludeDepth {
        /// "a.conf:3 -> b.conf:1 -> a.conf".
        chain: String,
    },
    /// More than may be taken in memory, each file counted as often as it is included.
    #[error("the configuration has more lines than are read, with all includes: parsed they would take more than {} MiB", crate::PARSED_BYTES_MAX >> 20)]
    TooMuch,
    /// More than this reader takes.
    #[error("the configuration has more than {limit} {what}")]
    TooMany {
        /// "files".
        what: &'static str,
        /// The bound.
        limit: usize,
    },
}
