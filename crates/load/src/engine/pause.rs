//! Connections of a closed loop that wait before connecting again, because connecting failed at once.

use std::collections::VecDeque;

/// The pause after the first, second, ... consecutive failure, nanoseconds; the last one repeats.
const PAUSES_NS: [u64; 8] = [1_000_000, 2_000_000, 4_000_000, 8_000_000, 16_000_000, 32_000_000, 64_000_000, 100_000_000];

/// One queue for each pause length. Within a queue connections become due in order, so no sorting is needed.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    queues: [VecDeque<(u64, u32)>; PAUSES_NS.len()],
    count: usize,
}

impl Pauses {
    /// Pauses the connection. `failures`: consecutive failed attempts, at least one. A connection has at most one entry.
    pub(crate) fn add(&mut self, connection: u32, failures: u8, now_ns: u64) {
        let level = usize::from(failures.saturating_sub(1)).min(PAUSES_NS.len() - 1);
        self.queues[level].push_back((now_ns + PAUSES_NS[level], connection));
        self.count += 1;
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
}
