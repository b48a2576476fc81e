//! Syntax errors: what nginx would refuse in one file, with file and line.

use thiserror::Error;

/// Blocks within blocks that the parser follows; real configurations have fewer than ten.
pub(crate) const BLOCK_DEPTH_MAX: usize = 64;

/// A file that nginx refuses to parse.
pub type SyntaxError = crate::syntax::SyntaxError<Syntax>;

/// What is wrong with the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Syntax {
    /// A character that is not allowed here: one `}` too many, `;` without a directive, a letter right after a closing quote.
    #[error("unexpected \"{0}\"")]
    Unexpected(char),
    /// The file ends within a directive.
    #[error("unexpected end of file, expecting \";\" or \"}}\"")]
    DirectiveOpen,
    /// The file ends within a block that begins at this line.
    #[error("unexpected end of file, expecting \"}}\": this block is not closed")]
    BlockOpen,
    /// The file ends within a quoted word, or the word is longer than nginx's buffer.
    #[error("the {0} that opens here is not closed")]
    QuoteOpen(char),
    /// A word or a comment is longer than nginx's buffer of 4096 bytes.
    #[error("the parameter or comment is too long: nginx accepts at most 4096 bytes")]
    TooLong,
    /// A byte order mark: nginx reads it as the start of the first directive's name.
    #[error("the file begins with a byte order mark, which nginx reads as part of the first word")]
    ByteOrderMark,
    /// A block of Lua code with a brace, string or comment that is not closed.
    #[error("unexpected end of file, expecting \"}}\": this block of Lua code is not closed")]
    LuaOpen,
    /// Blocks are nested deeper than this parser follows.
    #[error("blocks are nested more than {} deep", BLOCK_DEPTH_MAX)]
    TooDeep,
    /// The file is larger than this parser accepts.
    #[error("the file has more than {} MiB", crate::FILE_BYTES_MAX >> 20)]
    TooLarge,
    /// All files together would take too much memory.
    #[error("the configuration has too many directives: parsed, they would take more than {} MiB", crate::PARSED_BYTES_MAX >> 20)]
    TooMuch,
}
