//! `diagnose --fix` and `undo` after somebody else edited the configuration of nginx and did not reload it.
//!
//! Live: a real nginx.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Chokepoint, Running, free_address, has_programs, is_root, wait_until};

/// nginx with 20 connections for its worker, and with its site in a separate file.
struct Nginx {
    running: Running,
    dir: PathBuf,
    port: u16,
}

impl Nginx {
    fn start(dir: &Path) -> Option<Self> {
        if !is_root() || !has_programs(&["nginx"]) {
            return None;
        }
        let port = free_address().port();
        std::fs::create_dir_all(dir.join("conf.d")).unwrap();
        let at = |name: &str| dir.join(name).display().to_string();
        let main = format!(
            "user nobody nogroup;\npid {};\nerror_log {};\nworker_processes 1;\nevents {{ worker_connections 20; }}\nhttp {{ access_log off; include conf.d/*.conf; }}\n",
            at("nginx.pid"),
            at("error.log")
        );
        std::fs::write(at("nginx.conf"), main).unwrap();
        let mut nginx = Command::new("nginx");
        nginx.args(["-c", &at("nginx.conf"), "-p", &at(""), "-g", "daemon off;"]);
        std::fs::write(at("conf.d/site.conf"), site(port, 200)).unwrap();
        let nginx = Self { running: Running::start(&mut nginx).unwrap(), dir: dir.to_owned(), port };
        wait_until("nginx does not answer", || nginx.status() == Some(200));
        // A file written from now on must be newer than the worker by more than a tick.
        let uptime = || std::fs::read_to_string("/proc/uptime").unwrap().split(' ').next().unwrap().parse::<f64>().unwrap();
        let answered = uptime();
        wait_until("the clock stands still", || uptime() > answered + 0.1);
        Some(nginx)
    }

    fn status(&self) -> Option<u16> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.split(' ').nth(1)?.parse().ok()
    }

    fn main(&self) -> String {
        std::fs::read_to_string(self.dir.join("nginx.conf")).unwrap()
    }

    fn site(&self) -> PathBuf {
        self.dir.join("conf.d/site.conf")
    }
}

fn site(port: u16, status: u16) -> String {
    format!("server {{ listen 127.0.0.1:{port}; add_header X-Status {status} always; location / {{ return 200 ok; }} }}\n")
}

#[test]
fn yes_alone_does_not_activate_the_edit_of_somebody_else() {
    let chokepoint = Chokepoint::new();
    let Some(nginx) = Nginx::start(&chokepoint.file("nginx")) else { return };
    let before = nginx.main();
    let edited = site(nginx.port, 503);
    std::fs::write(nginx.site(), &edited).unwrap();
    let url = format!("http://127.0.0.1:{}/", nginx.port);
    let fix = |more: &[&str]| {
        chokepoint.run(&[&["diagnose", "--fix", "--yes", "--verbose", "-c", "60", "-z", "2s"], more, &[url.as_str()]].concat())
    };
    let ran = fix(&[]);
    assert!(ran.stdout.contains("worker-connections-exhausted"), "{}{}", ran.stdout, ran.stderr);
    // The whole command is shown, with its user.
    let shown = format!("as user 0, group 0: /usr/sbin/nginx -t -c {}", nginx.dir.join("nginx.conf").display());
    assert!(ran.stderr.contains(&shown) && ran.stderr.contains(&format!("kill -HUP {}", nginx.running.0.id())), "{}", ran.stderr);
    let words: String = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("--reload-unseen"), "{}", ran.stdout);
    assert_eq!(nginx.main(), before, "nothing was edited");

    let ran = fix(&["--reload-unseen"]);
    assert_ne!(nginx.main(), before, "{}{}", ran.stdout, ran.stderr);

    // An edit does not block an undo, which says what else its reload activates.
    std::fs::write(nginx.site(), format!("{edited}# more\n")).unwrap();
    let ran = chokepoint.run(&["undo"]);
    assert_eq!((ran.status, nginx.main()), (Some(0), before), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("conf.d/site.conf") && ran.stdout.contains("conf.d/site.conf"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn the_flag_is_refused_without_fix() {
    let ran = Chokepoint::new().run(&["diagnose", "--reload-unseen", "http://127.0.0.1:1/"]);
    assert_eq!(ran.status, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("--fix"), "{}", ran.stderr);
}
