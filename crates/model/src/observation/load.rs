//! What the load generator measured: every outcome apart, never one "failed".

mod detail;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use detail::{Bucket, Detail, Handshakes, Measured, Point, Quantile, Series};

/// How load is offered.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loop {
    /// A fixed number of connections, each sending its next request when the last one is answered.
    Closed {
        /// Connections.
        connections: u32,
    },
    /// A fixed rate, whatever the answers; latency counts from the intended start (no coordinated omission).
    Open {
        /// Requests a second, in all.
        rate_per_s: f64,
        /// At most this many connections.
        connections: u32,
    },
}

/// Requests that gave no answer, by what went wrong. Each request ends in exactly one status or one of these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// The connection was refused (ECONNREFUSED).
    pub connect_refused: u64,
    /// The connection was not established within the timeout.
    pub connect_timeout: u64,
    /// Any other failure to connect (unreachable, ...).
    pub connect_failed: u64,
    /// The TLS handshake failed: an alert, a certificate that is not trusted, or a close within it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tls_failed: u64,
    /// The answer was not complete within the timeout.
    pub response_timeout: u64,
    /// The connection was reset (ECONNRESET, EPIPE) before the answer was complete.
    pub reset: u64,
    /// The peer closed in order before the answer was complete.
    pub closed_before_answer: u64,
    /// The answer was not HTTP, or contradicted itself.
    pub bad_response: u64,
    /// No local port was free (EADDRNOTAVAIL): the generator's own limit.
    pub local_ports: u64,
    /// No file descriptor was free (EMFILE, ENFILE): the generator's own limit.
    pub local_files: u64,
    /// No socket memory (ENOBUFS, ENOMEM): the generator's own limit.
    pub local_memory: u64,
    /// Open loop: requests whose time had come and which could not be sent before the end.
    pub never_sent: u64,
}

impl Errors {
    /// All requests without an answer.
    pub fn total(&self) -> u64 {
        self.connect_refused
            + self.connect_timeout
            + self.connect_failed
            + self.tls_failed
            + self.response_timeout
            + self.reset
            + self.closed_before_answer
            + self.bad_response
            + self.local()
            + self.never_sent
    }

    /// Failures that are the generator's own.
    pub fn local(&self) -> u64 {
        self.local_ports + self.local_files + self.local_memory
    }
}

/// Percentiles of a duration, microseconds; timed-out requests are in the tail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Percentiles {
    pub p50: u64,
    pub p75: u64,
    pub p90: u64,
    pub p95: u64,
    pub p99: u64,
    pub p999: u64,
    pub max: u64,
}

/// Length of a [`Slice`], microseconds.
pub const SLICE_US: u64 = 100_000;

/// A tenth of a second of the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// Requests begun: the offered load.
    pub started: u32,
    /// Expected answers.
    pub good: u32,
    /// Answers with another status.
    pub wrong: u32,
    /// Requests that ended without an answer.
    pub failed: u32,
    /// Requests under way at the end of the slice.
    pub in_flight: u32,
}

/// Requests under way at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InFlight {
    /// True from a load's beginning on.
    pub is_loading: bool,
    /// All of them.
    pub all: u64,
    /// Those of whose answer a part came, and not the whole.
    pub begun: u64,
    /// The moment, nanoseconds since the load's threads started.
    pub at_ns: u64,
    /// Time that requests were under way until then, nanoseconds, summed over all of them.
    pub time_ns: u64,
}

impl InFlight {
    /// The mean number of requests under way since an earlier moment.
    pub fn mean_since(&self, before: &Self) -> f64 {
        let grew = |now: u64, then: u64| now.checked_sub(then).map(|grew| grew as f64);
        match grew(self.at_ns, before.at_ns).zip(grew(self.time_ns, before.time_ns)) {
            Some((elapsed, time)) if elapsed > 0.0 => time / elapsed,
            // What was counted before the warm-up was over is forgotten then.
            _ => before.all as f64 / 2.0 + self.all as f64 / 2.0,
        }
    }
}

/// One generator thread's own CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratorThread {
    /// CPU time, microseconds (CLOCK_THREAD_CPUTIME_ID); soft interrupts that ran in its context are in it.
    pub cpu_us: u64,
    /// Wall time, microseconds.
    pub wall_us: u64,
    /// Time for which it was ready to run and waited for a core, microseconds; nothing where the kernel does not tell.
    #[serde(default)]
    pub wait_us: Option<u64>,
    /// Cores it may run on.
    pub cpus: Vec<u32>,
}

/// Share of the offered rate from which an open loop got what it asked for.
const OFFERED_SHARE_MIN: f64 = 0.98;
/// TCP's retransmission timeout before anything is known of a path (RFC 6298, section 2; `TCP_TIMEOUT_INIT`), microseconds: what takes longer without a cause of
/// its own was lost on the way once.
pub(crate) const INITIAL_RTO_US: u64 = 1_000_000;
/// The same in seconds.
pub(crate) const INITIAL_RTO_S: f64 = INITIAL_RTO_US as f64 / 1e6;

/// The time after which an answer is of no use to who asked, microseconds: the objective, or without one half of the time after which requests are given up, at
/// the most TCP's first retransmission timeout.
pub fn patience_us(objective_us: Option<u64>, timeout_us: u64) -> u64 {
    objective_us.unwrap_or((timeout_us / 2).min(INITIAL_RTO_US))
}

/// What was lost of the clients' time, and how many good answers came too late to be of use. A closed loop hides both: who waits for a second does not ask a
/// second time meanwhile, and is one slow request among the thousands of those who were served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// See [`patience_us`].
    pub patience_us: u64,
    /// Good answers that took longer.
    pub late: u64,
    /// Time of requests that failed and of those that took longer, microseconds, summed over all clients.
    pub time_us: u64,
    /// Time of all requests, microseconds, summed over all clients.
    pub of_us: u64,
}

/// What a load met of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsLoad {
    /// True where each connection offered the session of an earlier one, as soon as the server had given one.
    pub offers_sessions: bool,
    /// Handshakes that were completed.
    pub handshakes: Handshakes,
}

/// The result of one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// How it was offered.
    pub shape: Loop,
    /// True where connections were reused.
    pub keep_alive: bool,
    /// Timeout of a request, microseconds.
    pub timeout_us: u64,
    /// Time in which load was offered, microseconds: from the first request to the end of the offering or, where a number of requests was
    /// asked for, to the end of the last. Requests under way at the end are waited for at most one timeout and counted, see `drained`.
    pub duration_us: u64,
    /// Requests that ended, whatever their end.
    pub requests: u64,
    /// Answers by status code.
    pub status: BTreeMap<u16, u64>,
    /// Expected answers within the timeout.
    pub good: u64,
    /// Requests of `requests` that ended after `duration_us`, while those under way were waited for, or were never sent. Rates leave them out.
    #[serde(default)]
    pub drained: u64,
    /// Those of `drained` that are in `good`.
    #[serde(default)]
    pub drained_good: u64,
    /// Time that requests were under way while load was offered, each from when it was sent, summed over all of them, microseconds; nothing in recordings of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under_way_us: Option<u64>,
    /// Requests without an answer.
    pub errors: Errors,
    /// From the intended start to the last byte of the answer.
    pub latency_us: Percentiles,
    /// The 95 % interval of its p99, microseconds, by how much the parts of the load differed; nothing where it was too short, or too few requests ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us_p99_range: Option<(u64, u64)>,
    /// The same of good answers alone.
    pub good_latency_us: Percentiles,
    /// What was lost of the clients' time; nothing in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
    /// From connect() to the established connection, of connections that were established.
    pub connect_us: Percentiles,
    /// Latency histogram, HDR V2 compressed in base64, so that results can be merged.
    pub latency_histogram: String,
    /// Connections opened (connect() called).
    pub connections: u64,
    /// TLS; nothing where none was spoken, and in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsLoad>,
    /// Bytes of answers, heads included.
    pub received_bytes: u64,
    /// Bytes of requests.
    pub sent_bytes: u64,
    /// Open loop: requests sent later than one millisecond after their intended start.
    pub late: u64,
    /// Every 100 ms, from the start.
    pub slices: Vec<Slice>,
    /// The generator's own threads.
    pub threads: Vec<GeneratorThread>,
    /// The guard that stopped the load early, as it was written.
    pub stopped_by: Option<String>,
    /// True where the user interrupted the load.
    pub interrupted: bool,
    /// A few first examples of what went wrong, at most 8, each at most 200 bytes.
    pub error_samples: Vec<String>,
}

impl LoadResult {
    /// The slices in which load was offered, without those in which the last answers were waited for.
    pub fn offered(&self) -> &[Slice] {
        let whole = usize::try_from(self.duration_us / SLICE_US).unwrap_or(usize::MAX);
        &self.slices[..whole.min(self.slices.len())]
    }

    /// The mean number of requests under way while load was offered; nothing where none was. Older recordings tell it at the end of each slice alone.
    pub fn under_way(&self) -> Option<f64> {
        if let Some(under_way_us) = self.under_way_us {
            return (self.duration_us > 0).then(|| under_way_us as f64 / self.duration_us as f64);
        }
        let slices = self.offered();
        let sum: f64 = slices.iter().map(|slice| f64::from(slice.in_flight)).sum();
        (!slices.is_empty()).then(|| sum / slices.len() as f64)
    }

    /// Requests ended a second while load was offered, whatever their end.
    pub fn throughput_rps(&self) -> f64 {
        per_second(self.requests.saturating_sub(self.drained), self.duration_us)
    }

    /// Expected answers a second while load was offered.
    pub fn goodput_rps(&self) -> f64 {
        per_second(self.good.saturating_sub(self.drained_good), self.duration_us)
    }

    /// True where the load would have taken more than it got: a closed loop always, an open one that fell short.
    pub(crate) fn wants_more(&self) -> bool {
        match self.shape {
            Loop::Closed { .. } => true,
            Loop::Open { rate_per_s, .. } => self.goodput_rps() < OFFERED_SHARE_MIN * rate_per_s,
        }
    }

    /// Share of the clients, 0 to 1, to whom goodput did not reach: of a closed loop the share of their time that was lost, of an open one, in which every request is
    /// sent whoever waits, that of the good answers which came too late.
    pub fn lost_share(&self) -> Option<f64> {
        let lost = self.lost?;
        let (part, whole) = match self.shape {
            Loop::Closed { .. } => (lost.time_us, lost.of_us),
            Loop::Open { .. } => (lost.late, self.good),
        };
        Some(if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) })
    }
}

/// Left out where it is zero, so that a report on a load without TLS says nothing of it.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn per_second(count: u64, duration_us: u64) -> f64 {
    if duration_us == 0 { 0.0 } else { count as f64 * 1e6 / duration_us as f64 }
}
