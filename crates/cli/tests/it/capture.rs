//! `diagnose --capture`: packets captured live or read from a file, and the same report in a replay.
//!
//! Live beside others: the tests check the contents of captures.

use serde_json::Value;

use crate::harness::{Chokepoint, Server, repository};

/// What the report says about the capture, or why there was none.
fn capture_of(json: &str) -> Result<Value, String> {
    let report: Value = serde_json::from_str(json).expect("a report");
    let readings = report["readings"].as_array().expect("readings");
    let reading = readings.iter().find(|reading| reading["source"] == "wire").expect("the reading of the capture");
    if reading["status"] == "ok" { Ok(report["wire"].clone()) } else { Err(reading["why"].to_string()) }
}

#[test]
fn a_capture_from_a_file_is_reported_with_its_streams_and_replays() {
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let (file, page) = (chokepoint.path("run.rec"), chokepoint.path("run.html"));
    let capture = format!("--capture={}", repository("crates/packets/tests/data/loss-at-sender.pcap.gz").display());
    let args = ["diagnose", "--json", "-c", "2", "-z", "1s", "--no-profile", &capture, "--record", &file, "--html", &page, &server.url()];
    let ran = chokepoint.run(&args);
    let wire = capture_of(&ran.stdout).unwrap_or_else(|why| panic!("{why}"));
    let evidence = wire["edges"][0]["evidence"].as_array().expect("evidence");
    assert!(evidence.iter().any(|one| one["streams"].as_array().is_some_and(|streams| !streams.is_empty())), "{wire}");
    let html = std::fs::read_to_string(&page).expect("the page");
    assert!(html.contains("tcp.stream") && !html.contains("[wire-") && !html.contains("[report-wire"), "{html}");
    let replay = chokepoint.run(&["diagnose", "--json", "--replay", &file]);
    assert_eq!(replay.stdout, ran.stdout, "{}", replay.stderr);
    let text = chokepoint.run(&["diagnose", "--replay", &file]).stdout;
    assert!(text.contains("What the packets show"), "{text}");
}

#[test]
fn packets_are_captured_during_the_measurement() {
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let ran = chokepoint.run(&["diagnose", "--json", "-c", "2", "-z", "2s", "--no-profile", "--capture", &server.url()]);
    match capture_of(&ran.stdout) {
        Ok(wire) => {
            let address = server.address.to_string();
            let edges = wire["edges"].as_array().expect("edges");
            assert!(edges.iter().any(|edge| edge["server"] == address.as_str()), "{wire}");
        }
        Err(why) => println!("skipped: packets cannot be captured here: {why}"),
    }
}

#[test]
fn a_missing_capture_file_is_reported_and_the_diagnosis_continues() {
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let ran = chokepoint.run(&["diagnose", "--json", "-c", "2", "-z", "1s", "--no-profile", "--capture=/no/such/file", &server.url()]);
    assert!(capture_of(&ran.stdout).unwrap_err().contains("/no/such/file"), "{}", ran.stdout);
}
