//! A window over a byte stream: the reader sees a contiguous piece of the wanted length, and the buffer never grows beyond a bound.

use std::io::{self, ErrorKind, Read};

/// No record of a capture may be longer than this, bytes: twice the largest snap length that tcpdump and Wireshark write (262,144), with room.
pub(crate) const RECORD_BYTES_MAX: usize = 1 << 20;
/// The buffer, bytes: a record and what is read ahead.
const BUFFER_BYTES: usize = 2 * RECORD_BYTES_MAX;

/// Buffered bytes of a reader.
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

    /// Position in the (unpacked) stream, bytes.
    pub(crate) fn position(&self) -> u64 {
        self.consumed
    }

    /// Makes at least `wanted` bytes available if the stream has them; says how many there are. `wanted` is at most [`RECORD_BYTES_MAX`].
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
                // A reader that claims more than it was given room for is not believed.
                Ok(read) => self.end = (self.end + read).min(self.buffer.len()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.end - self.begin)
    }

    /// What is available now.
    pub(crate) fn available(&self) -> &[u8] {
        &self.buffer[self.begin..self.end]
    }

    /// Passes over bytes that are available.
    pub(crate) fn consume(&mut self, bytes: usize) {
        let bytes = bytes.min(self.end - self.begin);
        self.begin += bytes;
        self.consumed += bytes as u64;
    }

    /// Takes bytes that are available and gives them back.
    pub(crate) fn take(&mut self, bytes: usize) -> &[u8] {
        let begin = self.begin;
        self.consume(bytes);
        &self.buffer[begin..self.begin]
    }

    /// Passes over bytes that need not be available; false if the stream ends before.
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

    /// The same stream with a decoder laid over it: what is buffered comes first.
    pub(crate) fn unpacked<E>(self, decoder: impl FnOnce(Box<dyn Read + 'r>) -> Result<Box<dyn Read + 'r>, E>) -> Result<Self, E> {
        let head = io::Cursor::new(self.buffer[self.begin..self.end].to_vec());
        decoder(Box::new(head.chain(self.reader))).map(Self::new)
    }
}
