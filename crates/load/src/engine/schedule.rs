//! The intended starts of an open loop: evenly spaced at a constant rate, or as stages define. Threads take them in turn.

use crate::engine::stages::{self, Segment, Stages};

/// When the requests of all threads come due.
#[derive(Debug)]
enum Rate {
    /// Request k is due at k / rate.
    Constant(f64),
    /// Request k is due when the area below the rate exceeds k.
    Staged(Vec<Segment>),
}

/// One thread's part of the schedule. Thread t of n has the requests k = t, t + n, t + 2n, ...
#[derive(Debug)]
pub(crate) struct Schedule {
    rate: Rate,
    threads: u64,
    /// Number of the next request, counted over all threads.
    next: u64,
    /// Total number of requests, if one was given.
    limit: u64,
}

impl Schedule {
    /// `limit`: the number of requests to start at or after `warm_ns`; earlier ones are additional. Stages begin at `warm_ns` and replace the rate. A warm-up
    /// before them uses the rate at which they start.
    pub(crate) fn new(rate_per_s: f64, stages: Option<&Stages>, thread: u32, threads: u32, limit: Option<u64>, warm_ns: u64) -> Self {
        let rate = stages.map_or(Rate::Constant(rate_per_s), |stages| Rate::Staged(stages::segments(stages, warm_ns)));
        let mut schedule = Schedule { rate, threads: u64::from(threads), next: u64::from(thread), limit: u64::MAX };
        schedule.limit = limit.map_or(u64::MAX, |limit| schedule.before(warm_ns).saturating_add(limit));
        schedule
    }

    /// Requests of all threads whose intended start lies before `end_ns`.
    fn before(&self, end_ns: u64) -> u64 {
        // The first k with k / rate >= end. The division may be off by one, so the comparison decides.
        let about = match &self.rate {
            Rate::Constant(rate_per_s) => end_ns as f64 * rate_per_s / 1e9,
            Rate::Staged(segments) => stages::before(segments, end_ns),
        };
        let mut bound = about.ceil() as u64;
        while bound > 0 && self.intended_ns(bound - 1) >= end_ns {
            bound -= 1;
        }
        while self.intended_ns(bound) < end_ns {
            bound += 1;
        }
        bound
    }

    /// Intended start of the next request, nanoseconds since the start of the load; `None` after the last one.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        (self.next < self.limit).then(|| self.intended_ns(self.next))
    }

    /// Moves on to this thread's next request.
    pub(crate) fn advance(&mut self) {
        self.next += self.threads;
    }

    /// Requests of this thread whose intended start lies before `end_ns` and that have not been taken.
    pub(crate) fn unsent(&self, end_ns: u64) -> u64 {
        self.before(end_ns).min(self.limit).saturating_sub(self.next).div_ceil(self.threads)
    }

    /// Intended start of this thread's nth request that has not been taken, counted from 0.
    pub(crate) fn unsent_ns(&self, nth: u64) -> u64 {
        self.intended_ns(self.next + nth * self.threads)
    }

    /// Exact to the nanosecond up to 2^53 ns, 104 days.
    fn intended_ns(&self, request: u64) -> u64 {
        match &self.rate {
            Rate::Constant(rate_per_s) => (request as f64 * 1e9 / rate_per_s) as u64,
            Rate::Staged(segments) => stages::intended_ns(segments, request),
        }
    }

    /// Number of the next request, counted over all threads.
    pub(crate) fn number(&self) -> u64 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_starts_of_all_threads_are_evenly_spaced() {
        let mut starts = Vec::new();
        for thread in 0..3 {
            let mut schedule = Schedule::new(250.0, None, thread, 3, Some(10), 0);
            while let Some(start) = schedule.next_ns() {
                starts.push(start);
                schedule.advance();
            }
        }
        starts.sort_unstable();
        assert_eq!(starts, (0..10).map(|k| k * 4_000_000).collect::<Vec<u64>>());
    }

    #[test]
    fn unsent_counts_exactly_the_requests_due_before_the_end() {
        let stages = Stages::parse(0.0, "2s:700,0s:100,1s:0,3s:0,8s:3000").unwrap_or_else(|error| panic!("{error}"));
        for (rate, stages) in [0.1, 3.0, 7.3, 1000.0, 123_456.7].map(|rate| (rate, None)).into_iter().chain([(0.0, Some(&stages))]) {
            for end_ns in [0, 1, 999_999_999, 1_000_000_000, 1_000_000_001, 3_000_000_000, 5_999_999_999, 12_345_678_901, 14_000_000_000] {
                for thread in 0..2 {
                    let mut schedule = Schedule::new(rate, stages, thread, 2, None, 0);
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
