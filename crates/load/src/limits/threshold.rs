//! Thresholds such as `p99>250ms || errors>0.1%`: what a finished load must not have measured, for `--fail-if`.

use chokepoint_model::load::{LoadResult, Percentiles};

use crate::limits::quantity::{conditions, decimal, duration_ns, percentage};

/// One or more conditions, each of which makes a load fail.
///
/// Metrics: `p50`, `p75`, `p90`, `p95`, `p99`, `p999`, `max` (latency of all requests, including timeouts; units us, ms, s, m); `errors`, the share of requests
/// without an expected answer (percent); `rps`, throughput, and `goodput` or `good` (requests a second). Comparisons are `>`, `>=`, `<` and `<=`. Conditions are
/// joined by `||`.
#[derive(Debug, Clone)]
pub struct Threshold {
    conditions: Vec<Condition>,
}

/// Why a text is no threshold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("threshold {text:?}: {why}")]
pub struct ThresholdError {
    text: String,
    why: String,
}

/// A condition and what was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct ThresholdResult {
    /// The condition as written.
    pub condition: String,
    /// Whether the load met the condition and so failed.
    pub failed: bool,
    /// The measured value in `unit`: microseconds, a share from 0 to 1, or requests a second.
    pub measured: f64,
    /// Its unit.
    pub unit: Unit,
}

/// What conditions are judged by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures<'a> {
    /// Requests that ended.
    pub requests: u64,
    /// Their latencies, microseconds; `None` if they were not measured, or if none ended.
    pub latency_us: Option<&'a Percentiles>,
    /// Share of them without an expected answer, 0 to 1; any value if none ended.
    pub failed_share: f64,
    /// Requests that ended per second.
    pub throughput_rps: f64,
    /// Expected answers per second.
    pub goodput_rps: f64,
}

/// Unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds.
    Us,
    /// A share from 0 to 1.
    Share,
    /// Requests a second.
    PerSecond,
}

#[derive(Debug, Clone)]
struct Condition {
    text: String,
    metric: Metric,
    comparison: Comparison,
    limit: f64,
}

#[derive(Debug, Clone, Copy)]
enum Metric {
    Latency(fn(&Percentiles) -> u64),
    Errors,
    Throughput,
    Goodput,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Over,
    OverOrAt,
    Under,
    UnderOrAt,
}

impl Threshold {
    /// Parses a threshold, such as `p99>250ms || errors>0.1%`.
    pub fn parse(text: &str) -> Result<Threshold, ThresholdError> {
        let fail = |why: String| ThresholdError { text: text.chars().take(100).collect(), why };
        conditions(text, condition).map(|conditions| Threshold { conditions }).map_err(fail)
    }

    /// Judges each condition by the result of a load.
    pub fn judge(&self, load: &LoadResult) -> Vec<ThresholdResult> {
        self.judge_figures(&Figures {
            requests: load.requests,
            latency_us: Some(&load.latency_us).filter(|_| load.requests > 0),
            failed_share: load.requests.saturating_sub(load.good) as f64 / load.requests as f64,
            throughput_rps: load.throughput_rps(),
            goodput_rps: load.goodput_rps(),
        })
    }

    /// Judges each condition. A load without ended requests meets every latency condition, since nothing shows that a latency held.
    pub fn judge_figures(&self, load: &Figures<'_>) -> Vec<ThresholdResult> {
        let judged = |condition: &Condition| {
            let (measured, unit) = condition.metric.of(load);
            let met = match condition.comparison {
                Comparison::Over => measured > condition.limit,
                Comparison::OverOrAt => measured >= condition.limit,
                Comparison::Under => measured < condition.limit,
                Comparison::UnderOrAt => measured <= condition.limit,
            };
            let nothing = unit == Unit::Us && load.latency_us.is_none();
            ThresholdResult { condition: condition.text.clone(), failed: met || nothing, measured, unit }
        };
        self.conditions.iter().map(judged).collect()
    }
}

impl Metric {
    fn of(self, load: &Figures<'_>) -> (f64, Unit) {
        match self {
            Metric::Latency(of) => (load.latency_us.map_or(0.0, |times| of(times) as f64), Unit::Us),
            Metric::Errors if load.requests == 0 => (1.0, Unit::Share),
            Metric::Errors => (load.failed_share, Unit::Share),
            Metric::Throughput => (load.throughput_rps, Unit::PerSecond),
            Metric::Goodput => (load.goodput_rps, Unit::PerSecond),
        }
    }
}

fn condition(text: &str) -> Result<Condition, String> {
    let text = text.trim();
    let wrong = || format!("{text:?} is not a condition: write one like p99>250ms, errors>0.1% or rps<1000");
    let place = text.find(['<', '>']).ok_or_else(wrong)?;
    let (name, rest) = text.split_at(place);
    let (comparison, value) = match (rest.strip_prefix(">="), rest.strip_prefix("<="), rest.strip_prefix('>'), rest.strip_prefix('<')) {
        (Some(value), ..) => (Comparison::OverOrAt, value),
        (_, Some(value), ..) => (Comparison::UnderOrAt, value),
        (_, _, Some(value), _) => (Comparison::Over, value),
        (.., Some(value)) => (Comparison::Under, value),
        _ => return Err(wrong()),
    };
    let value = value.trim();
    let latency = |of: fn(&Percentiles) -> u64| duration_ns(value).map(|ns| (Metric::Latency(of), ns as f64 / 1e3));
    let rate =
        |metric| decimal(value).map(|rate| (metric, rate)).ok_or_else(|| format!("{value:?} is not a number of requests per second"));
    let (metric, limit) = match name.trim() {
        "p50" => latency(|latency| latency.p50)?,
        "p75" => latency(|latency| latency.p75)?,
        "p90" => latency(|latency| latency.p90)?,
        "p95" => latency(|latency| latency.p95)?,
        "p99" => latency(|latency| latency.p99)?,
        "p999" | "p99.9" => latency(|latency| latency.p999)?,
        "max" => latency(|latency| latency.max)?,
        "errors" => (Metric::Errors, percentage(value)?),
        "rps" => rate(Metric::Throughput)?,
        "good" | "goodput" => rate(Metric::Goodput)?,
        other => return Err(format!("{other:?} is not one of p50, p75, p90, p95, p99, p999, max, errors, rps, goodput")),
    };
    Ok(Condition { text: text.to_owned(), metric, comparison, limit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::quantity::CONDITIONS_MAX;
    use chokepoint_model::load::{Errors, Loop};
    use proptest::prelude::*;

    fn load() -> LoadResult {
        LoadResult {
            shape: Loop::Closed { connections: 1 },
            keep_alive: true,
            timeout_us: 1_000_000,
            duration_us: 2_000_000,
            requests: 1000,
            status: [(200, 998), (500, 1)].into(),
            good: 998,
            drained: 0,
            drained_good: 0,
            early: 0,
            early_good: 0,
            under_way_us: None,
            without_connection_us: None,
            errors: Errors { reset: 1, ..Errors::default() },
            latency_us: Percentiles { p50: 100, p75: 150, p90: 200, p95: 300, p99: 250_000, p999: 260_000, max: 300_000 },
            latency_us_p99_range: None,
            good_latency_us: Percentiles::default(),
            lost: None,
            connect_us: Percentiles::default(),
            latency_histogram: String::new(),
            connections: 1,
            tls: None,
            received_bytes: 0,
            sent_bytes: 0,
            late: 0,
            resent: 0,
            slices: Vec::new(),
            threads: Vec::new(),
            stopped_by: None,
            interrupted: false,
            error_samples: Vec::new(),
        }
    }

    fn met(judged: &[ThresholdResult]) -> Vec<ThresholdResult> {
        judged.iter().filter(|judged| judged.failed).cloned().collect()
    }

    fn failed(text: &str) -> Vec<String> {
        met(&Threshold::parse(text).expect(text).judge(&load())).into_iter().map(|judged| judged.condition).collect()
    }

    #[test]
    fn conditions_are_met_at_their_limits() {
        assert_eq!(failed("p99>250ms || errors>0.1%"), ["errors>0.1%"], "0.2 % of errors, and a p99 of 250 ms is not over 250 ms");
        assert_eq!(failed("p99>=250ms||errors>0.2%"), ["p99>=250ms"]);
        assert_eq!(failed("max > 299.9 ms || p50<100us || p50<=100us"), ["max > 299.9 ms", "p50<=100us"]);
        assert_eq!(failed("rps<500 || rps<501 || good>=499 || goodput<499"), ["rps<501", "good>=499"]);
        let nothing = LoadResult { requests: 0, good: 0, ..load() };
        let all = met(&Threshold::parse("p99>1m || errors>50% || rps>1").expect("valid").judge(&nothing));
        assert_eq!(all.iter().map(|judged| judged.condition.as_str()).collect::<Vec<_>>(), ["p99>1m", "errors>50%"]);
        assert_eq!((all[1].measured, all[1].unit), (1.0, Unit::Share));
    }

    #[test]
    fn malformed_thresholds_are_refused_with_a_hint() {
        for text in
            ["", "||", "p99", "p99>", ">5s", "p98>1s", "errors>1", "errors>1s", "rps<fast", "rps<1e3", "p99=>1s", "p99>-1s", "p99>250"]
        {
            assert!(Threshold::parse(text).is_err(), "{text:?} was taken");
        }
        assert!(Threshold::parse(&"p99>1s||".repeat(100)).is_err());
        assert!(Threshold::parse("latency>1s").expect_err("no metric").to_string().contains("not one of p50"));
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_parsed_or_refused(text in "[a-z0-9<>=|%. \u{b5}-]{0,40}") {
            if let Ok(threshold) = Threshold::parse(&text) {
                prop_assert!(threshold.judge(&load()).len() <= CONDITIONS_MAX);
            }
        }
    }
}
