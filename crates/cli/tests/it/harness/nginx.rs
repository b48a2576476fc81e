//! A real nginx of the test, on an address of loopback.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Running, free_address, has_programs, is_root, wait_until};

/// nginx with 20 connections for its worker, and with its site in a separate file.
pub(crate) struct Nginx {
    pub(crate) running: Running,
    pub(crate) dir: PathBuf,
    pub(crate) port: u16,
}

impl Nginx {
    pub(crate) fn start(dir: &Path) -> Option<Self> {
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

    pub(crate) fn status(&self) -> Option<u16> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        answer.split(' ').nth(1)?.parse().ok()
    }

    pub(crate) fn main(&self) -> String {
        std::fs::read_to_string(self.dir.join("nginx.conf")).unwrap()
    }

    pub(crate) fn site(&self) -> PathBuf {
        self.dir.join("conf.d/site.conf")
    }
}

/// Its site: each answer says so in a header.
pub(crate) fn site(port: u16, status: u16) -> String {
    format!("server {{ listen 127.0.0.1:{port}; add_header X-Status {status} always; location / {{ return 200 ok; }} }}\n")
}
