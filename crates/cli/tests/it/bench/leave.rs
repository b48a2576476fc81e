//! `chokepoint bench` asks before it loads another host, or uses a method that may change something.
//!
//! Live beside others: the tests check what is sent, not how fast.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::harness::{self, Chokepoint, Ran, Server};

/// An address of a network for documentation (RFC 5737), which no host has.
const ELSEWHERE: &str = "http://192.0.2.1/";

fn bench(chokepoint: &Chokepoint, args: &[&str]) -> Ran {
    chokepoint.run(&[&["bench"], args].concat())
}

/// Connections made to a listener that never accepted one.
fn connections(listener: &TcpListener) -> usize {
    listener.set_nonblocking(true).unwrap();
    listener.incoming().map_while(Result::ok).count()
}

#[test]
fn a_method_that_may_change_something_is_refused_before_any_connection_is_made() {
    let chokepoint = Chokepoint::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let list = chokepoint.write("list", format!("GET {url}\n/a\nDELETE /b\n").as_bytes());
    let cases: [(&str, &[&str]); 5] = [
        ("POST", &["-z", "300ms", "-m", "POST", "-d", "x", &url]),
        ("PUT", &["-n", "1", "-m", "PUT", &url]),
        ("POST", &["-m", "POST", "--stages", "1s:10", &url]),
        ("DELETE", &["-n", "3", "--targets", &list]),
        // A line without a method has the method of the command line.
        ("PATCH", &["-n", "3", "-m", "PATCH", "--targets", &list]),
    ];
    for (method, args) in cases {
        let ran = bench(&chokepoint, args);
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(method) && ran.stderr.contains("--yes"), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(connections(&listener), 0);
    // If each target has a method, the method of the command line is not used.
    let server = Server::start("200 OK");
    let own = chokepoint.write("own", format!("GET {0}\nGET {0}a\n", server.url()).as_bytes());
    let ran = bench(&chokepoint, &["-n", "2", "-c", "1", "-m", "POST", "--targets", &own]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
}

#[test]
fn another_host_is_refused_with_the_name_of_the_flag() {
    let chokepoint = Chokepoint::new();
    let list = chokepoint.write("list", format!("GET {ELSEWHERE}\n/a\n").as_bytes());
    let cases: [&[&str]; 5] = [
        &["-z", "300ms", ELSEWHERE],
        &["-n", "1", ELSEWHERE],
        &["--targets", &list],
        &["--stages", "1s:5", ELSEWHERE],
        &["https://192.0.2.1/"],
    ];
    for args in cases {
        let ran = bench(&chokepoint, args);
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("192.0.2.1") && ran.stderr.contains("--yes"), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn the_method_of_a_fastcgi_parameter_overrides_the_method_of_http() {
    let chokepoint = Chokepoint::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("fcgi://{}/x.php", listener.local_addr().unwrap());
    let list = chokepoint.write("list", format!("GET {url}\nGET {url}?a\n").as_bytes());
    let cases: [(&str, &[&str]); 5] = [
        ("DELETE", &["--fcgi-param", "REQUEST_METHOD=DELETE", &url]),
        // A server may ignore the case of names; the usual parameter is sent as well.
        ("PUT", &["--fcgi-param", "Request_Method=PUT", &url]),
        ("delete", &["--fcgi-param", "REQUEST_METHOD=delete", &url]),
        ("POST", &["-m", "HEAD", "--fcgi-param", "REQUEST_METHOD=GET", "--fcgi-param", "REQUEST_METHOD=POST", &url]),
        ("DELETE", &["--fcgi-param", "REQUEST_METHOD=DELETE", "--targets", &list]),
    ];
    for (method, args) in cases {
        let ran = bench(&chokepoint, &[&["-n", "1"], args].concat());
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(&format!("method {method} ")) && ran.stderr.contains("--yes"), "{args:?}: {}", ran.stderr);
        let ran = chokepoint.run(&[&["diagnose", "--load", "-z", "300ms"], &args[..args.len() - 1], &[&url]].concat());
        let is_usage = args.contains(&"--targets");
        assert!(is_usage || ran.status == Some(1) && ran.stderr.contains(&format!("method {method} ")), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(connections(&listener), 0);
    // A method that only reads needs no permission, whatever -m says. The connection is made; this listener never answers.
    let ran = bench(&chokepoint, &["-n", "1", "-t", "100ms", "-m", "DELETE", "--fcgi-param", "REQUEST_METHOD=GET", &url]);
    assert!(!ran.stderr.contains("--yes") && connections(&listener) > 0, "{}", ran.stderr);
}

/// Runs the binary in a namespace where the documentation network is reachable through a device that leads nowhere. Returns the packets sent to the device,
/// or nothing if such a namespace cannot be made.
fn packets(chokepoint: &Chokepoint, args: &str) -> Option<u64> {
    let script = format!(
        "set -e; echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6 || true; ip link set lo up; ip link add out type veth peer name far; ip link set far up; \
         ip addr add 192.0.2.9/24 dev out; ip link set out up; {} bench {args} </dev/null >&2 || true; \
         ip -s link show out | tail -n 1 | awk '{{print $2}}'",
        env!("CARGO_BIN_EXE_chokepoint")
    );
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", &script]).env("CHOKEPOINT_STATE_DIR", chokepoint.file("state"));
    let ran = harness::ran(command.stdin(Stdio::null()).output().ok()?);
    ran.stdout.trim().parse().ok()
}

#[test]
fn nothing_is_sent_to_another_host_without_leave() {
    let chokepoint = Chokepoint::new();
    let Some(unasked) = packets(&chokepoint, &format!("-z 300ms -c 2 {ELSEWHERE}")) else {
        println!("skipped: a network namespace with a pair of devices cannot be made");
        return;
    };
    assert_eq!(unasked, 0);
    let asked = packets(&chokepoint, &format!("--yes -z 300ms -t 300ms -c 2 {ELSEWHERE}"));
    assert!(asked > Some(0), "with leave it is sent: {asked:?}");
}

#[test]
fn reading_from_this_host_needs_no_leave_and_yes_permits_the_rest() {
    let (chokepoint, server) = (Chokepoint::new(), Server::start("200 OK"));
    for args in [&["-n", "5"][..], &["-n", "5", "--yes", "-m", "POST", "-d", "x"], &["-n", "5", "-y", "-m", "DELETE"]] {
        let ran = bench(&chokepoint, &[args, &["-c", "1", &server.url()]].concat());
        assert_eq!(ran.status, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_load_that_needs_leave_is_stopped_by_a_guard() {
    let (chokepoint, asked) = (Chokepoint::new(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&asked);
    let server = Server::serving(move |stream| {
        counted.fetch_add(1, Ordering::Relaxed);
        stream.write_all(b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n").is_ok()
    });
    let requests = |args: &[&str]| {
        asked.store(0, Ordering::Relaxed);
        // The load takes two seconds. A guard ends it after the first.
        let load = ["-q", "200", "-n", "400", "-c", "4"];
        let ran = bench(&chokepoint, &[&load[..], args, &[&server.url()]].concat());
        (asked.load(Ordering::Relaxed), ran.stdout)
    };
    let (count, printed) = requests(&["--yes", "-m", "POST"]);
    assert!(count < 400 && printed.contains("errors>20%"), "{count}: {printed}");
    let (count, printed) = requests(&["--yes", "-m", "POST", "--guard", "p99>1m"]);
    assert!(count == 400, "a given guard replaces the default: {count}: {printed}");
    let (count, printed) = requests(&["--yes"]);
    assert!(count == 400, "reading from this host has no guard: {count}: {printed}");
}

#[test]
fn without_a_terminal_an_answer_on_stdin_is_no_leave() {
    let chokepoint = Chokepoint::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = chokepoint.command(&["bench", "-n", "1", "-m", "POST", &format!("http://{}/", listener.local_addr().unwrap())]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The run may have ended before the answer is written.
    let _ = child.stdin.take().unwrap().write_all(b"y\n");
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), connections(&listener)), (Some(2), 0), "{stderr}");
}
