//! The verb `watch` as a user runs it: its lines fit their schema, a fault becomes an incident with its cause, less demand does not, and what is kept survives.
//!
//! Live: servers on loopback, and load.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Chokepoint, Running, Server, fits, free_address, signal, wait_until};

/// A server whose answers take as long as is set.
fn server(milliseconds: &Arc<AtomicU64>) -> Server {
    let milliseconds = Arc::clone(milliseconds);
    Server::serving(move |connection| {
        std::thread::sleep(Duration::from_millis(milliseconds.load(Ordering::Relaxed)));
        connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_ok()
    })
}

/// The lines of a run, as they come. On a busy machine some say that nothing is measured.
pub(super) fn start(chokepoint: &Chokepoint, args: &[&str]) -> (Running, Receiver<String>) {
    let mut child = chokepoint.command(args).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
    let (stdout, (to, lines)) = (BufReader::new(child.stdout.take().unwrap()), channel());
    std::thread::spawn(move || {
        let mut told = stdout.lines().map_while(Result::ok).filter(|line| !line.contains("chokepoint/stale/1"));
        told.try_for_each(|line| to.send(line).ok())
    });
    (Running(child), lines)
}

/// The next line that is an incident in this state; the seconds until then fit their schema.
fn incident(lines: &Receiver<String>, state: &str) -> Value {
    loop {
        let line = lines.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("no incident that is {state}"));
        match line.contains("chokepoint/incident/1") {
            true => {
                let incident = fits(&line, "incident-1.json");
                if incident["state"] == state {
                    return incident;
                }
            }
            false => drop(fits(&line, "sample-1.json")),
        }
    }
}

#[test]
fn a_server_that_becomes_slow_is_an_incident_and_one_with_fewer_clients_is_none() {
    let (chokepoint, milliseconds) = (Chokepoint::new(), Arc::new(AtomicU64::new(10)));
    let server = server(&milliseconds);
    let url = server.url();
    let load = |connections: &str| Running::start(&mut chokepoint.command(&["bench", "-c", connections, "-z", "300s", &url])).unwrap();
    let (first, second) = (load("4"), load("4"));
    let data = chokepoint.path("data");
    let (mut watch, lines) = start(&chokepoint, &["watch", "--json", "--data-dir", &data, &url]);
    let at_s = |line: &String| fits(line, "sample-1.json")["at_s"].as_u64().unwrap();
    let begun = at_s(&lines.recv_timeout(Duration::from_secs(30)).unwrap());
    let until = |seconds: u64| {
        let line = lines.iter().find(|line| line.contains("chokepoint/incident/1") || at_s(line) >= begun + seconds);
        line.filter(|line| !line.contains("chokepoint/incident/1")).unwrap_or_else(|| panic!("an incident, or the end, in {seconds} s"))
    };
    until(45);
    // Half of the clients go.
    drop(second);
    let line = until(65);
    let target = &fits(&line, "sample-1.json")["targets"][0];
    let under_way = target["under_way"][0].as_f64().unwrap() / target["under_way"][1].as_f64().unwrap();
    assert!((3.0..5.0).contains(&under_way), "{target:#}");
    milliseconds.store(60, Ordering::Relaxed);
    let open = incident(&lines, "open");
    assert_eq!(open["drop"]["kinds"], serde_json::json!(["slower"]), "{:#}", open["drop"]);
    let times = open["drop"]["during"]["response_ms"].as_f64().unwrap() / open["drop"]["before"]["response_ms"].as_f64().unwrap();
    assert!((2.0..8.0).contains(&times), "{:#}", open["drop"]);
    assert!(open["diagnosis"]["verdict"].is_string() && open["series"].as_array().unwrap().len() >= 30, "{open:#}");
    milliseconds.store(10, Ordering::Relaxed);
    let over = incident(&lines, "over");
    assert_eq!((&over["id"], &over["recovered"]), (&open["id"], &Value::Bool(true)), "{over:#}");
    signal(&watch.0, Signal::INT);
    assert_eq!(watch.0.wait().unwrap().code(), Some(130));
    drop(first);

    // What was kept: the list, the incident, and a recording that gives the same diagnosis.
    let list = chokepoint.run(&["incidents", "list", "--json", "--data-dir", &data]);
    let list = fits(&list.stdout, "incidents-1.json");
    assert_eq!(list["incidents"].as_array().map(Vec::len), Some(1), "{list:#}");
    let shown = chokepoint.run(&["incidents", "show", "last", "--json", "--data-dir", &data]);
    let shown = fits(&shown.stdout, "incident-1.json");
    assert_eq!(shown["state"], "over");
    let file = chokepoint.path("incident.cprec");
    let exported = chokepoint.run(&["incidents", "export", "1", "--data-dir", &data, "--output", &file]);
    assert_eq!((exported.status, exported.stderr.as_str()), (Some(0), ""));
    let replayed: Value = serde_json::from_str(&chokepoint.run(&["diagnose", "--replay", &file, "--json"]).stdout).unwrap();
    for part in ["verdict", "summary", "findings"] {
        assert_eq!(replayed[part], shown["diagnosis"][part], "{part}");
    }
    let text = chokepoint.run(&["incidents", "show", "1", "--data-dir", &data]);
    assert!(text.stdout.contains("times as long as before") && text.stdout.contains("before 1"), "{}", text.stdout);
}

#[test]
fn a_server_that_ends_is_an_incident() {
    let (chokepoint, address) = (Chokepoint::new(), free_address());
    let url = format!("http://{address}/");
    let serve = format!(
        "import http.server,socketserver\nclass H(http.server.BaseHTTPRequestHandler):\n protocol_version='HTTP/1.1'\n def do_GET(s):\n  s.send_response(200);s.send_header('Content-Length','2');s.end_headers();s.wfile.write(b'ok')\n def log_message(s,*a): pass\nsocketserver.ThreadingTCPServer.allow_reuse_address=True\nsocketserver.ThreadingTCPServer(('127.0.0.1',{}),H).serve_forever()",
        address.port()
    );
    let Some(server) = Running::start(std::process::Command::new("python3").args(["-c", &serve])) else {
        return println!("skipped: there is no python3");
    };
    wait_until("the server does not listen", || std::net::TcpStream::connect(address).is_ok());
    let _load = Running::start(&mut chokepoint.command(&["bench", "-c", "4", "-q", "200", "-z", "300s", &url])).unwrap();
    let (watch, lines) = start(&chokepoint, &["watch", "--json", "--data-dir", &chokepoint.path("data"), &url]);
    let samples = lines.iter().take(45).count();
    assert_eq!(samples, 45);
    drop(server);
    let open = incident(&lines, "open");
    assert_eq!(open["drop"]["kinds"][0], "gone", "{:#}", open["drop"]);
    drop(watch);
}

#[test]
fn one_program_writes_a_history() {
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let data = chokepoint.path("data");
    let (_watch, lines) = start(&chokepoint, &["watch", "--json", "--data-dir", &data, &server.url()]);
    lines.recv_timeout(Duration::from_secs(60)).unwrap();
    let other = chokepoint.run(&["watch", "-z", "1s", "--data-dir", &data, &server.url()]);
    assert_eq!(other.status, Some(1), "{}", other.stderr);
    assert!(other.stderr.contains("another chokepoint watch"), "{}", other.stderr);
}

#[test]
fn the_configuration_is_read_and_read_again() {
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let file =
        chokepoint.write("watch.toml", format!("targets = [{:?}]\ndata_dir = {:?}\n", server.url(), chokepoint.path("data")).as_bytes());
    let printed = chokepoint.run(&["watch", "--config", &file, "--print-config"]);
    assert_eq!(printed.stdout, std::fs::read_to_string(&file).unwrap());
    let (mut watch, lines) = start(&chokepoint, &["watch", "--json", "--config", &file]);
    let target = |line: &str| fits(line, "sample-1.json")["targets"][0]["target"].as_str().map(str::to_owned);
    assert_eq!(target(&lines.recv().unwrap()), Some(server.url()));
    let other = Server::start("200 OK");
    chokepoint.write("watch.toml", format!("targets = [{:?}]\ndata_dir = {:?}\n", other.url(), chokepoint.path("data")).as_bytes());
    signal(&watch.0, Signal::HUP);
    assert!(lines.iter().take(10).any(|line| target(&line) == Some(other.url())), "SIGHUP reads it again");
    // A mistake leaves everything as it was.
    chokepoint.write("watch.toml", b"tarets = []\n");
    signal(&watch.0, Signal::HUP);
    assert!(lines.iter().take(5).all(|line| target(&line) == Some(other.url())));
    signal(&watch.0, Signal::TERM);
    assert_eq!(watch.0.wait().unwrap().code(), Some(143));
    let ran = chokepoint.run(&["watch", "--config", &file]);
    assert_eq!(ran.status, Some(2));
    assert!(ran.stderr.contains("did you mean \"targets\"?"), "{}", ran.stderr);
}

#[test]
fn where_nothing_is_kept_it_says_so() {
    let chokepoint = Chokepoint::new();
    let data = chokepoint.path("none");
    let list = chokepoint.run(&["incidents", "list", "--data-dir", &data]);
    assert_eq!((list.status, list.stdout.as_str()), (Some(0), "There are no incidents.\n"));
    for (args, why, status) in
        [(["incidents", "show", "1"], "run chokepoint watch first", 1), (["incidents", "show", "x"], "\"x\" is no incident", 2)]
    {
        let ran = chokepoint.run(&[args.as_slice(), &["--data-dir", &data]].concat());
        assert!(ran.status == Some(status) && ran.stderr.contains(why), "{args:?}: {:?} {}", ran.status, ran.stderr);
    }
}
