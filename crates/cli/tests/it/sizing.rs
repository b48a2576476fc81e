//! The verbs `size` and `capacity` as a user runs them: their reports fit their schemas and say what is known of the server.
//!
//! Live: a server of this process on loopback, and load.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use rustix::process::Signal;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;

use crate::harness::{Chokepoint, Netns, Running, Server, fits, free_address, has_programs, is_root, one_lab, signal};

/// Threads of the pool, and the time that each request takes one.
const WORKERS: u64 = 4;
const SERVICE: Duration = Duration::from_millis(20);

/// A pool of threads, each of which answers one request per connection. Returns its URL.
fn pool() -> String {
    serve(TcpListener::bind("127.0.0.1:0").unwrap())
}

/// The same in a namespace, whose counters have the traffic of no other test.
fn pool_in(netns: &Netns) -> String {
    let path = format!("/run/netns/{}", netns.0);
    // Only the thread that makes the socket has to be in the namespace.
    let bound = std::thread::spawn(move || {
        let namespace = std::fs::File::open(path).unwrap();
        move_into_link_name_space(std::os::fd::AsFd::as_fd(&namespace), Some(LinkNameSpaceType::Network)).unwrap();
        TcpListener::bind("127.0.0.1:0").unwrap()
    });
    serve(bound.join().unwrap())
}

fn serve(listener: TcpListener) -> String {
    let url = format!("http://{}/", listener.local_addr().unwrap());
    for _ in 0..WORKERS {
        let listener = listener.try_clone().unwrap();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let Ok(mut connection) = connection else { return };
                let mut request = [0; 1024];
                if connection.read(&mut request).is_ok_and(|bytes| bytes > 0) {
                    std::thread::sleep(SERVICE);
                    // A client that gave up needs no answer.
                    let _ = connection.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
                }
            }
        });
    }
    url
}

#[test]
fn the_knee_of_a_small_pool_is_found_and_every_output_has_it() {
    let (chokepoint, url) = (Chokepoint::new(), pool());
    let files = ["size.html", "size.svg", "size.md"].map(|name| chokepoint.path(name));
    let [html, svg, markdown] = &files;
    let args = ["size", "--json", "--budget", "60s", "--slo", "p99<200ms", "--disable-keepalive", "--html", html, "--svg", svg];
    let ran = chokepoint.run(&[&args[..], &["--markdown", markdown, &url]].concat());
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let report = fits(&ran.stdout, "size-1.json");
    let most = report["capacity"]["most_rps"]["value"].as_f64().unwrap();
    let wanted = WORKERS as f64 / SERVICE.as_secs_f64();
    assert!(most > 0.75 * wanted && most < 1.1 * wanted, "{most} of {wanted}: {report:#}");
    let knee = report["knee"]["connections"].as_u64().unwrap_or_else(|| panic!("{report:#}"));
    assert!((WORKERS - 1..=2 * WORKERS).contains(&knee), "{knee}: {report:#}");
    assert_eq!(report["limits_first"]["finding"], "worker-pool-exhausted", "{report:#}");
    let [tier] = report["tiers"].as_array().unwrap().as_slice() else { panic!("{report:#}") };
    assert!(tier["workers"].as_u64().unwrap() > WORKERS && tier["service"]["wait_us"].as_f64().unwrap() > 15_000.0, "{tier:#}");
    let [html, svg, markdown] = files.map(|file| std::fs::read_to_string(file).unwrap());
    assert!(html.contains("</html>") && html.contains("requests per second at p99") && html.matches("\"kind\":\"plot\"").count() == 2);
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>") && svg.contains("objective") && !svg.contains("NaN"));
    assert!(markdown.starts_with("**") && markdown.contains("| connections |"), "{markdown}");
    let kept = chokepoint.run(&["runs", "show", "last", "--json"]);
    let kept: Value = serde_json::from_str(&kept.stdout).unwrap_or_else(|error| panic!("{error}: {}", kept.stderr));
    let kept = &kept["run"];
    assert_eq!((&kept["kind"], &kept["figures"][0]["name"]), (&Value::from("size"), &Value::from("goodput")), "{kept:#}");
    assert_eq!(kept["figures"][0]["value"].as_f64(), Some(most), "{kept:#}");
    assert!(kept["surroundings"]["kernel"].is_object(), "{kept:#}");
}

#[test]
fn the_processes_of_a_lab_are_counted_and_their_memory_is_read() {
    if !is_root() || !has_programs(&["ip", "perl"]) {
        return;
    }
    let _alone = one_lab();
    let chokepoint = Chokepoint::new();
    let up = chokepoint.run(&["lab", "up", "prefork-few"]);
    assert_eq!(up.status, Some(0), "{}", up.stderr);
    let args = ["size", "--json", "--budget", "45s", "--disable-keepalive", "--client-netns", "cp-prefork-few-client", "http://10.78.0.2/"];
    let ran = chokepoint.run(&args);
    let down = chokepoint.run(&["lab", "down", "prefork-few"]);
    assert_eq!((ran.status, down.status), (Some(0), Some(0)), "{}\n{}", ran.stderr, down.stderr);
    let report = fits(&ran.stdout, "size-1.json");
    let [tier] = report["tiers"].as_array().unwrap().as_slice() else { panic!("{report:#}") };
    assert_eq!((&tier["workers_now"], &tier["unit"]), (&Value::from(5), &Value::from("processes")), "{tier:#}");
    assert!(tier["workers"].as_u64().is_some_and(|workers| workers > 5), "{tier:#}");
    assert!(tier["memory"]["worker_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{tier:#}");
    assert!(report["capacity"]["most_rps"]["value"].as_f64().is_some_and(|most| (150.0..300.0).contains(&most)), "{report:#}");
}

#[test]
fn the_short_report_fits_a_screen_and_ctrl_c_keeps_what_was_measured() {
    let (chokepoint, url) = (Chokepoint::new(), pool());
    let mut command = chokepoint.command(&["size", "--budget", "10m", "--disable-keepalive", &url]);
    let mut running =
        Running(command.env("COLUMNS", "80").stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap());
    // The warm-up and the first step take as long as the budget says: it is in the second step then.
    std::thread::sleep(Duration::from_secs(30));
    signal(&running.0, Signal::INT);
    let mut text = String::new();
    running.0.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(running.0.wait().unwrap().code(), Some(130), "{text}");
    assert!(text.lines().count() <= 25 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("Stopped after") && text.contains("knee"), "{text}");
}

#[test]
fn a_server_that_does_not_answer_has_no_capacity() {
    let chokepoint = Chokepoint::new();
    let ran = chokepoint.run(&["size", "--budget", "30s", &format!("http://{}/", free_address())]);
    assert_eq!(ran.status, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("nothing on this host listens") && !ran.stderr.contains("--yes"), "{}", ran.stderr);
    let server = Server::start("404 Not Found");
    let ran = chokepoint.run(&["size", "--json", "--budget", "30s", &server.url()]);
    let report = fits(&ran.stdout, "size-1.json");
    assert_eq!((ran.status, &report["outcome"]), (Some(1), &Value::from("nothing-answered")), "{report:#}");
    assert_eq!((&report["capacity"]["most_rps"], report["tiers"].as_array().unwrap().len()), (&Value::Null, 0));
}

#[test]
fn capacity_tells_the_reserve_of_watched_traffic() {
    let Some(netns) = Netns::add("capacity") else { return };
    let (chokepoint, url) = (Chokepoint::new(), pool_in(&netns));
    let client = ["--client-netns", netns.0.as_str()];
    let bench = ["bench", "-q", "100", "-z", "60s", "--disable-keepalive", "-y", &url];
    let mut bench = chokepoint.command(&[&bench[..], &client].concat());
    let _load = Running::start(&mut bench).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    let ran = chokepoint.run(&[&["capacity", "--json", "-z", "5s", "--growth", "5%/week", &url][..], &client].concat());
    let report = fits(&ran.stdout, "capacity-1.json");
    assert_eq!(ran.status, Some(0), "{report:#}");
    let rate = report["rate_rps"].as_f64().unwrap();
    // A busy machine may send less than the 100 a second, but none sends more.
    assert!((5.0..130.0).contains(&rate), "{report:#}");
    let stations = report["stations"].as_array().unwrap();
    let cpu = stations.iter().find(|station| station["station"] == "cpu").unwrap();
    // Its pages sleep: from less than a tenth of a core nothing follows.
    let is_told = cpu["headroom_rps"].as_f64().is_some_and(|headroom| headroom >= 0.0);
    assert!(if cpu["used"].as_f64().unwrap() < 0.1 { cpu["unknown"] == "not-used" } else { is_told }, "{report:#}");
    assert!(report["growth"]["days"].as_f64().is_some_and(|days| days >= 0.0), "{report:#}");
    let text = chokepoint.command(&[&["capacity", "-z", "2s", &url][..], &client].concat()).env("COLUMNS", "80").output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("In reserve") && text.contains("peak of the day") && text.lines().count() <= 25, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn without_traffic_capacity_promises_nothing() {
    let Some(netns) = Netns::add("capacity-none") else { return };
    let (chokepoint, url) = (Chokepoint::new(), pool_in(&netns));
    let ran = chokepoint.run(&["capacity", "--json", "-z", "2s", "--client-netns", &netns.0, &url]);
    let report = fits(&ran.stdout, "capacity-1.json");
    assert_eq!((ran.status, &report["first"]), (Some(1), &Value::Null), "{report:#}");
    assert!(report["stations"].as_array().unwrap().iter().all(|station| station["headroom_rps"] == Value::Null), "{report:#}");
}
