//! `chokepoint bench` as a user runs it: its text, its JSON against the schema, and its exit status.
//!
//! Live: load on a server of the test.

mod leave;
mod outputs;

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::Value;

use crate::harness::{self, Chokepoint, OK, Ran, Server, fits, free_address};

/// Runs `bench --json` and checks the report against the schema.
fn bench(args: &[&str]) -> (Option<i32>, Value) {
    let ran = Chokepoint::new().run(&[&["bench", "--json"], args].concat());
    assert!(!ran.stdout.is_empty(), "{}", ran.stderr);
    (ran.status, fits(&ran.stdout, "bench-1.json"))
}

fn text(args: &[&str]) -> Ran {
    Chokepoint::new().run(&[&["bench"], args].concat())
}

/// The URL of a port where nothing listens.
fn closed_port() -> String {
    format!("http://{}/", free_address())
}

fn warnings(report: &Value) -> Vec<&str> {
    report["warnings"].as_array().unwrap().iter().map(|warning| warning["id"].as_str().unwrap()).collect()
}

#[test]
fn a_load_is_reported_as_text_and_as_json() {
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
fn an_open_loop_sends_every_request_that_was_due() {
    let server = Server::start("200 OK");
    let (status, report) = bench(&["-q", "300", "-z", "1s", "-c", "20", "--warm-up", "300ms", &server.url()]);
    assert_eq!((status, &report["load"]["requests"]), (Some(0), &Value::from(300)), "{report:#}");
    assert_eq!((&report["offered"]["rate_per_s"], &report["offered"]["warm_up_s"]), (&Value::from(300.0), &Value::from(0.3)));
    assert_eq!(report["corrected_latency_us"], Value::Null);
}

#[test]
fn the_exit_status_says_whether_requests_were_answered_and_conditions_held() {
    let (good, wrong) = (Server::start("200 OK"), Server::start("500 Internal Server Error"));
    let nobody = closed_port();
    let few = ["-n", "50", "-c", "2"];
    let status = |args: &[&str]| bench(&[&few, args].concat()).0;
    assert_eq!(status(&[&good.url()]), Some(0));
    assert_eq!(status(&[&wrong.url()]), Some(1), "every answer was a 500");
    assert_eq!(status(&["--expect", "500", &wrong.url()]), Some(0));
    assert_eq!(status(&["--yes", "-z", "500ms", &nobody]), Some(1), "nothing listens");
    assert_eq!(status(&["--fail-if", "errors>0.1% || p99>1m", &good.url()]), Some(0));
    assert_eq!(status(&["--fail-if", "p99>1m || max>=1us", &good.url()]), Some(99));
    assert_eq!(status(&["--fail-if", "rps<1000000000", &good.url()]), Some(99));
    let failed = text(&[&few[..], &["--fail-if", "max>=1us", &good.url()]].concat());
    assert!(failed.stdout.contains("Failed") && failed.stdout.contains("max>=1us: "), "{}", failed.stdout);
    let refused = text(&["--yes", "-z", "300ms", &nobody]);
    assert!(refused.stdout.starts_with("Every connection was refused"), "{}", refused.stdout);
    let all_wrong = text(&[&few[..], &[&wrong.url()]].concat());
    let words: Vec<&str> = all_wrong.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains("status 500. Check the URL."), "{}", all_wrong.stdout);
}

#[test]
fn contradictory_flags_are_refused_with_the_reason() {
    let cases: &[(&[&str], &str)] = &[
        (&[], "URL"),
        (&["http://"], "no host"),
        (&["--insecure", "http://127.0.0.1/"], "https"),
        (&["--cacert", "/no/such.pem", "https://127.0.0.1/"], "/no/such.pem"),
        (&["-c", "0", "http://127.0.0.1/"], "at least 1"),
        (&["--warm-up", "150ms", "http://127.0.0.1/"], "multiple of 100 ms"),
        (&["--warm-up", "soon", "http://127.0.0.1/"], "not a time"),
        (&["--fail-if", "p98>1s", "http://127.0.0.1/"], "not one of p50"),
        (&["--fail-if", "p99", "http://127.0.0.1/"], "not a condition"),
        (&["--requests-per-connection", "0", "http://127.0.0.1/"], "at least 1"),
        (&["--requests-per-connection", "2", "--disable-keepalive", "http://127.0.0.1/"], "--disable-keepalive"),
        (&["--fcgi-param", "A=b", "http://127.0.0.1/"], "fcgi URL"),
        (&["--stages", "10s", "http://127.0.0.1/"], "not a stage"),
        (&["--stages", "1s:10", "-z", "1s", "http://127.0.0.1/"], "--duration"),
        (&["--stages", "1s:10", "--warm-up", "1s", "http://127.0.0.1/"], "-q"),
        (&["--targets", "/no/such/list"], "/no/such/list"),
        (&["--targets", "/dev/null"], "it has no target"),
        (&["--seed", "1", "http://127.0.0.1/"], "--targets"),
        (&["--bind", "::1", "http://127.0.0.1/"], "cannot come from ::1"),
        (&["--bind", "localhost", "http://127.0.0.1/"], "--bind"),
    ];
    for (args, reason) in cases {
        let ran = text(args);
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(reason), "{args:?} said: {}", ran.stderr);
    }
}

#[test]
fn the_request_has_the_method_headers_and_body_of_the_flags() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/path?a=b", listener.local_addr().unwrap());
    let request = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\nbody") && stream.read(&mut byte).is_ok_and(|bytes| bytes == 1) {
            request.push(byte[0]);
        }
        stream.write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n").unwrap();
        String::from_utf8(request).unwrap()
    });
    let args = ["-n", "1", "-c", "1", "--yes", "-m", "PUT", "-d", "body", "-T", "text/plain", "-A", "text/html", "-H", "X-Name: v", &url];
    assert_eq!(bench(&args).0, Some(0));
    let request = request.join().unwrap();
    for part in
        ["PUT /path?a=b HTTP/1.1\r\n", "Content-Type: text/plain\r\n", "Accept: text/html\r\n", "X-Name: v\r\n", "Content-Length: 4\r\n"]
    {
        assert!(request.contains(part), "{part:?} is missing in {request:?}");
    }
}

#[test]
fn a_stall_of_a_closed_loop_gives_a_warning_and_corrected_figures() {
    // The thousandth request holds the lock for 800 ms, which stalls all connections.
    let gate = std::sync::Mutex::new(0u32);
    let server = harness::Server::serving(move |stream| {
        {
            let mut served = gate.lock().unwrap();
            *served += 1;
            if *served == 1000 {
                std::thread::sleep(std::time::Duration::from_millis(800));
            }
        }
        stream.write_all(OK).is_ok()
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
fn a_server_that_closes_connections_gives_a_warning() {
    let server = harness::Server::serving(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        false
    });
    let (_, report) = bench(&["-c", "2", "-n", "100", &server.url()]);
    assert!(warnings(&report).contains(&"closed"), "{report:#}");
    let (_, disabled) = bench(&["-c", "2", "-n", "100", "--disable-keepalive", &server.url()]);
    assert!(!warnings(&disabled).contains(&"closed"), "{disabled:#}");
}

#[test]
fn a_load_in_stages_is_reported_with_its_stages() {
    let server = Server::start("200 OK");
    let args = ["-q", "50", "--stages", "400ms:250,0s:100,200ms:100", "--warm-up", "100ms", &server.url()];
    let (status, report) = bench(&args);
    // 150 on average for 0.4 s, and 100 for 0.2 s.
    assert_eq!((status, &report["load"]["requests"]), (Some(0), &Value::from(80)), "{report:#}");
    let ramp = &report["offered"]["ramp"];
    assert_eq!((ramp["start_per_s"].as_f64(), ramp["stages"].as_array().map(Vec::len)), (Some(50.0), Some(3)), "{ramp:#}");
    assert_eq!(ramp["stages"][0], serde_json::json!({"duration_s": 0.4, "rate_per_s": 250.0}));
    assert_eq!(report["offered"]["duration_s"], Value::from(0.6));
    let printed = text(&args).stdout;
    let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(printed.contains("open loop, from 50/s to 250/s in 400 ms, to 100/s at once, to 100/s in 200 ms"), "{printed}");
}

#[test]
fn targets_are_read_from_a_file_or_from_stdin() {
    let lines = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let noted = std::sync::Arc::clone(&lines);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let (mut request, mut byte) = (Vec::new(), [0]);
            while stream.read(&mut byte).is_ok_and(|bytes| bytes == 1) {
                request.push(byte[0]);
                if request.ends_with(b"\r\n\r\n") {
                    let line = String::from_utf8_lossy(&request).lines().next().unwrap_or_default().to_owned();
                    noted.lock().unwrap().push(line);
                    request.clear();
                    stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
                }
            }
        }
    });
    let chokepoint = Chokepoint::new();
    let list = chokepoint.write("list", format!("# two\nDELETE {url}/a\n/b?c\n").as_bytes());
    let received = || std::mem::take(&mut *lines.lock().unwrap());
    let (status, report) = bench(&["--yes", "-n", "4", "-c", "1", "--targets", &list]);
    assert_eq!(
        (status, received()),
        (Some(0), ["DELETE /a HTTP/1.1", "GET /b?c HTTP/1.1"].repeat(2).into_iter().map(str::to_owned).collect())
    );
    assert_eq!(report["offered"]["targets"], serde_json::json!({"count": 2, "seed": null}));
    assert!(report["target"]["url"].as_str().unwrap().starts_with(&url), "{report:#}");
    let drawn = || {
        let mut command = chokepoint.command(&["bench", "-n", "40", "-c", "1", "--seed", "3", "--targets", "-", &url]);
        let mut child = command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"/x\n/y\n/z\n").unwrap();
        let ran = harness::ran(child.wait_with_output().unwrap());
        assert!(ran.status == Some(0) && ran.stdout.contains("3 targets chosen at random (seed 3)"), "{}", ran.stdout);
        received()
    };
    let first = drawn();
    assert_eq!(first, drawn(), "a seed gives the same targets each time");
    let in_turn: Vec<String> = ["/x", "/y", "/z"].iter().cycle().take(40).map(|path| format!("GET {path} HTTP/1.1")).collect();
    assert!(first.len() == 40 && first != in_turn, "{first:?}");
}

#[test]
fn connections_come_from_the_addresses_of_bind() {
    let peers = std::sync::Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
    let noted = std::sync::Arc::clone(&peers);
    let server = harness::Server::serving(move |stream| {
        noted.lock().unwrap().insert(stream.peer_addr().unwrap().ip().to_string());
        stream.write_all(OK).is_ok()
    });
    let (status, report) = bench(&["-n", "400", "-c", "4", "--bind", "127.0.0.2,127.0.0.3", &server.url()]);
    assert_eq!((status, &report["offered"]["bind"]), (Some(0), &serde_json::json!(["127.0.0.2", "127.0.0.3"])), "{report:#}");
    assert_eq!(peers.lock().unwrap().iter().map(String::as_str).collect::<Vec<_>>(), ["127.0.0.2", "127.0.0.3"]);
    let nobody = text(&["-n", "1", "--bind", "192.0.2.1", &server.url()]);
    assert_eq!(nobody.status, Some(1), "{}", nobody.stdout);
    assert!(
        nobody.stderr.contains("cannot connect from 192.0.2.1") && nobody.stderr.contains("does not have the address"),
        "{}",
        nobody.stderr
    );
}

#[test]
fn the_report_has_tcp_figures_of_a_sample_of_connections() {
    let server = Server::start("200 OK");
    for end in [["-z", "700ms"], ["-n", "3000"]] {
        let (status, report) = bench(&[&end[..], &["-c", "40", &server.url()]].concat());
        let tcp = &report["tcp"];
        let sample = tcp["connections"].as_array().unwrap();
        assert!(status == Some(0) && !sample.is_empty() && sample.len() <= 16, "one thread samples sixteen: {tcp:#}");
        assert!(tcp["rtt_us"]["min"].as_u64() > Some(0) && tcp["rtt_us"]["min"].as_u64() <= tcp["rtt_us"]["max"].as_u64(), "{tcp:#}");
        assert!(tcp["cwnd"]["median"].as_u64() >= Some(2), "{tcp:#}");
        assert_eq!(tcp["rwnd_limited_us"].as_u64(), Some(0), "a request fits into every window: {tcp:#}");
    }
    let printed = text(&["-z", "500ms", "-c", "3", &server.url()]).stdout;
    assert!(printed.contains("round-trip time ") && printed.contains("sampled on "), "{printed}");
    let (_, nobody) = bench(&["--yes", "-z", "200ms", &closed_port()]);
    assert_eq!(nobody["tcp"], Value::Null);
}
