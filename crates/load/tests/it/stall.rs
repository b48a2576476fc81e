//! A server that stalls for two of eight seconds. The expected histogram is derived from the times at which the server could answer. A closed loop cannot show
//! the stall, and reports what it left out.
//!
//! Live: load on this test's own server.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chokepoint_load::{Control, Plan, measure};
use chokepoint_model::load::{Loop, Measured};

use crate::server::{HELLO, Server, check, latencies, plan, request};

const LOAD: Duration = Duration::from_secs(8);
const STALL_AFTER: Duration = Duration::from_secs(2);
const STALL: Duration = Duration::from_secs(2);
/// Allowed deviation of a measured percentile from theory, as a share.
const TOLERANCE: f64 = 0.05;

/// When the server could not answer: its own stall, and the times in which this process did not run, measured by a heartbeat.
#[derive(Default)]
struct Gaps {
    first_request: Option<Instant>,
    gaps: Vec<(Instant, Instant)>,
}

/// Runs the load against the stalling server.
fn stalled(change: impl FnOnce(&mut Plan)) -> (Measured, Gaps) {
    let gaps = Arc::new(Mutex::new(Gaps::default()));
    let seen = gaps.clone();
    let server = Server::start(move |mut stream, _| {
        while request(&mut stream) {
            {
                // All answers pass this lock, so one that stalls delays all.
                let mut seen = seen.lock().expect("no panics");
                let first = *seen.first_request.get_or_insert_with(Instant::now);
                if first.elapsed() >= STALL_AFTER && !seen.gaps.iter().any(|(begin, end)| *end - *begin >= STALL) {
                    let begin = Instant::now();
                    std::thread::sleep(STALL);
                    seen.gaps.push((begin, Instant::now()));
                }
            }
            if stream.write_all(HELLO.as_bytes()).is_err() {
                return;
            }
        }
    });
    let mut plan = plan(server.address);
    (plan.requests, plan.duration, plan.timeout) = (None, Some(LOAD), Duration::from_secs(10));
    change(&mut plan);
    let is_over = AtomicBool::new(false);
    let measured = std::thread::scope(|scope| {
        let heartbeat = scope.spawn(|| {
            let mut missed = Vec::new();
            let mut last = Instant::now();
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(2));
                if last.elapsed() > Duration::from_millis(20) {
                    missed.push((last, Instant::now()));
                }
                last = Instant::now();
            }
            missed
        });
        let measured = measure(&plan, &Control::new()).expect("the load runs");
        is_over.store(true, Ordering::Relaxed);
        gaps.lock().expect("no panics").gaps.extend(heartbeat.join().expect("no panics"));
        measured
    });
    check(&measured.result);
    drop(server);
    let gaps = std::mem::take(&mut *gaps.lock().expect("no panics"));
    (measured, gaps)
}

/// The waits of requests that start evenly over the load, sorted, microseconds. A request in a gap waits for its end. If gaps adjoin or overlap, it waits for
/// the end of the last one.
fn theory(gaps: &Gaps, rate_per_s: f64) -> Vec<f64> {
    let begin = gaps.first_request.expect("a request came");
    let mut all = gaps.gaps.clone();
    all.sort();
    let wait = |number: u32| {
        let due = begin + Duration::from_secs_f64(f64::from(number) / rate_per_s);
        let served = all.iter().fold(due, |at, (from, to)| if *from <= at && at < *to { *to } else { at });
        (served - due).as_secs_f64() * 1e6
    };
    let mut waits: Vec<f64> = (0..(LOAD.as_secs_f64() * rate_per_s) as u32).map(wait).collect();
    waits.sort_by(f64::total_cmp);
    waits
}

fn at(sorted: &[f64], quantile: f64) -> f64 {
    sorted[((sorted.len() as f64 * quantile).ceil() as usize).clamp(1, sorted.len()) - 1]
}

#[test]
fn an_open_loop_shows_the_stall_as_theory_predicts() {
    const RATE_PER_S: f64 = 125.0;
    let (measured, gaps) = stalled(|plan| plan.shape = Loop::Open { rate_per_s: RATE_PER_S, connections: 32 });
    let result = &measured.result;
    assert_eq!(result.requests as f64, RATE_PER_S * LOAD.as_secs_f64(), "nothing is missing: {:?}", result.errors);
    let theory = theory(&gaps, RATE_PER_S);
    // Without disturbance: a quarter of the requests comes in the stall. Their waits are even from 0 to 2 s, so p90 is 1.2 s and p99 1.92 s.
    for (name, quantile, measured_us) in [("p90", 0.9, result.latency_us.p90), ("p99", 0.99, result.latency_us.p99)] {
        let expected_us = at(&theory, quantile);
        assert!(expected_us > 1e6, "the stall is in {name}: {expected_us}");
        let error = (measured_us as f64 - expected_us).abs() / expected_us;
        println!("{name}: theory {:.0} ms, measured {:.0} ms, {:.1} % off", expected_us / 1e3, measured_us as f64 / 1e3, error * 100.0);
        assert!(error <= TOLERANCE, "{name} is {measured_us} us where theory has {expected_us}");
    }
    assert_eq!(latencies(result).len(), result.requests);
    assert!(measured.detail.late_held > 0 && measured.detail.late_held <= result.late, "{:?}", measured.detail);
    assert_eq!(measured.detail.corrected_latency_us, None);
    assert_eq!(measured.detail.distribution.iter().map(|bucket| bucket.count).sum::<u64>(), result.requests);
}

#[test]
fn a_closed_loop_hides_the_stall_and_reports_what_it_left_out() {
    let (measured, gaps) = stalled(|plan| plan.shape = Loop::Closed { connections: 8 });
    let stalled_s: f64 = gaps.gaps.iter().map(|(begin, end)| (*end - *begin).as_secs_f64()).fold(0.0, f64::max);
    let raw = measured.result.latency_us;
    let corrected = measured.detail.corrected_latency_us.expect("a closed loop");
    assert!(raw.max as f64 >= stalled_s * 0.95e6, "{raw:?}");
    assert!(raw.p99 < corrected.p99 / 2, "eight slow requests of thousands are no percentile: {raw:?}, corrected {corrected:?}");
    let theory = theory(&gaps, 1000.0);
    for (name, quantile, corrected_us) in [("p90", 0.9, corrected.p90), ("p99", 0.99, corrected.p99)] {
        let expected_us = at(&theory, quantile);
        println!("{name}: theory {:.0} ms, corrected {:.0} ms", expected_us / 1e3, corrected_us as f64 / 1e3);
        // The rate that the stall held up is estimated from the answers that were not slow.
        assert!(
            (corrected_us as f64 - expected_us).abs() <= 0.15 * expected_us,
            "{name}: corrected {corrected_us} us, theory {expected_us}"
        );
    }
}

#[test]
fn without_a_stall_the_correction_is_small() {
    let server = Server::answering(HELLO);
    let mut plan = plan(server.address);
    (plan.requests, plan.timeout) = (Some(5_000), Duration::from_secs(10));
    let measured = measure(&plan, &Control::new()).expect("the load runs");
    let corrected = measured.detail.corrected_latency_us.expect("a closed loop");
    assert!(corrected.p50 >= measured.result.latency_us.p50 && corrected.max == measured.result.latency_us.max, "{corrected:?}");
}
