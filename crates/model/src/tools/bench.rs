//! The report of a load by itself (`chokepoint bench`): what was offered, the result, and warnings about the figures.

mod tcp;
mod warnings;

use serde::Serialize;

use crate::facts::traffic;
use crate::facts::url::without_values;
use crate::observation::load::{
    Bucket, Errors, GeneratorThread, Handshakes, LoadResult, Loop, Measured, Percentiles, Point, Quantile, Series,
};
use crate::output::catalogue::Catalogue;
use crate::output::message::Message;
use crate::output::report::LoadReport;

pub use tcp::{Spread, TcpConnection, TcpSample};

/// Name and version of the report's JSON form.
const SCHEMA: &str = "chokepoint/bench/1";

/// What was asked for, for the report.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// The URL as given.
    pub url: String,
    /// The address connected to.
    pub address: String,
    /// Method of the requests.
    pub method: String,
    /// Length of the load, seconds. `None` if only a number of requests ends it.
    pub duration_s: Option<f64>,
    /// Number of requests. `None` if only time ends it.
    pub requests: Option<u64>,
    /// Requests on one kept connection, if given.
    pub requests_per_connection: Option<u32>,
    /// Stages of an open loop, if given.
    pub ramp: Option<Ramp>,
    /// The list of targets, if given.
    pub targets: Option<TargetList>,
    /// Source addresses of connections, if given.
    pub bind: Vec<String>,
    /// True if the server is on this host and the generator's cores were not chosen.
    pub shares_cores: bool,
    /// Time that the program was stopped (SIGTSTP) during the load, seconds.
    pub suspended_s: f64,
}

/// An open loop whose rate changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ramp {
    /// Requests a second at the start.
    pub start_per_s: f64,
    /// The stages in order.
    pub stages: Vec<RampStage>,
}

/// A stage: the rate changes linearly from the previous stage's to this one's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RampStage {
    /// Length, seconds.
    pub duration_s: f64,
    /// Requests a second at its end.
    pub rate_per_s: f64,
}

/// A list of targets on one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TargetList {
    /// Number of targets.
    pub count: u64,
    /// Seed of the random choice. `None` if the targets were taken in turn.
    pub seed: Option<u64>,
}

/// Whether the load measured anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BenchOutcome {
    /// At least one request got a good answer.
    Answered,
    /// There were answers, but no good one.
    NothingExpected,
    /// No request was answered.
    NothingAnswered,
}

/// The target of the load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Target {
    /// The URL as given.
    pub url: String,
    /// The address connected to.
    pub address: String,
}

/// The load that was offered.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Offered {
    /// "closed" or "open".
    #[serde(rename = "loop")]
    pub shape: &'static str,
    pub connections: u32,
    /// Open loop: requests a second.
    pub rate_per_s: Option<f64>,
    pub duration_s: Option<f64>,
    pub requests: Option<u64>,
    pub warm_up_s: f64,
    pub timeout_us: u64,
    pub method: String,
    pub keep_alive: bool,
    pub requests_per_connection: Option<u32>,
    /// Stages of an open loop, whose mean rate is `rate_per_s`.
    pub ramp: Option<Ramp>,
    pub targets: Option<TargetList>,
    /// Source addresses of connections, if given.
    pub bind: Vec<String>,
}

/// How the requests were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sending {
    /// Open loop: sent over a millisecond after their intended start.
    pub late: u64,
    /// Requests of `late` that waited for a free connection.
    pub late_for_want_of_connections: u64,
    /// Requests that ended after the load, during the wait for the last answers. Rates exclude them.
    pub drained: u64,
    /// Connections opened.
    pub connections: u64,
    /// Bytes of requests.
    pub sent_bytes: u64,
    /// Bytes of answers.
    pub received_bytes: u64,
}

/// The load generator itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Generator {
    /// The busiest thread's CPU time over its wall time, 0 to 1.
    pub utilization: f64,
    /// True if the generator was the limit: the server may pass more than was measured.
    pub is_limit: bool,
    /// Its threads.
    pub threads: Vec<GeneratorThread>,
}

/// The load over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timeline {
    /// Length of a slice, milliseconds: 10, doubled until there are fewer than 6,000 slices.
    pub interval_ms: u32,
    /// The slices, from the end of the warm-up.
    pub slices: Vec<Moment>,
}

/// A slice of the time series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Moment {
    pub started: u32,
    /// Good answers.
    pub good: u32,
    /// Answers with another status.
    pub wrong: u32,
    /// Requests that ended without an answer.
    pub failed: u32,
    /// Requests under way at the end of the slice.
    pub in_flight: u32,
    /// Mean and largest latency of the requests that ended. `None` if none did.
    pub latency_us_mean: Option<f64>,
    pub latency_us_max: Option<u32>,
}

impl Timeline {
    fn of(series: Series) -> Self {
        let moment = |point: Point| {
            let Point { started, good, wrong, failed, in_flight, latency_us_max, latency_us_sum } = point;
            let ended = u64::from(good) + u64::from(wrong) + u64::from(failed);
            // Rounded to a tenth of a microsecond: the sum is of whole ones.
            let mean = (latency_us_sum as f64 / ended.max(1) as f64 * 10.0).round() / 10.0;
            let (latency_us_mean, latency_us_max) = (Some(mean).filter(|_| ended > 0), Some(latency_us_max).filter(|_| ended > 0));
            Moment { started, good, wrong, failed, in_flight, latency_us_mean, latency_us_max }
        };
        Timeline { interval_ms: series.interval_ms, slices: series.points.into_iter().map(moment).collect() }
    }
}

/// A warning about the figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// Its id, the same in every language.
    pub id: &'static str,
    /// The sentence.
    pub text: String,
}

/// A `--fail-if` condition that was met.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThresholdFailed {
    /// The condition as written.
    pub condition: String,
    /// The measured value: microseconds, a share from 0 to 1, or requests a second.
    pub measured: f64,
}

/// The report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bench {
    /// Name and version of the schema.
    pub schema: &'static str,
    /// The target.
    pub target: Target,
    /// Whether the load measured anything.
    pub outcome: BenchOutcome,
    /// The result in one sentence.
    pub summary: String,
    /// The load that was offered.
    pub offered: Offered,
    /// The result. Latency counts from the intended start and includes timed-out requests.
    pub load: LoadReport,
    /// Mean of that latency. `None` if no request ended.
    pub latency_us_mean: Option<f64>,
    /// Latency of good answers only. `None` if there was none.
    pub good_latency_us: Option<Percentiles>,
    /// From the intended start to the first byte of the answer. `None` if nothing was answered.
    pub first_byte_us: Option<Percentiles>,
    /// From connect() to the established connection. `None` if no connection was established.
    pub connect_us: Option<Percentiles>,
    /// From the connection to the end of the TLS handshake. `None` without TLS.
    pub tls_us: Option<Percentiles>,
    /// Completed TLS handshakes. `None` without TLS.
    pub tls_handshakes: Option<Handshakes>,
    /// Closed loop: latency corrected for the requests that slow answers delayed.
    pub corrected_latency_us: Option<Percentiles>,
    /// Histogram of latencies.
    pub distribution: Vec<Bucket>,
    /// The latencies as an HDR histogram (V2, deflated, base64), which can be merged with others.
    pub histogram: String,
    /// How the requests were sent.
    pub sending: Sending,
    /// The load generator itself.
    pub generator: Generator,
    /// The kernel's measurements of some connections at the end. `None` if there were none, or no TCP.
    pub tcp: Option<TcpSample>,
    /// The load over time.
    pub timeline: Timeline,
    /// Standard deviation of the latency; the JSON form has the histogram.
    #[serde(skip)]
    pub latency_us_stdev: f64,
    /// The latency's percentile distribution; the JSON form has the histogram.
    #[serde(skip)]
    pub quantiles: Vec<Quantile>,
    /// Warnings about the figures.
    pub warnings: Vec<Warning>,
    /// `--fail-if` conditions that were met.
    pub failed: Vec<ThresholdFailed>,
    /// The guard that stopped the load, as written.
    pub stopped_by: Option<String>,
    /// True if the user stopped the load.
    pub interrupted: bool,
    /// The first errors, as examples.
    pub error_samples: Vec<String>,
}

/// The report on a load. `tcp`: the parsed `measured.detail.tcp_info`.
pub fn report(asked: &Asked, measured: Measured, tcp: Vec<TcpConnection>, failed: Vec<ThresholdFailed>, words: &Catalogue) -> Bench {
    let outcome = outcome(&measured.result);
    let warnings = warnings::of(asked, &measured, words);
    let summary = words.text(&summary(&measured.result, outcome));
    let Measured { result, detail } = measured;
    let (shape, connections, rate_per_s) = match result.shape {
        Loop::Closed { connections } => ("closed", connections, None),
        Loop::Open { rate_per_s, connections } => ("open", connections, Some(rate_per_s)),
    };
    Bench {
        schema: SCHEMA,
        target: Target { url: without_values(&asked.url), address: asked.address.clone() },
        outcome,
        summary,
        offered: Offered {
            shape,
            connections,
            rate_per_s,
            duration_s: asked.duration_s,
            requests: asked.requests,
            warm_up_s: detail.warm_up_us as f64 / 1e6,
            timeout_us: result.timeout_us,
            method: asked.method.clone(),
            keep_alive: result.keep_alive,
            requests_per_connection: asked.requests_per_connection,
            ramp: asked.ramp.clone(),
            targets: asked.targets,
            bind: asked.bind.clone(),
        },
        load: traffic::load_report(&result),
        latency_us_mean: Some(detail.latency_us_mean).filter(|_| result.requests > 0),
        good_latency_us: known(result.good_latency_us),
        first_byte_us: known(detail.first_byte_us),
        connect_us: known(result.connect_us),
        tls_us: known(detail.tls_us),
        tls_handshakes: result.tls.map(|tls| tls.handshakes),
        corrected_latency_us: detail.corrected_latency_us,
        distribution: detail.distribution,
        sending: Sending {
            late: result.late,
            late_for_want_of_connections: detail.late_held,
            drained: result.drained,
            connections: result.connections,
            sent_bytes: result.sent_bytes,
            received_bytes: result.received_bytes,
        },
        generator: Generator { utilization: warnings::busy(&result), is_limit: warnings::is_limit(&result), threads: result.threads },
        histogram: result.latency_histogram,
        tcp: TcpSample::of(tcp),
        timeline: Timeline::of(detail.series),
        latency_us_stdev: detail.latency_us_stdev,
        quantiles: detail.quantiles,
        warnings,
        failed,
        stopped_by: result.stopped_by,
        interrupted: result.interrupted,
        error_samples: result.error_samples,
    }
}

/// Percentiles of times that were measured: all are zero where nothing was.
fn known(times: Percentiles) -> Option<Percentiles> {
    Some(times).filter(|times| *times != Percentiles::default())
}

fn outcome(load: &LoadResult) -> BenchOutcome {
    match (load.good, load.status.is_empty()) {
        (0, true) => BenchOutcome::NothingAnswered,
        (0, false) => BenchOutcome::NothingExpected,
        _ => BenchOutcome::Answered,
    }
}

fn summary(load: &LoadResult, outcome: BenchOutcome) -> Message {
    match outcome {
        BenchOutcome::NothingAnswered if load.requests == 0 => Message::new("bench-nothing-ended"),
        BenchOutcome::NothingAnswered => {
            let Errors { connect_refused, .. } = load.errors;
            let refused = connect_refused == load.requests;
            Message::new(if refused { "bench-nothing-answered-refused" } else { "bench-nothing-answered" }).with("requests", load.requests)
        }
        BenchOutcome::NothingExpected => {
            let status = load.status.iter().max_by_key(|(_, count)| **count).map_or(0, |(status, _)| *status);
            Message::new("bench-nothing-expected").with("requests", load.requests).with("status", status.to_string())
        }
        BenchOutcome::Answered => {
            let share = load.good as f64 / load.requests.max(1) as f64;
            let (id, n) = match load.latency_us.p99 as f64 {
                us if us < 1e3 => ("bench-summary-us", us),
                us if us < 1e6 => ("bench-summary-ms", us / 1e3),
                us => ("bench-summary-s", us / 1e6),
            };
            // Never rounded up to 100 %.
            let percent = if share < 1.0 { (share * 1e3).floor() / 10.0 } else { 100.0 };
            Message::new(id).with("rate", load.goodput_rps()).with("share", percent).with("p99", n)
        }
    }
}
