//! What a compressed capture unpacks to, up to a bound: a few bytes may stand for as many zeros as somebody likes.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// Bytes that any compressed capture may unpack to.
pub(super) const FREE_BYTES: u64 = 256 << 20;
/// Bytes that each further byte of it may unpack to. Captures unpack to 3 to 30 times their size; those of large segments with the same data to a hundred.
const PER_BYTE: u64 = 200;

/// Counts what is read of a compressed capture.
pub(super) struct Counted<'r> {
    reader: Box<dyn Read + 'r>,
    count: Rc<Cell<u64>>,
}

impl<'r> Counted<'r> {
    pub(super) fn new(reader: Box<dyn Read + 'r>, count: Rc<Cell<u64>>) -> Self {
        Self { reader, count }
    }
}

impl Read for Counted<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(out)?;
        self.count.set(self.count.get() + read as u64);
        Ok(read)
    }
}

/// The unpacked bytes.
pub(super) struct Unpacked<'r> {
    reader: Box<dyn Read + 'r>,
    packed: Rc<Cell<u64>>,
    free_bytes: u64,
    given: u64,
}

impl<'r> Unpacked<'r> {
    /// `packed`: how many bytes were read of the compressed capture. `free_bytes`: what it may unpack to, whatever its size.
    pub(super) fn new(reader: Box<dyn Read + 'r>, packed: Rc<Cell<u64>>, free_bytes: u64) -> Self {
        Self { reader, packed, free_bytes, given: 0 }
    }
}

impl Read for Unpacked<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(out)?;
        self.given += read as u64;
        if self.given > self.free_bytes.saturating_add(PER_BYTE.saturating_mul(self.packed.get())) {
            let why = format!(
                "it unpacks to more than {} MiB and {PER_BYTE} times its own size; if you trust it, unpack it first",
                self.free_bytes >> 20
            );
            return Err(io::Error::other(why));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Capture, CaptureError};

    /// A Zstandard frame (RFC 8878, 3.1.1) of this capture header, and blocks of 128 KiB that are one repeated byte each.
    fn repeated(blocks: usize, byte: u8) -> Vec<u8> {
        let block = |kind: u32, bytes: u32, is_last: bool| (u32::from(is_last) | kind << 1 | bytes << 3).to_le_bytes()[..3].to_vec();
        let mut header = [0; 24];
        header[..4].copy_from_slice(&0xa1b2_c3d4_u32.to_le_bytes());
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x38];
        frame.extend(block(0, header.len() as u32, false));
        frame.extend(header);
        for number in 1..=blocks {
            frame.extend(block(1, 128 << 10, number == blocks));
            frame.push(byte);
        }
        frame
    }

    /// The bytes that were read, and why no more.
    fn read(file: &[u8], free_bytes: u64) -> (u64, Option<String>) {
        let mut capture = Capture::open_within(file, free_bytes).unwrap();
        assert!(capture.packed().is_some());
        loop {
            match capture.packet() {
                Ok(Some(_)) => {}
                Ok(None) => return (capture.position(), None),
                Err(CaptureError::Io { at, error }) => return (at, Some(error.to_string())),
                Err(other) => panic!("{other}"),
            }
        }
    }

    #[test]
    fn a_few_bytes_of_zeros_do_not_take_all_time() {
        let file = repeated(100, 0);
        assert_eq!(read(&file, 100 << 17), (24 + (100 << 17), None), "12.5 MiB of records without data");
        let (at, why) = read(&file, 2 << 20);
        assert!(why.as_ref().is_some_and(|why| why.contains("unpacks to more than 2 MiB and 200 times its own size")), "{why:?}");
        let bound = (2 << 20) + super::PER_BYTE * file.len() as u64;
        assert!((1 << 20..=bound).contains(&at), "{at} of 12.5 MiB are read");
    }
}
