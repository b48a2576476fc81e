//! What nginx would refuse, with file and line, and what keeps a set of files from being read.

use thiserror::Error;

/// A file that nginx refuses to parse.
pub type SyntaxError = crate::syntax::SyntaxError<Syntax>;

/// What is wrong with the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Syntax {
    /// A character that cannot stand here: `}` too many, `;` without a directive, a letter right behind a closing quote.
    #[error("unexpected \"{0}\"")]
    Unexpected(char),
    /// The file ends within a directive.
    #[error("unexpected end of file, expecting \";\" or \"}}\"")]
    DirectiveOpen,
    /// The file ends within a block that began at this line.
    #[error("unexpected end of file, expecting \"}}\": this block is not closed")]
    BlockOpen,
    /// The file ends within a quoted word, or it grows beyond nginx's buffer.
    #[error("the {0} that opens here is not closed")]
    QuoteOpen(char),
    /// A word or a comment beyond nginx's buffer of 4096 bytes.
    #[error("too long parameter or comment: nginx takes at most 4096 bytes")]
    TooLong,
    /// A byte order mark, which nginx takes for the start of the first directive's name.
    #[error("the file begins with a byte order mark, which nginx reads as part of the first word")]
    ByteOrderMark,
    /// A block in Lua whose braces, strings or comments do not close.
    #[error("unexpected end of file, expecting \"}}\": this block of Lua code is not closed")]
    LuaOpen,
    /// Blocks nested deeper than this reader follows.
    #[error("blocks are nested more than {} deep", super::file::BLOCK_DEPTH_MAX)]
    TooDeep,
    /// A file larger than this reader takes.
    #[error("the file has more than {} MiB", crate::FILE_BYTES_MAX >> 20)]
    TooLarge,
    /// More than may be taken in memory, all files together.
    #[error("the configuration has more directives than are read: parsed they would take more than {} MiB", crate::PARSED_BYTES_MAX >> 20)]
    TooMuch,
}

/// Why a configuration could not be read as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoadError {
    /// A file that nginx refuses.
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
    /// A file that includes itself, directly or through others; nginx itself would run until it crashes.
    #[error("these files include each other in a circle: {chain}")]
    IncludeLoop {
        /// "a.conf:3 -> b.conf:1 -> a.conf".
        chain: String,
    },
    /// Includes nested deeper than this reader follows.
    #[error("includes are nested more than {} deep: {chain}", super::tree::INCLUDE_DEPTH_MAX)]
    IncludeDepth {
        /// The files on the way, as for a loop.
        chain: String,
    },
    /// An `include` without exactly one argument.
    #[error("{file}:{line}: invalid number of arguments in \"include\"")]
    IncludeArguments {
        /// Path of the file.
        file: String,
        /// Line of the directive.
        line: u32,
    },
    /// More than may be taken in memory, each file counted as often as it is included.
    #[error("the configuration has more directives than are read, with all includes: parsed they would take more than {} MiB", crate::PARSED_BYTES_MAX >> 20)]
    TooMuch,
    /// More than this reader takes.
    #[error("the configuration has more than {limit} {what}")]
    TooMany {
        /// "files".
        what: &'static str,
        /// The bound.
        limit: usize,
    },
    /// A dump (`nginx -T`) that holds no file.
    #[error("this is no output of nginx -T: no line \"# configuration file ...:\"")]
    NotADump,
}
