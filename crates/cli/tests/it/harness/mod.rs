//! The built binary as a user runs it, and a small web server to point it at.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The repository's recordings below `tests`: "conntrack-table/conntrack-full" for each file of that name ending in `.rec`.
pub(crate) fn recordings(folder: &str) -> BTreeSet<String> {
    let root = tests(folder);
    let folders = std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    files.filter_map(|path| path.strip_prefix(&root).unwrap().to_str()?.strip_suffix(".rec").map(str::to_owned)).collect()
}

/// A file or folder below the repository's `tests`.
pub(crate) fn tests(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(name)
}

/// The binary under test, with a state directory and a lab directory of its own.
pub(crate) struct Chokepoint {
    pub(crate) dir: tempfile::TempDir,
}

impl Chokepoint {
    /// A copy of the binary where every user can reach it. Another process makes it: were its file open for writing here, a child that
    /// another test forks at that moment would keep it so, and it could not be run ("text file busy").
    pub(crate) fn copy_of_binary(&self) -> PathBuf {
        let copy = self.file("chokepoint");
        assert!(Command::new("cp").arg(env!("CARGO_BIN_EXE_chokepoint")).arg(&copy).status().unwrap().success());
        copy
    }
}

/// What a run gave.
pub(crate) struct Ran {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Chokepoint {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        // Another user's processes must reach the files of a lab below it.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(dir.path(), open).unwrap();
        Self { dir }
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chokepoint"));
        command.args(args).stdin(Stdio::null()).env("CHOKEPOINT_STATE_DIR", self.dir.path().join("state"));
        command.env("CHOKEPOINT_RUN_DIR", self.dir.path().join("run")).env_remove("NO_COLOR").env("LC_ALL", "C.UTF-8");
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        ran(self.command(args).output().unwrap())
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &[u8]) -> String {
        let path = self.file(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

pub(crate) fn ran(output: Output) -> Ran {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { status: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// A web server on loopback that gives every request the same answer, keep-alive, a thread a connection.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(status: &'static str) -> Self {
        // In one write: behind the first of several the others would wait for the client's delayed acknowledgement, 40 ms.
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok");
        Self::serving(move |stream| stream.write_all(answer.as_bytes()).is_ok())
    }

    /// Answers each request with `answer`, and closes the connection where that gives false.
    pub(crate) fn serving(answer: impl Fn(&mut TcpStream) -> bool + Send + Sync + 'static) -> Self {
        let answer = Arc::new(answer);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            for connection in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(connection) = connection else { continue };
                let answer = Arc::clone(&answer);
                std::thread::spawn(move || serve(connection, &*answer));
            }
        });
        Self { address, stop, thread: Some(thread) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

fn serve(mut connection: TcpStream, answer: &dyn Fn(&mut TcpStream) -> bool) {
    let _ = connection.set_read_timeout(Some(Duration::from_secs(30)));
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match connection.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(n) => seen.extend_from_slice(&buffer[..n]),
        }
        while let Some(end) = seen.windows(4).position(|window| window == b"\r\n\r\n") {
            seen.drain(..end + 4);
            if !answer(&mut connection) {
                return;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = std::net::TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// True for root; else tells that the test is skipped.
pub(crate) fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("skipped: needs root");
    }
    root
}
