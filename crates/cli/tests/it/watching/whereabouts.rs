//! The verb `where` as a user runs it: its lines fit their schema, name the place where requests stand, and add up; and how it ends.
//!
//! Live: a separate server, in a namespace and on loopback, and load.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;

use crate::harness::{Chokepoint, Netns, Running, Server, fits, free_address, signal, wait_until};

/// Workers of the pool, the service time of a request, and the connections of the load.
const WORKERS: usize = 2;
const SERVICE: Duration = Duration::from_millis(20);
const CONNECTIONS: f64 = 30.0;

/// The JSON of a line, which fits the schema.
fn line(text: &str) -> Value {
    fits(text, "where-1.json")
}

/// A server in the namespace with few workers, each of which answers one request per connection. Returns its port, and the number of its answers.
fn pool(netns: &Netns) -> (u16, Arc<AtomicU64>) {
    let path = format!("/run/netns/{}", netns.0);
    // Only the thread that makes the socket has to be in the namespace.
    let bound = std::thread::spawn(move || {
        let namespace = std::fs::File::open(path).unwrap();
        move_into_link_name_space(std::os::fd::AsFd::as_fd(&namespace), Some(LinkNameSpaceType::Network)).unwrap();
        TcpListener::bind("127.0.0.1:0").unwrap()
    });
    let (listener, answered) = (bound.join().unwrap(), Arc::new(AtomicU64::new(0)));
    let port = listener.local_addr().unwrap().port();
    for _ in 0..WORKERS {
        let (listener, answered) = (listener.try_clone().unwrap(), Arc::clone(&answered));
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let Ok(mut connection) = connection else { return };
                let mut request = [0; 1024];
                let is_asked = connection.read(&mut request).is_ok_and(|bytes| bytes > 0);
                std::thread::sleep(SERVICE);
                if is_asked {
                    // A client that gave up needs no answer.
                    let _ = connection.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
    (port, answered)
}

#[test]
fn the_queue_of_a_small_pool_is_named_and_the_numbers_add_up() {
    let Some(netns) = Netns::add("where") else { return };
    let chokepoint = Chokepoint::new();
    let (port, answered) = pool(&netns);
    let url = format!("http://127.0.0.1:{port}/");
    let mut bench = chokepoint.command(&["bench", "-c", "30", "-z", "60s", "--client-netns", &netns.0, &url]);
    let _load = Running::start(&mut bench).unwrap();
    wait_until("the load does not begin", || answered.load(Ordering::Relaxed) > CONNECTIONS as u64);
    let ran = chokepoint.run(&["where", "--json", "-z", "8s", "--client-netns", &netns.0, &url]);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    let lines: Vec<Value> = ran.stdout.lines().map(line).collect();
    assert!(lines.len() >= 3, "one a second: {}", ran.stdout);
    let times = |line: &Value| ["from_s", "to_s"].map(|end| line["window"][end].as_f64().unwrap());
    assert!(lines.windows(2).all(|pair| times(&pair[0])[1] <= times(&pair[1])[1]), "{}", ran.stdout);
    let last = lines.last().unwrap();
    let [from, to] = times(last);
    assert!(to - from <= 5.0 + 1e-2, "{last:#}");
    let ledger = &last["ledger"];
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value} is no number: {last:#}"));
    let places = ledger["places"].as_array().unwrap();
    let sum: f64 = places.iter().map(|place| number(&place["mean"])).sum::<f64>() + number(&ledger["unaccounted"]["mean"]);
    let under_way = number(&ledger["under_way"]);
    assert!((sum - under_way).abs() <= 1e-3 * (places.len() + 1) as f64, "{sum} of {under_way}: {last:#}");
    assert!((under_way / CONNECTIONS - 1.0).abs() < 0.1, "{last:#}");
    let largest = places.iter().max_by(|a, b| number(&a["mean"]).total_cmp(&number(&b["mean"]))).unwrap();
    assert_eq!(largest["place"], "accept-queue", "{last:#}");
    let waiting = CONNECTIONS - WORKERS as f64;
    assert!((number(&largest["mean"]) / waiting - 1.0).abs() < 0.1, "{last:#}");
    let [client] = last["clients"].as_array().unwrap().as_slice() else { panic!("{last:#}") };
    assert_eq!(client["address"], "127.0.0.1");
    assert!((number(&client["mean"]) / under_way - 1.0).abs() < 0.1, "{last:#}");
}

/// A run whose stdout the test reads line by line.
fn start_reading(chokepoint: &Chokepoint, args: &[&str]) -> (Running, BufReader<ChildStdout>) {
    let mut child = chokepoint.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    (Running(child), stdout)
}

fn ended(running: &mut Running) -> (Option<i32>, String) {
    let status = running.0.wait().unwrap();
    let mut stderr = String::new();
    running.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    (status.code(), stderr)
}

#[test]
fn it_ends_quietly_when_its_reader_closes_the_pipe() {
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    for args in [vec!["where", "--json"], vec!["where"]] {
        let (mut running, mut stdout) = start_reading(&chokepoint, &[args.as_slice(), &[&server.url()]].concat());
        let mut first = String::new();
        stdout.read_line(&mut first).unwrap();
        assert!(first.contains(&server.url()), "{first}");
        drop(stdout);
        assert_eq!(ended(&mut running), (Some(0), String::new()), "{args:?}");
    }
}

#[test]
fn ctrl_c_ends_it_with_status_130() {
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let (mut running, mut stdout) = start_reading(&chokepoint, &["where", "--json", &server.url()]);
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    assert_eq!(line(&first)["ledger"]["under_way"], 0.0, "no load is offered");
    signal(&running.0, Signal::INT);
    assert_eq!(ended(&mut running), (Some(130), String::new()));
}

#[test]
fn where_nothing_listens_it_says_so_and_ends_with_status_1() {
    let port = free_address().port();
    let url = format!("http://127.0.0.1:{port}/?token=Secret01");
    let ran = Chokepoint::new().run(&["where", "-z", "1s", &url]);
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
    assert!(ran.stdout.contains(&format!("Nothing on this host listens at 127.0.0.1:{port}")), "{}", ran.stdout);
    assert!(!ran.stdout.contains("Secret01"), "{}", ran.stdout);
    let ran = Chokepoint::new().run(&["where", "-z", "1s", "--json", &url]);
    let first = line(ran.stdout.lines().next().unwrap());
    assert_eq!((ran.status, &first["ledger"]), (Some(1), &Value::Null));
}
