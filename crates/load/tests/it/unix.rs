//! Unix sockets, by path and by abstract name, and the failures of connecting to them.
//!
//! Live: load on this test's own server.

use std::io::Write;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use chokepoint_load::{Address, Plan};
use chokepoint_model::load::{Errors, Loop};

use crate::server::{HELLO, load, plan};

/// A directory for this test, deleted when dropped.
struct Directory(PathBuf);

impl Directory {
    fn make(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("t-load-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Directory(path)
    }

    fn socket(&self) -> String {
        self.0.join("s.sock").to_string_lossy().into_owned()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn to(name: &str) -> Plan {
    let address = Address::unix(name).expect("a name");
    Plan { address, host_header: "localhost".to_owned(), timeout: Duration::from_secs(20), ..plan(([127, 0, 0, 1], 1).into()) }
}

/// Answers on a listener until the test ends, which ends the process.
fn serve(listener: UnixListener) {
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
}

fn answer(mut stream: UnixStream) {
    use std::io::Read;
    let (mut buffer, mut seen) = ([0; 4096], Vec::new());
    while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
        seen.extend_from_slice(&buffer[..bytes]);
        while let Some(end) = seen.windows(4).position(|window| window == b"\r\n\r\n") {
            seen.drain(..end + 4);
            if stream.write_all(HELLO.as_bytes()).is_err() {
                return;
            }
        }
    }
}

#[test]
fn requests_work_over_a_path_and_an_abstract_name() {
    let directory = Directory::make("path");
    serve(UnixListener::bind(directory.socket()).expect("a socket"));
    let name = format!("t-load-{}", std::process::id());
    serve(UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).expect("a name")).expect("a socket"));
    for name in [directory.socket(), format!("@{name}")] {
        let mut plan = to(&name);
        let kept = load(&plan);
        assert_eq!((kept.good, kept.connections, kept.errors), (40, 4, Errors::default()), "{name}: {kept:?}");
        plan.keep_alive = false;
        let single = load(&plan);
        assert_eq!((single.good, single.connections), (40, 40), "{name}: {single:?}");
        plan.shape = Loop::Open { rate_per_s: 200.0, connections: 4 };
        assert_eq!(load(&plan).good, 40, "{name}");
    }
}

#[test]
fn missing_sockets_missing_listeners_and_full_queues_are_distinguished() {
    let directory = Directory::make("fail");
    let plan = to(&directory.socket());
    let missing = load(&plan);
    assert_eq!(missing.errors, Errors { connect_failed: 40, ..Errors::default() }, "{missing:?}");
    let listener = UnixListener::bind(directory.socket()).expect("a socket");
    // Nothing accepts: one connection more than the backlog waits, and the next is refused at once.
    rustix::net::listen(&listener, 0).expect("a shorter queue");
    let mut timed = Plan { timeout: Duration::from_millis(300), ..plan.clone() };
    (timed.shape, timed.requests, timed.duration) = (Loop::Closed { connections: 3 }, None, Some(Duration::from_millis(200)));
    let full = load(&timed);
    assert!(full.errors.connect_refused > 0 && full.errors.response_timeout > 0, "{full:?}");
    assert!(full.error_samples.iter().any(|sample| sample.contains("accept queue of the unix socket is full")), "{full:?}");
    drop(listener);
    let refused = load(&plan);
    assert_eq!(refused.errors, Errors { connect_refused: 40, ..Errors::default() }, "{refused:?}");
}

/// Two of six clients are served, two wait in the queue, and two are refused at every try. These fail only some ten times a second.
#[test]
fn clients_that_are_refused_at_every_try_are_counted_as_long_as_they_have_no_connection() {
    let directory = Directory::make("refused");
    let listener = rustix::net::socket(rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM, None).expect("a socket");
    let address = rustix::net::SocketAddrUnix::new(directory.socket()).expect("a name");
    rustix::net::bind(&listener, &address).expect("an address");
    // The kernel lets one more wait than asked for.
    rustix::net::listen(&listener, 1).expect("a queue");
    let listener = UnixListener::from(listener);
    std::thread::spawn(move || {
        let accepted: Vec<UnixStream> = listener.incoming().flatten().take(2).collect();
        accepted.into_iter().for_each(|stream| drop(std::thread::spawn(move || answer(stream))));
        // The listener stays open.
        std::thread::park();
    });
    let shape = Loop::Closed { connections: 6 };
    let duration = Some(Duration::from_millis(500));
    let plan = Plan { shape, duration, requests: None, timeout: Duration::from_millis(400), ..to(&directory.socket()) };
    let result = load(&plan);
    let (missing, connections) = result.without_connection().expect("a closed loop");
    assert_eq!(connections, 6);
    assert!((1.5..=4.0).contains(&missing), "{missing}: {result:?}");
    let lost_share = result.lost_share().expect("it is told");
    assert!(result.good > 100 && lost_share > 0.3, "{lost_share}: {result:?}");
}
