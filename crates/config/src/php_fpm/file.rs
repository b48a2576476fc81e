//! One php-fpm configuration file: its lines with the spans of their values, over its own text.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::error::{Syntax, SyntaxError};
use super::scanner::{Line, scan};
use crate::budget::Budget;
use crate::include::FILE_BYTES_MAX;

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// `[name]`.
    Section(String),
    /// `key = value`.
    Set {
        /// The key as written; keys are compared without regard to case.
        key: String,
        /// The part in brackets of `php_admin_value[memory_limit]`.
        index: Option<String>,
        /// The value as php-fpm gets it, `$pool` not yet put in.
        value: String,
        /// True if the value depends on the environment of php-fpm or on bit operators, and is not known here.
        computed: bool,
        /// The value's bytes in the file, quotes included.
        value_span: Range<usize>,
    },
}

/// One line that says something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it says.
    pub kind: Kind,
    /// The line's bytes, without its line ending.
    pub span: Range<usize>,
    /// Its number, from 1.
    pub line: u32,
}

/// A parsed file. Printing it gives the very text that was parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Path as php-fpm would open it.
    pub path: Arc<str>,
    text: String,
    entries: Vec<Entry>,
}

impl File {
    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its lines that are neither blank nor comments.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What a line takes in memory once parsed, besides its characters: itself, its texts and its place in the order.
const LINE_BYTES: usize = 256;
/// What a pool takes besides, and what php-fpm would refuse about it.
const POOL_BYTES: usize = 1200;
/// What a value takes where it is in force, besides its characters, or the reason why it cannot be.
const IN_FORCE_BYTES: usize = 320;

impl Entry {
    /// About what it takes in the configuration in force, bytes; `pool` is the length of the name that `$pool` stands for.
    pub(super) fn in_force_bytes(&self, pool: usize) -> usize {
        match &self.kind {
            Kind::Section(name) => POOL_BYTES + 10 * name.len(),
            Kind::Set { value, .. } => IN_FORCE_BYTES + 3 * self.span.len() + 2 * pool * value.matches("$pool").count(),
        }
    }
}

/// Parses one file, includes not followed.
pub fn parse(path: &str, text: &str) -> Result<File, SyntaxError> {
    parse_within(path, text, &mut Budget::new())
}

/// As [`parse`], within what is left for the whole configuration.
pub(super) fn parse_within(path: &str, text: &str, budget: &mut Budget) -> Result<File, SyntaxError> {
    let refuse = |line: u32, what: Syntax| SyntaxError { file: path.to_owned(), line, what };
    if text.len() > FILE_BYTES_MAX {
        return Err(refuse(1, Syntax::TooLarge));
    }
    if !budget.take(path.len() + text.len()) {
        return Err(refuse(1, Syntax::TooMuch));
    }
    let mut entries = Vec::new();
    let mut start = 0;
    for (number, line) in (1_u32..).zip(text.split('\n')) {
        // A carriage return ends a statement like a line feed does.
        let mut at = start;
        for statement in line.split('\r') {
            let span = at..at + statement.len();
            let found = scan(statement).map_err(|what| refuse(number, what))?;
            if found != Line::Nothing && !budget.take(LINE_BYTES + statement.len()) {
                return Err(refuse(number, Syntax::TooMuch));
            }
            match found {
                Line::Nothing => {}
                Line::Section(name) => entries.push(Entry { kind: Kind::Section(name), span, line: number }),
                Line::Set { key, index, value } => {
                    let value_span = at + value.span.start..at + value.span.end;
                    let kind = Kind::Set { key, index, value: value.text, computed: value.computed, value_span };
                    entries.push(Entry { kind, span, line: number });
                }
            }
            at += statement.len() + 1;
        }
        start += line.len() + 1;
    }
    Ok(File { path: path.into(), text: text.to_owned(), entries })
}
