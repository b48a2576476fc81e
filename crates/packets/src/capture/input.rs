//! A window over a byte stream. The reader sees a contiguous piece of the requested length, and the buffer is bounded.

use std::io::{self, ErrorKind, Read};

/// Longest record of a capture, bytes: more than twice the largest snap length of tcpdump and Wireshark (262,144).
pub(crate) const RECORD_BYTES_MAX: usize = 1 << 20;
/// Size of the buffer, bytes: a record and read-ahead.
const BUFFER_BYTES: usize = 2 * RECORD_BYTES_MAX;

/// The buffered bytes of a reader.
pub(crate) struct Input<'r> {
    reader: Box<dyn Read + 'r>,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    /// Bytes consumed so far.
    consumed: u64,
}

impl<'r> Input<'r> {
    pub(crate) fn new(reader: Box<dyn Read + 'r>) -> Self {
        Self { reader, buffer: vec![0; BUFFER_BYTES], begin: 0, end: 0, consumed: 0 }
    }

    /// Position in the decompressed stream, bytes.
    pub(crate) fn position(&self) -> u64 {
        self.consumed
    }

    /// Makes at least `wanted` bytes available if the stream has them. Returns the number available. `wanted` is at most [`RECORD_BYTES_MAX`].
    pub(crate) fn fill(&mut self, wanted: usize) -> io::Result<usize> {
        let wanted = wanted.min(RECORD_BYTES_MAX);
        if self.end - self.begin >= wanted {
            return Ok(self.end - self.begin);
        }
        self.buffer.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        while self.end < wanted {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                // Guards against a reader that reports more bytes than it had room for.
                Ok(read) => self.end = (self.end + read).min(self.buffer.len()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.end - self.begin)
    }

    /// The bytes available now.
    pub(crate) fn available(&self) -> &[u8] {
        &self.buffer[self.begin..self.end]
    }

    /// Skips available bytes.
    pub(crate) fn consume(&mut self, bytes: usize) {
        let bytes = bytes.min(self.end - self.begin);
        self.begin += bytes;
        self.consumed += bytes as u64;
    }

    /// Consumes available bytes and returns them.
    pub(crate) fn take(&mut self, bytes: usize) -> &[u8] {
        let begin = self.begin;
        self.consume(bytes);
        &self.buffer[begin..self.begin]
    }

    /// Skips bytes that may not be available yet. Returns false if the stream ends before.
    pub(crate) fn skip(&mut self, mut bytes: u64) -> io::Result<bool> {
        while bytes > 0 {
            let wanted = usize::try_from(bytes).unwrap_or(usize::MAX).min(RECORD_BYTES_MAX);
            let there = self.fill(wanted)?.min(wanted);
            if there == 0 {
                return Ok(false);
            }
            self.consume(there);
            bytes -= there as u64;
        }
        Ok(true)
    }

    /// The same stream behind a decoder. The buffered bytes come first.
    pub(crate) fn unpacked(self, decoder: impl FnOnce(Box<dyn Read + 'r>) -> Box<dyn Read + 'r>) -> Self {
        let head = io::Cursor::new(self.buffer[self.begin..self.end].to_vec());
        Self::new(decoder(Box::new(head.chain(self.reader))))
    }
}
