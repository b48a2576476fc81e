//! Sends a request once more whose kept connection the server has closed without having said so.

use super::Engine;
use crate::results::outcome::{Ended, Failure, RequestEnd};

impl Engine<'_> {
    /// True if the server closed a kept connection before any byte of an answer. It may have done so before it saw the request, so that every client sends it once more on a new
    /// connection, if its method does no harm twice (RFC 9112, 9.3.1).
    #[inline(always)]
    pub(super) fn is_stale(&self, index: u32, ended: &Ended) -> bool {
        let RequestEnd::Failure(Failure::ClosedBeforeAnswer | Failure::Reset) = ended.end else { return false };
        let slot = &self.slots[index as usize];
        slot.carried > 1 && !slot.begun && self.shared.requests[slot.target as usize].is_idempotent
    }

    /// Sends the request in flight once more, on a new connection.
    #[inline(never)]
    pub(super) fn open_again(&mut self, index: u32) -> Option<Ended> {
        let slot = &mut self.slots[index as usize];
        slot.close();
        slot.renew(self.shared.requests[slot.target as usize].is_head);
        self.tally.resent += u64::from(slot.intended_ns >= self.warm_ns);
        self.open(index)
    }
}
