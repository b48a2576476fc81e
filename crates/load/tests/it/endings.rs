//! Servers whose worker waits for something from the client, in every mode of a load: the generator never keeps a worker longer than an ordinary client does.
//!
//! Live: load on this test's own servers.

use std::io::{BufRead, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chokepoint_load::{Plan, Protocol};
use chokepoint_model::load::{Errors, Loop};

use crate::server::workers::{Workers, lingers, waits_for_end};
use crate::server::{HELLO, load, plan, request};

/// Time that an answer takes.
const WORK: Duration = Duration::from_millis(5);
pub(crate) const CLOSING: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";

/// The modes of a load: for a number of requests, for a time, at a rate, with a pause in the rate, and one request alone. All take less than a worker waits for its client.
fn modes(plan: &Plan) -> Vec<(&'static str, Plan)> {
    let timed = Some(Duration::from_millis(600));
    let pause = "200ms:80,0s:0,300ms:0,0s:80,100ms:80";
    let stages = chokepoint_load::Stages::parse(80.0, pause).expect("stages");
    let open = Loop::Open { rate_per_s: 80.0, connections: 50 };
    let paused = chokepoint_load::Options { stages: Some(stages), ..plan.options.clone() };
    vec![
        ("closed loop", Plan { shape: Loop::Closed { connections: 6 }, requests: Some(60), ..plan.clone() }),
        ("closed loop for a time", Plan { shape: Loop::Closed { connections: 6 }, requests: None, duration: timed, ..plan.clone() }),
        ("open loop", Plan { shape: open, requests: None, duration: timed, ..plan.clone() }),
        ("open loop with a pause", Plan { shape: open, requests: None, duration: timed, options: paused, ..plan.clone() }),
        ("one request", Plan { shape: Loop::Closed { connections: 1 }, requests: Some(1), threads: Some(1), ..plan.clone() }),
    ]
}

/// Two workers that serve like this never wait for a client in vain, in no mode, and all requests are answered.
fn never_holds(change: impl Fn(&mut Plan), serve: impl Fn(&mut TcpStream) -> bool + Send + Sync + 'static) {
    never_holds_at(&Workers::start(2, serve), change);
}

pub(crate) fn never_holds_at(server: &Workers, change: impl Fn(&mut Plan)) {
    let mut plan = plan(server.address);
    plan.timeout = Duration::from_secs(2);
    change(&mut plan);
    for (mode, plan) in modes(&plan) {
        let result = load(&plan);
        assert_eq!((result.errors, result.good), (Errors::default(), result.requests), "{mode}: {result:?}");
        assert_eq!(server.held(), 0, "{mode}: a worker waited for the end of a client");
    }
}

fn without_keepalive(plan: &mut Plan) {
    plan.keep_alive = false;
}

fn answers(stream: &mut TcpStream, answer: &str) -> bool {
    let is_asked = request(stream);
    std::thread::sleep(WORK);
    is_asked && stream.write_all(answer.as_bytes()).is_ok()
}

/// gunicorn, Apache.
#[test]
fn a_server_that_ends_first_and_then_waits_for_the_end_of_its_client() {
    never_holds(without_keepalive, |stream| !answers(stream, CLOSING) || lingers(stream));
    // It closes although connections are kept.
    never_holds(|_| {}, |stream| !answers(stream, CLOSING) || lingers(stream));
}

#[test]
fn a_server_that_lets_its_client_end_first() {
    never_holds(without_keepalive, |stream| !answers(stream, CLOSING) || waits_for_end(stream));
    never_holds(|_| {}, |stream| !answers(stream, CLOSING) || waits_for_end(stream));
}

#[test]
fn a_server_that_keeps_a_connection_although_it_was_asked_to_close_it() {
    never_holds(without_keepalive, |stream| {
        while answers(stream, HELLO) {}
        // The client has ended, or there was no other request in time.
        waits_for_end(stream)
    });
}

#[test]
fn a_server_that_sends_its_answer_in_chunks_and_lingers() {
    const CHUNKS: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    never_holds(without_keepalive, |stream| !answers(stream, CHUNKS) || lingers(stream));
}

/// The request's body is left unread, so the server must read what comes before it can close without a reset.
#[test]
fn a_server_that_answers_before_the_body_and_lingers() {
    let refused = "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let posts = |plan: &mut Plan| {
        (plan.method, plan.body, plan.expect) = ("POST".into(), vec![b'b'; 200_000], vec![(413, 413)]);
    };
    never_holds(posts, move |stream| !answers(stream, refused) || lingers(stream));
}

/// The end of such a connection is a reset, for which nobody waits.
#[test]
fn a_server_that_closes_with_unread_bytes() {
    let posts = |plan: &mut Plan| {
        without_keepalive(plan);
        (plan.method, plan.body) = ("POST".into(), vec![b'b'; 2_000]);
    };
    let server = Workers::start(2, |stream| {
        answers(stream, CLOSING);
        true
    });
    let mut plan = plan(server.address);
    plan.timeout = Duration::from_secs(2);
    posts(&mut plan);
    for (mode, plan) in modes(&plan) {
        let result = load(&plan);
        // The reset may come before the answer was read, as with any client.
        assert_eq!(result.good + result.errors.reset, result.requests, "{mode}: {result:?}");
    }
    assert_eq!(server.held(), 0);
}

#[test]
fn a_server_that_asks_for_the_body_before_it_reads_it() {
    const BODY_BYTES: usize = 20_000;
    let posts = |plan: &mut Plan| {
        without_keepalive(plan);
        plan.headers.push(("Expect".to_owned(), "100-continue".to_owned()));
        (plan.method, plan.body) = ("POST".into(), vec![b'b'; BODY_BYTES]);
    };
    never_holds(posts, |stream| {
        if !request(stream) || stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").is_err() {
            return true;
        }
        if stream.read_exact(&mut vec![0; BODY_BYTES]).is_err() {
            return false;
        }
        stream.write_all(CLOSING.as_bytes()).is_err() || lingers(stream)
    });
}

/// The worker cannot go on before the client has read most of it.
#[test]
fn a_server_whose_answer_is_longer_than_the_window() {
    let mut answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6000000\r\n\r\n".to_vec();
    answer.resize(answer.len() + 6_000_000, b'a');
    never_holds(without_keepalive, move |stream| !request(stream) || (stream.write_all(&answer).is_ok() && lingers(stream)));
}

/// The last connections find no place in the queue and are tried again by the kernel a second later, for any client.
#[test]
fn a_server_with_a_short_queue() {
    let patient = |plan: &mut Plan| {
        without_keepalive(plan);
        plan.timeout = Duration::from_secs(20);
    };
    let server = Workers::start_with(1, Some(2), |stream| !answers(stream, CLOSING) || lingers(stream));
    never_holds_at(&server, patient);
}

/// A worker that serves one connection until it is closed, of a load that keeps its connections: no connection is left open at the end of the load.
#[test]
fn a_server_whose_workers_are_kept_by_kept_connections() {
    let few = |plan: &mut Plan| plan.options.requests_per_connection = Some(5);
    never_holds(few, |stream| {
        while answers(stream, HELLO) {}
        waits_for_end(stream)
    });
    let server = Workers::start(8, |stream| {
        while answers(stream, HELLO) {}
        waits_for_end(stream)
    });
    let mut plan = plan(server.address);
    (plan.requests, plan.duration) = (None, Some(Duration::from_millis(300)));
    for shape in [Loop::Closed { connections: 8 }, Loop::Open { rate_per_s: 100.0, connections: 8 }] {
        assert_eq!(load(&Plan { shape, ..plan.clone() }).errors, Errors::default());
        assert_eq!(server.held(), 0, "{shape:?}");
    }
}

/// A FastCGI server that was not asked to keep the connection.
#[test]
fn a_fastcgi_server_that_lingers() {
    // FCGI_STDOUT with a head and a body, FCGI_END_REQUEST.
    let mut answer = vec![1, 6, 0, 1, 0, 27, 5, 0];
    answer.extend_from_slice(b"Content-Type: a/b\r\n\r\nhello\n\0\0\0\0\0");
    answer.extend_from_slice(&[1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let change = |plan: &mut Plan| {
        without_keepalive(plan);
        (plan.protocol, plan.path_and_query) = (Protocol::FastCgi { params: Vec::new() }, "/srv/a.php".into());
    };
    never_holds(change, move |stream| {
        let mut head = [0; 8];
        // The last record of a request is an empty FCGI_STDIN.
        while stream.read_exact(&mut head).is_ok() {
            let rest = usize::from(u16::from_be_bytes([head[4], head[5]])) + usize::from(head[6]);
            if stream.read_exact(&mut vec![0; rest]).is_err() {
                return true;
            }
            if head[1] == 5 && rest == 0 {
                std::thread::sleep(WORK);
                return stream.write_all(&answer).is_err() || lingers(stream);
            }
        }
        true
    });
}

/// Otherwise the generator's ports, not the server's, would be in TIME_WAIT.
#[test]
fn a_server_that_ends_a_moment_after_its_answer_ends_first() {
    let client_first = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&client_first);
    let server = Workers::start(4, move |stream| {
        if request(stream) && stream.write_all(CLOSING.as_bytes()).is_ok() {
            std::thread::sleep(Duration::from_micros(500));
            stream.set_nonblocking(true).expect("a socket");
            seen.fetch_add(u64::from(matches!(stream.read(&mut [0]), Ok(0))), Ordering::Relaxed);
        }
        true
    });
    let mut plan = plan(server.address);
    (plan.requests, plan.keep_alive, plan.timeout) = (Some(400), false, Duration::from_secs(10));
    for shape in [Loop::Closed { connections: 4 }, Loop::Open { rate_per_s: 800.0, connections: 50 }] {
        assert_eq!(load(&Plan { shape, ..plan.clone() }).good, 400);
    }
    assert_eq!(server.held(), 0);
    // The end of a server that gets no core for some milliseconds is not awaited.
    let client_first = client_first.load(Ordering::Relaxed);
    assert!(client_first < 400, "{client_first} of 800");
}

/// A client in Python that keeps some connections busy: it opens a connection for each request, and closes it when it has the answer. It reads "CONNECTIONS SECONDS" and
/// writes the number of answers and the time within which 99 of 100 came, milliseconds, until its input ends.
const PLAIN: &str = r#"
import socket, sys, threading, time
address = ("127.0.0.1", int(sys.argv[1]))
def ask(until, times):
    while time.monotonic() < until:
        begin = time.monotonic()
        with socket.create_connection(address, 10) as server:
            server.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            got = b""
            while b"hello" not in got:
                got += server.recv(4096) or sys.exit("closed early")
        times.append(time.monotonic() - begin)
for line in sys.stdin:
    connections, seconds = line.split()
    until, times = time.monotonic() + float(seconds), []
    threads = [threading.Thread(target=ask, args=(until, times)) for _ in range(int(connections))]
    [thread.start() for thread in threads]
    time.sleep(max(0, until - time.monotonic()))
    known = sorted(times)
    print(len(known), known[len(known) * 99 // 100] * 1000, flush=True)
    [thread.join() for thread in threads]
"#;

/// How much the clients may differ beyond what the turns leave in doubt.
const DIFFERENCE_MAX: f64 = 0.03;
/// Where a server waits for its client's end, some connections at the beginning of a load end this much later (src/engine/closing.rs): as if the client were so far away.
const AWAY_MS: f64 = 5.0;
/// Turns of each client; where they differ too much for an answer, twice as many.
const TURNS: usize = 6;

/// The average of two measurements compared in turn, and the distance within which it is 999 times of 1,000: Student's t for the fewest turns, which is more than that of more.
fn average(turns: &[f64]) -> (f64, f64) {
    const T: f64 = 6.87;
    let count = turns.len() as f64;
    let mean = turns.iter().sum::<f64>() / count;
    let variance = turns.iter().map(|turn| (turn - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, T * (variance / count).sqrt())
}

/// In turn with a client in another language, against servers with four workers of 10 ms an answer: what is measured is the server's capacity and its response times, not what the
/// client does.
#[test]
fn a_plain_client_in_another_language_finds_the_same_capacity_and_p99() {
    type Serve = fn(&mut TcpStream) -> bool;
    const SECONDS: f64 = 0.5;
    const PIECES: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let kinds: [(&str, Serve); 5] = [
        ("ends first", |stream| !answers(stream, CLOSING) || lingers(stream)),
        ("ends second", |stream| !answers(stream, CLOSING) || waits_for_end(stream)),
        ("ends at once", |stream| {
            answers(stream, CLOSING);
            true
        }),
        ("sends pieces", |stream| !answers(stream, PIECES) || lingers(stream)),
        ("keeps", |stream| {
            while answers(stream, HELLO) {}
            waits_for_end(stream)
        }),
    ];
    for (kind, serve) in kinds {
        let server = Workers::start(4, move |stream| {
            std::thread::sleep(WORK);
            serve(stream)
        });
        let mut python = Command::new("python3");
        python.args(["-c", PLAIN, &server.address.port().to_string()]);
        let Ok(mut client) = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
            println!("skipped: no python3");
            return;
        };
        let mut answered = std::io::BufReader::new(client.stdout.take().expect("a pipe")).lines();
        let mut plan = plan(server.address);
        (plan.keep_alive, plan.requests, plan.timeout) = (false, None, Duration::from_secs(10));
        (plan.shape, plan.duration) = (Loop::Closed { connections: 8 }, Some(Duration::from_secs_f64(SECONDS)));
        let (mut rates, mut later_ms, mut tails_ms) = (Vec::new(), Vec::new(), Vec::new());
        let is_clear = |ratios: &[f64]| ratios.len() >= TURNS && average(ratios).1 < 2.0 * DIFFERENCE_MAX;
        while rates.len() < 2 * TURNS && !is_clear(&rates) {
            let own = load(&plan);
            writeln!(client.stdin.as_mut().expect("a pipe"), "8 {SECONDS}").expect("it reads");
            let line = answered.next().expect("it answers").expect("a line");
            let numbers: Vec<f64> = line.split(' ').map(|number| number.parse().expect("a number")).collect();
            rates.push(own.throughput_rps() / (numbers[0] / SECONDS));
            later_ms.push(own.latency_us.p99 as f64 / 1000.0 - numbers[1]);
            tails_ms.push(numbers[1]);
            server.held();
        }
        drop(client.stdin.take());
        client.wait().expect("it ends");
        assert_eq!(server.held(), 0, "{kind}");
        let ((rate, doubt), (later, doubt_ms), (tail, _)) = (average(&rates), average(&later_ms), average(&tails_ms));
        println!("{kind}: {rate:.3} ± {doubt:.3} times the plain client's rate, p99 {later:+.1} ± {doubt_ms:.1} ms from its {tail:.1} ms");
        assert!((rate - 1.0).abs() <= DIFFERENCE_MAX + doubt, "{kind}: {rate:.3} times the plain client's rate, in turns {rates:.3?}");
        // Python's own time is in its p99, and may make it longer.
        let most = AWAY_MS + DIFFERENCE_MAX * tail + doubt_ms;
        assert!(later <= most, "{kind}: p99 {later:.1} ms later than the plain client's {tail:.1} ms, in turns {later_ms:.1?}");
    }
}
