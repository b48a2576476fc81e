//! Reads capture files as a sequence of packets: pcap and pcapng, uncompressed or compressed with gzip or Zstandard.

mod input;
mod pcap;
mod pcapng;
mod unpacked;
mod write;

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use input::{Input, RECORD_BYTES_MAX};
use unpacked::{Counted, Unpacked};
pub use write::PcapngWriter;

/// Largest window of a Zstandard frame, bytes. `zstd --ultra -20` and lower levels need no more.
const ZSTD_WINDOW_BYTES_MAX: u64 = 32 << 20;

/// Why a capture could not be read, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file is neither pcap nor pcapng, compressed or not.
    #[error("this is not a capture: it begins with {}", hex(.0))]
    NotACapture(Vec<u8>),
    /// The file is empty.
    #[error("the file is empty")]
    Empty,
    /// The file ends within a record: the capture was cut off or is still being written.
    #[error("the capture ends in the middle of a record, at byte {0}")]
    CutOff(u64),
    /// A record violates the format.
    #[error("the capture is damaged at byte {at}: {what}")]
    Damaged {
        /// Position in the decompressed stream.
        at: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The bytes could not be read or decompressed.
    #[error("the capture cannot be read at byte {at}: {error}")]
    Io {
        /// Position in the decompressed stream.
        at: u64,
        /// The reason.
        error: io::Error,
    },
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// One captured packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Capture time, nanoseconds since 1970-01-01 UTC; 0 if the capture has none.
    pub at_ns: i64,
    /// Link-layer header type (<https://www.tcpdump.org/linktypes.html>).
    pub link: u16,
    /// Bytes of the packet on the wire.
    pub wire_bytes: u32,
    /// The captured bytes.
    pub bytes: &'a [u8],
}

enum Format {
    Pcap(pcap::Reader),
    Pcapng(pcapng::Reader),
}

/// A capture being read.
///
/// Holds at most 2 MiB of the capture, and the decompressor's memory: 64 KiB for gzip, a window of at most 32 MiB for Zstandard. A compressed capture is read up to
/// 256 MiB and 200 bytes for each of its own: what is repeated for ever takes no bytes, but time.
pub struct Capture<'r> {
    input: Input<'r>,
    format: Format,
    packed: Option<Rc<Cell<u64>>>,
}

impl<'r> Capture<'r> {
    /// Detects the format by the first bytes.
    ///
    /// # Errors
    /// The stream cannot be read, or is not a capture.
    pub fn open(reader: impl Read + 'r) -> Result<Self, CaptureError> {
        Self::open_within(reader, unpacked::FREE_BYTES)
    }

    fn open_within(reader: impl Read + 'r, unpacked_bytes: u64) -> Result<Self, CaptureError> {
        let mut input = Input::new(Box::new(reader));
        fill(&mut input, 24)?;
        let decoder: Option<fn(Counted<'r>) -> Box<dyn Read + 'r>> = match input.available() {
            [0x1f, 0x8b, ..] => Some(|packed| Box::new(flate2::read::MultiGzDecoder::new(packed))),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(|packed| Box::new(ZstdFrames { source: Some(Box::new(packed)), frame: None })),
            _ => None,
        };
        let mut packed = None;
        if let Some(decoder) = decoder {
            let count = Rc::clone(packed.insert(Rc::new(Cell::new(0))));
            input =
                input.unpacked(|packed| Box::new(Unpacked::new(decoder(Counted::new(packed, Rc::clone(&count))), count, unpacked_bytes)));
        }
        fill(&mut input, 24)?;
        let head = input.available();
        if head.is_empty() {
            return Err(CaptureError::Empty);
        }
        let format = if let Some(reader) = pcap::Reader::of(head) {
            if head.len() < pcap::FILE_HEADER_BYTES {
                return Err(CaptureError::CutOff(head.len() as u64));
            }
            input.consume(pcap::FILE_HEADER_BYTES);
            Format::Pcap(reader)
        } else if head.starts_with(&pcapng::SECTION.to_be_bytes()) {
            Format::Pcapng(pcapng::Reader::default())
        } else {
            return Err(CaptureError::NotACapture(head.iter().take(4).copied().collect()));
        };
        Ok(Self { input, format, packed })
    }

    /// The next packet; `None` at the end.
    ///
    /// # Errors
    /// The capture is cut off, damaged or unreadable from here. Earlier packets stay valid.
    pub fn packet(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        match &mut self.format {
            Format::Pcap(reader) => reader.packet(&mut self.input),
            Format::Pcapng(reader) => reader.packet(&mut self.input),
        }
    }

    /// Bytes of the decompressed capture read so far.
    pub fn position(&self) -> u64 {
        self.input.position()
    }

    /// Bytes of the compressed capture decompressed so far; nothing for one that is not compressed.
    pub fn packed(&self) -> Option<u64> {
        self.packed.as_ref().map(|packed| packed.get())
    }
}

/// Decodes consecutive Zstandard frames and skips the skippable ones. Zstandard files may consist of several frames (RFC 8878, 3.1): parallel compressors write
/// such files.
struct ZstdFrames<'r> {
    source: Option<Box<dyn Read + 'r>>,
    frame: Option<ruzstd::decoding::StreamingDecoder<Box<dyn Read + 'r>, ruzstd::decoding::FrameDecoder>>,
}

impl Read for ZstdFrames<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let read = frame.read(out)?;
                if read > 0 || out.is_empty() {
                    return Ok(read);
                }
                self.source = self.frame.take().map(|frame| frame.into_inner());
            }
            let Some(mut source) = self.source.take() else { return Ok(0) };
            let mut head = Vec::with_capacity(18);
            (&mut source).take(18).read_to_end(&mut head)?;
            if head.is_empty() {
                return Ok(0);
            }
            if head.len() >= 8 && head[0] & 0xf0 == 0x50 && head[1..4] == [0x2a, 0x4d, 0x18] {
                let length = u64::from(u32::from_le_bytes([head[4], head[5], head[6], head[7]]));
                let mut rest: Box<dyn Read> = Box::new(io::Cursor::new(head.split_off(8)).chain(source));
                io::copy(&mut (&mut rest).take(length), &mut io::sink())?;
                self.source = Some(rest);
                continue;
            }
            if zstd_window(&head).is_some_and(|bytes| bytes > ZSTD_WINDOW_BYTES_MAX) {
                return Err(io::Error::other("it is compressed with a window of more than 32 MiB"));
            }
            let whole: Box<dyn Read> = Box::new(io::Cursor::new(head).chain(source));
            self.frame = Some(ruzstd::decoding::StreamingDecoder::new(whole).map_err(|error| io::Error::other(error.to_string()))?);
        }
    }
}

/// The window that a frame needs, bytes (RFC 8878, 3.1.1.1).
fn zstd_window(head: &[u8]) -> Option<u64> {
    let descriptor = *head.get(4)?;
    if descriptor & 0x20 == 0 {
        let window = *head.get(5)?;
        let base = 1_u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    let at = 5 + [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let field = head.get(at..at + size)?;
    let value = field.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    Some(if size == 2 { value + 256 } else { value })
}

/// [`Input::fill`] with the position in its error.
fn fill(input: &mut Input<'_>, wanted: usize) -> Result<usize, CaptureError> {
    let at = input.position();
    input.fill(wanted).map_err(|error| CaptureError::Io { at, error })
}

/// Makes a record available. Fails if the stream ends within it or it is longer than the limit.
fn record(input: &mut Input<'_>, bytes: usize) -> Result<(), CaptureError> {
    let at = input.position();
    if bytes > RECORD_BYTES_MAX {
        return Err(CaptureError::Damaged { at, what: "a record is longer than 1 MiB" });
    }
    if fill(input, bytes)? < bytes { Err(CaptureError::CutOff(at)) } else { Ok(()) }
}

/// A 32-bit number in either byte order; 0 beyond the end.
fn u32_at(bytes: &[u8], at: usize, big: bool) -> u32 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
    if big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
}

/// A 16-bit number in either byte order; 0 beyond the end.
fn u16_at(bytes: &[u8], at: usize, big: bool) -> u16 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
    if big { u16::from_be_bytes(word) } else { u16::from_le_bytes(word) }
}
