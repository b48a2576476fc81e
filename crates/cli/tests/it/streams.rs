//! The verbs `streams` and `tcp` as a user runs them: their output fits the schemas, and invalid input is refused.
//!
//! Deterministic: recordings and command lines; tests with a server are in its module `live`.

use crate::harness::{self, Chokepoint, fits, repository};

fn capture(name: &str) -> String {
    repository("crates/packets/tests/data").join(name).display().to_string()
}

#[test]
fn every_capture_gives_a_report_that_fits_the_schema() {
    let chokepoint = Chokepoint::new();
    let directory = repository("crates/packets/tests/data");
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
fn a_file_that_is_no_capture_or_is_cut_is_reported_and_fails() {
    let chokepoint = Chokepoint::new();
    let text = chokepoint.write("notes.txt", b"these are no packets");
    let whole = std::fs::read(capture("keepalive.pcap.gz")).expect("the capture");
    let cut = chokepoint.write("cut.pcap.gz", &whole[..whole.len() / 2]);
    let empty = chokepoint.write("empty.pcap", b"");
    for (file, reason) in
        [(&text, "not a capture"), (&cut, "cannot be read"), (&empty, "empty"), (&"/no/such/file".to_owned(), "No such file")]
    {
        let ran = chokepoint.run(&["streams", file]);
        assert_eq!(ran.status, Some(1), "{file}");
        assert!(ran.stderr.contains(reason), "{file}: {}", ran.stderr);
    }
    // The part before the cut is reported.
    assert!(chokepoint.run(&["streams", &cut]).stdout.contains("Not read"));
    assert_eq!(chokepoint.run(&["streams"]).status, Some(2));
}

#[test]
fn the_page_draws_a_stream_and_the_connections_of_its_edge() {
    let chokepoint = Chokepoint::new();
    let (page, lossy) = (chokepoint.path("streams.html"), capture("loss-at-sender.pcap.gz"));
    for args in [&[][..], &["--stream", "0"]] {
        let all = [&["streams", "--html", &page, &lossy], args].concat();
        let ran = chokepoint.run(&all);
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        let page = std::fs::read_to_string(&page).expect("the page");
        let report = page.split("id=\"report\">").nth(1).and_then(|rest| rest.split("</script>").next()).expect("the report");
        // What was carried over time in three, the stream in two, and the connections of its edge.
        assert_eq!(report.matches("\"kind\":\"plot\"").count(), 6);
        assert!(report.contains("retransmitted") && !report.contains("[streams-"), "{report}");
    }
    let none = chokepoint.run(&["streams", "--html", &page, "--stream", "99999", &capture("close.pcap.gz")]);
    assert!(none.status == Some(1) && none.stderr.contains("no stream 99999"), "{}", none.stderr);
    assert_eq!(chokepoint.run(&["streams", "--html", &page, "-"]).status, Some(2));
}

#[test]
fn a_capture_is_kept_as_a_run() {
    let chokepoint = Chokepoint::new();
    for args in [&["streams", "--no-keep"][..], &["streams", "--label", "before"]] {
        assert_eq!(chokepoint.run(&[args, &[&capture("keepalive.pcap.gz")]].concat()).status, Some(0));
    }
    let list = chokepoint.run(&["runs", "list", "--json"]).stdout;
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    let [run] = &list["runs"].as_array().expect("runs")[..] else { panic!("one was kept: {list}") };
    assert_eq!((run["kind"].as_str(), run["label"].as_str()), (Some("streams"), Some("before")));
    let document = chokepoint.run(&["runs", "show", "last", "--document"]).stdout;
    let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
    assert!(document.get("page").is_none(), "its page is for the page of watch");
    let steps = document["traffic"]["steps"].as_array().expect("steps");
    let segments: u64 = steps.iter().filter_map(|step| step["segments"].as_u64()).sum();
    assert_eq!(Some(segments), document["totals"]["segments"].as_u64());
}

#[test]
fn invalid_captures_are_refused_with_the_reason() {
    let chokepoint = Chokepoint::new();
    for (args, reason) in
        [(&["-i", "lo", "udp"][..], "\"udp\""), (&["-i", "lo", "-z", "soon"], "not a time"), (&["-i", "lo", "--html", "x"], "--write")]
    {
        let ran = chokepoint.run(&[&["streams"], args].concat());
        assert!(ran.status == Some(2) && ran.stderr.contains(reason), "{args:?}: {}", ran.stderr);
    }
    let none = chokepoint.run(&["streams", "-i", "none0"]);
    assert!(none.status == Some(1) && (none.stderr.contains("none0") || none.stderr.contains("CAP_NET_RAW")), "{}", none.stderr);
}

mod live {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpStream;
    use std::process::Stdio;

    use serde_json::Value;

    use rustix::process::Signal;

    use super::fits;
    use super::harness::{self, Chokepoint, OK, Server, free_address, signal};

    #[test]
    fn a_connection_is_reported_before_and_after_the_answer() {
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
    fn an_invalid_target_is_a_usage_error_and_a_refused_connection_is_not() {
        let chokepoint = Chokepoint::new();
        for args in [&["tcp", "nonsense"][..], &["tcp", "127.0.0.1:80", "--get", "x y"], &["tcp", "127.0.0.1:80", "-t", "soon"]] {
            assert_eq!(chokepoint.run(args).status, Some(2), "{args:?}");
        }
        assert_eq!(chokepoint.run(&["tcp", &free_address().to_string()]).status, Some(1));
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
        // The connections carried no request.
        assert_eq!(json["keepalive"]["edges"].as_array().map(Vec::len), Some(0));
        // Both ends of each connection are on this host.
        assert_eq!(json["sockets"], 10);
        for edge in edges {
            assert_eq!((&edge["sockets"], &edge["server"]), (&Value::from(5), &Value::from(server.to_string())));
            assert_eq!(edge["limited"]["application"], 5);
        }
        let ends: Vec<&Value> = edges.iter().map(|edge| &edge["seen_from"]).collect();
        assert!(ends.contains(&&Value::from("client")) && ends.contains(&&Value::from("server")) && ends.len() == 2, "{ends:?}");
        let text = chokepoint.run(&["tcp", "--live", "--edge", &edge]).stdout;
        assert!(text.contains("5 sockets") && !text.contains("[tcp-") && !text.contains("[streams-"), "{text}");
        assert!(text.contains("\nKeepalive\n"), "{text}");
        // Of the whole host each edge is a line, seen from each end, unless other programs have too many.
        let text = chokepoint.run(&["tcp", "--live"]).stdout;
        let is_cut = text.contains("more edges");
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(&format!("to {server} "))).collect();
        let tells = |end: &str| lines.iter().any(|line| line.contains(&format!("  {end}  ")) && line.ends_with("application"));
        assert!(is_cut || (lines.len() == 2 && tells("client") && tells("server")), "{text}");
        assert!(!text.contains("[tcp-"), "{text}");
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
            stream.write_all(OK).expect("the answer");
            false
        });
        let (target, page) = (server.address.to_string(), chokepoint.path("watch.html"));
        let ran = chokepoint.run(&["tcp", &target, "--get", "/", "--watch", "-t", "20s", "--json", "--html", &page]);
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        let json = fits(&ran.stdout, "tcp-watch-1.json");
        assert!(json["bytes"].as_u64() > Some(0) && !json["samples"].as_array().expect("samples").is_empty(), "{json}");
        let page = std::fs::read_to_string(page).expect("the page");
        assert_eq!(page.matches("\"kind\":\"plot\"").count(), 4);
        assert!(!page.contains("[tcp-"), "{page}");
        let text = chokepoint.run(&["tcp", &target, "--get", "/", "--watch", "-t", "20s"]).stdout;
        assert!(text.contains("bytes arrived in") && !text.contains("[tcp-"), "{text}");
    }

    /// Captures while `work` runs, then ends the capture as Ctrl-C does.
    fn captured(chokepoint: &Chokepoint, args: &[&str], work: impl FnOnce()) -> harness::Ran {
        let mut child = chokepoint.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut notes = BufReader::new(child.stderr.take().expect("its notes"));
        let mut first = String::new();
        notes.read_line(&mut first).expect("a note");
        if first.starts_with("capturing") {
            work();
            signal(&child, Signal::INT);
        }
        let mut ran = harness::ran(child.wait_with_output().expect("it ends"));
        ran.stderr = first;
        notes.read_to_string(&mut ran.stderr).expect("the other notes");
        ran
    }

    #[test]
    fn packets_are_captured_filtered_and_written_to_a_file() {
        let chokepoint = Chokepoint::new();
        let server = Server::start("200 OK");
        let (port, file) = (server.address.port().to_string(), chokepoint.path("live.pcapng"));
        let ran = captured(&chokepoint, &["streams", "-i", "lo", "--json", "--write", &file, "port", &port], || {
            for _ in 0..3 {
                let mut client = TcpStream::connect(server.address).expect("a connection");
                client.write_all(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n").expect("the request");
                let mut answer = vec![0; OK.len()];
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
