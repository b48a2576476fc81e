//! One HAProxy configuration file: its lines, and the spans of their words in the text.

use std::ops::Range;

use super::error::{Syntax, SyntaxError};
use super::words::{Word, split};
use crate::budget::Budget;
use crate::include::FILE_BYTES_MAX;

/// One line with words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its words; at least one. The spans are those of the file.
    pub words: Vec<Word>,
    /// The line's bytes, without its line ending.
    pub span: Range<usize>,
    /// Where its comment begins, in the file.
    pub comment: Option<usize>,
    /// Its number, from 1.
    pub line: u32,
}

impl Entry {
    /// The word at an index; "" if there is none.
    pub fn word(&self, index: usize) -> &str {
        self.words.get(index).map_or("", |word| word.text.as_str())
    }

    /// True if it begins with these words, which blanks separate: "rate-limit sessions".
    pub(super) fn begins_with(&self, words: &str) -> bool {
        words.split(' ').enumerate().all(|(at, word)| self.word(at) == word)
    }
}

/// A parsed file: its lines with words.
pub type File = crate::syntax::File<Entry>;

/// Memory of a parsed line and of a word of it, besides their characters.
const LINE_BYTES: usize = 160;
const WORD_BYTES: usize = 96;

/// Parses one file.
///
/// # Errors
/// The first line that HAProxy would refuse.
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
        let (mut words, comment) = split(written).map_err(|what| refuse(number, what))?;
        if !words.is_empty() {
            if !budget.take(LINE_BYTES + words.len() * WORD_BYTES + written.len()) {
                return Err(refuse(number, Syntax::TooMuch));
            }
            for word in &mut words {
                word.span = word.span.start + start..word.span.end + start;
            }
            let span = start..start + written.len();
            entries.push(Entry { words, span, comment: comment.map(|at| at + start), line: number });
        }
        start += line.len() + 1;
    }
    Ok(File::new(path, text, entries))
}
