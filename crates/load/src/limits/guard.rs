//! Guards: conditions such as `errors>20% || p99>5s` that stop a load before it does harm.

use std::fmt;

use crate::limits::quantity::{conditions, duration_ns, percentage};

/// A condition is judged only with at least this many outcomes.
const OUTCOMES_MIN: u64 = 20;
/// A percentile's condition needs this many requests over its limit: a single slow request makes no percentile.
const OVER_MIN: u64 = 2;
/// The window: the last second, or longer until it has enough outcomes, at most ten seconds.
const SLICES_MIN: u64 = 10;
const SLICES_MAX: u64 = 100;

/// One or more conditions, each of which stops the load.
///
/// `errors>20%`: the share of requests without an expected answer. `p99>5s`: a percentile (p50, p75, p90, p95, p99, p999) or `max` of latency; units us, ms, s,
/// m. Requests in flight that are older than the limit already count. Conditions are joined by `||`. They are judged every 100 ms, after the first full second,
/// over the last second, or over a longer time (at most 10 s) until it has 20 outcomes.
#[derive(Debug, Clone, PartialEq)]
pub struct Guard {
    conditions: Vec<Condition>,
}

/// Why a text is no guard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("guard {text:?}: {why}")]
pub struct GuardError {
    text: String,
    why: String,
}

#[derive(Debug, Clone, PartialEq)]
struct Condition {
    /// As written.
    text: String,
    metric: Metric,
    /// `>=` rather than `>`.
    or_equal: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Metric {
    /// Limit for the share of requests without an expected answer, 0 to 1.
    Errors { limit: f64 },
    /// At most `share` of the requests may take longer than the limit.
    Latency { share: f64, limit_ns: u64 },
}

impl Guard {
    /// Parses a guard, such as `errors>20% || p99>5s`.
    pub fn parse(text: &str) -> Result<Guard, GuardError> {
        let fail = |why: String| GuardError { text: text.chars().take(100).collect(), why };
        conditions(text, condition).map(|conditions| Guard { conditions }).map_err(fail)
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<&str> = self.conditions.iter().map(|condition| condition.text.as_str()).collect();
        f.write_str(&texts.join(" || "))
    }
}

fn condition(text: &str) -> Result<Condition, String> {
    let text = text.trim();
    let Some((name, rest)) = text.split_once('>') else {
        let hint = if text.contains('<') { "; a guard stops a value that grows too large, so it needs >" } else { "" };
        return Err(format!("{text:?} is not a condition: write one like errors>20% or p99>5s{hint}"));
    };
    let (or_equal, value) = match rest.strip_prefix('=') {
        Some(value) => (true, value.trim()),
        None => (false, rest.trim()),
    };
    let latency = |share| duration_ns(value).map(|limit_ns| Metric::Latency { share, limit_ns });
    let metric = match name.trim() {
        "errors" => Metric::Errors { limit: percentage(value)? },
        "p50" => latency(0.5)?,
        "p75" => latency(0.25)?,
        "p90" => latency(0.1)?,
        "p95" => latency(0.05)?,
        "p99" => latency(0.01)?,
        "p999" | "p99.9" => latency(0.001)?,
        "max" => latency(0.0)?,
        other => return Err(format!("{other:?} is not one of errors, p50, p75, p90, p95, p99, p999, max")),
    };
    Ok(Condition { text: text.to_owned(), metric, or_equal })
}

/// The outcomes of one tenth of a second.
#[derive(Debug, Clone, Default)]
struct SliceOutcomes {
    slice: u64,
    ended: u64,
    not_good: u64,
    /// Ended requests over each limit.
    over: Vec<u64>,
}

/// The guards of a load and what its threads report, for the last ten seconds.
#[derive(Debug)]
pub(crate) struct GuardWatch {
    conditions: Vec<Condition>,
    limits_ns: Vec<u64>,
    slices: Vec<SliceOutcomes>,
    /// For each thread, requests in flight that are older than each limit.
    pending_over: Vec<Vec<u64>>,
}

/// A condition that became true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrippedGuard {
    /// The condition as written.
    pub(crate) condition: String,
    /// The measured values.
    pub(crate) measured: String,
}

impl GuardWatch {
    pub(crate) fn new(guards: &[Guard], threads: usize) -> Self {
        let conditions: Vec<Condition> = guards.iter().flat_map(|guard| guard.conditions.iter().cloned()).collect();
        let mut limits_ns: Vec<u64> = Vec::new();
        for condition in &conditions {
            if let Metric::Latency { limit_ns, .. } = condition.metric {
                limits_ns.push(over_limit_ns(limit_ns, condition.or_equal));
            }
        }
        limits_ns.sort_unstable();
        limits_ns.dedup();
        let pending_over = vec![vec![0; limits_ns.len()]; threads];
        GuardWatch { conditions, slices: vec![SliceOutcomes::default(); SLICES_MAX as usize], pending_over, limits_ns }
    }

    /// The latencies from which on each limit is exceeded, in the order of `over` in [`GuardWatch::report`].
    pub(crate) fn limits_ns(&self) -> &[u64] {
        &self.limits_ns
    }

    /// Adds a thread's counts of one slice.
    pub(crate) fn report(&mut self, slice: u64, ended: u64, not_good: u64, over: &[u64]) {
        let limits = self.limits_ns.len();
        let cell = &mut self.slices[(slice % SLICES_MAX) as usize];
        if cell.slice != slice || cell.over.len() != limits {
            *cell = SliceOutcomes { slice, over: vec![0; limits], ..SliceOutcomes::default() };
        }
        cell.ended += ended;
        cell.not_good += not_good;
        for (sum, count) in cell.over.iter_mut().zip(over) {
            *sum += count;
        }
    }

    /// Replaces a thread's counts of its requests in flight.
    pub(crate) fn report_pending(&mut self, thread: usize, over: impl Iterator<Item = u64>) {
        for (count, over) in self.pending_over[thread].iter_mut().zip(over) {
            *count = over;
        }
    }

    /// Judges the conditions at the end of this slice.
    pub(crate) fn judge(&self, slice: u64) -> Option<TrippedGuard> {
        if slice + 1 < SLICES_MIN {
            return None;
        }
        let mut sum = SliceOutcomes { over: vec![0; self.limits_ns.len()], ..SliceOutcomes::default() };
        let mut window_slices = 0;
        for back in 0..SLICES_MAX.min(slice + 1) {
            let cell = &self.slices[((slice - back) % SLICES_MAX) as usize];
            window_slices = back + 1;
            if cell.slice == slice - back {
                sum.ended += cell.ended;
                sum.not_good += cell.not_good;
                for (sum, over) in sum.over.iter_mut().zip(&cell.over) {
                    *sum += over;
                }
            }
            if window_slices >= SLICES_MIN && sum.ended >= OUTCOMES_MIN {
                break;
            }
        }
        self.conditions.iter().find_map(|condition| self.judge_one(condition, &sum, window_slices))
    }

    fn judge_one(&self, condition: &Condition, sum: &SliceOutcomes, slices: u64) -> Option<TrippedGuard> {
        let (bad, of, bad_allowed, words) = match condition.metric {
            Metric::Errors { limit } => (sum.not_good, sum.ended, limit * sum.ended as f64, "without an expected answer"),
            Metric::Latency { share, limit_ns } => {
                let limit = over_limit_ns(limit_ns, condition.or_equal);
                let place = self.limits_ns.iter().position(|&other| other == limit)?;
                let pending: u64 = self.pending_over.iter().map(|thread| thread[place]).sum();
                let (over, of) = (sum.over[place] + pending, sum.ended + pending);
                if share > 0.0 && over < OVER_MIN {
                    return None;
                }
                (over, of, share * of as f64, "slower than that")
            }
        };
        let reached = match condition.metric {
            Metric::Errors { .. } if condition.or_equal => bad as f64 >= bad_allowed,
            _ => bad as f64 > bad_allowed,
        };
        (of >= OUTCOMES_MIN && reached).then(|| TrippedGuard {
            condition: condition.text.clone(),
            measured: format!("{bad} of {of} requests in {:.1} s were {words}", slices as f64 / 10.0),
        })
    }
}

/// The shortest latency that exceeds the limit.
fn over_limit_ns(limit_ns: u64, or_equal: bool) -> u64 {
    if or_equal { limit_ns } else { limit_ns + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn guards_are_parsed_as_written() {
        let guard = Guard::parse("errors>20% || p99>5s").expect("the documented form");
        assert_eq!(guard.to_string(), "errors>20% || p99>5s");
        assert_eq!(guard.conditions[0].metric, Metric::Errors { limit: 0.2 });
        assert_eq!(guard.conditions[1].metric, Metric::Latency { share: 0.01, limit_ns: 5_000_000_000 });
        for (text, limit_ns) in
            [("max > 250 ms", 250_000_000), ("p50>=1.5s", 1_500_000_000), ("p99.9>1m", 60_000_000_000), ("p90>10us", 10_000)]
        {
            let guard = Guard::parse(text).expect(text);
            assert!(matches!(guard.conditions[0].metric, Metric::Latency { limit_ns: limit, .. } if limit == limit_ns), "{guard:?}");
        }
        assert!(Guard::parse("p50>=1s").expect("valid").conditions[0].or_equal);
    }

    #[test]
    fn malformed_guards_are_refused_with_a_hint() {
        let error = |text: &str| Guard::parse(text).map_or_else(|error| error.to_string(), |_| panic!("{text:?} was taken"));
        for text in
            ["", "||", "errors>20% ||", "errors", "errors>", ">20%", "errors>20", "errors>101%", "errors>-1%", "errors>nan%", "errors>1e3%"]
        {
            error(text);
        }
        for text in ["p99>5", "p99>5h", "p99>s", "p99>-5s", "p99>infs", "p98>5s", "p99>100000s", "p99>5 % s", "p99>\u{b5}", "p99>1.2.3s"] {
            error(text);
        }
        assert!(error("p99<5s").contains("needs >"));
        assert!(error("latency>5s").contains("not one of errors"));
        error(&"errors>1% || ".repeat(50));
        error(&"x".repeat(5000));
    }

    fn watch(text: &str) -> GuardWatch {
        GuardWatch::new(&[Guard::parse(text).expect(text)], 2)
    }

    #[test]
    fn errors_are_judged_over_the_last_second_only() {
        let mut watch = watch("errors>20%");
        for slice in 0..30 {
            watch.report(slice, 50, if slice < 15 { 10 } else { 11 }, &[]);
            let tripped = watch.judge(slice);
            assert_eq!(tripped.is_some(), slice >= 15, "slice {slice}: {tripped:?}");
        }
        let tripped = watch.judge(29).expect("22 % of errors");
        assert_eq!(tripped.condition, "errors>20%");
        assert_eq!(tripped.measured, "110 of 500 requests in 1.0 s were without an expected answer");
    }

    #[test]
    fn nothing_is_judged_in_the_first_second_or_on_few_outcomes() {
        let mut watch = watch("errors>20%");
        for slice in 0..9 {
            watch.report(slice, 100, 100, &[]);
            assert_eq!(watch.judge(slice), None);
        }
        assert!(watch.judge(9).is_some());
        let mut few = self::watch("errors>20%");
        for slice in 0..200 {
            few.report(slice, u64::from(slice % 10 == 0), u64::from(slice % 10 == 0), &[]);
            assert_eq!(few.judge(slice), None, "10 outcomes in ten seconds, slice {slice}");
        }
        let mut slow = self::watch("errors>=100%");
        for slice in 0..100 {
            slow.report(slice, u64::from(slice % 4 == 0), u64::from(slice % 4 == 0), &[]);
        }
        assert!(slow.judge(99).is_some(), "25 outcomes in ten seconds are enough");
    }

    #[test]
    fn a_percentile_counts_requests_in_flight_that_are_too_old() {
        let mut watch = watch("p99>5s || max>9s");
        assert_eq!(watch.limits_ns(), [5_000_000_001, 9_000_000_001]);
        for slice in 0..10 {
            watch.report(slice, 10, 0, &[0, 0]);
        }
        watch.report(9, 0, 0, &[1, 0]);
        assert_eq!(watch.judge(9), None, "one slow request is no percentile");
        watch.report_pending(0, [1, 0].into_iter());
        assert_eq!(watch.judge(9).map(|tripped| tripped.condition).as_deref(), Some("p99>5s"));
        watch.report_pending(0, [0, 0].into_iter());
        watch.report_pending(1, [0, 1].into_iter());
        assert_eq!(watch.judge(9).map(|tripped| tripped.condition).as_deref(), Some("max>9s"));
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_parsed_or_refused(text in "[a-z0-9>=|%. \u{b5}-]{0,40}") {
            if let Ok(guard) = Guard::parse(&text) {
                prop_assert_eq!(Guard::parse(&guard.to_string()), Ok(guard));
            }
        }
    }
}
