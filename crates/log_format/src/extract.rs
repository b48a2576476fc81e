//! Extracts the values of one line with a compiled format, without allocating.

use thiserror::Error;

use super::compile::{Escape, Field, LogFormat};
use super::shape::Shape;

/// The longest line that is read. nginx writes one line for a request whose head fits into 4 buffers of 8 KiB; an escaped byte takes four.
pub const LINE_BYTES_MAX: usize = 256 << 10;
/// The work for one line, as a multiple of its length in bytes. Lines that fit the format are scanned once.
const WORK_FACTOR: usize = 4;
/// The least work allowed, for short lines. A step from one variable to another counts as one byte.
const WORK_LEAST: usize = 4_096;

/// Why a line yields no fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unparsed {
    /// The line has another format: another log format, a truncated line or a foreign one.
    #[error("the line does not match this format")]
    Format,
    /// The line is longer than any that a server writes.
    #[error("the line has more than {LINE_BYTES_MAX} bytes")]
    TooLong,
}

/// The positions of one line's values; overwritten by every line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    spans: Vec<(u32, u32)>,
}

impl Record {
    /// The value at a slot of the line that was extracted last, as it is in the log: escapes are not decoded.
    pub fn get<'l>(&self, line: &'l [u8], slot: usize) -> Option<&'l [u8]> {
        let &(start, end) = self.spans.get(slot)?;
        line.get(start as usize..end as usize)
    }
}

impl LogFormat {
    /// A record for [`LogFormat::extract`] to fill, reused from line to line.
    pub fn record(&self) -> Record {
        Record { spans: vec![(0, 0); self.fields.len()] }
    }

    /// Finds the values of a line, which may end with its line feed.
    pub fn extract(&self, line: &[u8], record: &mut Record) -> Result<(), Unparsed> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if line.len() > LINE_BYTES_MAX {
            return Err(Unparsed::TooLong);
        }
        if !self.head.begins(line) || record.spans.len() != self.fields.len() {
            return Err(Unparsed::Format);
        }
        if self.fields.is_empty() {
            return if line.len() == self.head.len() { Ok(()) } else { Err(Unparsed::Format) };
        }
        let mut search = Search { line, fields: &self.fields, escape: self.escape, work: WORK_LEAST + WORK_FACTOR * line.len() };
        if search.run(self.head.len(), &mut record.spans) { Ok(()) } else { Err(Unparsed::Format) }
    }
}

struct Search<'a> {
    line: &'a [u8],
    fields: &'a [Field],
    escape: Escape,
    /// The work that is left.
    work: usize,
}

impl Search<'_> {
    /// Fills the spans. It returns to an earlier variable only if a later one does not fit.
    fn run(&mut self, start: usize, spans: &mut [(u32, u32)]) -> bool {
        let mut index = 0;
        let mut at = start;
        let mut end = self.first_end(index, at);
        loop {
            if self.work == 0 {
                return false;
            }
            self.work -= 1;
            if let Some(found) = end {
                spans[index] = (at as u32, found as u32);
                let next = found + self.fields[index].literal.len();
                if index + 1 == self.fields.len() {
                    // The literal after the last variable was found; the line must end with it.
                    if next == self.line.len() {
                        return true;
                    }
                    end = self.next_end(index, at, found);
                    continue;
                }
                index += 1;
                at = next;
                end = self.first_end(index, at);
                continue;
            }
            // Nothing fits here: the previous variable must end elsewhere.
            if index == 0 {
                return false;
            }
            index -= 1;
            at = spans[index].0 as usize;
            end = self.next_end(index, at, spans[index].1 as usize);
        }
    }

    /// The most likely end of the value that begins at `at`.
    fn first_end(&mut self, index: usize, at: usize) -> Option<usize> {
        let fields = self.fields;
        let field = &fields[index];
        let is_last = index + 1 == self.fields.len();
        if matches!(field.shape, Shape::Text | Shape::Word) {
            return self.text_end(field, is_last, at, at);
        }
        let rest = &self.line[at..];
        let len = field.shape.longest(rest);
        match len {
            Some(len) if field.literal.begins(&rest[len..]) => Some(at + len),
            Some(len) => self.next_end(index, at, at + len),
            None => self.missing_end(field, at),
        }
    }

    /// The next end to try after `tried` failed.
    fn next_end(&mut self, index: usize, at: usize, tried: usize) -> Option<usize> {
        let fields = self.fields;
        let field = &fields[index];
        if matches!(field.shape, Shape::Text | Shape::Word) {
            // The last value, and one without a delimiter, has only one possible end.
            let is_last = index + 1 == self.fields.len();
            if field.literal.is_empty() {
                return None;
            }
            return self.text_end(field, is_last, at, tried + 1);
        }
        let rest = &self.line[at..];
        let mut len = tried - at;
        while let Some(shorter) = field.shape.shorter(rest, len) {
            if field.literal.begins(&rest[shorter..]) {
                return Some(at + shorter);
            }
            len = shorter;
        }
        None
    }

    /// The end of a missing value of fixed form: `-`, or nothing at all.
    fn missing_end(&self, field: &Field, at: usize) -> Option<usize> {
        let rest = &self.line[at..];
        let dash = usize::from(rest.first() == Some(&b'-'));
        field.literal.begins(&rest[dash..]).then_some(at + dash)
    }

    /// The first occurrence of the literal after a text, from `from` on. An escaped quote does not count.
    fn text_end(&mut self, field: &Field, is_last: bool, at: usize, from: usize) -> Option<usize> {
        let literal = &field.literal;
        if literal.is_empty() {
            // The last value extends to the end. A value that touches the next one is taken as empty, because its slot is not given.
            return Some(if is_last { self.line.len() } else { at });
        }
        if is_last && from == at {
            // The line must end with the literal, so only one position is possible.
            let end = self.line.len().checked_sub(literal.len())?;
            return (end >= at && self.line.ends_with(literal.text())).then_some(end);
        }
        let first = literal.text()[0];
        let is_word = field.shape == Shape::Word;
        let mut found = from;
        loop {
            let rest = self.line.get(found..)?;
            // A word ends at the first blank.
            let ahead = if is_word && first == b' ' {
                memchr::memchr(first, rest).filter(|at| literal.begins(&rest[*at..]))
            } else {
                literal.position(rest)
            };
            self.work = self.work.saturating_sub(ahead.unwrap_or(rest.len()));
            found += ahead?;
            if is_word && first != b' ' && self.line[at..found].iter().any(u8::is_ascii_whitespace) {
                return None;
            }
            if self.escape != Escape::Json || first != b'"' || !is_escaped(self.line, at, found) {
                return Some(found);
            }
            found += 1;
        }
    }
}

/// True if an odd number of backslashes is right before `at`.
fn is_escaped(line: &[u8], start: usize, at: usize) -> bool {
    line[start..at].iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1
}
