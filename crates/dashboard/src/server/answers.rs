//! Answers on their way to clients. All together take bounded memory, and one client no more than its share, however slowly it reads.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};

use crate::shares::{Client, Part, Shares};

/// Bytes that are handed over at a time. An answer that is no longer needs no room.
pub(super) const PIECE_BYTES: usize = 16 << 10;
/// Room for the answers that every user of the host may have, and for one client, KiB.
const OPEN_KIB: usize = 4 << 10;
const OPEN_KIB_OF_ONE: usize = 1 << 10;
/// The same for all others.
const KIB: usize = 16 << 10;
const KIB_OF_ONE: usize = 8 << 10;

/// The memory for answers.
#[derive(Debug, Clone)]
pub(super) struct Room {
    open: Shares,
    others: Shares,
}

/// An answer, a piece after the other. It holds its room until the last one was taken.
pub(super) struct Pieces {
    answer: Bytes,
    at: usize,
    /// Dropped with the answer.
    _room: Option<Part>,
}

impl Room {
    pub(super) fn new() -> Self {
        Self { open: Shares::new(OPEN_KIB, OPEN_KIB_OF_ONE), others: Shares::new(KIB, KIB_OF_ONE) }
    }

    /// The answer with room for it; nothing if there is none. An answer that is longer than all room takes all of it.
    pub(super) fn answer(&self, client: Client, is_open: bool, answer: Bytes) -> Option<Pieces> {
        let (shares, all) = if is_open { (&self.open, OPEN_KIB) } else { (&self.others, KIB) };
        let room = match answer.len() {
            0..=PIECE_BYTES => None,
            bytes => Some(shares.take_many(client, bytes.div_ceil(1 << 10).min(all))?),
        };
        Some(Pieces { answer, at: 0, _room: room })
    }
}

impl Pieces {
    /// A short answer.
    pub(super) fn short(answer: Bytes) -> Self {
        Self { answer, at: 0, _room: None }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let end = self.answer.len().min(self.at + PIECE_BYTES);
        if self.at == end {
            return Poll::Ready(None);
        }
        // A copy: what was taken and not yet sent must not hold the whole answer.
        let piece = Bytes::copy_from_slice(&self.answer[self.at..end]);
        self.at = end;
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.at == self.answer.len()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact((self.answer.len() - self.at) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kib(count: usize) -> Bytes {
        Bytes::from(vec![b'x'; count << 10])
    }

    #[test]
    fn answers_that_nobody_reads_take_no_more_than_their_room() {
        let room = Room::new();
        let held = |client: u32, is_open: bool, each: usize| -> Vec<Pieces> {
            std::iter::from_fn(|| room.answer(Client::User(client), is_open, kib(each))).take(1_000).collect()
        };
        let one = held(1, false, 1_000);
        assert_eq!(one.len(), 8, "one client has its share");
        let another = held(2, false, 1_000);
        assert_eq!(another.len(), 8);
        assert!(room.answer(Client::User(3), false, kib(1_000)).is_none() && room.answer(Client::User(3), false, kib(16)).is_some());
        let scraped = held(1, true, 300);
        assert_eq!((scraped.len(), held(2, true, 300).len()), (3, 3), "what all may have has room of its own");
        drop((one, another));
        assert!(room.answer(Client::User(3), false, kib(20_000)).is_some(), "a single one may have any length");
    }

    #[test]
    fn an_answer_is_given_in_pieces_of_their_own() {
        let answer: Vec<u8> = (0..PIECE_BYTES * 2 + 5).map(|at| (at % 251) as u8).collect();
        let mut pieces = Room::new().answer(Client::User(1), false, answer.clone().into()).unwrap();
        assert_eq!(pieces.size_hint().exact(), Some(answer.len() as u64));
        let (mut all, mut context) = (Vec::new(), Context::from_waker(std::task::Waker::noop()));
        while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut pieces).poll_frame(&mut context) {
            let piece = frame.into_data().unwrap();
            assert!(piece.len() <= PIECE_BYTES && !pieces.answer.as_ptr_range().contains(&piece.as_ptr()));
            all.extend_from_slice(&piece);
        }
        assert!(all == answer && pieces.is_end_stream());
    }
}
