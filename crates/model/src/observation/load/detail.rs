//! What a report on a load itself asks for beyond [`LoadResult`], which recordings hold.

use serde::{Deserialize, Serialize};

use super::{LoadResult, Percentiles};

/// A load's result and the details that only a report on the load itself shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What came of the load.
    pub result: LoadResult,
    /// More about it.
    pub detail: Detail,
}

/// More about a load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Detail {
    /// Time of load before anything was counted, microseconds.
    pub warm_up_us: u64,
    /// From the intended start to the first byte of the answer: of all answers, and of requests that failed after a part of theirs.
    pub first_byte_us: Percentiles,
    /// Mean latency, microseconds; 0 where no request ended.
    pub latency_us_mean: f64,
    /// Closed loop: latency with the requests that slow answers kept from being sent.
    pub corrected_latency_us: Option<Percentiles>,
    /// How many latencies lie where, in ascending order without gaps.
    pub distribution: Vec<Bucket>,
    /// From the connection to the end of the TLS handshake.
    pub tls_us: Percentiles,
    /// Open loop: those of `late` for which no connection was free.
    pub late_held: u64,
    /// Standard deviation of the latency, microseconds; 0 where no request ended.
    pub latency_us_stdev: f64,
    /// The latency's percentile distribution, ascending to the largest; empty where no request ended.
    pub quantiles: Vec<Quantile>,
    /// What happened when.
    pub series: Series,
    /// `struct tcp_info` of a sample of connections at the end of the offering, at most 64, each as the kernel gave it.
    pub tcp_info: Vec<Vec<u8>>,
}

/// A point of a percentile distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantile {
    /// Share of requests that took at most `value_us`, 0 to 1; the point at which the distribution was asked.
    pub quantile: f64,
    /// Microseconds.
    pub value_us: u64,
    /// Requests that took at most that.
    pub count: u64,
}

/// A time series of a load, from the end of its warm-up on and through the wait for the last answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Series {
    /// Length of a bucket, milliseconds: 10, and doubled until there are fewer than 6,000 of them.
    pub interval_ms: u32,
    /// The buckets.
    pub points: Vec<Point>,
}

/// A bucket of a time series.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Point {
    /// Requests begun.
    pub started: u32,
    /// Expected answers.
    pub good: u32,
    /// Answers with another status.
    pub wrong: u32,
    /// Requests that ended without an answer.
    pub failed: u32,
    /// Requests under way at the end of the bucket.
    pub in_flight: u32,
    /// Largest latency of those that ended, microseconds, at most 2^32 - 1.
    pub latency_us_max: u32,
    /// Sum of the latencies of those that ended, microseconds.
    pub latency_us_sum: u64,
}

/// Completed TLS handshakes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handshakes {
    /// With a certificate.
    pub full: u64,
    /// Shortened by an earlier session.
    pub resumed: u64,
}

/// Latencies between the bound before (excluded) and this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// Upper bound, microseconds, included.
    pub up_to_us: u64,
    /// Requests.
    pub count: u64,
}
