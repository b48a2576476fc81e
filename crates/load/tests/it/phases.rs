//! The parts of a load and of a request: warm-up, connections with a limited number of requests, the first byte and the complete answer.
//!
//! Live: load on this test's own server.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chokepoint_load::{Control, measure};
use chokepoint_model::load::Loop;

use crate::server::{HELLO, Server, check, load, plan, request, until_closed};

#[test]
fn requests_of_the_warm_up_are_not_counted() {
    // Slow and wrong at first, like a cold server; good from the hundredth request on.
    let served = Arc::new(AtomicU64::new(0));
    let count = served.clone();
    let server = Server::start(move |mut stream, _| {
        while request(&mut stream) {
            let answer = if count.fetch_add(1, Ordering::Relaxed) < 100 {
                std::thread::sleep(Duration::from_millis(2));
                "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
            } else {
                HELLO
            };
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    });
    let mut cold = plan(server.address);
    cold.timeout = Duration::from_secs(20);
    let mut warm = cold.clone();
    // 200 a second for a second: the first hundred have ended by then, however slow the machine is.
    warm.shape = Loop::Open { rate_per_s: 200.0, connections: 4 };
    (warm.requests, warm.options.warm_up) = (Some(40), Duration::from_secs(1));
    let measured = measure(&warm, &Control::new()).expect("the load runs");
    check(&measured.result);
    let result = measured.result;
    assert_eq!((result.requests, result.good, result.errors.total()), (40, 40, 0), "{result:?}");
    assert_eq!(measured.detail.warm_up_us, 1_000_000);
    assert!(served.load(Ordering::Relaxed) >= 240, "{}", served.load(Ordering::Relaxed));
    assert!(result.duration_us < 20_000_000 && result.connections <= 4 && result.error_samples.is_empty(), "{result:?}");
    // A closed loop: the given number of requests comes after the warm-up, which sends as many as it can.
    (cold.options.warm_up, cold.requests) = (Duration::from_millis(200), Some(40));
    let before = served.load(Ordering::Relaxed);
    let result = measure(&cold, &Control::new()).expect("the load runs").result;
    check(&result);
    assert_eq!((result.requests, result.good), (40, 40), "{result:?}");
    assert!(served.load(Ordering::Relaxed) - before > 40, "some were sent to warm up");
    assert!(result.connections <= 4, "the connections were open already: {result:?}");
}

/// The rate of a slow server would be too low by the share that a response time has of the load.
#[test]
fn answers_to_requests_of_the_warm_up_are_part_of_the_rates() {
    let server = Server::start(|mut stream, _| {
        while request(&mut stream) {
            std::thread::sleep(Duration::from_millis(300));
            if stream.write_all(HELLO.as_bytes()).is_err() {
                return;
            }
        }
    });
    let mut plan = plan(server.address);
    (plan.shape, plan.requests, plan.duration) = (Loop::Closed { connections: 8 }, None, Some(Duration::from_secs(2)));
    (plan.timeout, plan.options.warm_up) = (Duration::from_secs(20), Duration::from_millis(500));
    let result = measure(&plan, &Control::new()).expect("the load runs").result;
    check(&result);
    assert_eq!((result.early, result.early_good, result.drained), (8, 8, 8), "each connection waits at both ends: {result:?}");
    let within = result.good - result.drained_good + 8;
    assert!((result.goodput_rps() * result.duration_us as f64 / 1e6 - within as f64).abs() < 1e-6, "{result:?}");
    assert_eq!(result.requests, result.status[&200], "they are not among the requests: {result:?}");
    let slices: u64 = result.offered().iter().map(|slice| u64::from(slice.good)).sum();
    assert!(slices.abs_diff(within) <= 8, "{slices} of {within}: {result:?}");
}

#[test]
fn a_load_that_ends_in_its_warm_up_has_no_results() {
    let server = Server::start(|mut stream, _| until_closed(&mut stream));
    for shape in [Loop::Closed { connections: 4 }, Loop::Open { rate_per_s: 100.0, connections: 4 }] {
        let mut plan = plan(server.address);
        (plan.shape, plan.requests, plan.duration) = (shape, None, Some(Duration::from_secs(60)));
        plan.options.warm_up = Duration::from_secs(60);
        let control = Control::new();
        let result = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                control.stop();
            });
            measure(&plan, &control).expect("the load runs").result
        });
        assert!(result.interrupted && result.requests == 0 && result.duration_us == 0, "{result:?}");
    }
}

#[test]
fn a_connection_carries_the_given_number_of_requests() {
    // The request heads that the server received, in order for each connection.
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heads = seen.clone();
    let server = Server::start(move |mut stream, _| {
        let mut closes = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
            let close = String::from_utf8_lossy(&buffer[..bytes]).contains("Connection: close");
            closes.push(close);
            if stream.write_all(HELLO.as_bytes()).is_err() || close {
                break;
            }
        }
        heads.lock().expect("no panics").push(closes);
    });
    let mut plan = plan(server.address);
    plan.shape = Loop::Closed { connections: 1 };
    (plan.requests, plan.timeout) = (Some(12), Duration::from_secs(10));
    plan.options.requests_per_connection = Some(4);
    let result = load(&plan);
    assert_eq!((result.good, result.connections), (12, 3), "{result:?}");
    plan.options.requests_per_connection = Some(1);
    assert_eq!(load(&plan).connections, 12);
    drop(server);
    let seen = seen.lock().expect("no panics");
    assert_eq!(seen[..3], [[false, false, false, true]; 3], "the last request of each asks to close");
}

#[test]
fn the_first_byte_and_the_complete_answer_are_distinguished() {
    const PAUSE: Duration = Duration::from_millis(60);
    let server = Server::start(|mut stream, number| {
        while request(&mut stream) {
            // On every second connection the answer comes in two pieces.
            let (first, rest) = HELLO.split_at(if number % 2 == 0 { 20 } else { HELLO.len() });
            if stream.write_all(first.as_bytes()).is_err() {
                return;
            }
            if !rest.is_empty() {
                std::thread::sleep(PAUSE);
                if stream.write_all(rest.as_bytes()).is_err() {
                    return;
                }
            }
        }
    });
    let mut plan = plan(server.address);
    (plan.timeout, plan.keep_alive) = (Duration::from_secs(10), false);
    let measured = measure(&plan, &Control::new()).expect("the load runs");
    check(&measured.result);
    let (total, first) = (measured.result.latency_us, measured.detail.first_byte_us);
    assert_eq!(measured.result.good, 40, "{:?}", measured.result);
    assert!(total.p75 as u128 >= PAUSE.as_micros(), "half of the answers took the pause: {total:?}");
    assert!(first.p50 + PAUSE.as_micros() as u64 <= total.max && first.p50 < total.p75, "{first:?} {total:?}");
    assert!(first.max <= total.max && measured.result.connect_us.p50 <= first.p50, "{first:?} {total:?}");
}

#[test]
fn incomplete_answers_have_a_first_byte_and_missing_ones_have_none() {
    let cut = Server::start(|mut stream, _| {
        request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
        until_closed(&mut stream);
    });
    let mut plan = plan(cut.address);
    (plan.requests, plan.timeout) = (Some(4), Duration::from_millis(200));
    let measured = measure(&plan, &Control::new()).expect("the load runs");
    assert_eq!(measured.result.errors.response_timeout, 4);
    let first = measured.detail.first_byte_us;
    assert!(first.max > 0 && first.max < measured.result.latency_us.max, "{first:?}");
    let silent = Server::start(|mut stream, _| until_closed(&mut stream));
    plan.address = silent.address.into();
    assert_eq!(measure(&plan, &Control::new()).expect("the load runs").detail.first_byte_us.max, 0);
}
