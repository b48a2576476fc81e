//! The TCP header and its options (RFC 9293, RFC 7323, RFC 2018).

use super::big_endian::{be16, be32};

pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;

const HEADER_BYTES: usize = 20;
/// Blocks that fit into the options (RFC 2018, 3).
const SACK_BLOCKS_MAX: usize = 4;

/// Address and port of both ends. IPv4 addresses are mapped into IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) from: (u128, u16),
    pub(crate) to: (u128, u16),
}

/// One segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment<'a> {
    pub(crate) ends: Ends,
    pub(crate) sequence: u32,
    pub(crate) acknowledged: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    pub(crate) options: Options,
    /// The captured part of the payload.
    pub(crate) payload: &'a [u8],
    /// Bytes of payload on the wire.
    pub(crate) payload_bytes: u32,
}

impl Segment<'_> {
    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Options that describe the stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) mss: Option<u16>,
    pub(crate) window_scale: Option<u8>,
    pub(crate) sack_permitted: bool,
    pub(crate) timestamps: bool,
    sack: [(u32, u32); SACK_BLOCKS_MAX],
    sack_blocks: u8,
}

impl Options {
    /// Blocks received out of order: the first sequence number of each, and the one after its last.
    pub(crate) fn sack(&self) -> &[(u32, u32)] {
        self.sack.get(..usize::from(self.sack_blocks)).unwrap_or_default()
    }
}

/// Parses a segment with `wire_bytes` sent and `bytes` captured. Leaves the addresses empty. Returns `None` if the fixed part of the header
/// is incomplete or contradictory.
pub(crate) fn parse(bytes: &[u8], wire_bytes: usize) -> Option<Segment<'_>> {
    let fixed = bytes.first_chunk::<HEADER_BYTES>()?;
    let header = usize::from(fixed[12] >> 4) * 4;
    if header < HEADER_BYTES || header > wire_bytes {
        return None;
    }
    let payload_bytes = wire_bytes - header;
    let payload = bytes.get(header..).unwrap_or_default();
    let options = bytes.get(HEADER_BYTES..header.min(bytes.len())).unwrap_or_default();
    Some(Segment {
        ends: Ends { from: (0, be16(fixed, 0)?), to: (0, be16(fixed, 2)?) },
        sequence: be32(fixed, 4)?,
        acknowledged: be32(fixed, 8)?,
        flags: fixed[13],
        window: be16(fixed, 14)?,
        options: parse_options(options),
        payload: payload.get(..payload_bytes).unwrap_or(payload),
        payload_bytes: u32::try_from(payload_bytes).ok()?,
    })
}

fn parse_options(mut rest: &[u8]) -> Options {
    let mut options = Options::default();
    // Two NOPs and timestamps: the only options of nearly every segment.
    if let [1, 1, 8, 10, ..] = rest
        && rest.len() == 12
    {
        options.timestamps = true;
        return options;
    }
    loop {
        match rest {
            [1, behind @ ..] => rest = behind,
            [0, ..] | [] | [_] => return options,
            [kind, length, ..] => {
                let length = usize::from(*length);
                let Some(value) = rest.get(2..length) else { return options };
                match (kind, value) {
                    (2, [a, b]) => options.mss = Some(u16::from_be_bytes([*a, *b])),
                    // A larger shift counts as 14 (RFC 7323, 2.3).
                    (3, [shift]) => options.window_scale = Some((*shift).min(14)),
                    (4, []) => options.sack_permitted = true,
                    (8, [_, _, _, _, _, _, _, _]) => options.timestamps = true,
                    (5, blocks) => parse_sack(blocks, &mut options),
                    _ => {}
                }
                rest = &rest[length..];
            }
        }
    }
}

fn parse_sack(value: &[u8], options: &mut Options) {
    for (place, block) in value.chunks_exact(8).take(SACK_BLOCKS_MAX).enumerate() {
        if let (Some(from), Some(to)) = (be32(block, 0), be32(block, 4)) {
            options.sack[place] = (from, to);
            options.sack_blocks = place as u8 + 1;
        }
    }
}
