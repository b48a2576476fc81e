//! The integration tests of this crate: the server as other programs meet it.
//!
//! Live: it listens on loopback and on a unix socket.

mod crowded;
mod monitoring;
mod page;
mod protection;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;

use chokepoint_dashboard::{Archive, Board, Listen, ListenError, Place, Profiles, Server};

/// Samples of a long span, and the bytes of each: as of a host with some servers.
const SAMPLES: i64 = 5_000;
const SAMPLE_BYTES: usize = 2_500;

#[derive(Default)]
struct Kept {
    samples: Option<Arc<Samples>>,
}

#[derive(Default)]
struct Samples {
    given: AtomicUsize,
}

impl Archive for Kept {
    fn begin(&self, _: u32, _: u64, _: u64, _: u32) -> Result<Place, String> {
        // A slow disk.
        std::thread::sleep(Duration::from_millis(500));
        Ok((0, 0))
    }

    fn samples(&self, _: u32, (first, _): Place, _: u64, give: &mut dyn FnMut(Place, String) -> bool) -> Result<(), String> {
        let Some(samples) = &self.samples else { return Ok(()) };
        for number in first..SAMPLES {
            samples.given.fetch_add(1, Ordering::SeqCst);
            if !give((number + 1, 0), format!("{{\"number\":{number},\"text\":\"{}\"}}", "x".repeat(SAMPLE_BYTES))) {
                break;
            }
        }
        Ok(())
    }

    fn incidents(&self) -> Result<String, String> {
        Ok("{}".to_owned())
    }

    fn incident(&self, _: i64) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn runs(&self) -> Result<String, String> {
        Ok("{}".to_owned())
    }

    fn run(&self, _: i64) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn comparison(&self, _: i64) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn flame(&self, _: i64) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn profiles(&self, _: i64) -> Result<Option<Profiles>, String> {
        Ok(None)
    }
}

fn server() -> (Server, SocketAddr) {
    let listen = Listen::Tcp("127.0.0.1:0".parse().unwrap());
    let server = Server::start(&listen, None, Arc::new(Board::default()), Arc::new(Kept::default())).unwrap();
    let address = server.address().unwrap();
    (server, address)
}

/// Sends these bytes and reads until the server closes.
fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The server may close before it has read all.
    let _ = connection.write_all(bytes);
    let mut answer = Vec::new();
    let _ = connection.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(address: SocketAddr, path: &str, headers: &str) -> String {
    exchange(address, format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n").as_bytes())
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[test]
fn metrics_and_documents_are_answered_and_nothing_else() {
    let (_server, address) = server();
    let host = format!("Host: {address}\r\n");
    let plain = get(address, "/metrics", &host);
    assert!(plain.starts_with("HTTP/1.1 200") && plain.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{plain}");
    let metrics = get(address, "/metrics", &format!("{host}Accept: application/openmetrics-text; version=1.0.0\r\n"));
    assert!(
        metrics.starts_with("HTTP/1.1 200")
            && metrics.contains("content-type: application/openmetrics-text")
            && metrics.ends_with("# EOF\n"),
        "{metrics}"
    );
    for header in ["x-content-type-options: nosniff", "content-security-policy: default-src 'none'", "cache-control: no-store"] {
        assert!(metrics.contains(header), "{metrics}");
    }
    let incidents = get(address, "/api/v1/incidents", &host);
    assert!(incidents.starts_with("HTTP/1.1 200") && incidents.contains("chokepoint-stale: "), "{incidents}");
    assert_eq!(status(&get(address, "/nothing", &host)), "404");
    assert_eq!(status(&get(address, "/metrics", "Host: evil.example\r\n")), "421");
    assert_eq!(status(&get(address, "/metrics", &format!("{host}Origin: http://evil.example\r\n"))), "403");
    let posted = exchange(address, format!("POST /metrics HTTP/1.1\r\nConnection: close\r\n{host}Content-Length: 0\r\n\r\n").as_bytes());
    assert_eq!(status(&posted), "405");
    let head = exchange(address, format!("HEAD /metrics HTTP/1.1\r\nConnection: close\r\n{host}\r\n").as_bytes());
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
}

#[test]
fn hostile_requests_are_refused_and_others_still_answered() {
    let (_server, address) = server();
    let host = format!("Host: {address}\r\n");
    for bytes in [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n".to_vec(),
        format!("GET /{} HTTP/1.1\r\n{host}\r\n", "x".repeat(1 << 20)).into_bytes(),
        format!("GET / HTTP/1.1\r\n{host}{}\r\n", "X: y\r\n".repeat(10_000)).into_bytes(),
        vec![0; 100_000],
    ] {
        let answer = exchange(address, &bytes);
        assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    // Nobody who sends nothing holds a connection for ever, and fewer than all may be held.
    let idle: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert_eq!(status(&get(address, "/api/v1/about", &host)), "200");
    drop(idle);
    let mut slow = TcpStream::connect(address).unwrap();
    slow.write_all(b"GET / HT").unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut answer = Vec::new();
    let _ = slow.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 200"), "the head must come in time");
}

/// All connections but those of one port are another user's.
#[test]
fn another_user_gets_sums_alone_and_takes_no_place_of_the_owner() {
    const NOBODY: u32 = 65_534;
    let own = Arc::new(AtomicU16::new(0));
    let port = Arc::clone(&own);
    let users = move |client: SocketAddr, _: SocketAddr| Some(if client.port() == port.load(Ordering::SeqCst) { 0 } else { NOBODY });
    let listen = Listen::Tcp("127.0.0.1:0".parse().unwrap());
    let server = Server::start_among(&listen, None, Some(Arc::new(users)), Arc::new(Board::default()), Arc::new(Kept::default())).unwrap();
    let address = server.address().unwrap();
    let host = format!("Host: {address}\r\n");
    assert_eq!(
        ["/metrics", "/healthz", "/", "/api/v1/about"].map(|path| status(&get(address, path, &host)).to_owned()),
        ["200", "200", "401", "401"]
    );
    // The address with the token opens it, and the cookie keeps it open.
    let opened = get(address, &format!("/?token={}", server.token().unwrap()), &host);
    let cookie = opened.split("set-cookie: ").nth(1).and_then(|rest| rest.split(';').next()).unwrap();
    assert_eq!((status(&opened), status(&get(address, "/api/v1/about", &format!("{host}Cookie: {cookie}\r\n")))), ("303", "200"));
    // Whoever opens as many connections as there are leaves the owner's.
    let _crowd: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(address).unwrap()).collect();
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let mine = SocketAddr::try_from(rustix::net::getsockname(&socket).unwrap()).unwrap();
    own.store(mine.port(), Ordering::SeqCst);
    rustix::net::connect(&socket, &address).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.write_all(format!("GET /api/v1/about HTTP/1.1\r\n{host}Connection: close\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(status(&answer), "200", "{answer}");
}

#[test]
fn a_slow_archive_holds_up_nobody_else() {
    let (_server, address) = server();
    let host = format!("Host: {address}\r\n");
    let slow = {
        let host = host.clone();
        std::thread::spawn(move || get(address, "/api/v1/series", &host))
    };
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(status(&get(address, "/api/v1/about", &host)), "200");
    assert!(!slow.is_finished(), "this came first");
    assert_eq!(status(&slow.join().unwrap()), "200");
}

#[test]
fn it_listens_on_loopback_or_a_socket_of_its_own() {
    let board = || Arc::new(Board::default());
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:9464"] {
        let refused = Server::start(&Listen::Tcp(address.parse().unwrap()), None, board(), Arc::new(Kept::default()));
        assert!(matches!(refused, Err(ListenError::NotLoopback(_))), "{address}");
    }
    let (first, address) = server();
    assert!(matches!(Server::start(&Listen::Tcp(address), None, board(), Arc::new(Kept::default())), Err(ListenError::Bind { .. })));
    drop(first);
    assert!(TcpStream::connect(address).is_err(), "it ends when it is dropped");

    let path = std::env::temp_dir().join(format!("chokepoint-dashboard-{}.sock", std::process::id()));
    let server = Server::start(&Listen::Unix(path.clone()), None, board(), Arc::new(Kept::default())).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let mut connection = UnixStream::connect(&path).unwrap();
    connection.write_all(b"GET /healthz HTTP/1.1\r\nHost: any\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let taken = Server::start(&Listen::Unix(path.clone()), None, board(), Arc::new(Kept::default()));
    assert!(matches!(taken, Err(ListenError::Bind { .. })), "somebody listens there");
    drop(server);
    assert!(!path.exists());
    // What a killed program left.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    drop(Server::start(&Listen::Unix(path.clone()), None, board(), Arc::new(Kept::default())).unwrap());
    std::fs::write(&path, "no socket").unwrap();
    assert!(matches!(Server::start(&Listen::Unix(path.clone()), None, board(), Arc::new(Kept::default())), Err(ListenError::Bind { .. })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "no socket", "it is another's");
    std::fs::remove_file(&path).unwrap();
}
