//! The buffer of a head that arrives in pieces. Each byte is searched once for the empty line, and the size is bounded.

use crate::protocol::completion::{BadAnswer, HEAD_BYTES_MAX};

/// A larger buffer is freed after the head.
pub(crate) const HEAD_BYTES_KEPT: usize = 4096;

/// The state of the search for the head's empty line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scan {
    Line,
    LineStart,
    EmptyLineCr,
}

/// The received part of a head.
#[derive(Debug)]
pub(crate) struct HeadBuffer {
    bytes: Vec<u8>,
    scan: Scan,
    start: Scan,
}

impl HeadBuffer {
    /// For a head that begins with a status line.
    pub(crate) const fn new() -> Self {
        HeadBuffer { bytes: Vec::new(), scan: Scan::Line, start: Scan::Line }
    }

    /// For a head whose first line may be the empty one.
    pub(crate) const fn of_fields() -> Self {
        HeadBuffer { bytes: Vec::new(), scan: Scan::LineStart, start: Scan::LineStart }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The position after the empty line, if it is in these bytes. They must follow the bytes searched before.
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

    /// Appends bytes of the head only.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> Result<(), BadAnswer> {
        if self.bytes.len() + bytes.len() > HEAD_BYTES_MAX {
            return Err(BadAnswer("a head over 64 KiB"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Forgets the head and frees a large buffer.
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
