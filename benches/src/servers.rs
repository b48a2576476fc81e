//! The servers under load, each a process that ends with the harness.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

/// nginx's configuration, with `ADDRESS` and `SECURE` (TLS) as placeholders; its paths are relative to the given directory.
const NGINX: &str = include_str!("../nginx.conf");
/// The lab's certificate and its key, which is not secret.
const CERTIFICATE: &str = include_str!("../../crates/lab/data/tls.crt");
const KEY: &str = include_str!("../../crates/lab/data/tls.key");
/// Where both servers report the number of answered requests.
const COUNT_PATH: &str = "/count";
/// Maximum wait for a server to listen.
const START_MAX: Duration = Duration::from_secs(5);

/// A running server.
pub(crate) struct Server {
    pub(crate) address: String,
    /// Where it speaks TLS, if it does.
    pub(crate) secure: Option<String>,
    child: Child,
    _directory: Option<TempDir>,
}

impl Server {
    /// This program's own server.
    pub(crate) fn bare() -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?).arg("bare-server").stdout(Stdio::piped()).spawn()?;
        let mut address = String::new();
        BufReader::new(child.stdout.take().context("it has a pipe")?).read_line(&mut address)?;
        let server = Self { address: address.trim().to_owned(), secure: None, child, _directory: None };
        server.ready()
    }

    /// nginx with one worker that answers `hello` from its configuration.
    pub(crate) fn nginx() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        // The ports are free now. If another program takes one meanwhile, nginx reports it.
        let listeners = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
        let (address, secure) = (listeners[0].local_addr()?.to_string(), listeners[1].local_addr()?.to_string());
        drop(listeners);
        store(&directory, "tls.crt", CERTIFICATE)?;
        store(&directory, "tls.key", KEY)?;
        let path = directory.path().join("nginx.conf");
        store(&directory, "nginx.conf", &NGINX.replace("ADDRESS", &address).replace("SECURE", &secure))?;
        let child = Command::new("nginx").arg("-p").arg(directory.path()).arg("-c").arg(&path).stderr(Stdio::null()).spawn();
        let child = child.context("nginx is needed: apt-get install nginx-light")?;
        Self { address, secure: Some(secure), child, _directory: Some(directory) }.ready()
    }

    fn ready(self) -> Result<Self> {
        let begin = Instant::now();
        while self.requests().is_err() {
            if begin.elapsed() > START_MAX {
                bail!("the server at {} does not answer", self.address);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(self)
    }

    /// Requests that the server has answered, including this one.
    pub(crate) fn requests(&self) -> Result<u64> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        // In one write, since the bare server takes each read for a whole request.
        stream.write_all(format!("GET {COUNT_PATH} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let body = answer.split("\r\n\r\n").nth(1).context("an answer without a body")?;
        // nginx's stub_status: "server accepts handled requests", then the numbers; the third is the number of requests.
        let numbers: Vec<u64> = body.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        match numbers.as_slice() {
            [count] => Ok(*count),
            [_active, _accepts, _handled, requests, ..] => Ok(*requests),
            _ => bail!("no count in {body:?}"),
        }
    }
}

/// Writes a file into the directory.
fn store(directory: &TempDir, name: &str, text: &str) -> Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(directory.path())?;
    file.write_all(text.as_bytes())?;
    file.persist(directory.path().join(name))?;
    Ok(())
}

impl Drop for Server {
    fn drop(&mut self) {
        // nginx's worker ends with its master, and SIGTERM lets the master close it. The bare server has nothing to close.
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
    }
}
