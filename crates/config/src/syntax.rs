//! A syntax error in a file, for any server's language.

use std::fmt::Display;

use thiserror::Error;

/// A file that its server refuses to parse.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}: {what}")]
pub struct SyntaxError<S: Display> {
    /// Path of the file.
    pub file: String,
    /// Line, from 1, where the error was found; for a word or block without an end, the line where it began.
    pub line: u32,
    /// What is wrong there.
    pub what: S,
}
