//! FastCGI records (FastCGI Specification 1.0, 3.3). A request begins with BEGIN_REQUEST, ends with an empty STDIN, and is answered up to END_REQUEST.

use super::exchanges::Exchanges;
use super::order::Piece;

const HEADER_BYTES: usize = 8;
const BEGIN_REQUEST: u8 = 1;
const ABORT_REQUEST: u8 = 2;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;
const TYPE_MAX: u8 = 11;
/// FCGI_KEEP_CONN.
const KEEP_CONN: u8 = 1;

/// The state of one direction.
#[derive(Debug, Default)]
pub(super) struct Parser {
    head: Vec<u8>,
    /// Remaining bytes of the record's content and padding.
    left: u64,
    kind: u8,
    /// The flags of BEGIN_REQUEST are the third byte of its content.
    content_at: u64,
    lost: bool,
}

/// True if these are the first bytes of a request.
pub(super) fn is_request(bytes: &[u8]) -> bool {
    matches!(bytes, [1, BEGIN_REQUEST, _, _, 0, 8, _, 0, 0, 1..=3, ..])
}

/// True if these are the first bytes of an answer.
pub(super) fn is_answer(bytes: &[u8]) -> bool {
    matches!(bytes, [1, STDOUT | STDERR | END_REQUEST, _, _, _, _, _, 0, ..])
}

impl Parser {
    pub(super) fn piece(&mut self, piece: Piece<'_>, client: bool, exchanges: &mut Exchanges, at_ns: i64) {
        let mut bytes = match piece {
            Piece::Hole(missing) => {
                self.lost |= missing > self.left || !self.head.is_empty();
                self.left = self.left.saturating_sub(missing);
                return;
            }
            Piece::Bytes(bytes) => bytes,
        };
        if self.lost {
            if !(client && is_request(bytes) || !client && is_answer(bytes)) {
                return;
            }
            *self = Self::default();
        }
        if client {
            exchanges.request_goes_on(at_ns, false, false);
        } else {
            exchanges.answer_goes_on(at_ns);
        }
        while !bytes.is_empty() {
            if self.left > 0 {
                let taken = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
                self.content(&bytes[..taken], exchanges);
                self.left -= taken as u64;
                self.content_at += taken as u64;
                bytes = &bytes[taken..];
                continue;
            }
            let wanted = HEADER_BYTES.saturating_sub(self.head.len()).min(bytes.len());
            self.head.extend_from_slice(&bytes[..wanted]);
            bytes = &bytes[wanted..];
            if let Some(head) = self.head.first_chunk::<HEADER_BYTES>().copied() {
                self.head.clear();
                self.record(head, client, exchanges, at_ns);
                if self.lost {
                    return;
                }
            }
        }
    }

    fn record(&mut self, head: [u8; HEADER_BYTES], client: bool, exchanges: &mut Exchanges, at_ns: i64) {
        let [version, kind, _, _, high, low, padding, _] = head;
        if version != 1 || kind == 0 || kind > TYPE_MAX {
            self.lost = true;
            return;
        }
        let length = u16::from_be_bytes([high, low]);
        (self.kind, self.content_at) = (kind, 0);
        self.left = u64::from(length) + u64::from(padding);
        match (client, kind) {
            (true, BEGIN_REQUEST) => exchanges.request_begins(at_ns),
            (true, PARAMS | STDIN | ABORT_REQUEST) => exchanges.request_goes_on(at_ns, false, false),
            (false, STDOUT | STDERR) => exchanges.answer_begins(at_ns),
            (false, END_REQUEST) => {
                exchanges.answer_begins(at_ns);
                exchanges.answer_ends(at_ns);
            }
            _ => {}
        }
    }

    fn content(&mut self, bytes: &[u8], exchanges: &mut Exchanges) {
        if self.kind == BEGIN_REQUEST
            && let Some(flags) = 2_u64.checked_sub(self.content_at).and_then(|at| bytes.get(usize::try_from(at).ok()?))
        {
            exchanges.spoken.requests_unkept += u64::from(flags & KEEP_CONN == 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u8, content: &[u8], padding: u8) -> Vec<u8> {
        let mut bytes = vec![1, kind, 0, 1];
        bytes.extend_from_slice(&(content.len() as u16).to_be_bytes());
        bytes.extend_from_slice(&[padding, 0]);
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len() + usize::from(padding), 0);
        bytes
    }

    fn request(flags: u8) -> Vec<u8> {
        let mut bytes = record(BEGIN_REQUEST, &[0, 1, flags, 0, 0, 0, 0, 0], 0);
        bytes.extend(record(PARAMS, b"abc", 5));
        bytes.extend(record(PARAMS, b"", 0));
        bytes.extend(record(STDIN, b"", 0));
        bytes
    }

    proptest! {
        #[test]
        fn requests_and_answers_are_counted_however_they_are_cut(cut in 1_usize..40, keep in any::<bool>()) {
            let (mut client, mut server, mut exchanges) = (Parser::default(), Parser::default(), Exchanges::default());
            for _ in 0..2 {
                for piece in request(u8::from(keep)).chunks(cut) {
                    client.piece(Piece::Bytes(piece), true, &mut exchanges, 10);
                }
                let mut answer = record(STDOUT, &[b'x'; 100], 4);
                answer.extend(record(END_REQUEST, &[0; 8], 0));
                for piece in answer.chunks(cut) {
                    server.piece(Piece::Bytes(piece), false, &mut exchanges, 30);
                }
            }
            prop_assert_eq!((exchanges.requests, exchanges.answers, exchanges.unanswered()), (2, 2, 0));
            prop_assert_eq!(exchanges.spoken.requests_unkept, if keep { 0 } else { 2 });
            prop_assert_eq!(exchanges.first_byte_ns_max, 20);
        }

        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..300), client in any::<bool>()) {
            let (mut parser, mut exchanges) = (Parser::default(), Exchanges::default());
            parser.piece(Piece::Bytes(&bytes), client, &mut exchanges, 0);
            parser.piece(Piece::Hole(7), client, &mut exchanges, 0);
            prop_assert!(parser.head.len() <= HEADER_BYTES);
        }
    }
}
