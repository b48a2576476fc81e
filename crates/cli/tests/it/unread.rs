//! `diagnose --fix` and `undo` of a real nginx whose configuration somebody else edited and did not reload.
//!
//! Live: a real nginx.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::Chokepoint;

/// nginx with 20 connections for its worker, and a site in a file of its own.
struct Nginx {
    child: Child,
    dir: PathBuf,
    port: u16,
}

impl Nginx {
    fn start(dir: &Path) -> Option<Self> {
        let is_root = rustix::process::geteuid().is_root();
        if !is_root || !Command::new("nginx").arg("-v").output().is_ok_and(|output| output.status.success()) {
            println!("skipped: needs root and nginx");
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
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
        let child = nginx.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let nginx = Self { child, dir: dir.to_owned(), port };
        nginx.until("it answers", || nginx.status() == Some(200));
        // Until a file written now is later than its worker by more than a tick.
        let uptime = || std::fs::read_to_string("/proc/uptime").unwrap().split(' ').next().unwrap().parse::<f64>().unwrap();
        let answered = uptime();
        nginx.until("time passes", || uptime() > answered + 0.1);
        Some(nginx)
    }

    fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < Duration::from_secs(20), "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
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

impl Drop for Nginx {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

fn site(port: u16, status: u16) -> String {
    format!("server {{ listen 127.0.0.1:{port}; add_header X-Status {status} always; location / {{ return 200 ok; }} }}\n")
}

#[test]
fn yes_alone_does_not_put_the_edit_of_somebody_else_in_force() {
    let chokepoint = Chokepoint::new();
    let Some(nginx) = Nginx::start(&chokepoint.file("nginx")) else { return };
    let before = nginx.main();
    let edited = site(nginx.port, 503);
    std::fs::write(nginx.site(), &edited).unwrap();
    let url = format!("http://127.0.0.1:{}/", nginx.port);
    let fix = |more: &[&str]| chokepoint.run(&[&["diagnose", "--fix", "--yes", "-c", "60", "-z", "2s"], more, &[url.as_str()]].concat());
    let ran = fix(&[]);
    assert!(ran.stdout.contains("worker-connections-exhausted"), "{}{}", ran.stdout, ran.stderr);
    // What would be executed is shown whole, with the user.
    let shown = format!("as user 0, group 0: /usr/sbin/nginx -t -c {}", nginx.dir.join("nginx.conf").display());
    assert!(ran.stderr.contains(&shown) && ran.stderr.contains(&format!("kill -HUP {}", nginx.child.id())), "{}", ran.stderr);
    let told: String = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("--reload-unseen"), "{}", ran.stdout);
    assert_eq!(nginx.main(), before, "nothing was edited");

    let ran = fix(&["--reload-unseen"]);
    assert_ne!(nginx.main(), before, "{}{}", ran.stdout, ran.stderr);

    // An undo is not kept back by an edit: it says what it puts in force beside the old value.
    std::fs::write(nginx.site(), format!("{edited}# more\n")).unwrap();
    let ran = chokepoint.run(&["undo"]);
    assert_eq!((ran.status, nginx.main()), (Some(0), before), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("conf.d/site.conf") && ran.stdout.contains("conf.d/site.conf"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn the_flag_is_for_fix() {
    let ran = Chokepoint::new().run(&["diagnose", "--reload-unseen", "http://127.0.0.1:1/"]);
    assert_eq!(ran.status, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("--fix"), "{}", ran.stderr);
}
