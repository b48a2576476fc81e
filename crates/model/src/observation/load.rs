//! What the load generator measured. Each kind of failure has its own counter.

mod detail;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use detail::{Bucket, Detail, Handshakes, Measured, Point, Quantile, Series};

/// How load is offered.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loop {
    /// A fixed number of connections, each sending its next request after the answer to the last one.
    Closed {
        /// Number of connections.
        connections: u32,
    },
    /// A fixed rate, independent of the answers. Latency counts from the intended start (no coordinated omission).
    Open {
        /// Requests a second over all connections.
        rate_per_s: f64,
        /// At most this many connections.
        connections: u32,
    },
}

/// Requests without an answer, by cause. Each request ends in exactly one status or one of these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// The connection was refused (ECONNREFUSED).
    pub connect_refused: u64,
    /// The connection was not established within the timeout.
    pub connect_timeout: u64,
    /// Any other failure to connect (unreachable, ...).
    pub connect_failed: u64,
    /// The TLS handshake failed: an alert, an untrusted certificate, or a close during the handshake.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tls_failed: u64,
    /// The answer was not complete within the timeout.
    pub response_timeout: u64,
    /// The connection was reset (ECONNRESET, EPIPE) before the answer was complete.
    pub reset: u64,
    /// The peer closed the connection in order before the answer was complete.
    pub closed_before_answer: u64,
    /// The answer was not HTTP, or contradicted itself.
    pub bad_response: u64,
    /// No local port was free (EADDRNOTAVAIL): a limit of the generator itself.
    pub local_ports: u64,
    /// No file descriptor was free (EMFILE, ENFILE): a limit of the generator itself.
    pub local_files: u64,
    /// No socket memory was left (ENOBUFS, ENOMEM): a limit of the generator itself.
    pub local_memory: u64,
    /// Open loop: requests that were due and could not be sent before the end.
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

    /// Failures caused by the generator itself.
    pub fn local(&self) -> u64 {
        self.local_ports + self.local_files + self.local_memory
    }
}

/// Percentiles of a duration, microseconds. Timed-out requests are in the tail.
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

/// One tenth of a second of the load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// Requests started: the offered load.
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

/// Whose turn it is on a connection of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadExchange {
    /// The client's or the server's: no request was sent yet, TLS is being set up.
    NotAsked,
    /// The server's: a request was sent, and no byte of its answer has come.
    Waiting,
    /// The client's, unless the answer is incomplete: a part of it has come.
    Answered,
}

/// Requests under way at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InFlight {
    /// False before the load has begun.
    pub is_loading: bool,
    /// All requests under way.
    pub all: u64,
    /// Requests with a partial answer.
    pub begun: u64,
    /// Time of the reading, nanoseconds since the load's threads started.
    pub at_ns: u64,
    /// Time that requests were under way until then, nanoseconds, summed over all requests.
    pub time_ns: u64,
}

impl InFlight {
    /// The mean number of requests under way since an earlier reading.
    pub fn mean_since(&self, before: &Self) -> f64 {
        let grew = |now: u64, then: u64| now.checked_sub(then).map(|grew| grew as f64);
        match grew(self.at_ns, before.at_ns).zip(grew(self.time_ns, before.time_ns)) {
            Some((elapsed, time)) if elapsed > 0.0 => time / elapsed,
            // The end of the warm-up resets the sum.
            _ => before.all as f64 / 2.0 + self.all as f64 / 2.0,
        }
    }
}

/// Share of its time on a core from which a generator's thread is the limit of its load (DESIGN.md, "Verdicts").
pub const GENERATOR_LIMITED: f64 = 0.90;

/// One generator thread's own CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratorThread {
    /// CPU time, microseconds (CLOCK_THREAD_CPUTIME_ID), including soft interrupts that ran in its context.
    pub cpu_us: u64,
    /// Wall time, microseconds.
    pub wall_us: u64,
    /// Time it was runnable and waited for a core, microseconds. `None` if the kernel does not report it.
    #[serde(default)]
    pub wait_us: Option<u64>,
    /// Cores it may run on.
    pub cpus: Vec<u32>,
}

/// Slices of a second: the shortest time for a rate.
const SECOND_SLICES: u64 = 1_000_000 / SLICE_US;

/// An open loop got what it asked for from this share of the offered rate on.
const OFFERED_SHARE_MIN: f64 = 0.98;
/// TCP's initial retransmission timeout (RFC 6298, section 2; `TCP_TIMEOUT_INIT`), microseconds. An exchange that takes longer without another cause lost a
/// packet.
/// its own was lost on the way once.
pub(crate) const INITIAL_RTO_US: u64 = 1_000_000;
/// The same in seconds.
pub(crate) const INITIAL_RTO_S: f64 = INITIAL_RTO_US as f64 / 1e6;

/// The time after which an answer is of no use to the client, microseconds: the objective's p99, or else half of the request timeout, but at most TCP's
/// initial retransmission timeout.
pub fn patience_us(objective_us: Option<u64>, timeout_us: u64) -> u64 {
    objective_us.unwrap_or((timeout_us / 2).min(INITIAL_RTO_US))
}

/// The clients' time that was lost, and the good answers that came too late to be useful. A closed loop hides both: a client that waits for a second sends
/// nothing else meanwhile and is one slow request among thousands of fast ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// See [`patience_us`].
    pub patience_us: u64,
    /// Good answers that took longer.
    pub late: u64,
    /// Time of failed requests and of those that took longer, and time without a connection where none could be had, microseconds, summed over all clients.
    pub time_us: u64,
    /// Time of all requests, and time without a connection, microseconds, summed over all clients.
    pub of_us: u64,
}

/// Why a TLS handshake failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsFailure {
    /// The certificate is signed by an authority that is not trusted.
    UnknownAuthority,
    /// The certificate is no longer valid.
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// The certificate is for other names.
    WrongName,
    /// The certificate cannot be accepted for another reason.
    Certificate,
    /// Something else: an alert, a close, or no TLS at all.
    Handshake,
}

/// TLS handshakes of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsLoad {
    /// True if each connection offered the session of an earlier connection once the server had issued one.
    pub offers_sessions: bool,
    /// Completed handshakes.
    pub handshakes: Handshakes,
    /// From the connection to the end of the handshake. `None` in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_us: Option<Percentiles>,
    /// Why the first failed handshake failed. `None` if none failed, and in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<TlsFailure>,
}

/// The result of one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// How the load was offered.
    pub shape: Loop,
    /// True if connections were reused.
    pub keep_alive: bool,
    /// Timeout of a request, microseconds.
    pub timeout_us: u64,
    /// Time in which load was offered, microseconds: from the first request to the end of the offering, or to the end of the last request if a number of
    /// requests was asked for. Requests under way at the end are awaited for at most one timeout and counted in `drained`.
    pub duration_us: u64,
    /// Requests that ended, with or without an answer.
    pub requests: u64,
    /// Answers by status code.
    pub status: BTreeMap<u16, u64>,
    /// Expected answers within the timeout.
    pub good: u64,
    /// Requests of `requests` that ended after `duration_us`, during the wait for the last answers, or were never sent. Rates exclude them.
    #[serde(default)]
    pub drained: u64,
    /// Good requests of `drained`.
    #[serde(default)]
    pub drained_good: u64,
    /// Requests of the warm-up that ended after it, while load was offered. Rates include them, as they exclude `drained`: what ended in that time. They are
    /// in no other number.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub early: u64,
    /// Good requests of `early`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub early_good: u64,
    /// Time that requests were under way while load was offered, each from when it was sent, microseconds, summed over all requests. `None` in recordings of
    /// older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under_way_us: Option<u64>,
    /// Closed loop: time for which connections could not be had, each from a connect() that failed at once to the connection or to the end of the offering,
    /// microseconds, summed over all connections. `None` in an open loop and in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_connection_us: Option<u64>,
    /// Requests without an answer.
    pub errors: Errors,
    /// Requests that were sent once more on a new connection, because the server closed the first one behind its first answer without having said so (RFC 9112, 9.3.1).
    /// Each is counted once, with its time from the first try.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resent: u64,
    /// From the intended start to the last byte of the answer.
    pub latency_us: Percentiles,
    /// 95 % interval of the p99, microseconds, from the differences between parts of the load. `None` if the load was too short or too few requests ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us_p99_range: Option<(u64, u64)>,
    /// Latency of good answers only.
    pub good_latency_us: Percentiles,
    /// The clients' time that was lost. `None` in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
    /// From connect() to the established connection. Failed connections are not counted.
    pub connect_us: Percentiles,
    /// Latency histogram, HDR V2 compressed in base64, so that results can be merged.
    pub latency_histogram: String,
    /// Connections opened (connect() called).
    pub connections: u64,
    /// TLS handshakes. `None` without TLS and in recordings of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsLoad>,
    /// Bytes of answers, including their heads.
    pub received_bytes: u64,
    /// Bytes of requests.
    pub sent_bytes: u64,
    /// Open loop: requests sent later than one millisecond after their intended start.
    pub late: u64,
    /// Slices of 100 ms, from the start.
    pub slices: Vec<Slice>,
    /// The generator's threads.
    pub threads: Vec<GeneratorThread>,
    /// The guard that stopped the load early, as the user wrote it.
    pub stopped_by: Option<String>,
    /// True if the user interrupted the load.
    pub interrupted: bool,
    /// Examples of the first errors, at most 8, each at most 200 bytes.
    pub error_samples: Vec<String>,
}

impl LoadResult {
    /// The slices in which load was offered, without the wait for the last answers.
    pub fn offered(&self) -> &[Slice] {
        let whole = usize::try_from(self.duration_us / SLICE_US).unwrap_or(usize::MAX);
        &self.slices[..whole.min(self.slices.len())]
    }

    /// The mean number of requests under way while load was offered. `None` if none was offered. Older recordings have the number at the end of each slice
    /// only.
    pub fn under_way(&self) -> Option<f64> {
        if let Some(under_way_us) = self.under_way_us {
            return (self.duration_us > 0).then(|| under_way_us as f64 / self.duration_us as f64);
        }
        let slices = self.offered();
        let sum: f64 = slices.iter().map(|slice| f64::from(slice.in_flight)).sum();
        (!slices.is_empty()).then(|| sum / slices.len() as f64)
    }

    /// The connections of a closed loop, and how many of them could not be had, on average. A connection that is refused at once fails seldom, because it
    /// pauses before it tries again, while those that are served count thousands of requests.
    pub fn without_connection(&self) -> Option<(f64, u32)> {
        let Loop::Closed { connections } = self.shape else { return None };
        let missing = self.without_connection_us? as f64 / self.duration_us.max(1) as f64;
        Some((missing.min(f64::from(connections)), connections))
    }

    /// Requests that ended a second while load was offered, with or without an answer.
    pub fn throughput_rps(&self) -> f64 {
        per_second(self.ended(), self.duration_us)
    }

    /// Good answers a second while load was offered.
    pub fn goodput_rps(&self) -> f64 {
        per_second(self.ended_well(), self.duration_us)
    }

    /// Requests that ended while load was offered: those of the rates.
    pub fn ended(&self) -> u64 {
        self.requests.saturating_sub(self.drained) + self.early
    }

    /// Those of [`Self::ended`] without a good answer. What is told beside a rate or a share of failures is counted like these.
    pub fn ended_badly(&self) -> u64 {
        self.ended().saturating_sub(self.ended_well())
    }

    fn ended_well(&self) -> u64 {
        self.good.saturating_sub(self.drained_good) + self.early_good
    }

    /// True if the load asked for more than it got: always for a closed loop, and for an open loop that fell short of its rate. Answers to what was asked last come after the offering,
    /// so those that take long are few in all of it, and as many as are asked in its second half.
    pub(crate) fn wants_more(&self) -> bool {
        match self.shape {
            Loop::Closed { .. } => true,
            Loop::Open { rate_per_s, .. } => {
                let falls_short = |rps: f64| rps < OFFERED_SHARE_MIN * rate_per_s;
                falls_short(self.goodput_rps()) && self.later_goodput_rps().is_none_or(falls_short)
            }
        }
    }

    /// Good answers a second in the second half of the offering. `None` for a load that is too short for one, and of older recordings without slices.
    fn later_goodput_rps(&self) -> Option<f64> {
        let offered = self.offered();
        let later = &offered[offered.len() / 2..];
        let good = later.iter().map(|slice| u64::from(slice.good)).sum();
        (later.len() as u64 >= SECOND_SLICES).then(|| per_second(good, later.len() as u64 * SLICE_US))
    }

    /// Share of the clients, 0 to 1, that goodput did not serve. Closed loop: the share of the clients' time that was lost. Open loop, which sends every
    /// request on time: the share of good answers that came too late.
    pub fn lost_share(&self) -> Option<f64> {
        let lost = self.lost?;
        let (part, whole) = match self.shape {
            Loop::Closed { .. } => (lost.time_us, lost.of_us),
            Loop::Open { .. } => (lost.late, self.good),
        };
        Some(if whole == 0 { 0.0 } else { (part as f64 / whole as f64).min(1.0) })
    }
}

/// For serde: a count of zero is left out, so that a report on a load without TLS does not mention TLS.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn per_second(count: u64, duration_us: u64) -> f64 {
    if duration_us == 0 { 0.0 } else { count as f64 * 1e6 / duration_us as f64 }
}
