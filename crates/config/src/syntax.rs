//! A parsed file and a syntax error in one, for any server's language of lines.

use std::fmt::{self, Display};
use std::sync::Arc;

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

/// A parsed file. Printing it gives exactly the parsed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File<E> {
    /// Path as the server would open it.
    pub path: Arc<str>,
    text: String,
    entries: Vec<E>,
}

impl<E> File<E> {
    pub(crate) fn new(path: &str, text: &str, entries: Vec<E>) -> Self {
        Self { path: path.into(), text: text.to_owned(), entries }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its lines that say something.
    pub fn entries(&self) -> &[E] {
        &self.entries
    }
}

impl<E> Display for File<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
