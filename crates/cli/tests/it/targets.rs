//! Targets other than HTTP over TCP: a web server at a unix socket, and php-fpm without its web server.
//!
//! Live: php-fpm and a separate server under load.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;

use serde_json::Value;

use crate::harness::{Chokepoint, OK, Running, free_address, wait_until};

/// Diagnoses under load with a recording, and checks that the replay prints the same.
fn diagnosed(chokepoint: &Chokepoint, url: &str) -> Value {
    let recording = chokepoint.path("target.rec");
    let live = chokepoint.run(&["diagnose", "-c", "2", "-z", "1s", "-t", "20s", "--json", "--redact", "none", "--record", &recording, url]);
    assert_eq!(live.status, Some(0), "{}{}", live.stdout, live.stderr);
    let replay = chokepoint.run(&["diagnose", "--json", "--replay", &recording]);
    assert_eq!(replay.stdout, live.stdout, "{}", replay.stderr);
    serde_json::from_str(&live.stdout).unwrap()
}

fn goodput_rps(diagnosis: &Value) -> f64 {
    diagnosis["load"]["goodput_rps"].as_f64().unwrap()
}

fn answer(mut stream: UnixStream) {
    let (mut buffer, mut received) = ([0; 4096], Vec::new());
    while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
        received.extend_from_slice(&buffer[..bytes]);
        while let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            received.drain(..end + 4);
            if stream.write_all(OK).is_err() {
                return;
            }
        }
    }
}

#[test]
fn a_web_server_at_a_unix_socket_is_found_through_a_link_to_it() {
    let chokepoint = Chokepoint::new();
    let (socket, link) = (chokepoint.file("web.sock"), chokepoint.file("link.sock"));
    let listener = UnixListener::bind(&socket).unwrap();
    std::os::unix::fs::symlink(&socket, &link).unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| drop(std::thread::spawn(move || answer(stream)))));
    let diagnosis = diagnosed(&chokepoint, &format!("http+unix:{}:/page?a=1", link.display()));
    assert!(goodput_rps(&diagnosis) > 0.0, "{diagnosis}");
    assert!(diagnosis["target"]["listener"].as_str().unwrap().contains(socket.to_str().unwrap()), "{}", diagnosis["target"]);
    assert_eq!(diagnosis["target"]["tiers"].as_array().map(Vec::len), Some(1), "{}", diagnosis["target"]);
}

/// php-fpm with two workers at a TCP port and two at a unix socket; nothing if it is not installed.
fn php_fpm(chokepoint: &Chokepoint, listens: [&str; 2]) -> Option<Running> {
    let user = if rustix::process::geteuid().is_root() { "user = nobody\ngroup = nogroup\n" } else { "" };
    let pool =
        |name: &str, listen: &str| format!("[{name}]\n{user}listen = {listen}\nlisten.mode = 0666\npm = static\npm.max_children = 2\n");
    let pools = [pool("tcp", listens[0]), pool("unix", listens[1])].concat();
    let config = format!("[global]\ndaemonize = no\nerror_log = {}\n{pools}", chokepoint.path("log"));
    let config = chokepoint.write("fpm.conf", config.as_bytes());
    chokepoint.write("x.php", b"<?php usleep(1000); echo $_SERVER['GREETING'] ?? 'hello';");
    let running = Running::start(Command::new("php-fpm8.2").args(["-n", "-y", &config]))?;
    wait_until("php-fpm does not listen", || std::net::TcpStream::connect(listens[0]).is_ok() && UnixStream::connect(listens[1]).is_ok());
    Some(running)
}

#[test]
fn php_fpm_is_diagnosed_without_its_web_server() {
    let chokepoint = Chokepoint::new();
    let address = free_address().to_string();
    let (socket, script) = (chokepoint.path("fpm.sock"), chokepoint.path("x.php"));
    let Some(_server) = php_fpm(&chokepoint, [&address, &socket]) else {
        println!("skipped: php-fpm8.2 is not installed");
        return;
    };
    for (url, listener) in [(format!("fcgi://{address}{script}"), &address), (format!("fcgi+unix:{socket}:{script}?a=b"), &socket)] {
        let diagnosis = diagnosed(&chokepoint, &url);
        assert!(goodput_rps(&diagnosis) > 0.0, "{diagnosis}");
        assert!(diagnosis["target"]["listener"].as_str().unwrap().contains(listener.as_str()), "{}", diagnosis["target"]);
        assert!(diagnosis["target"]["tiers"][0]["name"].as_str().unwrap().contains("php-fpm"), "{}", diagnosis["target"]);
    }
}
