//! Counts over time, in buckets of ten milliseconds. Buckets get longer in a long load, so that their number stays bounded.

use chokepoint_model::load::{Point, Series};

/// Length of a slice, nanoseconds.
pub(crate) const SLICE_NS: u64 = 100_000_000;
/// Initial length of a bucket, milliseconds.
const INTERVAL_MS: u32 = 10;
/// Maximum number of buckets: a minute at the initial length. When it is reached, pairs are merged and the length doubles.
const POINTS_MAX: usize = 6_000;

/// One thread's series. The caller must end buckets ([`Timeline::end_due_buckets`]) before counting.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    origin_ns: u64,
    interval_ms: u32,
    points: Vec<Point>,
    point: Point,
    end_ns: u64,
}

impl Timeline {
    /// `origin_ns`: nothing is counted before it.
    pub(crate) fn new(origin_ns: u64) -> Self {
        let mut timeline = Timeline { origin_ns, interval_ms: INTERVAL_MS, points: Vec::new(), point: Point::default(), end_ns: 0 };
        timeline.end_ns = timeline.next_end_ns();
        timeline
    }

    /// Reserves memory for a load of this length.
    pub(crate) fn reserve(&mut self, duration_ns: u64) {
        self.points.reserve(((duration_ns / (u64::from(INTERVAL_MS) * 1_000_000) + 1) as usize).min(POINTS_MAX));
    }

    fn next_end_ns(&self) -> u64 {
        self.origin_ns + (self.points.len() as u64 + 1) * u64::from(self.interval_ms) * 1_000_000
    }

    /// Ends buckets whose time is over. `in_flight`: requests in flight since the last call.
    #[inline(always)]
    pub(crate) fn end_due_buckets(&mut self, now_ns: u64, in_flight: u32) {
        while now_ns >= self.end_ns {
            self.close(in_flight);
        }
    }

    #[cold]
    fn close(&mut self, in_flight: u32) {
        let point = Point { in_flight, ..std::mem::take(&mut self.point) };
        self.points.push(point);
        if self.points.len() == POINTS_MAX {
            self.merge_pairs();
        }
        self.end_ns = self.next_end_ns();
    }

    /// A request starts.
    pub(crate) fn start(&mut self) {
        self.point.started += 1;
    }

    /// An expected answer.
    pub(crate) fn good(&mut self, latency_ns: u64) {
        self.point.good += 1;
        self.latency(latency_ns);
    }

    /// An answer with another status.
    pub(crate) fn wrong(&mut self, latency_ns: u64) {
        self.point.wrong += 1;
        self.latency(latency_ns);
    }

    /// A request ends without an answer.
    pub(crate) fn failed(&mut self, latency_ns: u64) {
        self.point.failed += 1;
        self.latency(latency_ns);
    }

    fn latency(&mut self, latency_ns: u64) {
        let latency_us = latency_ns / 1000;
        self.point.latency_us_sum = self.point.latency_us_sum.saturating_add(latency_us);
        self.point.latency_us_max = self.point.latency_us_max.max(u32::try_from(latency_us).unwrap_or(u32::MAX));
    }

    /// Ends the last bucket, however short it is.
    pub(crate) fn finish(&mut self, in_flight: u32) {
        if self.point != Point::default() {
            self.close(in_flight);
        }
    }

    /// Merges each pair of buckets.
    fn merge_pairs(&mut self) {
        for pair in 0..self.points.len().div_ceil(2) {
            let mut sum = self.points[2 * pair];
            if let Some(second) = self.points.get(2 * pair + 1) {
                add(&mut sum, second);
                sum.in_flight = second.in_flight;
            }
            self.points[pair] = sum;
        }
        self.points.truncate(self.points.len().div_ceil(2));
        self.interval_ms *= 2;
    }

    /// Adds another thread's counts with the same origin.
    pub(crate) fn add(&mut self, mut other: Timeline) {
        while self.interval_ms < other.interval_ms {
            self.merge_pairs();
        }
        while other.interval_ms < self.interval_ms {
            other.merge_pairs();
        }
        self.points.resize(self.points.len().max(other.points.len()), Point::default());
        for (sum, point) in self.points.iter_mut().zip(&other.points) {
            add(sum, point);
            sum.in_flight = sum.in_flight.saturating_add(point.in_flight);
        }
    }

    pub(crate) fn into_series(self) -> Series {
        Series { interval_ms: self.interval_ms, points: self.points }
    }
}

/// Adds everything except requests in flight.
fn add(sum: &mut Point, other: &Point) {
    sum.started = sum.started.saturating_add(other.started);
    sum.good = sum.good.saturating_add(other.good);
    sum.wrong = sum.wrong.saturating_add(other.wrong);
    sum.failed = sum.failed.saturating_add(other.failed);
    sum.latency_us_sum = sum.latency_us_sum.saturating_add(other.latency_us_sum);
    sum.latency_us_max = sum.latency_us_max.max(other.latency_us_max);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn events_are_counted_in_their_buckets() {
        let mut timeline = Timeline::new(100 * MS);
        timeline.end_due_buckets(105 * MS, 0);
        timeline.start();
        timeline.end_due_buckets(131 * MS, 1);
        timeline.good(26 * MS);
        timeline.start();
        timeline.failed(4 * MS);
        timeline.finish(0);
        let series = timeline.into_series();
        let started = Point { started: 1, in_flight: 1, ..Point::default() };
        let still = Point { in_flight: 1, ..Point::default() };
        let last = Point { started: 1, good: 1, failed: 1, latency_us_sum: 30_000, latency_us_max: 26_000, ..Point::default() };
        assert_eq!((series.interval_ms, series.points), (10, vec![started, still, still, last]));
    }

    #[test]
    fn a_long_load_loses_nothing_and_has_bounded_buckets() {
        // An hour, with a request every 7 ms that takes 1 ms.
        let mut timeline = Timeline::new(0);
        let mut now_ns = 0;
        let mut requests = 0u64;
        while now_ns < 3_600_000 * MS {
            timeline.end_due_buckets(now_ns, 0);
            timeline.start();
            timeline.end_due_buckets(now_ns + MS, 1);
            timeline.good(MS);
            requests += 1;
            now_ns += 7 * MS;
        }
        timeline.finish(0);
        let series = timeline.into_series();
        assert!(series.points.len() < POINTS_MAX && series.points.len() >= POINTS_MAX / 2, "{}", series.points.len());
        assert_eq!(series.interval_ms, 10 << 6, "6,000 buckets of 640 ms are a little over an hour");
        assert_eq!(series.points.iter().map(|point| u64::from(point.started)).sum::<u64>(), requests);
        assert_eq!(series.points.iter().map(|point| point.latency_us_sum).sum::<u64>(), requests * 1000);
        let expected = f64::from(series.interval_ms) / 7.0;
        let off = series.points[..series.points.len() - 1].iter().find(|point| (f64::from(point.started) - expected).abs() > 1.0);
        assert_eq!(off, None, "each has as many as its length says");
    }

    #[test]
    fn threads_with_different_bucket_lengths_are_added() {
        let mut long = Timeline::new(0);
        long.start();
        long.end_due_buckets(POINTS_MAX as u64 * 10 * MS, 2);
        let mut short = Timeline::new(0);
        short.end_due_buckets(25 * MS, 3);
        short.start();
        short.finish(1);
        let copy = |of: &Timeline| Timeline { points: of.points.clone(), interval_ms: of.interval_ms, ..Timeline::new(0) };
        for (mut one, other) in [(copy(&long), copy(&short)), (short, long)] {
            one.add(other);
            let series = one.into_series();
            assert_eq!((series.interval_ms, series.points.len()), (20, POINTS_MAX / 2));
            let in_flight: Vec<u32> = series.points[..3].iter().map(|point| point.in_flight).collect();
            assert_eq!(in_flight, [5, 3, 2], "what was under way at the end of each");
            assert_eq!((series.points[0].started, series.points[1].started), (1, 1));
        }
    }
}
