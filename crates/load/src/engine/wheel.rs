//! A coarse timer wheel for a single timeout. A request costs it nothing; a connection is checked once per timeout.
//!
//! A connection is in at most one bucket. When its bucket comes due, its actual deadline is checked. If a later request has moved the deadline, the caller
//! arms the connection again. A deadline is noticed at most one tick late.

/// End of a bucket's list.
const NONE: u32 = u32::MAX;
/// Number of ticks in a timeout, within the bounds of a tick.
const TICKS: u64 = 250;
/// Shortest and longest tick, nanoseconds.
const TICK_NS_MIN: u64 = 1_000_000;
const TICK_NS_MAX: u64 = 100_000_000;

/// The wheel of one thread.
#[derive(Debug)]
pub(crate) struct Wheel {
    tick_ns: u64,
    /// First connection of each bucket.
    buckets: Vec<u32>,
    /// For each connection the next one in its bucket.
    next: Vec<u32>,
    armed: Vec<bool>,
    armed_count: usize,
    /// The last tick that was processed.
    tick: u64,
}

impl Wheel {
    pub(crate) fn new(connections: usize, timeout_ns: u64) -> Self {
        let tick_ns = (timeout_ns / TICKS).clamp(TICK_NS_MIN, TICK_NS_MAX);
        Wheel {
            tick_ns,
            buckets: vec![NONE; (timeout_ns / tick_ns + 3) as usize],
            next: vec![NONE; connections],
            armed: vec![false; connections],
            armed_count: 0,
            tick: 0,
        }
    }

    /// Ensures that the connection is checked soon after the deadline, which is at most one timeout after the last [`Wheel::expire`]. A later deadline may be
    /// checked too early, and is then armed again.
    #[inline(always)]
    pub(crate) fn arm(&mut self, connection: u32, deadline_ns: u64) {
        if !self.armed[connection as usize] {
            self.add(connection, deadline_ns);
        }
    }

    fn add(&mut self, connection: u32, deadline_ns: u64) {
        let index = connection as usize;
        let tick = (deadline_ns / self.tick_ns + 1).max(self.tick + 1);
        let bucket = (tick % self.buckets.len() as u64) as usize;
        self.next[index] = self.buckets[bucket];
        self.buckets[bucket] = connection;
        self.armed[index] = true;
        self.armed_count += 1;
    }

    /// Disarms every connection whose bucket has come due and adds it to `due`.
    pub(crate) fn expire(&mut self, now_ns: u64, due: &mut Vec<u32>) {
        let now_tick = now_ns / self.tick_ns;
        // After a long pause of this thread each bucket is due once.
        let first = (self.tick + 1).max((now_tick + 1).saturating_sub(self.buckets.len() as u64));
        for tick in first..=now_tick {
            let bucket = (tick % self.buckets.len() as u64) as usize;
            let mut connection = std::mem::replace(&mut self.buckets[bucket], NONE);
            while connection != NONE {
                let index = connection as usize;
                self.armed[index] = false;
                self.armed_count -= 1;
                due.push(connection);
                connection = self.next[index];
            }
        }
        self.tick = self.tick.max(now_tick);
    }

    /// When something may come due, if anything is armed.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        (self.armed_count > 0).then(|| (self.tick + 1) * self.tick_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn expired(wheel: &mut Wheel, now_ns: u64) -> Vec<u32> {
        let mut due = Vec::new();
        wheel.expire(now_ns, &mut due);
        due.sort_unstable();
        due
    }

    #[test]
    fn a_connection_is_due_once_after_its_deadline() {
        let mut wheel = Wheel::new(4, 500 * MS);
        wheel.arm(0, 500 * MS);
        wheel.arm(1, 500 * MS);
        assert_eq!(expired(&mut wheel, 100 * MS), []);
        wheel.arm(2, 600 * MS);
        wheel.arm(2, 900 * MS);
        assert_eq!(expired(&mut wheel, 499 * MS), []);
        assert_eq!(expired(&mut wheel, 503 * MS), [0, 1]);
        assert_eq!(expired(&mut wheel, 599 * MS), []);
        assert_eq!(expired(&mut wheel, 5000 * MS), [2]);
        assert_eq!(wheel.next_ns(), None);
        wheel.arm(3, 5500 * MS);
        assert_eq!(expired(&mut wheel, 6000 * MS), [3]);
    }

    proptest! {
        #[test]
        fn a_deadline_is_noticed_at_most_one_tick_late_and_never_early(timeout_ms in 1u64..5000, steps in proptest::collection::vec((0u32..8, 0u64..400), 1..200)) {
            let timeout = timeout_ms * MS;
            let mut wheel = Wheel::new(8, timeout);
            let mut deadline = [None; 8];
            let mut now = 0;
            for (connection, step_ms) in steps {
                now += step_ms * MS;
                for due in expired(&mut wheel, now) {
                    let at: u64 = deadline[due as usize].take().expect("was armed");
                    prop_assert!(at <= now);
                }
                for at in deadline.iter().flatten() {
                    prop_assert!(now < at + wheel.tick_ns, "{at} not found at {now}");
                }
                if deadline[connection as usize].is_none() {
                    deadline[connection as usize] = Some(now + timeout);
                    wheel.arm(connection, now + timeout);
                }
            }
        }
    }
}
