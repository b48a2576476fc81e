//! Sends a request once more where the server keeps no connection and does not say so.

use super::Engine;
use crate::results::outcome::{Ended, Failure, RequestEnd};

impl Engine<'_> {
    /// True if the server closed a connection behind its first answer, and this request, the second, met that. Every client sends it once more on a new connection, if its method does no
    /// harm twice (RFC 9112, 9.3.1). A connection that carried more was kept: one that is closed under a request then tells something of the server (no room, a restart, a race), and
    /// the request counts as failed.
    #[inline(always)]
    pub(super) fn is_stale(&self, index: u32, ended: &Ended) -> bool {
        let RequestEnd::Failure(Failure::ClosedBeforeAnswer | Failure::Reset) = ended.end else { return false };
        let slot = &self.slots[index as usize];
        slot.carried == 2 && !slot.begun && self.shared.requests[slot.target as usize].is_idempotent
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
