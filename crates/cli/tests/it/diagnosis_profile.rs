//! The profile in a diagnosis: taken by default, absent with the reason if sampling is not allowed, left out on request, and the same in a replay.
//!
//! Live beside others: the tests check whether samples were taken, not how many.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::Value;

use crate::harness::{Chokepoint, Ran, Server, WAIT_MAX, is_root};

fn parse(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stderr))
}

fn profile_reading(report: &Value) -> Option<&Value> {
    report["readings"].as_array().unwrap().iter().find(|reading| reading["source"] == "profile")
}

#[test]
fn the_last_third_is_sampled_and_replayed_and_can_be_left_out() {
    if !is_root() {
        return;
    }
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let (url, file) = (server.url(), chokepoint.path("run.rec"));
    // Keep a core busy: a server that hardly computes may get no sample.
    let (done, until) = (AtomicBool::new(false), Instant::now() + WAIT_MAX);
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) && Instant::now() < until {
                std::hint::spin_loop();
            }
        });
        let ran = chokepoint.run(&["diagnose", "--json", "-c", "4", "-z", "2s", "--record", &file, &url]);
        done.store(true, Ordering::Relaxed);
        ran
    });
    let report = parse(&ran);
    let why = profile_reading(&report).expect("the reading of the profile");
    if why["status"] != "ok" {
        println!("skipped: this host gives no profile: {}", why["why"]);
        return;
    }
    let profile = &report["profile"];
    assert!(profile["samples"].as_u64().unwrap() > 0 && profile["duration_s"].as_f64().unwrap() > 0.3, "{profile}");
    let layers = profile["cores"].as_array().unwrap().iter().map(|core| core["layers"].as_array().unwrap());
    for layers in layers.filter(|layers| !layers.is_empty()) {
        let sum: f64 = layers.iter().map(|layer| layer["share"].as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-6, "each sample belongs to one layer: {layers:?}");
    }
    // The report has the bounds, or says why it has none.
    assert_ne!(profile["bounds"].as_array().unwrap().is_empty(), profile["no_bound"].is_null());
    let replay = chokepoint.run(&["diagnose", "--json", "--replay", &file]);
    assert_eq!(replay.stdout, ran.stdout, "{}", replay.stderr);

    let without = parse(&chokepoint.run(&["diagnose", "--json", "-c", "4", "-z", "1s", "--no-profile", &url]));
    assert_eq!((&without["profile"], profile_reading(&without)), (&Value::Null, None));
    let early = parse(&chokepoint.run(&["diagnose", "--json", "-c", "1", "-n", "20", "-z", "600s", &url]));
    assert_eq!(
        (&early["profile"], profile_reading(&early).map(|reading| &reading["status"])),
        (&Value::Null, Some(&Value::from("absent")))
    );
}

#[test]
fn without_the_privilege_to_sample_the_report_has_the_rest_and_says_why() {
    if !is_root() {
        return;
    }
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let ran =
        chokepoint.run_as_nobody(&["diagnose", "--json", "--no-keep", "-c", "2", "-z", "1s", &server.url()], "/tmp/chokepoint-nobody-none");
    let report = parse(&ran);
    assert!(report["load"]["goodput_rps"].as_f64().unwrap() > 0.0);
    let why = profile_reading(&report).expect("the reading of the profile");
    if why["status"] == "ok" {
        println!("skipped: this host lets everybody sample everything");
        return;
    }
    assert_eq!((&report["profile"], &why["status"]), (&Value::Null, &Value::from("absent")), "{why}");
    assert!(why["needs"].is_null() || why["needs"].as_str().unwrap().contains("CAP_PERFMON"), "{why}");
}
