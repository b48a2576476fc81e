//! Packets beside a diagnosis, through the built binary: live where this user may capture, out of a file, and the same again in a replay.
//!
//! Live beside others: the contents of captures are judged.

use serde_json::Value;

use crate::harness::{Chokepoint, Server};

fn loss() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../packets/tests/data/loss-at-sender.pcap.gz").to_owned()
}

/// The report with its capture, or why there is none.
fn captured(json: &str) -> Result<Value, String> {
    let report: Value = serde_json::from_str(json).expect("a report");
    let readings = report["readings"].as_array().expect("readings");
    let reading = readings.iter().find(|reading| reading["source"] == "wire").expect("it is told how the capture fared");
    if reading["status"] == "ok" { Ok(report["wire"].clone()) } else { Err(reading["why"].to_string()) }
}

#[test]
fn a_capture_out_of_a_file_is_told_with_its_streams_and_replays() {
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let (file, page) = (chokepoint.file("run.rec").display().to_string(), chokepoint.file("run.html").display().to_string());
    let capture = format!("--capture={}", loss());
    let args = ["diagnose", "--json", "-c", "2", "-z", "1s", "--no-profile", &capture, "--record", &file, "--html", &page, &server.url()];
    let ran = chokepoint.run(&args);
    let wire = captured(&ran.stdout).unwrap_or_else(|why| panic!("{why}"));
    let evidence = wire["edges"][0]["evidence"].as_array().expect("evidence");
    assert!(evidence.iter().any(|one| one["streams"].as_array().is_some_and(|streams| !streams.is_empty())), "{wire}");
    let told = std::fs::read_to_string(&page).expect("the page");
    assert!(told.contains("tcp.stream") && !told.contains("[wire-") && !told.contains("[report-wire"), "{told}");
    let replay = chokepoint.run(&["diagnose", "--json", "--replay", &file]);
    assert_eq!(replay.stdout, ran.stdout, "{}", replay.stderr);
    let text = chokepoint.run(&["diagnose", "--replay", &file]).stdout;
    assert!(text.contains("What the packets show"), "{text}");
}

#[test]
fn packets_are_captured_while_it_is_measured() {
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let ran = chokepoint.run(&["diagnose", "--json", "-c", "2", "-z", "2s", "--no-profile", "--capture", &server.url()]);
    match captured(&ran.stdout) {
        Ok(wire) => {
            let address = server.address.to_string();
            let edges = wire["edges"].as_array().expect("edges");
            assert!(edges.iter().any(|edge| edge["server"] == address.as_str()), "{wire}");
        }
        Err(why) => println!("skipped: packets cannot be captured here: {why}"),
    }
}

#[test]
fn a_file_that_is_no_capture_costs_no_verdict() {
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let ran = chokepoint.run(&["diagnose", "--json", "-c", "2", "-z", "1s", "--no-profile", "--capture=/no/such/file", &server.url()]);
    assert!(captured(&ran.stdout).unwrap_err().contains("/no/such/file"), "{}", ran.stdout);
}
