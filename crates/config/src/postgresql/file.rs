//! One PostgreSQL configuration file: a setting on each line (src/backend/utils/misc/guc-file.l).

use std::ops::Range;

use super::error::{Syntax, SyntaxError};
use crate::budget::Budget;
use crate::include::FILE_BYTES_MAX;

/// One line that sets something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name in lower case: PostgreSQL takes either.
    pub name: String,
    /// The value without its quotes.
    pub value: String,
    /// The bytes of the name and of the value, with its quotes.
    pub name_span: Range<usize>,
    /// See `name_span`.
    pub value_span: Range<usize>,
    /// The line's bytes, without its line ending.
    pub span: Range<usize>,
    /// True if a comment follows.
    pub has_comment: bool,
    /// Its number, from 1.
    pub line: u32,
}

/// A parsed file: its lines that set something.
pub type File = crate::syntax::File<Entry>;

/// Memory of a parsed line besides its characters.
const LINE_BYTES: usize = 200;

/// Parses one file.
///
/// # Errors
/// The first line that PostgreSQL would refuse.
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
        let written = line.strip_suffix('\r').unwrap_or(line);
        if let Some(entry) = entry(written, number, start).map_err(|what| refuse(number, what))? {
            if !budget.take(LINE_BYTES + 2 * written.len()) {
                return Err(refuse(number, Syntax::TooMuch));
            }
            entries.push(entry);
        }
        start += line.len() + 1;
    }
    Ok(File::new(path, text, entries))
}

/// The setting of a line, if it has one. `start`: where the line begins in its file.
fn entry(line: &str, number: u32, start: usize) -> Result<Option<Entry>, Syntax> {
    let name_at = blanks(line, 0);
    if is_end(line, name_at) {
        return Ok(None);
    }
    let name_end = name(line, name_at).ok_or(Syntax::NoName)?;
    let mut value_at = blanks(line, name_end);
    if line[value_at..].starts_with('=') {
        value_at = blanks(line, value_at + 1);
    }
    let (value, value_end) = value(line, value_at).ok_or(Syntax::NoValue)?;
    let rest = blanks(line, value_end);
    if !is_end(line, rest) {
        return Err(Syntax::Rest);
    }
    Ok(Some(Entry {
        name: line[name_at..name_end].to_ascii_lowercase(),
        value,
        name_span: start + name_at..start + name_end,
        value_span: start + value_at..start + value_end,
        span: start..start + line.len(),
        has_comment: rest < line.len(),
        line: number,
    }))
}

/// Where the blanks from here end.
fn blanks(line: &str, at: usize) -> usize {
    at + line[at..].bytes().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count()
}

/// True if nothing but a comment is left.
fn is_end(line: &str, at: usize) -> bool {
    line[at..].is_empty() || line[at..].starts_with('#')
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

/// The end of a name: of letters, digits and, for an extension's, a dot within.
fn name(line: &str, at: usize) -> Option<usize> {
    let is_part = |byte: &u8| is_letter(*byte) || byte.is_ascii_digit() || matches!(byte, b'$' | b'.');
    let length = line[at..].bytes().take_while(is_part).count();
    (length > 0 && is_letter(line.as_bytes()[at])).then_some(at + length)
}

/// A value and where it ends: a quoted string, a number with its unit, or a word.
fn value(line: &str, at: usize) -> Option<(String, usize)> {
    let rest = &line[at..];
    if let Some(quoted) = rest.strip_prefix('\'') {
        return string(quoted).map(|(text, length)| (text, at + 1 + length));
    }
    let is_part = |byte: &u8| is_letter(*byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b':' | b'/');
    let length = rest.bytes().take_while(is_part).count();
    (length > 0).then(|| (rest[..length].to_owned(), at + length))
}

/// The text of a string up to its closing quote, and the bytes up to behind that. Two quotes are one; a backslash takes away the meaning of what follows.
fn string(rest: &str) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut chars = rest.char_indices().peekable();
    while let Some((at, next)) = chars.next() {
        match next {
            '\'' if chars.peek().is_some_and(|(_, after)| *after == '\'') => {
                chars.next();
                text.push('\'');
            }
            '\'' => return Some((text, at + 1)),
            '\\' => text.push(chars.next()?.1),
            other => text.push(other),
        }
    }
    None
}
