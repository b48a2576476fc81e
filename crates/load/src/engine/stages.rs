//! Changing rates: an open loop in stages. In each stage the rate changes evenly from the previous stage's rate to its own.

use std::time::Duration;

use crate::limits::quantity::{decimal, duration_ns};

/// Maximum number of stages.
const STAGES_MAX: usize = 1_000;
/// Maximum bytes of the text of all stages.
const TEXT_BYTES_MAX: usize = 64 * 1024;
/// Sums of decimal fractions are inexact. A segment's number of requests is rounded if it differs from a whole number by less than this.
const WHOLE: f64 = 1e-6;

/// An open loop with a changing rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Stages {
    /// Rate at the start of the first stage, requests a second.
    pub start_per_s: f64,
    /// The stages in order; at least one.
    pub stages: Vec<Stage>,
}

/// A stage. The rate changes evenly to this one's rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stage {
    /// Its duration; zero for a jump.
    pub duration: Duration,
    /// Rate at its end, requests a second.
    pub rate_per_s: f64,
}

/// Why a text is no list of stages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("stages {text:?}: {why}")]
pub struct StagesError {
    text: String,
    why: String,
}

impl Stages {
    /// Parses stages such as `10s:100,30s:1000`: each has a duration (us, ms, s, m) and the rate at its end. They begin at `start_per_s`.
    pub fn parse(start_per_s: f64, text: &str) -> Result<Stages, StagesError> {
        let fail = |why: String| StagesError { text: text.chars().take(100).collect(), why };
        if text.len() > TEXT_BYTES_MAX {
            return Err(fail(format!("longer than {TEXT_BYTES_MAX} bytes")));
        }
        let stages = text.split(',').map(stage).collect::<Result<Vec<_>, _>>().map_err(fail)?;
        if stages.len() > STAGES_MAX {
            return Err(fail(format!("more than {STAGES_MAX} stages")));
        }
        let stages = Stages { start_per_s, stages };
        if stages.requests() < 1.0 {
            return Err(fail("less than one request is due in them".to_owned()));
        }
        Ok(stages)
    }

    /// Duration of all stages.
    pub fn duration(&self) -> Duration {
        self.stages.iter().map(|stage| stage.duration).sum()
    }

    /// Mean requests a second.
    pub fn mean_per_s(&self) -> f64 {
        self.requests() / self.duration().as_secs_f64()
    }

    /// The number of requests: the area below the rate.
    fn requests(&self) -> f64 {
        segments(self, 0).last().map_or(0.0, |last| last.end_count)
    }
}

fn stage(text: &str) -> Result<Stage, String> {
    let wrong = || format!("{:?} is not a stage: write one like 30s:1000, a duration and the rate at its end", text.trim());
    let (duration, rate) = text.trim().split_once(':').ok_or_else(wrong)?;
    let rate_per_s = decimal(rate.trim()).ok_or_else(wrong)?;
    Ok(Stage { duration: Duration::from_nanos(duration_ns(duration.trim())?), rate_per_s })
}

/// A period in which the rate changes evenly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Segment {
    /// Nanoseconds since the start of the load.
    start_ns: u64,
    length_s: f64,
    /// Requests that come due before it, and before its end.
    start_count: f64,
    end_count: f64,
    start_per_s: f64,
    end_per_s: f64,
}

/// The segments of stages, after a warm-up at their initial rate.
pub(crate) fn segments(stages: &Stages, warm_ns: u64) -> Vec<Segment> {
    let mut segments = Vec::with_capacity(stages.stages.len() + 1);
    let (mut start_ns, mut start_count, mut start_per_s) = (0u64, 0.0, stages.start_per_s);
    let warm_up = Stage { duration: Duration::from_nanos(warm_ns), rate_per_s: stages.start_per_s };
    for stage in std::iter::once(&warm_up).chain(&stages.stages) {
        let (length_s, end_per_s) = (stage.duration.as_secs_f64(), stage.rate_per_s);
        let area = start_count + length_s * f64::midpoint(start_per_s, end_per_s);
        let end_count = if (area - area.round()).abs() < WHOLE { area.round() } else { area };
        segments.push(Segment { start_ns, length_s, start_count, end_count, start_per_s, end_per_s });
        (start_ns, start_count, start_per_s) = (start_ns.saturating_add(stage.duration.as_nanos() as u64), end_count, end_per_s);
    }
    segments
}

/// When a request comes due: at the last moment before which no more than `request` requests come due, so that none comes due in a pause. A request beyond
/// the end of the stages never comes due.
pub(crate) fn intended_ns(segments: &[Segment], request: u64) -> u64 {
    let request = request as f64;
    let place = segments.partition_point(|segment| segment.end_count <= request);
    let Some(segment) = segments.get(place) else { return u64::MAX };
    let count = request - segment.start_count;
    let slope = (segment.end_per_s - segment.start_per_s) / segment.length_s;
    // The root of slope / 2 t^2 + start t = count, in the form that is also exact for a slope of zero.
    let root = (segment.start_per_s * segment.start_per_s + 2.0 * slope * count).max(0.0).sqrt();
    let after_s = if count <= 0.0 { 0.0 } else { (2.0 * count / (segment.start_per_s + root)).min(segment.length_s) };
    segment.start_ns + (after_s * 1e9) as u64
}

/// Approximate number of requests that come due before a time.
pub(crate) fn before(segments: &[Segment], end_ns: u64) -> f64 {
    let place = segments.partition_point(|segment| segment.start_ns <= end_ns).saturating_sub(1);
    let Some(segment) = segments.get(place) else { return 0.0 };
    if segment.length_s <= 0.0 {
        return segment.end_count;
    }
    let after_s = (end_ns.saturating_sub(segment.start_ns) as f64 / 1e9).min(segment.length_s);
    let slope = (segment.end_per_s - segment.start_per_s) / segment.length_s;
    segment.start_count + after_s * (segment.start_per_s + slope * after_s / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn due(text: &str, start_per_s: f64) -> Vec<f64> {
        let stages = Stages::parse(start_per_s, text).unwrap_or_else(|error| panic!("{error}"));
        let segments = segments(&stages, 0);
        let all = (0..).map(|request| intended_ns(&segments, request)).take_while(|ns| *ns < u64::MAX);
        all.map(|ns| ns as f64 / 1e9).collect()
    }

    #[test]
    fn the_requests_of_a_ramp_follow_the_area_below_it() {
        let ramp = due("10s:100", 0.0);
        assert_eq!(ramp.len(), 500);
        for (request, seconds) in ramp.iter().enumerate() {
            // 5 t^2 requests until t.
            assert!((seconds - (request as f64 / 5.0).sqrt()).abs() < 1e-6, "{request}: {seconds}");
        }
        let down = due("10s:0", 100.0);
        assert_eq!(down.len(), 500);
        assert!(down.iter().enumerate().all(|(request, t)| (100.0 * t - 5.0 * t * t - request as f64).abs() < 1e-4), "{down:?}");
        let level = due("2s:50", 50.0);
        assert!(level.iter().enumerate().all(|(request, t)| (t - request as f64 / 50.0).abs() < 1e-8) && level.len() == 100, "{level:?}");
    }

    #[test]
    fn no_request_is_due_in_a_pause_and_a_jump_takes_no_time() {
        let due = due("1s:10,0s:0,5s:0,0s:20,1s:20", 10.0);
        assert_eq!(due.len(), 30);
        assert!((due[9] - 0.9).abs() < 1e-8 && (due[10] - 6.0).abs() < 1e-8 && (due[11] - 6.05).abs() < 1e-8, "{due:?}");
    }

    #[test]
    fn malformed_stages_are_refused() {
        for text in ["", "10s", "10s:", ":5", "10:5", "10s:-5", "10s:5;", "10s:1e3", "1s:5,", "1s:0", "0s:100", "10ms:1"] {
            assert!(Stages::parse(0.0, text).is_err(), "{text:?} was taken");
        }
        assert!(Stages::parse(0.0, &"1s:1,".repeat(2_000)).is_err());
        let taken = Stages::parse(5.0, " 500ms:10 , 1m:20.5").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(taken.duration(), Duration::from_millis(60_500));
        assert!((taken.mean_per_s() - (3.75 + 915.0) / 60.5).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn starts_ascend_and_match_their_numbers(
            start in 0.0..5000.0f64,
            stages in proptest::collection::vec((0u64..3000, 0.0..5000.0f64), 1..6),
            warm_ms in 0u64..500,
        ) {
            let stages = Stages {
                start_per_s: start,
                stages: stages.iter().map(|(ms, rate)| Stage { duration: Duration::from_millis(*ms), rate_per_s: *rate }).collect(),
            };
            let segments = segments(&stages, warm_ms * 1_000_000);
            let all = segments.last().map_or(0.0, |last| last.end_count) as u64;
            let mut last_ns = 0;
            for request in (0..all).step_by(97) {
                let ns = intended_ns(&segments, request);
                prop_assert!(ns >= last_ns && ns < u64::MAX);
                last_ns = ns;
                // A nanosecond is at most 5e-6 requests; rounding of the area adds little.
                prop_assert!((before(&segments, ns) - request as f64).abs() < 1e-3, "{} at {ns}: {}", request, before(&segments, ns));
            }
        }
    }
}
