//! The verbs `streams` and `tcp` as a user runs them: what they print fits their schemas, and what makes no sense is refused.

mod harness;

use std::path::{Path, PathBuf};

use harness::{Chokepoint, Server};
use serde_json::Value;

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
