//! The closed loop against a server that misbehaves in many ways: each outcome is distinguished and each request is counted once.
//!
//! Live: load on this test's own server.

use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chokepoint_load::{Control, Guard, LoadError, run};
use chokepoint_model::load::{Errors, InFlight, LoadResult, Loop};

use crate::server::{self, HELLO, Server, load, plan, request, reset, until_closed};

/// Runs 40 requests against a server that treats each connection like this.
fn against(serve: impl Fn(TcpStream, u64) + Send + Sync + 'static) -> LoadResult {
    let server = Server::start(serve);
    load(&plan(server.address))
}

fn only(result: &LoadResult, errors: Errors) {
    assert_eq!(result.errors, errors, "{result:?}");
    assert_eq!(result.requests, 40, "{result:?}");
    assert_eq!(result.good, 0, "{result:?}");
    assert!(!result.error_samples.is_empty(), "an example is given");
}

#[test]
fn good_answers_are_counted_on_kept_connections() {
    let server = Server::answering(HELLO);
    let mut plan = plan(server.address);
    plan.requests = Some(200);
    let result = load(&plan);
    assert_eq!((result.good, result.status[&200], result.errors), (200, 200, Errors::default()), "{result:?}");
    assert_eq!(result.connections, 4);
    assert_eq!(server.connections.load(Ordering::Relaxed), 4);
    assert_eq!(result.received_bytes, 200 * HELLO.len() as u64);
    assert_eq!(result.sent_bytes % 200, 0);
    assert_eq!((result.drained, result.threads.len()), (0, 2));
    assert!(result.error_samples.is_empty() && !result.interrupted && result.stopped_by.is_none());
    assert!(result.latency_us.p50 > 0 && result.latency_us.p50 <= result.latency_us.max && result.connect_us.max > 0);
}

#[test]
fn each_request_can_have_its_own_connection() {
    let server = Server::answering(HELLO);
    let mut plan = plan(server.address);
    plan.keep_alive = false;
    let result = load(&plan);
    assert_eq!((result.good, result.connections), (40, 40), "{result:?}");
    let closes_first = Server::answering_once(HELLO);
    plan.address = closes_first.address.into();
    assert_eq!(load(&plan).good, 40);
}

#[test]
fn a_close_header_ends_the_connection() {
    let server = Server::answering_once("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    let result = load(&plan(server.address));
    assert_eq!((result.good, result.connections, result.errors), (40, 40, Errors::default()), "{result:?}");
}

#[test]
fn requests_work_over_ipv6() {
    let Ok(probe) = TcpListener::bind("[::1]:0") else {
        println!("skipped: no IPv6 on this host");
        return;
    };
    drop(probe);
    let server = Server::start_at("[::1]:0", |mut stream, _| while request(&mut stream) && stream.write_all(HELLO.as_bytes()).is_ok() {});
    assert_eq!(load(&plan(server.address)).good, 40);
}

#[test]
fn unexpected_statuses_are_answers_but_not_good() {
    let server = Server::answering("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n");
    let mut plan = plan(server.address);
    let result = load(&plan);
    assert_eq!((result.good, result.status[&500], result.errors.total()), (0, 40, 0), "{result:?}");
    assert_eq!(result.error_samples, ["answered 500 Internal Server Error"]);
    assert_eq!(result.good_latency_us.max, 0);
    plan.expect = vec![(200, 299), (500, 500)];
    assert_eq!(load(&plan).good, 40);
}

#[test]
fn a_refused_connection_does_not_spin() {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port that is free again");
    only(&load(&plan(address)), Errors { connect_refused: 40, ..Errors::default() });
    let mut timed = plan(address);
    (timed.requests, timed.duration) = (None, Some(Duration::from_millis(600)));
    let result = load(&timed);
    // Each of 4 connections retries after 1, 2, 4, ... 64 ms and then every 100 ms: at most 7 + 5 attempts after the first.
    assert!((8..=60).contains(&result.errors.connect_refused), "{result:?}");
    assert_eq!(result.connections, result.errors.connect_refused);
}

#[test]
fn a_reset_before_or_within_the_answer_is_a_reset() {
    let early = against(|mut stream, _| {
        request(&mut stream);
        reset(stream);
    });
    only(&early, Errors { reset: 40, ..Errors::default() });
    let amid = against(|mut stream, _| {
        request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
        std::thread::sleep(Duration::from_millis(5));
        reset(stream);
    });
    only(&amid, Errors { reset: 40, ..Errors::default() });
}

#[test]
fn a_close_before_or_within_the_answer_is_counted_as_such() {
    for part in
        ["", "HTT", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "HTTP/1.1 100 Continue\r\n\r\n"]
    {
        let server = Server::answering_once(part);
        only(&load(&plan(server.address)), Errors { closed_before_answer: 40, ..Errors::default() });
    }
    let cut_chunks = Server::answering_once("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    only(&load(&plan(cut_chunks.address)), Errors { closed_before_answer: 40, ..Errors::default() });
}

#[test]
fn an_unannounced_close_of_a_kept_connection_is_counted() {
    let result = against(|mut stream, _| {
        for _ in 0..4 {
            if request(&mut stream) {
                let _ = stream.write_all(HELLO.as_bytes());
            }
        }
        // Late enough that the next request is on its way. The close then leaves it without an answer.
        request(&mut stream);
    });
    assert_eq!(result.good + result.errors.closed_before_answer + result.errors.reset, 40, "{result:?}");
    assert!(result.errors.total() >= 5 && result.resent == 0, "{result:?}");
}

#[test]
fn silence_is_a_response_timeout() {
    let parts = ["", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "HTTP/1.1 200 O", "HTTP/1.1 200 OK\r\n\r\nno length, no close"];
    for part in parts {
        let server = Server::start(move |mut stream, _| {
            request(&mut stream);
            let _ = stream.write_all(part.as_bytes());
            until_closed(&mut stream);
        });
        let mut plan = plan(server.address);
        (plan.requests, plan.timeout) = (Some(8), Duration::from_millis(100));
        let result = load(&plan);
        assert_eq!(result.errors, Errors { response_timeout: 8, ..Errors::default() }, "{result:?}");
        assert!(result.latency_us.p50 >= 100_000, "a timed-out request took at least its timeout: {result:?}");
    }
}

#[test]
fn a_connection_that_the_server_never_accepts_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut plan = plan(listener.local_addr().expect("bound"));
    (plan.requests, plan.timeout) = (Some(4), Duration::from_millis(100));
    assert_eq!(load(&plan).errors, Errors { response_timeout: 4, ..Errors::default() });
}

#[test]
fn a_full_accept_queue_is_a_connect_timeout() {
    use rustix::net::{AddressFamily, SocketType, bind, connect, getsockname, listen, socket};
    let listener = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&listener, &std::net::SocketAddrV4::new([127, 0, 0, 1].into(), 0)).expect("a free port");
    listen(&listener, 0).expect("listening");
    let address: std::net::SocketAddr = getsockname(&listener).expect("bound").try_into().expect("an IPv4 address");
    // The queue holds backlog + 1. More fillers do no harm; they never get in.
    let fillers: Vec<_> = (0..3)
        .map(|_| {
            let filler = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
            rustix::io::ioctl_fionbio(&filler, true).expect("not blocking");
            let _ = connect(&filler, &address);
            filler
        })
        .collect();
    std::thread::sleep(Duration::from_millis(50));
    let mut plan = plan(address);
    (plan.requests, plan.timeout) = (Some(8), Duration::from_millis(150));
    let result = load(&plan);
    assert_eq!(result.errors, Errors { connect_timeout: 8, ..Errors::default() }, "{result:?}");
    assert!(result.latency_us.p50 >= 150_000 && result.connect_us.max == 0, "{result:?}");
    drop(fillers);
}

#[test]
fn an_unreachable_address_fails_to_connect() {
    // A broadcast address: connect() returns EACCES or ENETUNREACH, whatever the host's routes are.
    let mut plan = plan(([255, 255, 255, 255], 80).into());
    plan.requests = Some(8);
    let result = load(&plan);
    assert_eq!(result.errors, Errors { connect_failed: 8, ..Errors::default() }, "{result:?}");
}

#[test]
fn chunked_answers_are_complete() {
    let server =
        Server::answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n3\r\nabc\r\n0\r\nSum: 8\r\n\r\n");
    let result = load(&plan(server.address));
    assert_eq!((result.good, result.connections), (40, 4), "{result:?}");
}

#[test]
fn single_bytes_and_interim_answers_are_parsed() {
    let answer = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    let result = against(move |mut stream, _| {
        while request(&mut stream) {
            for byte in answer.as_bytes() {
                if stream.write_all(&[*byte]).is_err() {
                    return;
                }
            }
        }
    });
    assert_eq!((result.good, result.connections, result.status.len()), (40, 4, 1), "{result:?}");
}

#[test]
fn an_answer_may_end_with_the_connection() {
    let server = Server::answering_once("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\neverything until the close");
    let result = load(&plan(server.address));
    assert_eq!((result.good, result.connections), (40, 40), "{result:?}");
}

#[test]
fn large_answers_are_read_completely() {
    const BODY_BYTES: usize = 5_000_000;
    let server = Server::start(|mut stream, _| {
        let answer = [format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\n\r\n").as_bytes(), &vec![b'x'; BODY_BYTES]].concat();
        while request(&mut stream) && stream.write_all(&answer).is_ok() {}
    });
    let mut plan = plan(server.address);
    (plan.requests, plan.timeout) = (Some(8), Duration::from_secs(10));
    let result = load(&plan);
    assert_eq!(result.good, 8, "{result:?}");
    assert!(result.received_bytes > 8 * BODY_BYTES as u64);
}

#[test]
fn large_bodies_are_sent_completely_and_an_early_answer_counts() {
    const BODY_BYTES: usize = 3_000_000;
    let takes_all = Server::start(|mut stream, _| {
        use std::io::Read;
        while request(&mut stream) {
            let mut body = vec![0; BODY_BYTES];
            if stream.read_exact(&mut body).is_err() || !body.ends_with(b"b") || stream.write_all(HELLO.as_bytes()).is_err() {
                return;
            }
        }
    });
    let mut plan = plan(takes_all.address);
    (plan.requests, plan.timeout, plan.method, plan.body) = (Some(8), Duration::from_secs(10), "POST".into(), vec![b'b'; BODY_BYTES]);
    let result = load(&plan);
    // A thread that gets no core leaves its requests to the other one.
    assert!(result.good == 8 && (1..=4).contains(&result.connections), "{result:?}");
    assert!(result.sent_bytes > 8 * BODY_BYTES as u64);
    let refuses = Server::start(|mut stream, _| {
        request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        let _ = stream.shutdown(Shutdown::Write);
        until_closed(&mut stream);
    });
    plan.address = refuses.address.into();
    let result = load(&plan);
    assert_eq!((result.status.get(&413), result.connections), (Some(&8), 8), "{result:?}");
}

#[test]
fn head_requests_do_not_wait_for_a_body() {
    let server = Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n");
    let mut plan = plan(server.address);
    plan.method = "HEAD".into();
    let result = load(&plan);
    assert_eq!((result.good, result.connections), (40, 4), "{result:?}");
}

#[test]
fn requests_in_flight_at_the_end_are_awaited_and_counted_as_drained() {
    let server = Server::start(|mut stream, _| {
        while request(&mut stream) {
            std::thread::sleep(Duration::from_millis(150));
            if stream.write_all(HELLO.as_bytes()).is_err() {
                return;
            }
        }
    });
    let mut plan = plan(server.address);
    (plan.requests, plan.duration, plan.timeout) = (None, Some(Duration::from_millis(400)), Duration::from_secs(5));
    let result = load(&plan);
    assert_eq!(result.duration_us, 400_000);
    assert_eq!(result.good, result.requests, "{result:?}");
    assert_eq!((result.drained, result.drained_good), (4, 4), "each connection had one request under way: {result:?}");
    assert!((result.goodput_rps() - (result.good - 4) as f64 / 0.4).abs() < 0.01);
    assert!(result.slices.len() > 4, "the wait is in the slices: {result:?}");
    let under_way_us = result.under_way_us.expect("it is told");
    assert!(under_way_us <= 4 * 400_000 && under_way_us >= (result.good - 4) * 150_000, "the wait is not in this: {result:?}");
}

#[test]
fn a_stop_is_an_interruption_and_an_abort_does_not_wait() {
    // Half of the answers begin, and none is completed.
    let server = Server::start(|mut stream, number| {
        if number % 2 == 0 && request(&mut stream) {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1");
        }
        until_closed(&mut stream);
    });
    let mut plan = plan(server.address);
    (plan.requests, plan.duration, plan.timeout) = (None, Some(Duration::from_secs(60)), Duration::from_secs(1));
    let control = Control::new();
    assert_eq!((control.under_way(), control.began()), (InFlight::default(), None));
    let stop_after = |control: &Control, stop: fn(&Control)| {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let told = || (control.under_way().all, control.under_way().begun);
                while told() != (4, 2) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                assert!(control.began().is_some_and(|began| began <= std::time::Instant::now()));
                stop(control);
            });
            run(&plan, control).expect("the load runs")
        })
    };
    let stopped = stop_after(&control, Control::stop);
    server::check(&stopped);
    assert!(stopped.interrupted && stopped.duration_us < 30_000_000, "{stopped:?}");
    let left = control.under_way();
    assert_eq!((left.all, left.begun), (0, 0));
    let mean = left.mean_since(&InFlight::default());
    assert!(mean > 0.0 && mean <= 4.0, "of four connections: {left:?}");
    assert_eq!((stopped.errors.response_timeout, stopped.drained), (4, 4), "{stopped:?}");
    let again = run(&plan, &control).expect("a stopped control ends the next load at once");
    assert!(again.interrupted && again.requests == 0, "{again:?}");
    let aborted = stop_after(&Control::new(), Control::abort);
    assert!(aborted.interrupted && aborted.requests == 0 && aborted.duration_us < 30_000_000, "{aborted:?}");
}

#[test]
fn a_guard_stops_the_load_and_gives_the_reason() {
    let server = Server::answering("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n");
    let mut plan = plan(server.address);
    (plan.requests, plan.duration) = (None, Some(Duration::from_secs(60)));
    plan.guards = vec![Guard::parse("p99>50s || errors>20%").expect("a guard")];
    let result = load(&plan);
    assert_eq!(result.stopped_by.as_deref(), Some("errors>20%"));
    assert!(!result.interrupted && result.duration_us < 30_000_000, "{result:?}");
    assert!(result.error_samples[0].starts_with("guard errors>20%: "), "{:?}", result.error_samples);
    let good = Server::answering(HELLO);
    (plan.address, plan.duration) = (good.address.into(), Some(Duration::from_millis(1500)));
    assert_eq!(load(&plan).stopped_by, None);
}

#[test]
fn a_guard_sees_requests_that_hang() {
    let server = Server::start(|mut stream, _| until_closed(&mut stream));
    let mut plan = plan(server.address);
    plan.shape = Loop::Closed { connections: 30 };
    (plan.requests, plan.duration, plan.timeout) = (None, Some(Duration::from_secs(60)), Duration::from_secs(4));
    plan.guards = vec![Guard::parse("p99>500ms").expect("a guard")];
    let result = load(&plan);
    assert_eq!(result.stopped_by.as_deref(), Some("p99>500ms"));
    assert!(result.duration_us < 4_000_000, "before the first timeout: {result:?}");
}

#[test]
fn more_threads_than_connections_are_not_started() {
    let server = Server::answering(HELLO);
    let mut plan = plan(server.address);
    (plan.threads, plan.requests) = (Some(64), Some(3));
    let result = load(&plan);
    assert_eq!((result.good, result.threads.len()), (3, 4), "{result:?}");
}

#[test]
fn too_many_connections_for_the_descriptor_limit_are_an_error() {
    let hard = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let Some(connections) = hard.and_then(|hard| u32::try_from(hard).ok()).filter(|hard| *hard < 10_000_000) else {
        println!("skipped: no limit on file descriptors that a plan could exceed");
        return;
    };
    let mut plan = plan(([127, 0, 0, 1], 1).into());
    // Each thread may open this many: one thread alone would need too many.
    (plan.shape, plan.threads) = (Loop::Closed { connections }, Some(1));
    let error = run(&plan, &Control::new()).expect_err("64 more are needed");
    assert!(matches!(error, LoadError::Files { .. }) && error.to_string().contains("RLIMIT_NOFILE"), "{error}");
}

/// A server with one worker serves one connection until it is closed, and the load keeps that connection.
#[test]
fn at_its_end_a_load_leaves_the_server_to_the_connections_that_wait() {
    let worker = Mutex::new(());
    let server = Server::start(move |mut stream: TcpStream, _| {
        let _worker = worker.lock().unwrap_or_else(PoisonError::into_inner);
        while request(&mut stream) && stream.write_all(HELLO.as_bytes()).is_ok() {}
    });
    let mut plan = plan(server.address);
    (plan.shape, plan.threads, plan.requests) = (Loop::Closed { connections: 2 }, Some(1), None);
    (plan.duration, plan.timeout) = (Some(Duration::from_millis(200)), Duration::from_secs(5));
    let result = load(&plan);
    assert_eq!((result.good, result.errors.total()), (result.requests, 0), "{result:?}");
}
