//! Details of a load that only a report on the load itself needs. Recordings hold [`LoadResult`] without them.

use serde::{Deserialize, Serialize};

use super::{LoadResult, Percentiles};

/// The result of a load and the details for a report on the load itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The result.
    pub result: LoadResult,
    /// The details.
    pub detail: Detail,
}

/// Details of a load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Detail {
    /// Length of the warm-up, which is not counted, microseconds.
    pub warm_up_us: u64,
    /// From the intended start to the first byte of the answer: all answers, and failed requests with a partial answer.
    pub first_byte_us: Percentiles,
    /// Mean latency, microseconds; 0 if no request ended.
    pub latency_us_mean: f64,
    /// Closed loop: latency corrected for the requests that slow answers delayed.
    pub corrected_latency_us: Option<Percentiles>,
    /// Histogram of latencies, ascending and without gaps.
    pub distribution: Vec<Bucket>,
    /// From the connection to the end of the TLS handshake.
    pub tls_us: Percentiles,
    /// Open loop: requests of `late` that waited for a free connection.
    pub late_held: u64,
    /// Standard deviation of the latency, microseconds; 0 if no request ended.
    pub latency_us_stdev: f64,
    /// The latency's percentile distribution, ascending to the largest; empty if no request ended.
    pub quantiles: Vec<Quantile>,
    /// The load over time.
    pub series: Series,
    /// `struct tcp_info` of at most 64 sampled connections at the end of the offering, as raw bytes from the kernel.
    pub tcp_info: Vec<Vec<u8>>,
}

/// A point of a percentile distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantile {
    /// Share of requests that took at most `value_us`, 0 to 1.
    pub quantile: f64,
    /// Microseconds.
    pub value_us: u64,
    /// Requests that took at most that.
    pub count: u64,
}

/// A time series of a load, from the end of its warm-up to the end of the wait for the last answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Series {
    /// Length of a bucket, milliseconds: 10, doubled until there are fewer than 6,000 buckets.
    pub interval_ms: u32,
    /// The buckets.
    pub points: Vec<Point>,
}

/// A bucket of a time series.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Point {
    /// Requests started.
    pub started: u32,
    /// Expected answers.
    pub good: u32,
    /// Answers with another status.
    pub wrong: u32,
    /// Requests that ended without an answer.
    pub failed: u32,
    /// Requests under way at the end of the bucket.
    pub in_flight: u32,
    /// Largest latency of the requests that ended, microseconds, at most 2^32 - 1.
    pub latency_us_max: u32,
    /// Sum of the latencies of the requests that ended, microseconds.
    pub latency_us_sum: u64,
}

/// Completed TLS handshakes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handshakes {
    /// With a certificate.
    pub full: u64,
    /// Abbreviated by an earlier session.
    pub resumed: u64,
}

/// Latencies above the previous bucket's bound, up to this one's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// Upper bound, microseconds, included.
    pub up_to_us: u64,
    /// Requests.
    pub count: u64,
}
