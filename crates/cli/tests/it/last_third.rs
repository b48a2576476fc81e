//! The profile of a diagnosis: there by default where it is allowed, absent with the reason where not, left out on request, and the same in a
//! replay.
//!
//! Live beside others: whether samples were taken is judged, not how many.

use std::os::unix::process::CommandExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{self, Chokepoint, Ran, Server, is_root};

/// User and group "nobody".
const NOBODY: u32 = 65534;

fn report(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stderr))
}

fn reading(report: &Value) -> Option<&Value> {
    report["readings"].as_array().unwrap().iter().find(|reading| reading["source"] == "profile")
}

#[test]
fn the_last_third_is_sampled_and_replays_and_can_be_left_out() {
    if !is_root() {
        return;
    }
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let (url, file) = (server.url(), chokepoint.file("run.rec"));
    let name = file.to_str().unwrap();
    // A server that hardly computes may not be met by a single sample.
    let (done, until) = (AtomicBool::new(false), Instant::now() + Duration::from_secs(60));
    let ran = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) && Instant::now() < until {
                std::hint::spin_loop();
            }
        });
        let ran = chokepoint.run(&["diagnose", "--json", "-c", "4", "-z", "2s", "--record", name, &url]);
        done.store(true, Ordering::Relaxed);
        ran
    });
    let told = report(&ran);
    let why = reading(&told).expect("it is told how the profile fared");
    if why["status"] != "ok" {
        println!("skipped: this host gives no profile: {}", why["why"]);
        return;
    }
    let profile = &told["profile"];
    assert!(profile["samples"].as_u64().unwrap() > 0 && profile["duration_s"].as_f64().unwrap() > 0.3, "{profile}");
    let layers = profile["cores"].as_array().unwrap().iter().map(|core| core["layers"].as_array().unwrap());
    for layers in layers.filter(|layers| !layers.is_empty()) {
        let sum: f64 = layers.iter().map(|layer| layer["share"].as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-6, "each sample is of one layer: {layers:?}");
    }
    // The bounds are there, or why there are none.
    assert_ne!(profile["bounds"].as_array().unwrap().is_empty(), profile["no_bound"].is_null());
    let replay = chokepoint.run(&["diagnose", "--json", "--replay", name]);
    assert_eq!(replay.stdout, ran.stdout, "{}", replay.stderr);

    let without = report(&chokepoint.run(&["diagnose", "--json", "-c", "4", "-z", "1s", "--no-profile", &url]));
    assert_eq!((&without["profile"], reading(&without)), (&Value::Null, None));
    let early = report(&chokepoint.run(&["diagnose", "--json", "-c", "1", "-n", "20", "-z", "600s", &url]));
    assert_eq!((&early["profile"], reading(&early).map(|reading| &reading["status"])), (&Value::Null, Some(&Value::from("absent"))));
}

#[test]
fn who_may_not_sample_gets_the_rest_of_the_report_and_is_told() {
    if !is_root() {
        return;
    }
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    let mut command = std::process::Command::new(chokepoint.copy_of_binary());
    command.args(["diagnose", "--json", "-c", "2", "-z", "1s"]).arg(server.url());
    command.uid(NOBODY).gid(NOBODY).current_dir("/").env_clear().env("CHOKEPOINT_STATE_DIR", "/tmp/chokepoint-nobody-none");
    let ran = harness::ran(command.output().unwrap());
    let told = report(&ran);
    assert!(told["load"]["goodput_rps"].as_f64().unwrap() > 0.0);
    let why = reading(&told).expect("it is told how the profile fared");
    if why["status"] == "ok" {
        println!("skipped: this host lets everybody sample everything");
        return;
    }
    assert_eq!((&told["profile"], &why["status"]), (&Value::Null, &Value::from("absent")), "{why}");
    assert!(why["needs"].is_null() || why["needs"].as_str().unwrap().contains("CAP_PERFMON"), "{why}");
}
