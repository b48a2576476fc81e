//! One php-fpm configuration file: its lines and the spans of their values in the text.

use std::ops::Range;

use super::error::{Syntax, SyntaxError};
use super::scanner::{Line, scan};
use crate::budget::Budget;
use crate::include::FILE_BYTES_MAX;

/// The content of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// `[name]`.
    Section(String),
    /// `key = value`.
    Set {
        /// The key as written. Keys are compared without regard to case.
        key: String,
        /// The part in brackets of `php_admin_value[memory_limit]`.
        index: Option<String>,
        /// The value as php-fpm gets it, before `$pool` is replaced.
        value: String,
        /// True if the value depends on php-fpm's environment or on bit operators and is unknown here.
        computed: bool,
        /// The value's bytes in the file, including quotes.
        value_span: Range<usize>,
    },
}

/// One line that is neither blank nor a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its content.
    pub kind: Kind,
    /// The line's bytes, without its line ending.
    pub span: Range<usize>,
    /// Its number, from 1.
    pub line: u32,
}

/// A parsed file: its lines that are neither blank nor comments.
pub type File = crate::syntax::File<Entry>;

/// Memory of a parsed line besides its characters: the entry, its texts and its place in the order.
const LINE_BYTES: usize = 256;
/// More memory for a pool, and for the errors about it.
const POOL_BYTES: usize = 1200;
/// Memory of a value in force, or of the error about it, besides its characters.
const IN_FORCE_BYTES: usize = 320;

impl Entry {
    /// The approximate memory of this line in the configuration in force, bytes; `pool` is the length of the name that replaces `$pool`.
    pub(super) fn in_force_bytes(&self, pool: usize) -> usize {
        match &self.kind {
            Kind::Section(name) => POOL_BYTES + 10 * name.len(),
            Kind::Set { value, .. } => IN_FORCE_BYTES + 3 * self.span.len() + 2 * pool * value.matches("$pool").count(),
        }
    }
}

/// Parses one file without following its includes.
pub fn parse(path: &str, text: &str) -> Result<File, SyntaxError> {
    parse_within(path, text, &mut Budget::new())
}

/// Parses like [`parse`], within the remaining memory budget of the whole configuration.
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
    Ok(File::new(path, text, entries))
}
