//! The verb `where` as a user runs it: its lines fit their schema, name the place where requests stand and add up, and it ends as it should.
//!
//! Live: a server of its own, in a namespace and on loopback, and load.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;

use crate::harness::{Chokepoint, Server, is_root};

/// Workers of the pool, the time that each request takes, and the connections that load it.
const WORKERS: usize = 2;
const SERVICE: Duration = Duration::from_millis(20);
const CONNECTIONS: f64 = 30.0;

/// A line as JSON that fits the schema.
fn fits(line: &str) -> Value {
    let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/schema/where-1.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(&line).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{line:#}");
    line
}

/// A network namespace that goes with this.
struct Netns(String);

impl Netns {
    fn add() -> Option<Self> {
        let netns = Self(format!("t-where-{}", std::process::id()));
        let ip = |args: &[&str]| Command::new("ip").args(args).status().is_ok_and(|status| status.success());
        if !is_root() || !ip(&["netns", "add", &netns.0]) || !ip(&["-n", &netns.0, "link", "set", "lo", "up"]) {
            println!("skipped: no network namespace can be made");
            return None;
        }
        Some(netns)
    }

    /// A server in it with few workers, each of which answers one request a connection. Gives its port.
    fn pool(&self) -> u16 {
        let path = format!("/run/netns/{}", self.0);
        // Only the thread that makes the socket has to be in the namespace.
        let bound = std::thread::spawn(move || {
            let namespace = std::fs::File::open(path).unwrap();
            move_into_link_name_space(std::os::fd::AsFd::as_fd(&namespace), Some(LinkNameSpaceType::Network)).unwrap();
            TcpListener::bind("127.0.0.1:0").unwrap()
        });
        let listener = bound.join().unwrap();
        let port = listener.local_addr().unwrap().port();
        for _ in 0..WORKERS {
            let listener = listener.try_clone().unwrap();
            std::thread::spawn(move || {
                for connection in listener.incoming() {
                    let Ok(mut connection) = connection else { return };
                    let mut request = [0; 1024];
                    let is_asked = connection.read(&mut request).is_ok_and(|bytes| bytes > 0);
                    std::thread::sleep(SERVICE);
                    if is_asked {
                        // A client that gave up needs no answer.
                        let _ = connection.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
                    }
                }
            });
        }
        port
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}

/// A program that is ended with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_queue_before_a_pool_of_few_workers_is_named_and_the_numbers_add_up() {
    let Some(netns) = Netns::add() else { return };
    let chokepoint = Chokepoint::new();
    let url = format!("http://127.0.0.1:{}/", netns.pool());
    let mut bench = chokepoint.command(&["bench", "-c", "30", "-z", "60s", "--client-netns", &netns.0, &url]);
    let _load = Running(bench.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let ran = chokepoint.run(&["where", "--json", "-z", "8s", "--client-netns", &netns.0, &url]);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    let lines: Vec<Value> = ran.stdout.lines().map(fits).collect();
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

/// A run whose stdout is read line by line.
fn reading(chokepoint: &Chokepoint, args: &[&str]) -> (Running, BufReader<ChildStdout>) {
    let mut child = chokepoint.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    (Running(child), stdout)
}

fn ended(running: &mut Running) -> (Option<i32>, String) {
    let status = running.0.wait().unwrap();
    let mut told = String::new();
    running.0.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    (status.code(), told)
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    for args in [vec!["where", "--json"], vec!["where"]] {
        let (mut running, mut stdout) = reading(&chokepoint, &[args.as_slice(), &[&server.url()]].concat());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert!(line.contains(&server.url()), "{line}");
        drop(stdout);
        assert_eq!(ended(&mut running), (Some(0), String::new()), "{args:?}");
    }
}

#[test]
fn ctrl_c_ends_it_with_the_status_of_the_signal() {
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let (mut running, mut stdout) = reading(&chokepoint, &["where", "--json", &server.url()]);
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(fits(&line)["ledger"]["under_way"], 0.0, "nothing is asked for, and nothing is sent");
    kill_process(Pid::from_child(&running.0), Signal::INT).unwrap();
    assert_eq!(ended(&mut running), (Some(130), String::new()));
}

#[test]
fn where_nothing_listens_it_says_so_and_ends_with_one() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/?token=Secret01");
    let ran = Chokepoint::new().run(&["where", "-z", "1s", &url]);
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
    assert!(ran.stdout.contains(&format!("Nothing on this host listens at 127.0.0.1:{port}")), "{}", ran.stdout);
    assert!(!ran.stdout.contains("Secret01"), "{}", ran.stdout);
    let ran = Chokepoint::new().run(&["where", "-z", "1s", "--json", &url]);
    let line = fits(ran.stdout.lines().next().unwrap());
    assert_eq!((ran.status, &line["ledger"]), (Some(1), &Value::Null));
}
