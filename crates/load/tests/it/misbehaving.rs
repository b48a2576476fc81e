//! A misbehaving server, one way in each test. The load ends, memory and time stay bounded, and each request is counted once with the right outcome.
//!
//! Live beside others: a server of its own; the outcome of each request is judged, not its time.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use chokepoint_load::Plan;
use chokepoint_model::load::{Errors, LoadResult};

use crate::server::{HELLO, Server, load, plan, request, reset, until_closed};

/// Number of requests of each load.
const REQUESTS: u64 = 12;
/// Timeout of a request if the server must not answer within it.
const TIMEOUT: Duration = Duration::from_millis(250);
/// Timeout if the server's behaviour must be seen, however slow the machine is.
const PATIENCE: Duration = Duration::from_secs(600);

/// The expected outcome of the requests.
enum Ends {
    /// All end in this failure.
    In(fn(u64) -> Errors),
    /// All end with this status.
    With(u16),
}

const BAD: Ends = Ends::In(|count| Errors { bad_response: count, ..Errors::default() });
const CLOSED: Ends = Ends::In(|count| Errors { closed_before_answer: count, ..Errors::default() });
const RESET: Ends = Ends::In(|count| Errors { reset: count, ..Errors::default() });
const TIMED_OUT: Ends = Ends::In(|count| Errors { response_timeout: count, ..Errors::default() });

/// Loads a server that treats each connection like this, once with kept connections and once with a connection for each request.
fn against(ends: &Ends, serve: impl Fn(TcpStream) + Send + Sync + 'static) -> LoadResult {
    against_with(ends, |_| {}, serve)
}

fn against_with(ends: &Ends, change: impl Fn(&mut Plan), serve: impl Fn(TcpStream) + Send + Sync + 'static) -> LoadResult {
    let server = Server::start(move |stream, _| serve(stream));
    let mut result = None;
    for keep_alive in [false, true] {
        let mut plan = plan(server.address);
        let times_out = matches!(ends, Ends::In(of) if of(1).response_timeout == 1);
        (plan.requests, plan.keep_alive, plan.timeout) = (Some(REQUESTS), keep_alive, if times_out { TIMEOUT } else { PATIENCE });
        change(&mut plan);
        // Ending at all shows the bounds: nothing else would end what these servers do.
        let measured = load(&plan);
        match ends {
            Ends::In(errors) => assert_eq!((measured.errors, measured.good), (errors(REQUESTS), 0), "{measured:?}"),
            Ends::With(status) => {
                assert_eq!((measured.status.get(status), measured.errors.total()), (Some(&REQUESTS), 0), "{measured:?}");
            }
        }
        if !matches!(ends, Ends::With(_)) {
            assert!(!measured.error_samples.is_empty(), "an example is given");
        }
        result = Some(measured);
    }
    result.expect("two loads")
}

/// Answers the first request with these bytes. The connection then stays open until the peer closes it.
fn answered(ends: &Ends, answer: &'static [u8]) -> LoadResult {
    against(ends, move |mut stream| {
        request(&mut stream);
        let _ = stream.write_all(answer);
        until_closed(&mut stream);
    })
}

/// The same, but closes the connection after the bytes.
fn answered_and_closed(ends: &Ends, answer: &'static [u8]) -> LoadResult {
    against(ends, move |mut stream| {
        request(&mut stream);
        let _ = stream.write_all(answer);
        let _ = stream.shutdown(Shutdown::Write);
        until_closed(&mut stream);
    })
}

/// The head, then the same bytes again and again until the peer closes.
fn endless(ends: &Ends, head: &'static str, again: &'static str) -> LoadResult {
    against(ends, move |mut stream| {
        request(&mut stream);
        let again = again.repeat(64);
        let _ = stream.write_all(head.as_bytes());
        while stream.write_all(again.as_bytes()).is_ok() {}
    })
}

#[test]
fn endless_header_fields_are_a_bad_response() {
    endless(&BAD, "HTTP/1.1 200 OK\r\n", "X-Endless: abcdefghijklmnopqrstuvwxyz\r\n");
}

#[test]
fn an_endless_header_field_is_a_bad_response() {
    endless(&BAD, "HTTP/1.1 200 OK\r\nX-Endless: ", "abcdefghijklmnopqrstuvwxyz");
}

#[test]
fn an_endless_status_line_is_a_bad_response() {
    endless(&BAD, "HTTP/1.1 200 ", "OK ");
}

#[test]
fn endless_interim_answers_are_a_bad_response() {
    endless(&BAD, "", "HTTP/1.1 100 Continue\r\n\r\n");
}

#[test]
fn an_endless_body_of_chunks() {
    let result = endless(&TIMED_OUT, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "5\r\nhello\r\n");
    assert!(result.received_bytes > 0 && result.latency_us.p50 >= TIMEOUT.as_micros() as u64, "{result:?}");
}

#[test]
fn an_endless_body_until_the_close() {
    endless(&TIMED_OUT, "HTTP/1.1 200 OK\r\n\r\n", "hello");
}

#[test]
fn an_endless_chunk_extension() {
    endless(&BAD, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;", "name=value;");
}

#[test]
fn an_endless_trailer() {
    endless(&BAD, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "Sum: 0\r\n");
}

#[test]
fn a_length_that_is_too_large() {
    answered_and_closed(&CLOSED, b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello");
    answered(&TIMED_OUT, b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\nhello");
}

#[test]
fn a_length_that_is_too_small() {
    let result = answered(&Ends::With(200), b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello");
    assert_eq!(result.connections, REQUESTS, "a connection with bytes that nobody asked for is not used again: {result:?}");
    assert_eq!(result.error_samples, ["answered 200 OK: bytes followed the end of the response"]);
}

#[test]
fn lengths_that_are_no_numbers() {
    answered(&BAD, b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello");
    answered(&BAD, b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello");
    answered(&BAD, b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\nhello");
}

#[test]
fn lengths_that_contradict_each_other() {
    answered(&BAD, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello");
    answered(&BAD, b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
}

#[test]
fn chunk_sizes_that_are_garbage() {
    answered(&BAD, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n");
    answered(&BAD, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n");
}

#[test]
fn a_chunk_size_that_overflows() {
    answered(&BAD, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nhello");
}

#[test]
fn chunks_longer_than_their_sizes() {
    answered(&BAD, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n");
}

#[test]
fn chunks_that_break_off() {
    answered_and_closed(&CLOSED, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    answered_and_closed(&CLOSED, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel");
    answered_and_closed(&CLOSED, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n");
}

#[test]
fn a_close_without_an_answer() {
    answered_and_closed(&CLOSED, b"");
}

#[test]
fn a_close_within_the_head() {
    answered_and_closed(&CLOSED, b"HTTP/1.1 200 OK\r\nContent-Le");
    answered_and_closed(&CLOSED, b"HTTP/1.1 100 Continue\r\n\r\n");
}

#[test]
fn half_closed_before_the_request_is_read() {
    against(&CLOSED, |mut stream| {
        let _ = stream.shutdown(Shutdown::Write);
        until_closed(&mut stream);
    });
}

#[test]
fn half_closed_behind_an_answer_that_says_nothing_of_it() {
    let server = Server::start(|mut stream, _| {
        request(&mut stream);
        let _ = stream.write_all(HELLO.as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
        until_closed(&mut stream);
    });
    let mut plan = plan(server.address);
    (plan.requests, plan.timeout, plan.keep_alive) = (Some(REQUESTS), PATIENCE, false);
    assert_eq!(load(&plan).good, REQUESTS);
    // If kept: a request that was on its way when the end came has no answer, and must not count as answered.
    plan.keep_alive = true;
    let result = load(&plan);
    assert_eq!(result.good + result.errors.closed_before_answer + result.errors.reset, REQUESTS, "{result:?}");
}

#[test]
fn one_byte_a_second() {
    against(&TIMED_OUT, |mut stream| {
        request(&mut stream);
        for byte in HELLO.as_bytes() {
            if stream.write_all(&[*byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    });
}

#[test]
fn one_byte_at_a_time_fast_enough() {
    against(&Ends::With(200), |mut stream| {
        while request(&mut stream) {
            for byte in HELLO.as_bytes() {
                if stream.write_all(&[*byte]).is_err() {
                    return;
                }
            }
        }
    });
}

#[test]
fn silence() {
    answered(&TIMED_OUT, b"");
}

#[test]
fn silence_after_a_part() {
    answered(&TIMED_OUT, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
}

#[test]
fn a_reset_instead_of_an_answer() {
    against(&RESET, |mut stream| {
        request(&mut stream);
        reset(stream);
    });
}

#[test]
fn a_reset_within_the_answer() {
    against(&RESET, |mut stream| {
        request(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
        std::thread::sleep(Duration::from_millis(5));
        reset(stream);
    });
}

#[test]
fn another_protocol() {
    answered(&BAD, b"220 mail.example.org ESMTP\r\n");
    answered(&BAD, b"\x15\x03\x01\x00\x02\x02\x46");
    answered(&BAD, b"SSH-2.0-OpenSSH_9.2\r\n");
    // A SETTINGS frame of HTTP/2, as a server without HTTP/1.1 sends it.
    answered(&BAD, b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80");
}

#[test]
fn statuses_that_are_none() {
    for answer in [
        &b"HTTP/1.1 000 No\r\n\r\n"[..],
        b"HTTP/1.1 99 No\r\n\r\n",
        b"HTTP/1.1 2000 No\r\n\r\n",
        b"HTTP/1.1 abc No\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
    ] {
        answered(&BAD, answer);
    }
}

#[test]
fn control_characters_in_the_head() {
    answered(&BAD, b"HTTP/1.1 200 OK\r\nX-Nul: a\0b\r\nContent-Length: 0\r\n\r\n");
    answered(&BAD, b"HTTP/1.1 200 OK\r\nX Y: a\r\nContent-Length: 0\r\n\r\n");
}

#[test]
fn two_answers_to_one_request() {
    let result =
        answered(&Ends::With(200), b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    assert_eq!((result.requests, result.connections), (REQUESTS, REQUESTS), "the second is nobody's answer: {result:?}");
}

#[test]
fn an_answer_to_the_next_request_before_it_is_sent() {
    // The answer comes late enough to be in the socket when the next request is written. It must not silently count as the start of its answer. The number of
    // answers equals the number of requests, whichever request they belong to.
    let result = against(&Ends::With(200), |mut stream| {
        while request(&mut stream) {
            let _ = stream.write_all(HELLO.as_bytes());
            std::thread::sleep(Duration::from_millis(1));
            let _ = stream.write_all(HELLO.as_bytes());
        }
    });
    assert_eq!(result.requests, REQUESTS);
}

#[test]
fn a_body_where_none_may_be() {
    let result = answered(&Ends::With(204), b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(result.connections, REQUESTS, "{result:?}");
}

#[test]
fn a_request_that_is_never_read() {
    let large = |plan: &mut Plan| (plan.method, plan.body) = ("POST".to_owned(), vec![b'b'; 20_000_000]);
    let result = against_with(&TIMED_OUT, large, |stream| {
        std::thread::sleep(TIMEOUT * 8);
        drop(stream);
    });
    assert!(result.sent_bytes < REQUESTS * 20_000_000, "{result:?}");
}

#[test]
fn an_unasked_change_of_protocol() {
    let result = answered(&Ends::With(101), b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n");
    assert_eq!(result.connections, REQUESTS, "{result:?}");
}

#[test]
fn kept_connections_that_are_closed_at_any_time() {
    let server = Server::start(|mut stream, number| {
        for _ in 0..number % 3 {
            if !request(&mut stream) || stream.write_all(HELLO.as_bytes()).is_err() {
                return;
            }
        }
    });
    let mut plan = plan(server.address);
    (plan.requests, plan.timeout) = (Some(60), PATIENCE);
    let result = load(&plan);
    assert_eq!(result.good + result.errors.closed_before_answer + result.errors.reset, 60, "{result:?}");
}

#[test]
fn random_bytes() {
    let server = Server::start(|mut stream, number| {
        request(&mut stream);
        // xorshift64: the same bytes in every run.
        let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        for _ in 0..100 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            if stream.write_all(&state.to_le_bytes()).is_err() {
                return;
            }
        }
    });
    let mut plan = plan(server.address);
    (plan.requests, plan.timeout) = (Some(40), PATIENCE);
    let result = load(&plan);
    assert_eq!(result.errors.bad_response + result.errors.reset, 40, "{result:?}");
}

/// Answers the first request of a connection as if it were kept, reads the second one and closes without an answer, or resets.
fn forgets_to_say_that_it_closes(mut stream: TcpStream, is_reset: bool) {
    if request(&mut stream) && stream.write_all(HELLO.as_bytes()).is_ok() && request(&mut stream) && is_reset {
        reset(stream);
    }
}

#[test]
fn a_request_behind_the_only_answer_of_a_connection_is_sent_once_more() {
    for is_reset in [false, true] {
        let server = Server::start(move |stream, _| forgets_to_say_that_it_closes(stream, is_reset));
        let mut plan = plan(server.address);
        (plan.requests, plan.timeout) = (Some(REQUESTS), PATIENCE);
        let measured = load(&plan);
        assert_eq!((measured.good, measured.errors.total(), measured.requests), (REQUESTS, 0, REQUESTS), "{measured:?}");
        assert!(measured.resent > 0 && measured.connections > measured.resent, "{measured:?}");
    }
}

#[test]
fn what_may_do_harm_twice_is_sent_once() {
    let server = Server::start(|stream, _| forgets_to_say_that_it_closes(stream, false));
    let mut plan = plan(server.address);
    (plan.requests, plan.timeout, plan.method) = (Some(REQUESTS), PATIENCE, "POST".to_owned());
    let measured = load(&plan);
    assert_eq!(measured.resent, 0);
    assert!(measured.errors.closed_before_answer > 0 && measured.good + measured.errors.total() == REQUESTS, "{measured:?}");
}

#[test]
fn a_new_connection_that_is_closed_without_an_answer_is_a_failure() {
    let server = Server::start(|mut stream, _| {
        request(&mut stream);
    });
    let mut plan = plan(server.address);
    (plan.requests, plan.timeout) = (Some(REQUESTS), PATIENCE);
    let measured = load(&plan);
    assert_eq!((measured.errors.closed_before_answer, measured.resent), (REQUESTS, 0), "{measured:?}");
}
