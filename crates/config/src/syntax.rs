//! A text that a server refuses, whatever its language.

use std::fmt::Display;

use thiserror::Error;

/// A file that its server refuses to parse.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}: {what}")]
pub struct SyntaxError<S: Display> {
    /// Path of the file.
    pub file: String,
    /// Line, from 1, where it was noticed; where the word or block began for those that have no end.
    pub line: u32,
    /// What is wrong there.
    pub what: S,
}
