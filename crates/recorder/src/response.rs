//! How long requests take: from the access log, or from the sockets alone.

use chokepoint_statistics::histogram::bounds;
use chokepoint_statistics::residence::{Ages, Lasting};
use serde::{Deserialize, Serialize};

use crate::sample::{Durations, TargetSample};

/// Fewest ages that tell a distribution.
const AGES_MIN: u64 = 100;
/// Fewest answers of a log that tell percentiles (DESIGN: "fewer than 30 good answers").
const ANSWERS_MIN: u64 = 30;
/// Servers log whole milliseconds: a median below one is none.
const LOGGED_US: f64 = 1_000.0;
/// The durations of a log that are response times.
const OF_REQUESTS: &str = "request";
/// Reading the sockets takes a core, on which a busy server or its client then waits, and each request becomes older by up to that time. A median that is so many times as
/// long is right to within a tenth (docs/watch/measured.md),
const RESOLVED_TIMES: f64 = 10.0;
/// and one of this many microseconds: when each socket was read after a tick is known to within some dozen microseconds.
const RESOLVED_US: f64 = 250.0;

/// Requests without an answer, each once for every sample that met it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Unanswered {
    /// The kernel's clock tick, microseconds.
    pub tick_us: u64,
    /// The most that the time since each request came can be, microseconds. It is less by at most a tick.
    pub ages_us: Durations,
    /// The mean time that reading the sockets took, microseconds.
    #[serde(default)]
    pub took_us: u64,
}

/// What response times were made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResponseSource {
    /// The access log.
    Log,
    /// The ages of unanswered requests, and Little's law for the mean.
    Sockets,
}

/// How long requests take.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ResponseTimes {
    /// What they were made of.
    pub source: ResponseSource,
    /// Mean, microseconds.
    pub mean_us: f64,
    /// The times that half, 95 % and 99 % of the requests do not exceed, microseconds.
    pub p50_us: f64,
    /// See `p50_us`.
    pub p95_us: f64,
    /// See `p50_us`.
    pub p99_us: f64,
}

impl ResponseTimes {
    /// From the log if it has response times, else from the sockets.
    pub fn of(sample: &TargetSample) -> Option<Self> {
        Self::of_log(sample).filter(|times| times.p50_us >= LOGGED_US).or_else(|| Self::of_sockets(sample))
    }

    fn of_log(sample: &TargetSample) -> Option<Self> {
        let counts = &sample.logged.as_ref()?.durations_us.get(OF_REQUESTS)?.0;
        let [p50_us, p95_us, p99_us] = [0.5, 0.95, 0.99].map(|share| counts.percentile(share).map(|us| us as f64));
        let mean_us = counts.mean().filter(|_| counts.total() >= ANSWERS_MIN)?;
        Some(Self { source: ResponseSource::Log, mean_us, p50_us: p50_us?, p95_us: p95_us?, p99_us: p99_us? })
    }

    /// From the sockets alone. `None` if too few unanswered requests were met, or if most are answered sooner than their ages resolve.
    pub fn of_sockets(sample: &TargetSample) -> Option<Self> {
        let (unanswered, mean_us) = (sample.unanswered.as_ref()?, 1e6 * sample.response_s()?);
        let lasting = unanswered.lasting()?;
        let [p50_us, p95_us, p99_us] = [0.5, 0.95, 0.99].map(|share| lasting.percentile(share, mean_us).round());
        let resolved_us = RESOLVED_US.max(RESOLVED_TIMES * unanswered.took_us as f64);
        (p50_us >= resolved_us).then_some(Self { source: ResponseSource::Sockets, mean_us: mean_us.round(), p50_us, p95_us, p99_us })
    }
}

impl Unanswered {
    /// The most likely durations for these ages.
    fn lasting(&self) -> Option<Lasting> {
        let (buckets, ..) = self.ages_us.0.parts();
        let ages = |(bucket, count): &(u16, u64)| {
            let (from, to) = bounds(*bucket);
            Ages { from: from.saturating_sub(self.tick_us) as f64, to: to as f64 + 1.0, count: *count as f64 }
        };
        (self.ages_us.0.total() >= AGES_MIN).then(|| Lasting::of(&buckets.iter().map(ages).collect::<Vec<_>>()))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chokepoint_statistics::histogram::Histogram;

    use crate::sample::{Logged, Mean};

    #[test]
    fn ages_tell_how_long_requests_take_unless_they_are_few_or_short() {
        let slow = |ages_us: &[u64], rate: f64, took_us: u64| {
            let (under_way, rate) = (Mean::of(Some(8.0), 1.0), Mean::of(Some(rate), 1.0));
            let mut sample = TargetSample { under_way, rate, ..TargetSample::default() };
            sample.see_unanswered(ages_us, 4_000, took_us);
            ResponseTimes::of_sockets(&sample)
        };
        let of = |ages_us: &[u64], rate: f64| slow(ages_us, rate, 0);
        // Any age up to the whole time is equally likely. The kernel counts the ticks since then, and the time since the last one is known.
        let even = |lasts_us: u64| -> Vec<u64> {
            let one = |n: u64| {
                let (age_us, since_tick_us) = (n * 7_919 % lasts_us, n * 104_729 % 4_000);
                // Ticks between the two moments.
                let ticks = (age_us + 4_000 - since_tick_us - 1) / 4_000;
                4_000 * ticks + since_tick_us
            };
            (0..4_000).map(one).collect()
        };
        for lasts_us in [80_000, 10_000, 3_000, 1_000] {
            let times = of(&even(lasts_us), 8e6 / lasts_us as f64).unwrap();
            let p50 = times.p50_us / lasts_us as f64;
            assert!((0.9..1.1).contains(&p50), "{lasts_us}: {p50}");
        }
        assert!(of(&even(80_000)[..50], 100.0).is_none(), "too few");
        assert!(of(&[40; 400], 200_000.0).is_none(), "too short");
        assert!(slow(&even(10_000), 800.0, 800).is_some() && slow(&even(10_000), 800.0, 1_500).is_none(), "reading them takes as long");
        assert!(of(&[], 100.0).is_none());
    }

    #[test]
    fn a_log_with_response_times_is_preferred() {
        let mut histogram = Histogram::default();
        (0..100).for_each(|n| histogram.add(1_000 * n));
        let log = |name: &str| Logged { durations_us: [(name.to_owned(), Durations(histogram.counts()))].into(), ..Logged::default() };
        let of = |logged: Logged| ResponseTimes::of(&TargetSample { logged: Some(logged), ..TargetSample::default() });
        let times = of(log(OF_REQUESTS)).unwrap();
        assert!(times.source == ResponseSource::Log && (49_000.0..51_000.0).contains(&times.p50_us), "{times:?}");
        assert_eq!(of(log("upstream-response")), None);
    }
}
