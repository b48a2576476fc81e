//! Records of TLS (RFC 8446, 5.1). Only their headers are read. Records of application data make the turns.

use super::order::Piece;

const HEADER_BYTES: usize = 5;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
/// Content types: change of cipher, alert, handshake, application data, heartbeat.
const TYPES: std::ops::RangeInclusive<u8> = 20..=24;
/// In TLS 1.3 an alert looks like application data: two bytes, the content type, and a tag of eight to sixteen bytes (RFC 8446, 5.2).
const ALERT_BYTES_MAX: u64 = 19;
/// Largest payload of a record with its encryption, bytes.
const RECORD_BYTES_MAX: u16 = (1 << 14) + 2048;

/// The state of one direction.
#[derive(Debug, Default)]
pub(super) struct Parser {
    head: Vec<u8>,
    left: u64,
    lost: bool,
}

/// The contents of a piece.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Turns {
    pub(super) records: u64,
    /// The piece holds application data.
    pub(super) spoke: bool,
}

/// True if these are the first bytes of a record.
pub(super) fn is_record(bytes: &[u8]) -> bool {
    match bytes {
        [kind, 3, 0..=4, high, low, ..] => TYPES.contains(kind) && u16::from_be_bytes([*high, *low]) <= RECORD_BYTES_MAX,
        _ => false,
    }
}

pub(super) fn is_client_hello(bytes: &[u8]) -> bool {
    is_record(bytes) && bytes[0] == HANDSHAKE && bytes.get(HEADER_BYTES) == Some(&1)
}

pub(super) fn is_server_hello(bytes: &[u8]) -> bool {
    is_record(bytes) && bytes[0] == HANDSHAKE && bytes.get(HEADER_BYTES) == Some(&2)
}

impl Parser {
    pub(super) fn piece(&mut self, piece: Piece<'_>) -> Turns {
        let mut turns = Turns::default();
        let mut bytes = match piece {
            Piece::Hole(missing) => {
                self.lost |= missing > self.left || !self.head.is_empty();
                self.left = self.left.saturating_sub(missing);
                return turns;
            }
            Piece::Bytes(bytes) => bytes,
        };
        if self.lost && is_record(bytes) {
            *self = Self::default();
        }
        while !bytes.is_empty() && !self.lost {
            let taken = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
            self.left -= taken as u64;
            bytes = &bytes[taken..];
            let wanted = (HEADER_BYTES - self.head.len()).min(bytes.len());
            self.head.extend_from_slice(&bytes[..wanted]);
            bytes = &bytes[wanted..];
            if self.head.len() == HEADER_BYTES {
                if is_record(&self.head) {
                    turns.records += 1;
                    self.left = u64::from(u16::from_be_bytes([self.head[3], self.head[4]]));
                    turns.spoke |= self.head[0] == APPLICATION_DATA && self.left > ALERT_BYTES_MAX;
                } else {
                    self.lost = true;
                }
                self.head.clear();
            }
        }
        turns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_alert_is_not_a_turn() {
        let record = |length: u8| [&[APPLICATION_DATA, 3, 3, 0, length][..], &vec![0; usize::from(length)]].concat();
        let spoke = |bytes: &[u8]| Parser::default().piece(Piece::Bytes(bytes)).spoke;
        assert!(!spoke(&record(19)) && spoke(&record(20)) && spoke(&[record(19), record(40)].concat()));
    }

    proptest! {
        #[test]
        fn records_are_counted_however_they_are_cut(lengths in proptest::collection::vec(0_u16..400, 1..9), cut in 1_usize..50) {
            let mut bytes = Vec::new();
            for length in &lengths {
                bytes.extend_from_slice(&[APPLICATION_DATA, 3, 3]);
                bytes.extend_from_slice(&length.to_be_bytes());
                bytes.resize(bytes.len() + usize::from(*length), 0xee);
            }
            let mut parser = Parser::default();
            let records: u64 = bytes.chunks(cut).map(|piece| parser.piece(Piece::Bytes(piece)).records).sum();
            prop_assert_eq!(records, lengths.len() as u64);
            prop_assert!(!parser.lost);
        }

        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut parser = Parser::default();
            parser.piece(Piece::Bytes(&bytes));
            parser.piece(Piece::Hole(3));
            parser.piece(Piece::Bytes(&bytes));
        }
    }
}
