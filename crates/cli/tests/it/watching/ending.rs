//! How `watch` ends: whichever of its threads hangs, and whoever holds its files, a signal ends it, and its history is whole; and how other verbs end where something
//! hangs. What holds the program up would do so until the test lets go of it, and the program is to end soon, by a clock that is slow where the machine is busy.
//!
//! Live: servers on loopback, threads that are stopped, a lock on a database, names that nobody resolves.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, ExitStatus, Stdio};

use chokepoint_runs::History;
use rustix::process::Signal;

use crate::harness::{Chokepoint, Frozen, Running, Server, becomes_true_soon, free_address, has_programs, is_root, signal, wait_until};

/// A recorder, and what it tells.
struct Watch<'a> {
    chokepoint: &'a Chokepoint,
    running: Running,
}

impl<'a> Watch<'a> {
    /// With lines of JSON in a file of the test.
    fn start(chokepoint: &'a Chokepoint, args: &[&str]) -> Self {
        let mut command = chokepoint.command(&["watch", "--json", "--data-dir", &chokepoint.path("data")]);
        let file = |name: &str| std::fs::File::create(chokepoint.file(name)).unwrap();
        let child = command.args(args).stdout(file("lines")).stderr(file("told")).spawn().unwrap();
        Self { chokepoint, running: Running(child) }
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.chokepoint.file(name)).unwrap()
    }

    /// Waits for seconds.
    fn watches(&self) {
        wait_until("it watches", || self.read("lines").matches("chokepoint/sample/1").count() >= 2);
    }

    /// What it ended with, and what it told by then.
    fn end(mut self, by: Signal) -> (ExitStatus, String) {
        signal(&self.running.0, by);
        (ended(&mut self.running.0), self.read("told"))
    }
}

fn ended(child: &mut Child) -> ExitStatus {
    let mut status = None;
    let has_ended = becomes_true_soon(|| {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    if !has_ended {
        child.kill().unwrap();
    }
    status.expect("a signal does not end it soon")
}

/// The seconds in the history, after it was checked.
fn kept(chokepoint: &Chokepoint) -> usize {
    let history = History::open_existing(chokepoint.file("data").as_ref()).unwrap().unwrap();
    let list = chokepoint.run(&["incidents", "list", "--data-dir", &chokepoint.path("data")]);
    assert_eq!((list.status, list.stderr.as_str()), (Some(0), ""));
    history.samples(1, 0, u64::MAX, u32::MAX).unwrap().len()
}

#[test]
fn a_signal_ends_it_whichever_of_its_threads_hangs() {
    let server = Server::start("200 OK");
    // Takes connections, and never answers.
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let otlp = format!("otlp = \"http://{}/v1/metrics\"\n", collector.local_addr().unwrap());
    for (thread, by, status) in [
        ("following", Signal::TERM, 143),
        ("sampler", Signal::INT, 130),
        ("netns", Signal::TERM, 143),
        ("host", Signal::TERM, 143),
        ("writing", Signal::TERM, 143),
        ("dashboard", Signal::TERM, 143),
        ("exporter", Signal::INT, 130),
    ] {
        let chokepoint = Chokepoint::new();
        let (config, address) = (chokepoint.write("watch.toml", otlp.as_bytes()), free_address());
        let watch = Watch::start(&chokepoint, &["--config", &config, "--listen", &address.to_string(), &server.url()]);
        watch.watches();
        wait_until("nothing is written", || kept(&chokepoint) >= 1);
        // A page is open, with the stream of its events.
        let mut page = TcpStream::connect(address).unwrap();
        page.write_all(format!("GET /api/v1/live HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).unwrap();
        page.read_exact(&mut [0; 64]).unwrap();
        let Some(frozen) = Frozen::thread(&watch.running.0, thread) else { return };
        let (ended, told) = watch.end(by);
        assert_eq!(ended.code(), Some(status), "{thread}: {told}");
        assert!(frozen.ended(), "{thread} still hung when the program ended");
        assert!(thread != "following" || told.contains("note: ended in the middle of "), "{told}");
        assert!(kept(&chokepoint) >= 1, "{thread}");
    }
}

#[test]
fn a_lock_on_its_history_does_not_hold_it_and_the_history_stays_whole() {
    const LOCK: &str = "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1], isolation_level=None)\nc.execute('BEGIN IMMEDIATE')\nprint('locked', flush=True)\nsys.stdin.read()";
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let args = ["--listen", "off", &server.url()];
    let watch = Watch::start(&chokepoint, &args);
    watch.watches();
    let mut locked = Command::new("python3");
    locked.args(["-c", LOCK, &chokepoint.path("data/history.sqlite")]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(locked) = locked.spawn() else { return println!("skipped: there is no python3") };
    let mut locked = Running(locked);
    let mut said = String::new();
    BufReader::new(locked.0.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "locked\n");
    // Nobody who measures waits for it: SQLite would hold each write for five seconds.
    let seconds = |watch: &Watch| {
        let lines = watch.read("lines");
        let lines = lines.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        lines.filter(|line| line["schema"] == "chokepoint/sample/1").filter_map(|line| line["at_s"].as_u64()).collect::<Vec<u64>>()
    };
    let begin = seconds(&watch).len();
    wait_until("it does not measure any more", || seconds(&watch).len() >= begin + 8);
    let measured = seconds(&watch)[begin..].to_vec();
    assert!(measured.len() as u64 * 2 > measured[measured.len() - 1] - measured[0], "{measured:?}");
    let (status, told) = watch.end(Signal::TERM);
    assert_eq!(status.code(), Some(143), "{told}");
    // SQLite would have waited for longer, and then have told that it could not write.
    assert!(told.contains("note: ended in the middle of ") && told.contains("write of the history"), "{told}");
    drop(locked);
    let before = kept(&chokepoint);
    assert!(before >= 1);
    let watch = Watch::start(&chokepoint, &args);
    watch.watches();
    assert_eq!(watch.end(Signal::INT).0.code(), Some(130));
    assert!(kept(&chokepoint) > before, "it is written again");
}

#[test]
fn a_hanging_diagnosis_and_a_webhook_that_never_answers_do_not_hold_it() {
    let address = free_address();
    let serve = format!(
        "import http.server,socketserver\nclass H(http.server.BaseHTTPRequestHandler):\n protocol_version='HTTP/1.1'\n def do_GET(s):\n  s.send_response(200);s.send_header('Content-Length','2');s.end_headers();s.wfile.write(b'ok')\n def log_message(s,*a): pass\nsocketserver.ThreadingTCPServer.allow_reuse_address=True\nsocketserver.ThreadingTCPServer(('127.0.0.1',{}),H).serve_forever()",
        address.port()
    );
    let Some(server) = Running::start(Command::new("python3").args(["-c", &serve])) else {
        return println!("skipped: there is no python3");
    };
    wait_until("the server does not listen", || TcpStream::connect(address).is_ok());
    let url = format!("http://{address}/");
    let hook = TcpListener::bind("127.0.0.1:0").unwrap();
    let (diagnosing, telling) = (Chokepoint::new(), Chokepoint::new());
    let config = telling.write("watch.toml", format!("[[hook]]\nwebhook = \"http://{}/\"\n", hook.local_addr().unwrap()).as_bytes());
    let _load = Running::start(&mut telling.command(&["bench", "-c", "4", "-q", "200", "-z", "300s", &url])).unwrap();
    let (first, second) =
        (Watch::start(&diagnosing, &["--listen", "off", &url]), Watch::start(&telling, &["--config", &config, "--listen", "off", &url]));
    let seconds = |watch: &Watch| watch.read("lines").matches("chokepoint/sample/1").count();
    wait_until("enough is known to compare with", || seconds(&first).min(seconds(&second)) >= 45);
    drop(server);
    let Some(frozen) = Frozen::thread(&first.running.0, "diagnosing") else { return };
    let (status, told) = first.end(Signal::TERM);
    assert_eq!((status.code(), frozen.ended()), (Some(143), true), "{told}");
    let list = diagnosing.run(&["incidents", "list", "--all", "--data-dir", &diagnosing.path("data")]);
    assert!(list.stdout.contains("nothing listens any more"), "its incident is kept: {}", list.stdout);
    // The webhook is being told, and will not answer.
    let (_told, _) = hook.accept().unwrap();
    let (status, told) = second.end(Signal::TERM);
    assert_eq!(status.code(), Some(143), "{told}");
    assert!(told.contains("note: ended in the middle of a delivery to a hook"), "{told}");
    assert!(kept(&telling) >= 45);
}

#[test]
fn a_name_that_nobody_resolves_holds_no_verb() {
    if !is_root() || !has_programs(&["unshare", "mount"]) {
        return println!("skipped: another /etc/resolv.conf needs root, unshare(1) and mount(8)");
    }
    // A loopback address of this process's own.
    let [_, _, a, b] = std::process::id().to_be_bytes();
    let address = format!("127.53.{a}.{}", b.max(1));
    let Ok(nameserver) = UdpSocket::bind((address.as_str(), 53)) else { return println!("skipped: port 53 cannot be had") };
    let chokepoint = Chokepoint::new();
    // Together longer than the test waits for anything.
    let resolver = chokepoint.write("resolv.conf", format!("nameserver {address}\noptions timeout:30 attempts:5\n").as_bytes());
    let script = format!("mount --bind {resolver} /etc/resolv.conf && exec \"$@\"");
    let url = "http://nobody.example/";
    let data = chokepoint.path("data");
    for args in [
        &["watch", "--headless", "--listen", "off", "--data-dir", &data, url][..],
        &["where", url],
        &["bench", "-n", "1", url],
        &["diagnose", "-z", "1s", url],
        &["size", url],
        &["capacity", url],
        &["tcp", "nobody.example:80"],
    ] {
        let asked = chokepoint.command(args);
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script, "sh"]).arg(asked.get_program()).args(asked.get_args());
        command.envs(asked.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut running = Running(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
        nameserver.recv(&mut [0; 512]).unwrap();
        signal(&running.0, Signal::INT);
        let status = ended(&mut running.0);
        let mut told = String::new();
        running.0.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        assert_eq!(status.code(), Some(130), "{args:?}: {told}");
        // Further tries of the one that ended.
        nameserver.set_nonblocking(true).unwrap();
        while nameserver.recv(&mut [0; 512]).is_ok() {}
        nameserver.set_nonblocking(false).unwrap();
    }
}

#[test]
fn a_server_that_never_answers_holds_no_load() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let (url, chokepoint) = (format!("http://{}/", server.local_addr().unwrap()), Chokepoint::new());
    let accepted = std::thread::spawn(move || server.incoming().map_while(Result::ok).collect::<Vec<_>>());
    // Longer than the test waits for anything.
    for args in [
        &["bench", "--no-keep", "-t", "600s", "-c", "4", "-z", "900s", &url][..],
        &["bench", "--no-keep", "-t", "600s", "-q", "20", "-z", "900s", &url],
        &["bench", "--no-keep", "-t", "600s", "-c", "2", "-z", "900s", "--insecure", &url.replace("http:", "https:")],
        &["diagnose", "--no-keep", "-t", "600s", "-c", "4", "-z", "900s", &url],
        &["size", "--no-keep", "-t", "600s", &url],
    ] {
        let mut command = chokepoint.command(args);
        let mut running = Running(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
        // A connection of the load; what comes before it makes none.
        let netstat = format!("/proc/{}/net/tcp", running.0.id());
        let port = url.trim_end_matches('/').rsplit(':').next().unwrap().parse::<u16>().unwrap();
        let is_connected = || std::fs::read_to_string(&netstat).unwrap_or_default().matches(&format!(":{port:04X} 01 ")).count() >= 2;
        wait_until("the load does not begin", is_connected);
        signal(&running.0, Signal::INT);
        let status = ended(&mut running.0);
        assert_eq!(status.code(), Some(130), "{args:?}");
        wait_until("the connections stay", || !is_connected());
    }
    drop(accepted);
}
