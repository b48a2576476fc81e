//! Ends connections whose answer is complete. The server may end its side first, but must never be kept waiting for ours.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Engine;

/// How long a server's end is awaited, nanoseconds. To the server this is a client that is so far away.
const WAIT_NS_MAX: u64 = 5_000_000;

/// How often the server ended a connection by itself, and how often that was awaited in vain. All threads of a load share what they learn.
#[derive(Debug, Default)]
pub(crate) struct ServerEnds {
    ended: AtomicU64,
    in_vain: AtomicU64,
}

impl ServerEnds {
    fn note_ended(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether another end is worth waiting for: two of three came so far. If none came, a connection is tried at the start of the load and after 1, 3, 7, 15, ... seconds,
    /// since a server that waits for our end does no other work meanwhile.
    fn are_likely(&self, now_ns: u64) -> bool {
        let tries = (now_ns / 1_000_000_000 + 1).ilog2();
        self.in_vain.load(Ordering::Relaxed) <= u64::from(tries) + self.ended.load(Ordering::Relaxed) / 2
    }
}

/// The connections of a thread whose server's end is awaited.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Until when, slot, generation: in order of time. As many as connections end in [`WAIT_NS_MAX`].
    queue: VecDeque<(u64, u32, u8)>,
    /// When a wait in vain was last counted. Others of that time prove nothing new: a server that could not run for a while ended none of its connections.
    counted_ns: Option<u64>,
}

impl Waits {
    /// When the first wait ends.
    pub(crate) fn next_ns(&self) -> u64 {
        self.queue.front().map_or(u64::MAX, |&(until_ns, ..)| until_ns)
    }

    fn note_in_vain(&mut self, ends: &ServerEnds, now_ns: u64) {
        if self.counted_ns.is_none_or(|counted_ns| now_ns >= counted_ns + WAIT_NS_MAX) {
            self.counted_ns = Some(now_ns);
            ends.in_vain.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Engine<'_> {
    /// Closes a connection whose answer is complete and that carries no other request, as every client does. The side that closes first keeps the port in TIME_WAIT for a minute.
    /// With a client on another host that is the server if it closes at all by itself, since its end travels with the answer. Here it may come a little
    /// after the answer, so it is awaited for a moment. Otherwise this host would run out of ports.
    #[inline(never)]
    pub(super) fn close_answered(&mut self, index: u32, now_ns: u64) {
        let (slot, ends) = (&mut self.slots[index as usize], &self.shared.server_ends);
        if slot.has_peer_ended() {
            ends.note_ended();
            slot.close();
        } else if slot.keeps_port() && ends.are_likely(now_ns) {
            let (generation, has_replaced) = slot.set_aside();
            if has_replaced {
                self.waits.note_in_vain(ends, now_ns);
            }
            self.waits.queue.push_back((now_ns + WAIT_NS_MAX, index, generation));
        } else {
            slot.close();
        }
    }

    /// An event of a connection that its slot has done with.
    #[inline(never)]
    pub(super) fn advance_previous(&mut self, index: u32, generation: u8, is_read_closed: bool) {
        let slot = &mut self.slots[index as usize];
        if slot.is_set_aside(generation) && slot.is_end_of_previous(is_read_closed, &mut self.buffer) {
            self.shared.server_ends.note_ended();
            slot.end_previous();
        }
    }

    /// Closes the connections whose server's end was awaited long enough.
    #[inline(always)]
    pub(super) fn end_waits(&mut self, now_ns: u64) {
        while let Some(&(until_ns, index, generation)) = self.waits.queue.front() {
            let slot = &mut self.slots[index as usize];
            let is_awaited = slot.is_set_aside(generation);
            if is_awaited && now_ns < until_ns {
                return;
            }
            if is_awaited {
                slot.end_previous();
                self.waits.note_in_vain(&self.shared.server_ends, now_ns);
            }
            self.waits.queue.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn a_server_that_waits_for_our_end_is_tried_ever_more_seldom() {
        let ends = ServerEnds::default();
        let mut waits = Waits::default();
        let mut tried_s = Vec::new();
        for tenth in 0..200 {
            let now_ns = tenth * SECOND_NS / 10;
            if ends.are_likely(now_ns) {
                waits.note_in_vain(&ends, now_ns);
                tried_s.push(tenth / 10);
            }
        }
        assert_eq!(tried_s, [0, 1, 3, 7, 15]);
    }

    #[test]
    fn a_server_that_ends_is_waited_for_even_if_it_is_sometimes_late() {
        let ends = ServerEnds::default();
        let mut waits = Waits::default();
        // A slow start: many waits at the same time count once.
        (0..100).for_each(|nth| waits.note_in_vain(&ends, nth * 10_000));
        assert!(!ends.are_likely(0), "none has ended");
        (0..2).for_each(|_| ends.note_ended());
        assert!(ends.are_likely(0));
        for tenth in 1..10_000 {
            ends.note_ended();
            if tenth % 3 == 0 {
                waits.note_in_vain(&ends, tenth * WAIT_NS_MAX);
            }
            assert!(ends.are_likely(0), "after {tenth}");
        }
    }
}
