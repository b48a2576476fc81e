//! The intended starts of an open loop: evenly spaced over the whole rate and dealt out to the threads in turn.

/// One thread's part of the schedule. Request k of all starts at k / rate; thread t of n has k = t, t + n, t + 2n, ...
#[derive(Debug)]
pub(crate) struct Schedule {
    rate_per_s: f64,
    threads: u64,
    /// Number of the next request of all.
    next: u64,
    /// Requests in all, where a number was asked for.
    limit: u64,
}

impl Schedule {
    /// `limit`: requests to be started at or after `warm_ns`; those before come on top.
    pub(crate) fn new(rate_per_s: f64, thread: u32, threads: u32, limit: Option<u64>, warm_ns: u64) -> Self {
        let mut schedule = Schedule { rate_per_s, threads: u64::from(threads), next: u64::from(thread), limit: u64::MAX };
        schedule.limit = limit.map_or(u64::MAX, |limit| schedule.before(warm_ns).saturating_add(limit));
        schedule
    }

    /// Requests of all threads whose intended start lies before this.
    fn before(&self, end_ns: u64) -> u64 {
        // The first k with k / rate >= end; the division may be off by one, the comparison decides.
        let mut bound = (end_ns as f64 * self.rate_per_s / 1e9).ceil() as u64;
        while bound > 0 && self.intended_ns(bound - 1) >= end_ns {
            bound -= 1;
        }
        while self.intended_ns(bound) < end_ns {
            bound += 1;
        }
        bound
    }

    /// Intended start of the next request, nanoseconds from the start of the load; `None` after the last one.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        (self.next < self.limit).then(|| self.intended_ns(self.next))
    }

    /// Goes on to the request after the next.
    pub(crate) fn advance(&mut self) {
        self.next += self.threads;
    }

    /// Requests of this thread whose intended start lies before `end_ns` and which were not taken.
    pub(crate) fn unsent(&self, end_ns: u64) -> u64 {
        self.before(end_ns).min(self.limit).saturating_sub(self.next).div_ceil(self.threads)
    }

    /// Intended start of this thread's n-th request that was not taken, counted from 0.
    pub(crate) fn unsent_ns(&self, nth: u64) -> u64 {
        self.intended_ns(self.next + nth * self.threads)
    }

    /// Exact to the nanosecond for 2^53 ns, 104 days.
    fn intended_ns(&self, request: u64) -> u64 {
        (request as f64 * 1e9 / self.rate_per_s) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_together_have_every_start_once_and_evenly() {
        let mut starts = Vec::new();
        for thread in 0..3 {
            let mut schedule = Schedule::new(250.0, thread, 3, Some(10), 0);
            while let Some(start) = schedule.next_ns() {
                starts.push(start);
                schedule.advance();
            }
        }
        starts.sort_unstable();
        assert_eq!(starts, (0..10).map(|k| k * 4_000_000).collect::<Vec<u64>>());
    }

    #[test]
    fn unsent_counts_exactly_what_was_due_before_the_end() {
        for rate in [0.1, 3.0, 7.3, 1000.0, 123_456.7] {
            for end_ns in [0, 1, 999_999_999, 1_000_000_000, 1_000_000_001, 12_345_678_901] {
                for thread in 0..2 {
                    let mut schedule = Schedule::new(rate, thread, 2, None, 0);
                    let unsent = schedule.unsent(end_ns);
                    let mut taken = 0;
                    while schedule.next_ns().is_some_and(|start| start < end_ns) {
                        assert_eq!(schedule.next_ns(), Some(schedule.unsent_ns(0)));
                        schedule.advance();
                        taken += 1;
                    }
                    assert_eq!(unsent, taken, "rate {rate}, end {end_ns}, thread {thread}");
                    assert_eq!(schedule.unsent(end_ns), 0);
                }
            }
        }
    }
}
