//! `chokepoint bench` as a user runs it: what it prints, its JSON against the schema, and its exit status.

mod harness;

use std::io::{Read, Write};
use std::net::TcpListener;

use harness::{Chokepoint, Ran, Server};
use serde_json::Value;

/// Runs `bench --json` and checks the report against the schema.
fn bench(args: &[&str]) -> (Option<i32>, Value) {
    let ran = Chokepoint::new().run(&[&["bench", "--json"], args].concat());
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {} {}", ran.stdout, ran.stderr));
    let schema = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/bench-1.json")).unwrap();
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let errors: Vec<String> = schema.iter_errors(&report).map(|error| error.to_string()).collect();
    assert_eq!(errors, Vec::<String>::new(), "{report:#}");
    (ran.status, report)
}

fn text(args: &[&str]) -> Ran {
    Chokepoint::new().run(&[&["bench"], args].concat())
}

/// A port where nothing listens.
fn closed_port() -> String {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap();
    format!("http://{address}/")
}

fn warnings(report: &Value) -> Vec<&str> {
    report["warnings"].as_array().unwrap().iter().map(|warning| warning["id"].as_str().unwrap()).collect()
}

#[test]
fn a_load_is_told_in_words_and_figures() {
    let server = Server::start("200 OK");
    let ran = text(&["-n", "2000", "-c", "8", "--warm-up", "200ms", &server.url()]);
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    for part in
        ["requests/s answered as expected (100 %)", "closed loop, 8 connections", "p99.9", "first byte", "≤", "2,000 with status 200"]
    {
        assert!(ran.stdout.contains(part), "{part} is missing in:\n{}", ran.stdout);
    }
    let (status, report) = bench(&["-n", "2000", "-c", "8", &server.url()]);
    assert_eq!((status, &report["load"]["requests"], &report["outcome"]), (Some(0), &Value::from(2000), &Value::from("answered")));
    assert_eq!((&report["offered"]["duration_s"], &report["offered"]["loop"]), (&Value::Null, &Value::from("closed")));
    assert_eq!(report["sending"]["connections"], 8);
    let counted: u64 = report["distribution"].as_array().unwrap().iter().map(|bucket| bucket["count"].as_u64().unwrap()).sum();
    assert_eq!(counted, 2000);
}

#[test]
fn an_open_loop_sends_all_that_came_due() {
    let server = Server::start("200 OK");
    let (status, report) = bench(&["-q", "300", "-z", "1s", "-c", "20", "--warm-up", "300ms", &server.url()]);
    assert_eq!((status, &report["load"]["requests"]), (Some(0), &Value::from(300)), "{report:#}");
    assert_eq!((&report["offered"]["rate_per_s"], &report["offered"]["warm_up_s"]), (&Value::from(300.0), &Value::from(0.3)));
    assert_eq!(report["corrected_latency_us"], Value::Null);
}

#[test]
fn the_exit_status_tells_what_came_of_it() {
    let (good, wrong) = (Server::start("200 OK"), Server::start("500 Internal Server Error"));
    let nobody = closed_port();
    let few = ["-n", "50", "-c", "2"];
    let status = |args: &[&str]| bench(&[&few, args].concat()).0;
    assert_eq!(status(&[&good.url()]), Some(0));
    assert_eq!(status(&[&wrong.url()]), Some(1), "every answer was a 500");
    assert_eq!(status(&["--expect", "500", &wrong.url()]), Some(0));
    assert_eq!(status(&["-z", "500ms", &nobody]), Some(1), "nothing listens");
    assert_eq!(status(&["--fail-if", "errors>0.1% || p99>1m", &good.url()]), Some(0));
    assert_eq!(status(&["--fail-if", "p99>1m || max>=1us", &good.url()]), Some(99));
    assert_eq!(status(&["--fail-if", "rps<1000000000", &good.url()]), Some(99));
    let told = text(&[&few[..], &["--fail-if", "max>=1us", &good.url()]].concat());
    assert!(told.stdout.contains("Failed") && told.stdout.contains("max>=1us: "), "{}", told.stdout);
    let refused = text(&["-z", "300ms", &nobody]);
    assert!(refused.stdout.starts_with("Nothing answered: every connection was refused"), "{}", refused.stdout);
    let all_wrong = text(&[&few[..], &[&wrong.url()]].concat());
    let words: Vec<&str> = all_wrong.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains("status 500; is this the right URL?"), "{}", all_wrong.stdout);
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    let cases: &[(&[&str], &str)] = &[
        (&[], "URL"),
        (&["http://"], "no host"),
        (&["--insecure", "http://127.0.0.1/"], "https"),
        (&["--cacert", "/no/such.pem", "https://127.0.0.1/"], "/no/such.pem"),
        (&["-c", "0", "http://127.0.0.1/"], "at least 1"),
        (&["--warm-up", "150ms", "http://127.0.0.1/"], "multiple of 100 ms"),
        (&["--warm-up", "soon", "http://127.0.0.1/"], "not a time"),
        (&["--fail-if", "p98>1s", "http://127.0.0.1/"], "none of p50"),
        (&["--fail-if", "p99", "http://127.0.0.1/"], "no condition"),
        (&["--requests-per-connection", "0", "http://127.0.0.1/"], "at least 1"),
        (&["--requests-per-connection", "2", "--disable-keepalive", "http://127.0.0.1/"], "--disable-keepalive"),
        (&["--fcgi-param", "A=b", "http://127.0.0.1/"], "fcgi URL"),
    ];
    for (args, reason) in cases {
        let ran = text(args);
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(reason), "{args:?} said: {}", ran.stderr);
    }
}

#[test]
fn what_is_asked_for_is_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/path?a=b", listener.local_addr().unwrap());
    let seen = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\nbody") && stream.read(&mut byte).is_ok_and(|bytes| bytes == 1) {
            request.push(byte[0]);
        }
        stream.write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n").unwrap();
        String::from_utf8(request).unwrap()
    });
    let args = ["-n", "1", "-c", "1", "-m", "PUT", "-d", "body", "-T", "text/plain", "-A", "text/html", "-H", "X-Name: v", &url];
    assert_eq!(bench(&args).0, Some(0));
    let seen = seen.join().unwrap();
    for part in
        ["PUT /path?a=b HTTP/1.1\r\n", "Content-Type: text/plain\r\n", "Accept: text/html\r\n", "X-Name: v\r\n", "Content-Length: 4\r\n"]
    {
        assert!(seen.contains(part), "{part:?} is missing in {seen:?}");
    }
}

#[test]
fn a_stall_of_a_closed_loop_is_warned_of_with_the_corrected_figures_beside() {
    // The first connection's hundredth request holds up all others for half a second.
    let gate = std::sync::Mutex::new(0u32);
    let server = harness::Server::serving(move |stream| {
        {
            let mut served = gate.lock().unwrap();
            *served += 1;
            if *served == 1000 {
                std::thread::sleep(std::time::Duration::from_millis(800));
            }
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_ok()
    });
    let args = ["-c", "4", "-z", "2s", &server.url()];
    let (status, report) = bench(&args);
    assert_eq!(status, Some(0));
    assert!(warnings(&report).contains(&"omitted") && warnings(&report).contains(&"stalled"), "{report:#}");
    let (raw, corrected) = (report["load"]["latency_us"]["p99"].as_u64().unwrap(), report["corrected_latency_us"]["p99"].as_u64().unwrap());
    assert!(corrected >= 300_000 && raw * 2 < corrected, "p99 {raw} us, corrected {corrected} us");
    let (status, calm) = bench(&["-c", "4", "-n", "3000", &server.url()]);
    assert_eq!(status, Some(0));
    assert!(!warnings(&calm).contains(&"stalled"), "{calm:#}");
}

#[test]
fn a_server_that_closes_what_was_to_be_kept_is_told() {
    let server = harness::Server::serving(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        false
    });
    let (_, report) = bench(&["-c", "2", "-n", "100", &server.url()]);
    assert!(warnings(&report).contains(&"closed"), "{report:#}");
    let (_, asked) = bench(&["-c", "2", "-n", "100", "--disable-keepalive", &server.url()]);
    assert!(!warnings(&asked).contains(&"closed"), "{asked:#}");
}
