//! The verbs `streams` and `tcp` as a user runs them: what they print fits their schemas, and what makes no sense is refused.
//!
//! Deterministic: recordings and command lines; what takes a server is in its module `live`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::{self, Chokepoint};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn capture(name: &str) -> String {
    root().join("crates/packets/tests/data").join(name).display().to_string()
}

fn fits(json: &str, schema: &str) -> Value {
    let json: Value = serde_json::from_str(json).expect("JSON");
    let schema = std::fs::read_to_string(root().join("docs/schema").join(schema)).expect("the schema");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let errors: Vec<String> = validator.iter_errors(&json).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
    json
}

#[test]
fn every_capture_gives_a_report_that_fits_the_schema() {
    let chokepoint = Chokepoint::new();
    let directory = root().join("crates/packets/tests/data");
    let mut captures = 0;
    for entry in std::fs::read_dir(directory).expect("captures") {
        let file = entry.expect("an entry").path().display().to_string();
        if !file.ends_with(".pcap.gz") && !file.ends_with(".zst") {
            continue;
        }
        captures += 1;
        let ran = chokepoint.run(&["streams", "--json", &file]);
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        let json = fits(&ran.stdout, "streams-1.json");
        let each = chokepoint.run(&["streams", "--each", &file]);
        assert_eq!(each.stdout.lines().count() as u64, json["totals"]["streams"].as_u64().expect("a number"), "{file}");
        let text = chokepoint.run(&["streams", &file]).stdout;
        assert!(!text.contains("[streams-") && !text.contains("[keepalive-") && text.contains("TCP streams"), "{text}");
    }
    assert!(captures >= 10);
}

#[test]
fn the_verdict_names_the_reason_and_the_line_to_change() {
    let chokepoint = Chokepoint::new();
    let kept = chokepoint.run(&["streams", &capture("keepalive.pcap.zst")]).stdout;
    assert!(kept.contains("Keepalive is in force"), "{kept}");
    let closed = chokepoint.run(&["streams", &capture("close.pcap.gz")]).stdout;
    assert!(closed.contains("Keepalive is not in force") && closed.contains("keepalive_timeout 300s;"), "{closed}");
}

#[test]
fn what_is_no_capture_or_not_whole_is_told_and_fails() {
    let chokepoint = Chokepoint::new();
    let text = chokepoint.write("notes.txt", b"these are no packets");
    let whole = std::fs::read(capture("keepalive.pcap.gz")).expect("the capture");
    let cut = chokepoint.write("cut.pcap.gz", &whole[..whole.len() / 2]);
    let empty = chokepoint.write("empty.pcap", b"");
    for (file, said) in [(&text, "no capture"), (&cut, "cannot be read"), (&empty, "empty"), (&"/no/such/file".to_owned(), "No such file")]
    {
        let ran = chokepoint.run(&["streams", file]);
        assert_eq!(ran.status, Some(1), "{file}");
        assert!(ran.stderr.contains(said), "{file}: {}", ran.stderr);
    }
    // What came before the cut is told.
    assert!(chokepoint.run(&["streams", &cut]).stdout.contains("Not read"));
    assert_eq!(chokepoint.run(&["streams"]).status, Some(2));
}

#[test]
fn a_stream_is_drawn_with_its_edge() {
    let chokepoint = Chokepoint::new();
    let (page, lossy) = (chokepoint.file("streams.html").display().to_string(), capture("loss-at-sender.pcap.gz"));
    for args in [&[][..], &["--stream", "0"]] {
        let all = [&["streams", "--html", &page, &lossy], args].concat();
        let ran = chokepoint.run(&all);
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        let page = std::fs::read_to_string(&page).expect("the page");
        assert_eq!(page.matches("<svg").count(), 3);
        assert!(page.contains("sent again") && !page.contains("[streams-") && !page.contains("NaN"), "{page}");
    }
    let none = chokepoint.run(&["streams", "--html", &page, "--stream", "99999", &capture("close.pcap.gz")]);
    assert!(none.status == Some(1) && none.stderr.contains("no stream 99999"), "{}", none.stderr);
    assert_eq!(chokepoint.run(&["streams", "--html", &page, "-"]).status, Some(2));
}

#[test]
fn what_cannot_be_captured_is_told() {
    let chokepoint = Chokepoint::new();
    for (args, said) in
        [(&["-i", "lo", "udp"][..], "\"udp\""), (&["-i", "lo", "-z", "soon"], "not a time"), (&["-i", "lo", "--html", "x"], "--write")]
    {
        let ran = chokepoint.run(&[&["streams"], args].concat());
        assert!(ran.status == Some(2) && ran.stderr.contains(said), "{args:?}: {}", ran.stderr);
    }
    let none = chokepoint.run(&["streams", "-i", "none0"]);
    assert!(none.status == Some(1) && (none.stderr.contains("none0") || none.stderr.contains("CAP_NET_RAW")), "{}", none.stderr);
}

mod live {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpStream;
    use std::process::Stdio;

    use serde_json::Value;

    use super::fits;
    use super::harness::{self, Chokepoint, Server};

    #[test]
    fn a_connection_is_described_whole_and_again_after_the_answer() {
        let chokepoint = Chokepoint::new();
        let server = Server::start("200 OK");
        let target = server.address.to_string();
        let ran = chokepoint.run(&["tcp", &target, "--json"]);
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        let json = fits(&ran.stdout, "tcp-1.json");
        assert!(json["initial_window"]["segments"].as_u64().is_some_and(|segments| segments > 0));
        let ran = chokepoint.run(&["tcp", &target, "--get", "/", "-t", "1s", "--json"]);
        let json = fits(&ran.stdout, "tcp-1.json");
        assert!(json["answer"]["bytes"].as_u64().is_some_and(|bytes| bytes > 20), "{}", ran.stderr);
        assert!(chokepoint.run(&["tcp", &target]).stdout.contains("Initial congestion window"));
    }

    #[test]
    fn a_target_that_makes_no_sense_is_a_usage_error_and_one_that_refuses_is_not() {
        let chokepoint = Chokepoint::new();
        for args in [&["tcp", "nonsense"][..], &["tcp", "127.0.0.1:80", "--get", "x y"], &["tcp", "127.0.0.1:80", "-t", "soon"]] {
            assert_eq!(chokepoint.run(args).status, Some(2), "{args:?}");
        }
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
        assert_eq!(chokepoint.run(&["tcp", &free.to_string()]).status, Some(1));
    }

    #[test]
    fn the_hosts_connections_are_summed_up_by_edge() {
        let chokepoint = Chokepoint::new();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
        let server = listener.local_addr().expect("its address");
        let clients: Vec<_> = (0..5).map(|_| TcpStream::connect(server).expect("a connection")).collect();
        let edge = format!("*->{server}");
        let ran = chokepoint.run(&["tcp", "--live", "--edge", &edge, "--json"]);
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        let json = fits(&ran.stdout, "tcp-live-1.json");
        let edges = json["edges"].as_array().expect("edges");
        // Nothing was asked on them.
        assert_eq!(json["keepalive"]["edges"].as_array().map(Vec::len), Some(0));
        // Both ends of each connection are here.
        assert_eq!(json["sockets"], 10);
        for edge in edges {
            assert_eq!((&edge["sockets"], &edge["server"]), (&Value::from(5), &Value::from(server.to_string())));
            assert_eq!(edge["limited"]["application"], 5);
        }
        let ends: Vec<&Value> = edges.iter().map(|edge| &edge["seen_from"]).collect();
        assert!(ends.contains(&&Value::from("client")) && ends.contains(&&Value::from("server")) && ends.len() == 2, "{ends:?}");
        let text = chokepoint.run(&["tcp", "--live", "--edge", &edge]).stdout;
        assert!(text.contains("5 sockets") && !text.contains("[tcp-") && !text.contains("[streams-"), "{text}");
        assert!(text.contains("Whether connections are kept"), "{text}");
        drop(clients);
        for args in [
            &["tcp", "--live", "-z", "70s"][..],
            &["tcp"],
            &["tcp", "--live", "--edge", "nonsense"],
            &["tcp", "--live", "127.0.0.1:80"],
            &["tcp", "--edge", "*->*", "127.0.0.1:80"],
        ] {
            assert_eq!(chokepoint.run(args).status, Some(2), "{args:?}");
        }
    }

    #[test]
    fn a_transfer_is_followed_and_drawn() {
        let chokepoint = Chokepoint::new();
        let server = Server::serving(|stream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("the answer");
            false
        });
        let target = server.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
        let page = chokepoint.file("watch.html").display().to_string();
        let ran = chokepoint.run(&["tcp", &target, "--get", "/", "--watch", "-t", "20s", "--json", "--html", &page]);
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        let json = fits(&ran.stdout, "tcp-watch-1.json");
        assert!(json["bytes"].as_u64() > Some(0) && !json["samples"].as_array().expect("samples").is_empty(), "{json}");
        let page = std::fs::read_to_string(page).expect("the page");
        assert_eq!(page.matches("<svg").count(), 4);
        assert!(!page.contains("[tcp-") && !page.contains("NaN"), "{page}");
        let text = chokepoint.run(&["tcp", &target, "--get", "/", "--watch", "-t", "20s"]).stdout;
        assert!(text.contains("bytes came in") && !text.contains("[tcp-"), "{text}");
    }

    /// Captures with these arguments until `work` is done, then stops it as Ctrl-C does.
    fn captured(chokepoint: &Chokepoint, args: &[&str], work: impl FnOnce()) -> harness::Ran {
        let mut child = chokepoint.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut notes = BufReader::new(child.stderr.take().expect("its notes"));
        let mut first = String::new();
        notes.read_line(&mut first).expect("a note");
        if first.starts_with("capturing") {
            work();
            let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw).expect("its id");
            rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
        }
        let mut ran = harness::ran(child.wait_with_output().expect("it ends"));
        ran.stderr = first;
        notes.read_to_string(&mut ran.stderr).expect("the other notes");
        ran
    }

    #[test]
    fn packets_are_captured_filtered_and_written() {
        let chokepoint = Chokepoint::new();
        let server = Server::start("200 OK");
        let (port, file) = (server.address.port().to_string(), chokepoint.file("live.pcapng").display().to_string());
        let ran = captured(&chokepoint, &["streams", "-i", "lo", "--json", "--write", &file, "port", &port], || {
            for _ in 0..3 {
                let mut client = TcpStream::connect(server.address).expect("a connection");
                client.write_all(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n").expect("the request");
                let mut answer = vec![0; "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".len()];
                client.read_exact(&mut answer).expect("the answer");
            }
        });
        if ran.stderr.contains("CAP_NET_RAW") {
            return println!("skipped: packets may not be captured by this user");
        }
        assert_eq!(ran.status, Some(130), "{}", ran.stderr);
        let json = fits(&ran.stdout, "streams-1.json");
        assert_eq!((&json["totals"]["streams"], &json["edges"][0]["requests"]), (&Value::from(3), &Value::from(3)), "{json}");
        assert_eq!((&json["capture"]["packets"], &json["capture"]["dropped"]), (&json["totals"]["packets"], &Value::from(0)));
        let again = chokepoint.run(&["streams", "--json", &file]);
        let again = fits(&again.stdout, "streams-1.json");
        assert_eq!(again["totals"], json["totals"]);
    }
}
