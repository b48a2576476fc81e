//! The recorder's rules on seconds that were recorded beside a real site.
//!
//! Deterministic: recorded seconds, no clock.

use chokepoint_recorder::drop::{Daily, Detector, Event};
use chokepoint_recorder::{Levels, Sample};

/// Seconds of `lab/watch/calm.sh`, what drops are told by: waves of load, bursts, reloads, new versions of a page, rotated logs, half the demand. Nothing was wrong.
const CALM: &str = include_str!("../data/calm.jsonl");
/// The server that was watched.
const TARGET: &str = "http://10.79.1.2/";
/// What is replayed in one go, seconds.
const REPLAYED_S: u64 = 2 * 3_600;
/// Seconds of a minute's sample.
const MINUTE_S: u32 = 60;

fn recorded() -> Vec<Sample> {
    CALM.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The recording again and again, as seconds without a gap.
fn two_hours() -> impl Iterator<Item = Sample> {
    let recorded = recorded();
    assert!(recorded.len() >= 600, "{} seconds", recorded.len());
    let begin_s = recorded[0].at_s;
    let again = move |n: u64| Sample { at_s: begin_s + n, ..recorded[(n % recorded.len() as u64) as usize].clone() };
    (0..REPLAYED_S).map(again)
}

/// All drops that begin, against the last minutes and against the days before.
fn begun(seconds: impl Iterator<Item = Sample>) -> Vec<Event> {
    let (mut detector, mut daily, mut levels) = (Detector::new(TARGET), Daily::new(TARGET), Levels::default());
    let mut events = Vec::new();
    for second in seconds {
        let target = second.target(TARGET).unwrap();
        events.extend(detector.add(second.at_s, target));
        for minute in levels.add(second.clone()).into_iter().filter(|sample| sample.span_s == MINUTE_S) {
            events.extend(daily.add(minute.at_s, minute.target(TARGET).unwrap(), false));
        }
    }
    events.retain(|event| matches!(event, Event::Began(_)));
    events
}

#[test]
fn two_hours_of_waves_deploys_rotations_and_bursts_are_no_drop() {
    assert_eq!(begun(two_hours()), []);
}

#[test]
fn the_same_two_hours_with_answers_that_take_three_times_as_long_at_the_end_are_one() {
    let slower = two_hours().enumerate().map(|(n, mut second)| {
        if n as u64 >= REPLAYED_S - 60 {
            let target = second.targets.iter_mut().find(|target| target.target == TARGET).unwrap();
            target.under_way.sum *= 3.0;
        }
        second
    });
    let events = begun(slower);
    assert!(matches!(&events[..], [Event::Began(drop)] if drop.target == TARGET), "{events:?}");
}
