//! Decodes the chunked transfer coding (RFC 9112 section 7.1) byte by byte, so that input may be split anywhere.

use crate::protocol::completion::BadAnswer;

/// Maximum bytes of one chunk-size line, including extensions.
const LINE_BYTES_MAX: u32 = 4096;
/// Maximum bytes of the whole trailer section.
const TRAILER_BYTES_MAX: u32 = 64 * 1024;

/// The part of the coding that the next byte belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    SizeFirst,
    Size,
    SizePad,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    LastLf,
}

/// The decoder of one body. It keeps no data, only its position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunked {
    part: Part,
    /// Bytes of data left in this chunk, or the size read so far.
    left: u64,
    /// Bytes of this size line or of the trailer section so far.
    line_bytes: u32,
}

impl Chunked {
    pub(crate) fn new() -> Self {
        Chunked { part: Part::SizeFirst, left: 0, line_bytes: 0 }
    }

    /// Parses bytes. Returns the number used once the body is complete, `None` before that.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<Option<usize>, BadAnswer> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if self.part == Part::Data {
                let take = self.left.min((bytes.len() - at) as u64);
                self.left -= take;
                at += take as usize;
                if self.left == 0 {
                    self.part = Part::DataCr;
                }
                continue;
            }
            at += 1;
            if self.part == Part::LastLf {
                return if byte == b'\n' { Ok(Some(at)) } else { Err(BadAnswer("a trailer section without CR LF at its end")) };
            }
            self.part = self.step(byte)?;
        }
        Ok(None)
    }

    fn step(&mut self, byte: u8) -> Result<Part, BadAnswer> {
        match self.part {
            Part::SizeFirst | Part::Size | Part::SizePad | Part::Extension => self.size_line(byte),
            Part::SizeLf => match (byte, self.left) {
                (b'\n', 0) => {
                    self.line_bytes = 0;
                    Ok(Part::TrailerStart)
                }
                (b'\n', _) => Ok(Part::Data),
                _ => Err(BadAnswer("a chunk size without CR LF")),
            },
            Part::DataCr if byte == b'\r' => Ok(Part::DataLf),
            Part::DataLf if byte == b'\n' => {
                (self.left, self.line_bytes) = (0, 0);
                Ok(Part::SizeFirst)
            }
            Part::DataCr | Part::DataLf => Err(BadAnswer("chunk data longer than its size")),
            Part::TrailerStart | Part::TrailerName | Part::TrailerValue | Part::TrailerLf => self.trailer(byte),
            Part::Data | Part::LastLf => unreachable!("handled by feed"),
        }
    }

    fn size_line(&mut self, byte: u8) -> Result<Part, BadAnswer> {
        self.line_bytes += 1;
        if self.line_bytes > LINE_BYTES_MAX {
            return Err(BadAnswer("a chunk-size line over 4 KiB"));
        }
        let digits = matches!(self.part, Part::SizeFirst | Part::Size);
        if digits && let Some(digit) = (byte as char).to_digit(16) {
            if self.left >> 60 != 0 {
                return Err(BadAnswer("a chunk size over 64 bits"));
            }
            self.left = self.left << 4 | u64::from(digit);
            return Ok(Part::Size);
        }
        if self.part == Part::SizeFirst {
            return Err(BadAnswer("a chunk size that is not a hexadecimal number"));
        }
        match (self.part, byte) {
            (_, b'\r') => Ok(Part::SizeLf),
            (Part::Extension, b'\t' | b' '..=b'~' | 0x80..) => Ok(Part::Extension),
            (Part::Size | Part::SizePad, b' ' | b'\t') => Ok(Part::SizePad),
            (Part::Size | Part::SizePad, b';') => Ok(Part::Extension),
            _ => Err(BadAnswer("a chunk size that is not a hexadecimal number")),
        }
    }

    fn trailer(&mut self, byte: u8) -> Result<Part, BadAnswer> {
        self.line_bytes += 1;
        if self.line_bytes > TRAILER_BYTES_MAX {
            return Err(BadAnswer("a trailer section over 64 KiB"));
        }
        match (self.part, byte) {
            (Part::TrailerStart, b'\r') => Ok(Part::LastLf),
            (Part::TrailerStart | Part::TrailerName, byte) if is_name(byte) => Ok(Part::TrailerName),
            (Part::TrailerName, b':') => Ok(Part::TrailerValue),
            (Part::TrailerValue, b'\r') => Ok(Part::TrailerLf),
            (Part::TrailerValue, b'\t' | b' '..=b'~' | 0x80..) => Ok(Part::TrailerValue),
            (Part::TrailerLf, b'\n') => Ok(Part::TrailerStart),
            _ => Err(BadAnswer("a trailer that is not a header field")),
        }
    }
}

/// Whether a byte may be part of a field name: tchar of RFC 9110 section 5.6.2.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds in pieces of the given size. Returns the number of bytes used.
    fn decode(input: &[u8], piece: usize) -> Result<Option<usize>, BadAnswer> {
        let mut chunked = Chunked::new();
        let mut before = 0;
        for part in input.chunks(piece.max(1)) {
            if let Some(used) = chunked.feed(part)? {
                return Ok(Some(before + used));
            }
            before += part.len();
        }
        Ok(None)
    }

    #[test]
    fn bodies_end_at_the_same_byte_however_they_are_split() {
        let bodies: [&[u8]; 7] = [
            b"0\r\n\r\n",
            b"5\r\nhello\r\n0\r\n\r\n",
            b"5;name=\"a;b\";x\r\nhello\r\n00\r\n\r\n",
            b"A \t\r\n0123456789\r\n0 ; last\r\n\r\n",
            b"1\r\n\r\r\n1\r\n\n\r\n0\r\n\r\n",
            b"0\r\nExpires: never\r\nX-Sum:\r\n\r\n",
            b"0000000000000000000000001\r\nx\r\n0\r\n\r\n",
        ];
        for body in bodies {
            let mut input = body.to_vec();
            input.extend_from_slice(b"HTTP");
            for piece in 1..=input.len() {
                assert_eq!(decode(&input, piece), Ok(Some(body.len())), "{:?} in pieces of {piece}", String::from_utf8_lossy(body));
            }
            for cut in 0..body.len() {
                assert_eq!(decode(&body[..cut], 3), Ok(None), "{:?} cut at {cut}", String::from_utf8_lossy(body));
            }
        }
    }

    #[test]
    fn malformed_bodies_are_refused() {
        let bodies: [&[u8]; 14] = [
            b"\r\n",
            b"x\r\n",
            b"-1\r\n",
            b"0x5\r\nhello",
            b"5\nhello",
            b"5\r\rhello",
            b" 5\r\nhello\r\n",
            b"5 5\r\nhello",
            b"10000000000000000\r\n",
            b"ffffffffffffffffffffffff\r\n",
            b"3\r\nhello\r\n",
            b"3\r\nhel\n0\r\n",
            b"0\r\n folded\r\n\r\n",
            b"0\r\nno colon\r\n\r\n",
        ];
        for body in bodies {
            for piece in [1, 2, body.len()] {
                assert!(decode(body, piece).is_err(), "{:?}", String::from_utf8_lossy(body));
            }
        }
        let endless_extension = [b"1;".as_slice(), &[b'a'; 5000]].concat();
        assert!(decode(&endless_extension, 7).is_err());
        let endless_zeros = vec![b'0'; 5000];
        assert!(decode(&endless_zeros, 7).is_err());
        let endless_trailer = [b"0\r\n".as_slice(), &b"a: b\r\n".repeat(20_000)].concat();
        assert!(decode(&endless_trailer, 1000).is_err());
    }

    #[test]
    fn the_largest_size_does_not_overflow() {
        assert_eq!(decode(b"ffffffffffffffff\r\nabc", 1), Ok(None));
    }

    proptest! {
        #[test]
        fn splitting_never_changes_the_result(input in proptest::collection::vec(proptest::sample::select(b"0123aAfFgG;:\r\n \tx\x00\xff".to_vec()), 0..200), piece in 1usize..20) {
            prop_assert_eq!(decode(&input, piece), decode(&input, input.len()));
        }
    }
}
