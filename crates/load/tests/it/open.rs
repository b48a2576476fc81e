//! The open loop: exact intended starts, latency that shows a stall fully, and no missing requests.
//!
//! Live: load on this test's own server.

use std::io::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use chokepoint_model::load::{Errors, Loop};

use crate::server::{HELLO, Server, latencies, load, plan, request, until_closed};

#[test]
fn the_rate_is_exact() {
    let server = Server::answering(HELLO);
    let mut plan = plan(server.address);
    plan.shape = Loop::Open { rate_per_s: 333.0, connections: 50 };
    (plan.requests, plan.duration, plan.timeout) = (None, Some(Duration::from_millis(1000)), Duration::from_secs(2));
    let result = load(&plan);
    assert_eq!((result.requests, result.good, result.duration_us), (333, 333, 1_000_000), "{result:?}");
    // A request was due every 3 ms, so connections were reused and far from all were opened.
    assert!(result.connections <= 50, "{result:?}");
    assert!(result.slices[..10].iter().map(|slice| slice.started).sum::<u32>() >= 300, "{result:?}");
    (plan.requests, plan.duration) = (Some(100), None);
    let result = load(&plan);
    assert_eq!((result.requests, result.good), (100, 100), "{result:?}");
}

#[test]
fn the_histogram_shows_a_stall_as_theory_predicts() {
    const RATE_PER_S: f64 = 500.0;
    // (begin, end) of the stall as the server saw it.
    let stall = std::sync::Arc::new(Mutex::new(None::<(Instant, Instant)>));
    let (gate, begin) = (stall.clone(), Instant::now() + Duration::from_millis(400));
    let server = Server::start(move |mut stream, _| {
        while request(&mut stream) {
            {
                // One at a time: the first one after `begin` stalls, and the others wait for the lock.
                let mut stall = gate.lock().expect("no panics");
                if stall.is_none() && Instant::now() >= begin {
                    let began = Instant::now();
                    std::thread::sleep(Duration::from_millis(500));
                    *stall = Some((began, Instant::now()));
                }
            }
            if stream.write_all(HELLO.as_bytes()).is_err() {
                return;
            }
        }
    });
    let mut plan = plan(server.address);
    // The stall soon holds all eight connections. Every later request waits in the generator and must not be forgotten.
    plan.shape = Loop::Open { rate_per_s: RATE_PER_S, connections: 8 };
    (plan.requests, plan.duration, plan.timeout) = (None, Some(Duration::from_millis(1500)), Duration::from_secs(5));
    let result = load(&plan);
    // A busy machine may wake the generator so late that more requests are due at the end than there are connections.
    assert_eq!((result.requests, result.good + result.errors.never_sent), (750, 750), "{result:?}");
    assert!(result.errors.never_sent <= 20, "{result:?}");
    let (began, ended) = stall.lock().expect("no panics").expect("it stalled");
    let stall_s = (ended - began).as_secs_f64();
    let histogram = latencies(&result);
    // Starts are even, so those due x into the stall wait stall - x: rate * stall * (1 - q) requests take longer than q of the stall.
    for quarter in [0.25, 0.5, 0.75] {
        let longer = histogram.count_between((stall_s * quarter * 1e6) as u64, u64::MAX) as f64;
        let theory = RATE_PER_S * stall_s * (1.0 - quarter);
        assert!((longer - theory).abs() <= 0.2 * theory + 5.0, "longer than {quarter} of the stall: {longer}, theory {theory}");
    }
    assert!(result.latency_us.max as f64 >= stall_s * 0.95e6, "{result:?}");
    assert!(result.late as f64 >= RATE_PER_S * stall_s * 0.7, "what waited was sent late: {result:?}");
}

#[test]
fn unsent_requests_are_counted_and_in_the_tail() {
    let server = Server::start(|mut stream, _| until_closed(&mut stream));
    let mut plan = plan(server.address);
    plan.shape = Loop::Open { rate_per_s: 200.0, connections: 3 };
    (plan.requests, plan.duration, plan.timeout) = (None, Some(Duration::from_millis(500)), Duration::from_secs(1));
    let result = load(&plan);
    assert_eq!(result.requests, 100, "{result:?}");
    assert_eq!(result.errors, Errors { response_timeout: 3, never_sent: 97, ..Errors::default() }, "{result:?}");
    assert_eq!(result.drained, 100, "nothing ended in time: {result:?}");
    let histogram = latencies(&result);
    let waited_long = histogram.count_between(250_000, 900_000);
    assert!((40..=50).contains(&waited_long), "half of the unsent had waited for over half of the time: {waited_long}");
}

#[test]
fn a_refusing_server_gets_the_full_rate() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port that is free again");
    let mut plan = plan(address);
    plan.shape = Loop::Open { rate_per_s: 1000.0, connections: 4 };
    (plan.requests, plan.duration) = (None, Some(Duration::from_millis(300)));
    let result = load(&plan);
    assert_eq!(result.requests, 300, "{result:?}");
    assert_eq!(result.errors.connect_refused + result.errors.never_sent, 300, "{result:?}");
    assert!(result.errors.connect_refused >= 250, "{result:?}");
}

#[test]
fn idle_connections_closed_by_the_server_are_replaced_without_an_error() {
    let server = Server::start(|mut stream, _| {
        if request(&mut stream) {
            let _ = stream.write_all(HELLO.as_bytes());
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let mut plan = plan(server.address);
    plan.shape = Loop::Open { rate_per_s: 20.0, connections: 4 };
    plan.threads = Some(1);
    (plan.requests, plan.duration) = (Some(20), None);
    let result = load(&plan);
    assert_eq!((result.good, result.connections, result.errors), (20, 20, Errors::default()), "{result:?}");
}

#[test]
fn unexpected_bytes_on_an_idle_connection_are_reported() {
    let server = Server::start(|mut stream, _| {
        if request(&mut stream) {
            let _ = stream.write_all(HELLO.as_bytes());
            std::thread::sleep(Duration::from_millis(10));
            let _ = stream.write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n");
            until_closed(&mut stream);
        }
    });
    let mut plan = plan(server.address);
    plan.shape = Loop::Open { rate_per_s: 20.0, connections: 4 };
    plan.threads = Some(1);
    (plan.requests, plan.duration) = (Some(10), None);
    let result = load(&plan);
    assert_eq!((result.good, result.connections), (10, 10), "{result:?}");
    assert_eq!(result.error_samples, ["the server sent bytes on an idle connection"]);
}

#[test]
fn a_rate_below_one_a_second_and_an_early_end_work() {
    let server = Server::answering(HELLO);
    let mut plan = plan(server.address);
    plan.shape = Loop::Open { rate_per_s: 0.5, connections: 1000 };
    (plan.requests, plan.duration) = (None, Some(Duration::from_millis(200)));
    let result = load(&plan);
    assert_eq!((result.requests, result.good), (1, 1), "the first request is due at once: {result:?}");
}
