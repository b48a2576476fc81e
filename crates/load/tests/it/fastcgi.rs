//! FastCGI against a real php-fpm, over TCP and over a unix socket, and against servers that violate the protocol.
//!
//! Live: load on php-fpm.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use chokepoint_load::{Address, Plan, Protocol};
use chokepoint_model::load::{Errors, LoadResult, Loop};

use crate::server::{self, Server, load, plan, until_closed};

const SCRIPT: &str = "<?php
if (isset($_GET['fail'])) { http_response_code(503); error_log('it failed'); }
if ($_SERVER['REQUEST_METHOD'] === 'POST' && strlen(file_get_contents('php://input')) !== 100000) { http_response_code(500); }
if (isset($_SERVER['WANTED']) && $_SERVER['WANTED'] !== 'a b') { http_response_code(500); }
echo str_repeat('x', (int)($_GET['size'] ?? 5));
";

/// php-fpm with two pools of two workers each, ended when dropped.
struct PhpFpm {
    child: Child,
    directory: PathBuf,
    addresses: [Address; 2],
}

impl PhpFpm {
    /// None if it is not installed.
    fn start() -> Option<PhpFpm> {
        let directory = std::env::temp_dir().join(format!("t-fcgi-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        // Workers of a master that runs as root have another user.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).expect("our directory");
        fs::write(directory.join("index.php"), SCRIPT).expect("a file");
        let tcp = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
        let socket = directory.join("fpm.sock");
        let user = if rustix::process::geteuid().is_root() { "user = nobody\ngroup = nogroup\n" } else { "" };
        let pool = |name: &str, listen: &str| {
            format!("[{name}]\n{user}listen = {listen}\nlisten.mode = 0666\npm = static\npm.max_children = 2\nping.path = /ping\n")
        };
        let global = format!("[global]\ndaemonize = no\nerror_log = {}\n", directory.join("error.log").display());
        let text = [global, pool("tcp", &tcp.to_string()), pool("unix", &socket.to_string_lossy())].concat();
        let config = directory.join("fpm.conf");
        fs::write(&config, text).expect("a file");
        let mut command = Command::new("php-fpm8.2");
        command.arg("-n").arg("-y").arg(&config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(child) = command.spawn() else {
            let _ = fs::remove_dir_all(&directory);
            return None;
        };
        let addresses = [tcp.into(), Address::unix(&socket.to_string_lossy()).expect("a short path")];
        let server = PhpFpm { child, directory, addresses };
        let begin = Instant::now();
        while TcpStream::connect(tcp).is_err() || UnixStream::connect(&socket).is_err() {
            assert!(begin.elapsed() < Duration::from_secs(30), "php-fpm does not listen: {}", server.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.join("error.log")).unwrap_or_default()
    }

    fn plan(&self, address: &Address, query: &str) -> Plan {
        Plan {
            address: address.clone(),
            protocol: Protocol::FastCgi { params: Vec::new() },
            path_and_query: format!("{}/index.php{query}", self.directory.display()),
            shape: Loop::Closed { connections: 2 },
            timeout: Duration::from_secs(20),
            ..plan(([127, 0, 0, 1], 1).into())
        }
    }
}

impl Drop for PhpFpm {
    fn drop(&mut self) {
        // SIGTERM also ends the workers; SIGKILL would leave them.
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

#[test]
fn php_fpm_answers_over_tcp_and_unix() {
    let Some(server) = PhpFpm::start() else {
        println!("skipped: php-fpm8.2 is not installed");
        return;
    };
    for address in &server.addresses {
        let get = server.plan(address, "");
        let kept = load(&get);
        assert_eq!((kept.good, kept.errors), (40, Errors::default()), "{address}: {kept:?}\n{}", server.log());
        // On a busy machine all answers may have come on the first before the second begins.
        assert!((1..=2).contains(&kept.connections), "{address}: {kept:?}");
        assert!(kept.error_samples.is_empty(), "{kept:?}");
        let single = load(&Plan { keep_alive: false, ..get.clone() });
        assert_eq!((single.good, single.connections, single.errors), (40, 40, Errors::default()), "{address}: {single:?}");
        let open = load(&Plan { shape: Loop::Open { rate_per_s: 400.0, connections: 2 }, ..get.clone() });
        assert_eq!(open.good, 40, "{address}: {open:?}");
        let large = load(&server.plan(address, "?size=300000"));
        assert_eq!((large.good, large.received_bytes > 40 * 300_000), (40, true), "{address}: {large:?}");
        let post = load(&Plan { method: "POST".into(), body: vec![b'p'; 100_000], ..get.clone() });
        assert_eq!((post.good, post.sent_bytes > 40 * 100_000), (40, true), "{address}: {post:?}");
        let given = |value: &str| Protocol::FastCgi { params: vec![("WANTED".to_owned(), value.to_owned())] };
        assert_eq!(load(&Plan { protocol: given("a b"), ..get.clone() }).good, 40);
        assert_eq!(load(&Plan { protocol: given("other"), ..get.clone() }).status.get(&500), Some(&40));
        let failing = load(&server.plan(address, "?fail"));
        assert_eq!(failing.status.get(&503), Some(&40), "{address}: {failing:?}");
        let said = failing.error_samples.iter().find(|sample| sample.contains("FCGI_STDERR"));
        assert!(said.is_some_and(|said| said.contains("with 40 responses") && said.contains("it failed")), "{failing:?}");
        let missing = load(&Plan { path_and_query: "/no/such.php".to_owned(), ..get.clone() });
        assert_eq!(missing.status.get(&404), Some(&40), "{address}: {missing:?}");
        assert_eq!(load(&Plan { path_and_query: "/ping".to_owned(), ..get }).good, 40, "its own page");
    }
}

/// Reads one request: records up to the empty FCGI_STDIN.
fn request(stream: &mut TcpStream) -> bool {
    loop {
        let mut header = [0; 8];
        if stream.read_exact(&mut header).is_err() {
            return false;
        }
        let content = usize::from(u16::from_be_bytes([header[4], header[5]]));
        if stream.read_exact(&mut vec![0; content + usize::from(header[6])]).is_err() {
            return false;
        }
        if header[1] == 5 && content == 0 {
            return true;
        }
    }
}

/// "A: b", an empty line and the end.
const GOOD: &[u8] = b"\x01\x06\0\x01\0\x07\x01\0A: b\r\n\n\0\x01\x03\0\x01\0\x08\0\0\0\0\0\0\0\0\0\0";

fn against(serve: impl Fn(TcpStream, u64) + Send + Sync + 'static) -> LoadResult {
    let server = Server::start(serve);
    // Nothing may time out here, however busy the host is.
    let timeout = Duration::from_secs(20);
    let result = load(&Plan { protocol: Protocol::FastCgi { params: Vec::new() }, timeout, ..plan(server.address) });
    assert_eq!(result.requests, 40, "{result:?}");
    result
}

#[test]
fn an_answer_may_arrive_in_single_bytes() {
    let result = against(|mut stream, _| {
        while request(&mut stream) {
            if GOOD.iter().any(|byte| stream.write_all(&[*byte]).is_err()) {
                return;
            }
        }
    });
    assert_eq!((result.good, result.connections), (40, 4), "{result:?}");
}

#[test]
fn a_connection_that_the_server_closes_is_replaced() {
    let result = against(|mut stream, _| {
        let _ = request(&mut stream) && stream.write_all(GOOD).is_ok();
    });
    // If the close is not noticed in time, the next request is lost with its connection, as in HTTP, and is counted as lost.
    let lost = result.errors.reset + result.errors.closed_before_answer;
    assert_eq!((result.good + lost, result.errors.total()), (40, lost), "{result:?}");
    assert!(result.good > 0, "{result:?}");
}

#[test]
fn malformed_answers_are_distinguished() {
    let cut = against(|mut stream, _| {
        let _ = request(&mut stream) && stream.write_all(&GOOD[..20]).is_ok();
    });
    assert_eq!(cut.errors, Errors { closed_before_answer: 40, ..Errors::default() }, "{cut:?}");
    let overloaded = against(|mut stream, _| {
        let _ = request(&mut stream) && stream.write_all(b"\x01\x03\0\x01\0\x08\0\0\0\0\0\0\x02\0\0\0").is_ok();
    });
    assert_eq!(overloaded.errors, Errors { bad_response: 40, ..Errors::default() }, "{overloaded:?}");
    assert!(overloaded.error_samples[0].contains("FCGI_OVERLOADED"), "{overloaded:?}");
    let http = against(|mut stream, _| {
        let _ = request(&mut stream) && stream.write_all(server::HELLO.as_bytes()).is_ok();
    });
    assert_eq!(http.errors, Errors { bad_response: 40, ..Errors::default() }, "{http:?}");
    let silent = Server::start(|mut stream, _| until_closed(&mut stream));
    let protocol = Protocol::FastCgi { params: Vec::new() };
    let silent = load(&Plan { protocol, requests: Some(4), ..plan(silent.address) });
    assert_eq!(silent.errors, Errors { response_timeout: 4, ..Errors::default() }, "{silent:?}");
}
