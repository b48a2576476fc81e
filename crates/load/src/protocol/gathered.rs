//! A head that arrives in pieces: gathered up to its empty line, searched once, within a bound.

use crate::protocol::answer::{Bad, HEAD_BYTES_MAX};

/// A gathered head's buffer above this size is given back to the allocator.
pub(crate) const HEAD_BYTES_KEPT: usize = 4096;

/// How far the search for the head's empty line has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scan {
    Line,
    LineStart,
    EmptyLineCr,
}

/// The pieces of one head so far.
#[derive(Debug)]
pub(crate) struct Gathered {
    bytes: Vec<u8>,
    scan: Scan,
    start: Scan,
}

impl Gathered {
    /// Of a head that begins with a status line.
    pub(crate) const fn new() -> Self {
        Gathered { bytes: Vec::new(), scan: Scan::Line, start: Scan::Line }
    }

    /// Of a head whose very first line may be the empty one.
    pub(crate) const fn of_fields() -> Self {
        Gathered { bytes: Vec::new(), scan: Scan::LineStart, start: Scan::LineStart }
    }

    /// The bytes so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Position after the empty line, if it is in these bytes, which follow all that was searched before.
    pub(crate) fn find_end(&mut self, bytes: &[u8]) -> Option<usize> {
        for (at, &byte) in bytes.iter().enumerate() {
            self.scan = match (self.scan, byte) {
                (Scan::LineStart | Scan::EmptyLineCr, b'\n') => return Some(at + 1),
                (_, b'\n') => Scan::LineStart,
                (Scan::LineStart, b'\r') => Scan::EmptyLineCr,
                _ => Scan::Line,
            };
        }
        None
    }

    /// Adds bytes of the head and no others.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> Result<(), Bad> {
        if self.bytes.len() + bytes.len() > HEAD_BYTES_MAX {
            return Err(Bad("a head over 64 KiB"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Forgets the head; keeps no large buffer.
    pub(crate) fn clear(&mut self) {
        if self.bytes.capacity() > HEAD_BYTES_KEPT {
            self.bytes = Vec::new();
        } else {
            self.bytes.clear();
        }
        self.scan = self.start;
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}
