//! A configurable HTTP server for the tests: one thread for each connection, with a function that each test provides.

pub(crate) mod workers;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use chokepoint_load::{Control, Options, Plan, Protocol, run};
use chokepoint_model::load::{LoadResult, Loop};

/// A listening server that ends when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves each accepted connection with `serve(stream, number of the connection)`, in a thread of its own.
    pub(crate) fn start(serve: impl Fn(TcpStream, u64) + Send + Sync + 'static) -> Server {
        Self::start_at("127.0.0.1:0", serve)
    }

    pub(crate) fn start_at(address: &str, serve: impl Fn(TcpStream, u64) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind(address).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (stop, connections) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, counted, serve) = (stop.clone(), connections.clone(), Arc::new(serve));
        let acceptor = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let number = counted.fetch_add(1, Ordering::Relaxed);
                let serve = serve.clone();
                // The threads end with their connections, which the generator closes at the latest after its timeout.
                std::thread::spawn(move || {
                    stream.set_nodelay(true).ok();
                    stream.set_read_timeout(Some(Duration::from_secs(600))).ok();
                    serve(stream, number);
                });
            }
        });
        Server { address, connections, stop, acceptor: Some(acceptor) }
    }

    /// Answers every request with these bytes and keeps the connection.
    pub(crate) fn answering(answer: &'static str) -> Server {
        Self::start(move |mut stream, _| while request(&mut stream) && stream.write_all(answer.as_bytes()).is_ok() {})
    }

    /// Answers the first request with these bytes and closes.
    pub(crate) fn answering_once(answer: &'static str) -> Server {
        Self::start(move |mut stream, _| {
            if request(&mut stream) {
                let _ = stream.write_all(answer.as_bytes());
            }
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

/// Reads one request head without a body; false if the peer has closed.
pub(crate) fn request(stream: &mut TcpStream) -> bool {
    let mut tail = [0u8; 4];
    let mut byte = [0];
    while tail != *b"\r\n\r\n" {
        match stream.read(&mut byte) {
            Ok(1) => {
                tail.rotate_left(1);
                tail[3] = byte[0];
            }
            _ => return false,
        }
    }
    true
}

/// Reads until the peer closes.
pub(crate) fn until_closed(stream: &mut TcpStream) {
    let mut buffer = [0; 4096];
    while matches!(stream.read(&mut buffer), Ok(1..)) {}
}

/// Closes with a reset: unread bytes make the kernel send RST instead of FIN.
pub(crate) fn reset(stream: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).expect("a socket");
}

pub(crate) const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// A closed loop of four connections and 40 requests with a timeout of 300 ms.
pub(crate) fn plan(address: SocketAddr) -> Plan {
    Plan {
        address: address.into(),
        protocol: Protocol::Http,
        host_header: address.to_string(),
        path_and_query: "/".to_owned(),
        method: "GET".to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
        shape: Loop::Closed { connections: 4 },
        duration: None,
        requests: Some(40),
        timeout: Duration::from_millis(300),
        keep_alive: true,
        expect: vec![(200, 399)],
        netns: None::<PathBuf>,
        cpus: None,
        threads: Some(2),
        guards: Vec::new(),
        options: Options::default(),
    }
}

/// Runs the plan and checks what holds for every result.
pub(crate) fn load(plan: &Plan) -> LoadResult {
    let control = Control::new();
    let result = run(plan, &control).expect("the load runs");
    check(&result);
    let progress = control.progress();
    assert_eq!(progress.ended + result.errors.never_sent, result.requests, "{progress:?}");
    assert_eq!((progress.good, progress.in_flight), (result.good, 0), "{progress:?}");
    assert_eq!(progress.started, progress.ended, "{progress:?}");
    result
}

/// The invariants of a result if nothing was aborted.
pub(crate) fn check(result: &LoadResult) {
    assert_eq!(result.requests, result.status.values().sum::<u64>() + result.errors.total(), "{result:?}");
    let sum = |of: fn(&chokepoint_model::load::Slice) -> u32| result.slices.iter().map(|slice| u64::from(of(slice))).sum::<u64>();
    // A request of the warm-up that ended after it is in a slice.
    assert_eq!(sum(|slice| slice.good), result.good + result.early_good, "{result:?}");
    let early = result.early - result.early_good;
    let wrong = sum(|slice| slice.good + slice.wrong).checked_sub(result.early_good + result.status.values().sum::<u64>());
    let failed = (sum(|slice| slice.failed) + result.errors.never_sent).checked_sub(result.errors.total());
    assert_eq!(wrong.zip(failed).map(|(wrong, failed)| wrong + failed), Some(early), "{result:?}");
    assert_eq!(sum(|slice| slice.started) + result.errors.never_sent, result.requests, "{result:?}");
    assert_eq!(result.slices.last().map_or(0, |slice| slice.in_flight), 0, "{result:?}");
    assert_eq!(latencies(result).len(), result.requests, "every request is in the histogram");
    assert!(result.drained <= result.requests && result.drained_good <= result.good.min(result.drained), "{result:?}");
    assert!(result.error_samples.len() <= 8 && result.error_samples.iter().all(|sample| sample.len() <= 200), "{result:?}");
    assert!(result.threads.iter().all(|thread| !thread.cpus.is_empty()), "{result:?}");
}

/// The histogram as another program would read it.
pub(crate) fn latencies(result: &LoadResult) -> hdrhistogram::Histogram<u64> {
    let mut bytes = Vec::new();
    let sextets = result.latency_histogram.bytes().filter(|byte| *byte != b'=').map(|byte| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        other => panic!("{other} is not base64"),
    });
    let (mut word, mut bits) = (0u32, 0);
    for sextet in sextets {
        (word, bits) = (word << 6 | u32::from(sextet), bits + 6);
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits) as u8);
        }
    }
    hdrhistogram::serialization::Deserializer::new().deserialize(&mut bytes.as_slice()).expect("an HDR V2 histogram")
}
