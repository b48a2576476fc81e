//! Reassembles IP fragments (RFC 791, RFC 8200 4.5) within a limit. A fragmented TCP segment counts when its last piece comes.

use super::packet::Addresses;

/// Datagrams in progress at once. The oldest is dropped to make room.
const DATAGRAMS_MAX: usize = 64;
/// Most pieces of one datagram.
const PIECES_MAX: usize = 128;
/// Largest IP datagram, bytes.
const DATAGRAM_BYTES_MAX: usize = 65_535;
/// Time after which pieces no longer belong together (RFC 791: 15 s to RFC 1122: 60 to 120 s), nanoseconds.
const AGE_NS_MAX: i64 = 60_000_000_000;

/// One fragment.
pub(super) struct Fragment<'a> {
    pub(super) addresses: Addresses,
    pub(super) id: u32,
    pub(super) protocol: u8,
    pub(super) offset: usize,
    pub(super) more: bool,
    pub(super) bytes: &'a [u8],
    pub(super) wire_bytes: usize,
}

/// One datagram in progress.
struct Datagram {
    addresses: Addresses,
    id: u32,
    begun_ns: i64,
    length: Option<usize>,
    pieces: Vec<(usize, usize)>,
    bytes: Vec<u8>,
}

/// Datagrams with missing pieces: at most 64 of 64 KiB.
#[derive(Default)]
pub(crate) struct Fragments {
    under_way: Vec<Datagram>,
    done: Vec<u8>,
}

impl Fragments {
    /// Adds a piece. Returns the payload if it was the last missing one. A piece captured only in part leaves its datagram incomplete.
    pub(super) fn add(&mut self, piece: &Fragment<'_>, at_ns: i64) -> Option<&[u8]> {
        let end = piece.offset + piece.bytes.len();
        if piece.bytes.len() < piece.wire_bytes || end > DATAGRAM_BYTES_MAX || piece.bytes.is_empty() {
            return None;
        }
        self.under_way.retain(|datagram| at_ns.saturating_sub(datagram.begun_ns) <= AGE_NS_MAX);
        let place = self.place_of(piece, at_ns);
        let datagram = &mut self.under_way[place];
        if datagram.pieces.len() >= PIECES_MAX {
            return None;
        }
        if !piece.more {
            datagram.length = Some(end);
        }
        if datagram.bytes.len() < end {
            datagram.bytes.resize(end, 0);
        }
        datagram.bytes[piece.offset..end].copy_from_slice(piece.bytes);
        datagram.pieces.push((piece.offset, end));
        datagram.pieces.sort_unstable();
        let covered = datagram.pieces.iter().fold(0, |covered, (from, to)| if *from <= covered { covered.max(*to) } else { covered });
        if datagram.length.is_none_or(|length| covered < length) {
            return None;
        }
        let datagram = self.under_way.swap_remove(place);
        self.done = datagram.bytes;
        Some(&self.done[..datagram.length?.min(self.done.len())])
    }

    fn place_of(&mut self, piece: &Fragment<'_>, at_ns: i64) -> usize {
        let same = |datagram: &Datagram| datagram.id == piece.id && datagram.addresses == piece.addresses;
        if let Some(place) = self.under_way.iter().position(same) {
            return place;
        }
        if self.under_way.len() >= DATAGRAMS_MAX
            && let Some(oldest) = (0..self.under_way.len()).min_by_key(|place| self.under_way[*place].begun_ns)
        {
            self.under_way.swap_remove(oldest);
        }
        let datagram =
            Datagram { addresses: piece.addresses, id: piece.id, begun_ns: at_ns, length: None, pieces: Vec::new(), bytes: Vec::new() };
        self.under_way.push(datagram);
        self.under_way.len() - 1
    }
}
