//! When a closed loop opens its connections: the first time, and again after connecting failed at once; and for how long connections were not to be had.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Time between the first openings of two connections, nanoseconds. A server with room for five that wait to be accepted (`SOMAXCONN` of old programs) accepts
/// that many in a few milliseconds. All at once would be a burst of our own making.
const APART_NS: u64 = 1_000_000;
/// The time in which all connections are opened, nanoseconds: the more there are, the closer they come.
const OPENING_NS_MAX: u64 = 200_000_000;

/// The connections of one thread that have not started their first request, and when they do.
#[derive(Debug)]
pub(crate) struct Opening {
    fresh: Range<u32>,
    apart_ns: u64,
    first_ns: u64,
}

impl Opening {
    /// `count` of the `all` connections, which `threads` threads open in turn. Where a number of requests is asked for, all come at once: they could be answered
    /// before the last connection is open.
    pub(crate) fn new(count: u32, (all, is_counted): (u32, bool), (thread, threads): (u32, u32)) -> Self {
        let apart_ns = if is_counted { 0 } else { APART_NS.min(OPENING_NS_MAX / u64::from(all.max(1))) };
        Opening { fresh: 0..count, apart_ns: apart_ns * u64::from(threads), first_ns: apart_ns * u64::from(thread) }
    }

    /// A connection that is due.
    pub(crate) fn pop(&mut self, now_ns: u64) -> Option<u32> {
        self.next_ns().filter(|due_ns| *due_ns <= now_ns).and_then(|_| self.fresh.next())
    }

    /// When the next connection is due.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        (!self.fresh.is_empty()).then(|| self.first_ns + u64::from(self.fresh.start) * self.apart_ns)
    }

    /// How many are left.
    pub(crate) fn left(&self) -> u64 {
        self.fresh.len() as u64
    }
}

/// The pause after the first, second, ... consecutive failure, nanoseconds; the last one repeats.
const PAUSES_NS: [u64; 8] = [1_000_000, 2_000_000, 4_000_000, 8_000_000, 16_000_000, 32_000_000, 64_000_000, 100_000_000];

/// One queue for each pause length. Within a queue connections become due in order, so no sorting is needed.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    queues: [VecDeque<(u64, u32)>; PAUSES_NS.len()],
    count: usize,
    /// Since when each connection that was refused has not been had, nanoseconds.
    missing: BTreeMap<u32, u64>,
    /// Time for which connections could not be had and then were, summed over them.
    missed_ns: u64,
}

impl Pauses {
    /// Pauses the connection. `failures`: consecutive failed attempts, at least one. A connection has at most one entry.
    pub(crate) fn add(&mut self, connection: u32, failures: u8, now_ns: u64) {
        let level = usize::from(failures.saturating_sub(1)).min(PAUSES_NS.len() - 1);
        self.queues[level].push_back((now_ns + PAUSES_NS[level], connection));
        self.count += 1;
    }

    /// The connection could not be had.
    pub(crate) fn miss(&mut self, connection: u32, now_ns: u64) {
        self.missing.entry(connection).or_insert(now_ns);
    }

    /// The connection was established after it had failed. What lies before `from_ns` is not counted.
    pub(crate) fn had(&mut self, connection: u32, from_ns: u64, now_ns: u64) {
        self.missed_ns += self.missing.remove(&connection).map_or(0, |since_ns| now_ns.saturating_sub(since_ns.max(from_ns)));
    }

    /// Time until `now_ns` for which connections could not be had, summed over them, nanoseconds. What lies before `from_ns` is not counted.
    pub(crate) fn missed_ns(&self, from_ns: u64, now_ns: u64) -> u64 {
        self.missed_ns + self.missing.values().map(|since_ns| now_ns.saturating_sub((*since_ns).max(from_ns))).sum::<u64>()
    }

    /// A connection whose pause has ended.
    pub(crate) fn pop(&mut self, now_ns: u64) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        let queue = self.queues.iter_mut().find(|queue| queue.front().is_some_and(|&(due, _)| due <= now_ns))?;
        let (_, connection) = queue.pop_front()?;
        self.count -= 1;
        Some(connection)
    }

    /// When the next pause ends.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.queues.iter().filter_map(|queue| queue.front().map(|&(due, _)| due)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_opened_one_after_another_and_many_in_a_fifth_of_a_second() {
        let opened = |opening: &mut Opening, now_ns: u64| std::iter::from_fn(|| opening.pop(now_ns)).collect::<Vec<u32>>();
        let mut second = Opening::new(3, (6, false), (1, 2));
        assert_eq!((opened(&mut second, 999_999), second.next_ns(), second.left()), (vec![], Some(1_000_000), 3));
        assert_eq!((opened(&mut second, 3_000_000), second.next_ns()), (vec![0, 1], Some(5_000_000)));
        assert_eq!((opened(&mut second, 5_000_000), second.next_ns(), second.left()), (vec![2], None, 0));
        let mut many = Opening::new(10_000, (10_000, false), (0, 1));
        assert_eq!(opened(&mut many, OPENING_NS_MAX).len(), 10_000);
        let mut counted = Opening::new(4, (4, true), (0, 1));
        assert_eq!(opened(&mut counted, 0).len(), 4);
    }

    #[test]
    fn pauses_grow_up_to_a_maximum() {
        let mut pauses = Pauses::default();
        assert_eq!((pauses.pop(0), pauses.next_ns()), (None, None));
        pauses.add(1, 200, 0);
        pauses.add(2, 1, 0);
        pauses.add(3, 2, 0);
        pauses.add(4, 1, 500_000);
        assert_eq!(pauses.next_ns(), Some(1_000_000));
        assert_eq!(pauses.pop(999_999), None);
        let mut order = Vec::new();
        for now_ns in [1_000_000, 1_500_000, 2_000_000, 99_999_999, 100_000_000] {
            while let Some(connection) = pauses.pop(now_ns) {
                order.push((now_ns, connection));
            }
        }
        assert_eq!(order, [(1_000_000, 2), (1_500_000, 4), (2_000_000, 3), (100_000_000, 1)]);
        assert_eq!(pauses.next_ns(), None);
    }

    #[test]
    fn time_without_a_connection_counts_from_the_first_failure_to_the_connection_or_to_the_end() {
        let mut pauses = Pauses::default();
        for (connection, now_ns) in [(1, 1_000), (2, 2_000), (1, 3_000)] {
            pauses.miss(connection, now_ns);
        }
        assert_eq!(pauses.missed_ns(0, 10_000), 9_000 + 8_000);
        pauses.had(1, 0, 5_000);
        pauses.had(3, 0, 5_000);
        assert_eq!(pauses.missed_ns(0, 10_000), 4_000 + 8_000);
        // The warm-up ends at 6,000.
        assert_eq!(pauses.missed_ns(6_000, 10_000), 4_000 + 4_000);
        pauses.had(2, 6_000, 7_000);
        assert_eq!(pauses.missed_ns(6_000, 10_000), 5_000);
    }
}
