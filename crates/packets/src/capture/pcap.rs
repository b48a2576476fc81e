//! The classic format: a file header of 24 bytes, and a header of 16 bytes before each packet (draft-ietf-opsawg-pcap).

use super::input::Input;
use super::{CaptureError, Packet, fill, record, u32_at};

/// Bytes of the file header.
pub(super) const FILE_HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 16;
/// The variant of Alexey Kuznetsov's libpcap has eight more bytes before each packet.
const RECORD_HEADER_BYTES_MODIFIED: usize = 24;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const MODIFIED: u32 = 0xa1b2_cd34;

/// The fields of the file header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader {
    big: bool,
    header_bytes: usize,
    unit_ns: i64,
    link: u16,
}

impl Reader {
    /// The reader for a file that begins like this; `None` for another format.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        let magic = head.first_chunk().copied()?;
        let (magic, big) = match (u32::from_be_bytes(magic), u32::from_le_bytes(magic)) {
            (magic @ (MICROSECONDS | NANOSECONDS | MODIFIED), _) => (magic, true),
            (_, magic @ (MICROSECONDS | NANOSECONDS | MODIFIED)) => (magic, false),
            _ => return None,
        };
        // The upper bits give the length of the frame check sequence, if there is one.
        let link = (u32_at(head, 20, big) & 0xffff) as u16;
        Some(Self {
            big,
            header_bytes: if magic == MODIFIED { RECORD_HEADER_BYTES_MODIFIED } else { RECORD_HEADER_BYTES },
            unit_ns: if magic == NANOSECONDS { 1 } else { 1000 },
            link,
        })
    }

    pub(super) fn packet<'a>(&self, input: &'a mut Input<'_>) -> Result<Option<Packet<'a>>, CaptureError> {
        if fill(input, self.header_bytes)? == 0 {
            return Ok(None);
        }
        record(input, self.header_bytes)?;
        let head = input.available();
        let (seconds, fraction) = (u32_at(head, 0, self.big), u32_at(head, 4, self.big));
        let (kept, wire_bytes) = (u32_at(head, 8, self.big), u32_at(head, 12, self.big));
        let kept = usize::try_from(kept).unwrap_or(usize::MAX);
        record(input, self.header_bytes.saturating_add(kept))?;
        input.consume(self.header_bytes);
        let at_ns = i64::from(seconds) * 1_000_000_000 + i64::from(fraction) * self.unit_ns;
        Ok(Some(Packet { at_ns, link: self.link, wire_bytes, bytes: input.take(kept) }))
    }
}
