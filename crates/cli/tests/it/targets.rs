//! Targets other than a TCP port that speaks HTTP: a web server at a unix socket, and php-fpm without the web server before it.
//!
//! Live: php-fpm and a server of its own under load.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::Chokepoint;

/// Diagnoses under load, records it, and checks that the replay says the same.
fn diagnosed(chokepoint: &Chokepoint, url: &str) -> Value {
    let recording = chokepoint.file("target.rec").to_str().unwrap().to_owned();
    let live = chokepoint.run(&["diagnose", "-c", "2", "-z", "1s", "-t", "20s", "--json", "--redact", "none", "--record", &recording, url]);
    assert_eq!(live.status, Some(0), "{}{}", live.stdout, live.stderr);
    let replay = chokepoint.run(&["diagnose", "--json", "--replay", &recording]);
    assert_eq!(replay.stdout, live.stdout, "{}", replay.stderr);
    serde_json::from_str(&live.stdout).unwrap()
}

fn good(diagnosis: &Value) -> f64 {
    diagnosis["load"]["goodput_rps"].as_f64().unwrap()
}

fn answer(mut stream: UnixStream) {
    let (mut buffer, mut seen) = ([0; 4096], Vec::new());
    while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
        seen.extend_from_slice(&buffer[..bytes]);
        while let Some(end) = seen.windows(4).position(|window| window == b"\r\n\r\n") {
            seen.drain(..end + 4);
            if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                return;
            }
        }
    }
}

#[test]
fn a_web_server_at_a_unix_socket_is_found_by_a_link_to_it() {
    let chokepoint = Chokepoint::new();
    let (socket, link) = (chokepoint.file("web.sock"), chokepoint.file("link.sock"));
    let listener = UnixListener::bind(&socket).unwrap();
    std::os::unix::fs::symlink(&socket, &link).unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| drop(std::thread::spawn(move || answer(stream)))));
    let diagnosis = diagnosed(&chokepoint, &format!("http+unix:{}:/page?a=1", link.display()));
    assert!(good(&diagnosis) > 0.0, "{diagnosis}");
    assert!(diagnosis["target"]["listener"].as_str().unwrap().contains(socket.to_str().unwrap()), "{}", diagnosis["target"]);
    assert_eq!(diagnosis["target"]["tiers"].as_array().map(Vec::len), Some(1), "{}", diagnosis["target"]);
}

/// php-fpm with one worker at a TCP port and at a unix socket each; its end ends its workers.
struct PhpFpm(Child);

impl PhpFpm {
    /// Nothing where it is not installed.
    fn start(directory: &Path, listens: [&str; 2]) -> Option<PhpFpm> {
        let user = if rustix::process::geteuid().is_root() { "user = nobody\ngroup = nogroup\n" } else { "" };
        let pool =
            |name: &str, listen: &str| format!("[{name}]\n{user}listen = {listen}\nlisten.mode = 0666\npm = static\npm.max_children = 2\n");
        let pools = [pool("tcp", listens[0]), pool("unix", listens[1])].concat();
        let config = directory.join("fpm.conf");
        std::fs::write(&config, format!("[global]\ndaemonize = no\nerror_log = {}\n{pools}", directory.join("log").display())).unwrap();
        std::fs::write(directory.join("x.php"), "<?php usleep(1000); echo $_SERVER['GREETING'] ?? 'hello';").unwrap();
        let mut command = Command::new("php-fpm8.2");
        command.arg("-n").arg("-y").arg(&config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = PhpFpm(command.spawn().ok()?);
        let begin = Instant::now();
        while std::net::TcpStream::connect(listens[0]).is_err() || UnixStream::connect(listens[1]).is_err() {
            assert!(begin.elapsed() < Duration::from_secs(60), "php-fpm does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }
}

impl Drop for PhpFpm {
    fn drop(&mut self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.0.id() as i32) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

#[test]
fn php_fpm_is_diagnosed_without_its_web_server() {
    let chokepoint = Chokepoint::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap().to_string();
    let socket = chokepoint.file("fpm.sock").to_str().unwrap().to_owned();
    let script = chokepoint.file("x.php").to_str().unwrap().to_owned();
    let Some(_server) = PhpFpm::start(chokepoint.dir.path(), [&port, &socket]) else {
        println!("skipped: php-fpm8.2 is not installed");
        return;
    };
    for (url, listener) in [(format!("fcgi://{port}{script}"), &port), (format!("fcgi+unix:{socket}:{script}?a=b"), &socket)] {
        let diagnosis = diagnosed(&chokepoint, &url);
        assert!(good(&diagnosis) > 0.0, "{diagnosis}");
        assert!(diagnosis["target"]["listener"].as_str().unwrap().contains(listener.as_str()), "{}", diagnosis["target"]);
        assert!(diagnosis["target"]["tiers"][0]["name"].as_str().unwrap().contains("php-fpm"), "{}", diagnosis["target"]);
    }
}
