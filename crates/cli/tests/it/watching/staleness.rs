//! What `watch` says while nothing is measured: a thread that hangs cannot say it, so everybody who shows something looks at a clock. And what it tells systemd.
//!
//! Live: a server on loopback, and threads that are stopped.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Chokepoint, Frozen, Running, Server, WAIT_MAX, fits, free_address, repository, signal, wait_until};

/// The whole answer to a request.
fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn document(address: SocketAddr, path: &str) -> Value {
    let answer = get(address, path);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    fits(&if is_chunked { joined(body) } else { body.to_owned() }, "series-1.json")
}

/// A body that came in chunks (RFC 9112, 7.1).
fn joined(mut chunks: &str) -> String {
    let mut body = String::new();
    while let Some((length, rest)) = chunks.split_once("\r\n") {
        let (chunk, rest) = rest.split_at(usize::from_str_radix(length, 16).unwrap());
        body.push_str(chunk);
        chunks = rest.strip_prefix("\r\n").unwrap();
    }
    body
}

/// The next line that says whether something is measured.
fn staleness(lines: &Receiver<String>) -> Value {
    loop {
        let line = lines.recv_timeout(WAIT_MAX).expect("a line that says that nothing is measured");
        if line.contains("chokepoint/stale/1") {
            return fits(&line, "stale-1.json");
        }
        fits(&line, "sample-1.json");
    }
}

#[test]
fn everybody_says_so_while_nothing_is_measured_and_no_longer_when_it_is() {
    let (chokepoint, server, address) = (Chokepoint::new(), Server::start("200 OK"), free_address());
    let args = ["watch", "--json", "--listen", &address.to_string(), "--data-dir", &chokepoint.path("data"), &server.url()];
    let mut child = chokepoint.command(&args).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
    let (stdout, (to, lines)) = (BufReader::new(child.stdout.take().unwrap()), channel());
    std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| to.send(line).ok()));
    let mut watch = Running(child);
    let is_measured = || document(address, "/api/v1/now")["stale"] == false && get(address, "/metrics").contains("\nchokepoint_up{");
    wait_until("it measures", || TcpStream::connect(address).is_ok() && is_measured());
    let Some(frozen) = Frozen::thread(&watch.0, "sampler") else { return };
    // A slow start may have been stale, too.
    let told = std::iter::from_fn(|| Some(staleness(&lines))).find(|told| told["stale"] == true && told["newest_s"].is_u64()).unwrap();
    for path in ["/api/v1/now", "/api/v1/series", "/api/v1/sum"] {
        let document = document(address, path);
        assert_eq!((&document["stale"], &document["newest_s"]), (&Value::Bool(true), &told["newest_s"]), "{path} {document:#}");
        assert!(document["age_s"].as_f64() >= told["age_s"].as_f64(), "{path} {document:#}");
    }
    let metrics = get(address, "/metrics");
    assert!(metrics.contains("chokepoint-stale: true") && metrics.contains("\nchokepoint_last_sample_timestamp_seconds"), "{metrics}");
    for old in ["chokepoint_up{", "chokepoint_requests_in_flight{"] {
        assert!(!metrics.contains(old), "it is not now: {metrics}");
    }
    assert!(get(address, "/healthz").starts_with("HTTP/1.1 503"));
    let mut page = BufReader::new(TcpStream::connect(address).unwrap());
    page.get_mut().write_all(format!("GET /api/v1/live HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).unwrap();
    let ages = page.lines().map_while(Result::ok).filter(|line| line.starts_with("data: {\"newest_s\"")).take(2);
    assert_eq!(ages.filter(|age| age.contains("\"stale\":true")).count(), 2);
    drop(frozen);
    while staleness(&lines)["stale"] == true {}
    wait_until("it measures again", is_measured);
    signal(&watch.0, Signal::INT);
    assert_eq!(watch.0.wait().unwrap().code(), Some(130));
}

#[test]
fn one_reader_that_hangs_makes_its_servers_old_and_none_of_them_gone() {
    let (chokepoint, server, address) = (Chokepoint::new(), Server::start("200 OK"), free_address());
    let args = ["watch", "--headless", "--listen", &address.to_string(), "--data-dir", &chokepoint.path("data"), &server.url()];
    let watch = Running(chokepoint.command(&args).stderr(Stdio::null()).spawn().unwrap());
    let metrics = || get(address, "/metrics");
    wait_until("it measures", || TcpStream::connect(address).is_ok() && metrics().contains("\nchokepoint_up{"));
    let Some(frozen) = Frozen::thread(&watch.0, "netns") else { return };
    wait_until("what is old is still told as now", || !metrics().contains("\nchokepoint_up{"));
    // Seconds go on, and say that they saw nothing.
    let unseen = || document(address, "/api/v1/now")["samples"][0]["targets"][0]["under_way"] == serde_json::json!([0.0, 0.0]);
    wait_until("an old second is told again and again", unseen);
    assert!(!metrics().contains("chokepoint_incidents_open{target=\"http://127.0.0.1\"} 1"));
    drop(frozen);
    wait_until("it measures again", || metrics().contains("\nchokepoint_up{"));
}

#[test]
fn the_watchdog_of_systemd_is_fed_by_what_is_measured() {
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let manager = UnixDatagram::bind(chokepoint.file("notify")).unwrap();
    manager.set_read_timeout(Some(WAIT_MAX)).unwrap();
    let heard = || {
        let mut bytes = [0; 256];
        let length = manager.recv(&mut bytes).expect("it tells how it goes");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let next = |state: &str| while !heard().starts_with(state) {};
    let config = chokepoint.write("watch.toml", format!("targets = [{:?}]\n", server.url()).as_bytes());
    let mut command = chokepoint.command(&["watch", "--headless", "--listen", "off", "--config", &config]);
    command.args(["--data-dir", &chokepoint.path("data")]).env("NOTIFY_SOCKET", chokepoint.file("notify")).env("WATCHDOG_USEC", "60000000");
    let watch = Running(command.stderr(Stdio::null()).spawn().unwrap());
    next("READY=1");
    (0..3).for_each(|_| next("WATCHDOG=1"));
    let Some(frozen) = Frozen::thread(&watch.0, "sampler") else { return };
    // It may have measured until then.
    next("STATUS=nothing was measured for ");
    manager.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    let meanwhile = manager.recv(&mut [0; 256]);
    assert!(meanwhile.is_err(), "a timer would go on");
    manager.set_read_timeout(Some(WAIT_MAX)).unwrap();
    drop(frozen);
    next("WATCHDOG=1");
    signal(&watch.0, Signal::HUP);
    next("RELOADING=1\nMONOTONIC_USEC=");
    next("READY=1");
    signal(&watch.0, Signal::TERM);
    next("STOPPING=1");
}

#[test]
fn the_page_has_the_bound_of_the_program() {
    let bound = chokepoint_recorder::STALE_AFTER.as_secs();
    let page = std::fs::read_to_string(repository("ui/src/staleness.ts")).unwrap();
    assert!(page.contains(&format!("export const STALE_AFTER_S = {bound};")), "{bound}");
}
