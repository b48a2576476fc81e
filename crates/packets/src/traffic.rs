//! What a capture carried over time: an I/O graph.

use serde::Serialize;

use crate::decode::tcp::{ACK, RST, SYN};
use crate::stream::{Effect, Sent};

/// The shortest step, nanoseconds, and the most columns: 60 kB in all.
const STEP_NS: i64 = 1_000_000;
const COLUMNS_MAX: usize = 1_024;

/// A capture in steps of equal length. Steps become longer with the capture, so that there are 513 to 1,024 of them, or fewer in a capture of less than a second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Begin of the first step, nanoseconds since 1970-01-01 UTC.
    pub begin_ns: i64,
    /// Length of a step, nanoseconds.
    pub step_ns: i64,
    /// The steps from the first to the last packet. What was captured before the first packet counts in the first step.
    pub steps: Vec<Step>,
}

/// TCP in one step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Segments.
    pub segments: u64,
    /// Payload that clients sent, bytes, with retransmissions.
    pub client_bytes: u64,
    /// Payload that servers sent.
    pub server_bytes: u64,
    /// Retransmitted segments of both sides.
    pub retransmissions: u64,
    /// First segments of connections: SYN without ACK.
    pub opened: u64,
    /// Resets.
    pub resets: u64,
}

impl Default for Traffic {
    fn default() -> Self {
        Self { begin_ns: 0, step_ns: STEP_NS, steps: Vec::new() }
    }
}

impl Traffic {
    /// Adds a segment. `flags`: of TCP. `bytes`: its payload.
    pub(crate) fn add(&mut self, flags: u8, bytes: u32, effect: &Effect, at_ns: i64) {
        if self.steps.is_empty() {
            self.begin_ns = at_ns;
        }
        let since_ns = at_ns.saturating_sub(self.begin_ns).max(0);
        while since_ns / self.step_ns >= COLUMNS_MAX as i64 {
            self.double();
        }
        // Below COLUMNS_MAX, as the loop ends only then.
        let place = (since_ns / self.step_ns) as usize;
        if self.steps.len() <= place {
            self.steps.resize(place + 1, Step::default());
        }
        let Some(step) = self.steps.get_mut(place) else { return };
        step.segments += 1;
        *(if effect.from_client { &mut step.client_bytes } else { &mut step.server_bytes }) += u64::from(bytes);
        step.retransmissions += u64::from(matches!(effect.sent, Sent::Again(_)));
        step.opened += u64::from(flags & (SYN | ACK) == SYN);
        step.resets += u64::from(flags & RST != 0);
    }

    /// Makes steps twice as long.
    fn double(&mut self) {
        self.step_ns = self.step_ns.saturating_mul(2);
        self.steps = self.steps.chunks(2).map(|pair| pair.iter().fold(Step::default(), |sum, step| sum.with(step))).collect();
    }
}

impl Step {
    fn with(self, other: &Self) -> Self {
        Self {
            segments: self.segments + other.segments,
            client_bytes: self.client_bytes + other.client_bytes,
            server_bytes: self.server_bytes + other.server_bytes,
            retransmissions: self.retransmissions + other.retransmissions,
            opened: self.opened + other.opened,
            resets: self.resets + other.resets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_become_longer_and_lose_nothing() {
        let mut traffic = Traffic::default();
        let effect = |from_client| Effect { from_client, sent: Sent::New, start: 1, acked: 0, in_flight: 0, window: 0 };
        for at_ms in 0..5_000_i64 {
            traffic.add(0, 10, &effect(at_ms % 2 == 0), at_ms * 1_000_000 + 7);
        }
        // An earlier packet, of another interface.
        traffic.add(SYN, 0, &effect(true), -5_000_000_000);
        let sum = traffic.steps.iter().fold(Step::default(), |sum, step| sum.with(step));
        assert_eq!(sum, Step { segments: 5_001, client_bytes: 25_000, server_bytes: 25_000, opened: 1, ..Step::default() });
        assert_eq!((traffic.step_ns, traffic.steps.len(), traffic.steps[0].opened), (8_000_000, 625, 1));
        // A clock that jumps by centuries.
        traffic.add(RST, 0, &effect(false), i64::MAX);
        assert!(traffic.steps.len() <= COLUMNS_MAX && traffic.steps.last().is_some_and(|step| step.resets == 1), "{}", traffic.steps.len());
    }
}
