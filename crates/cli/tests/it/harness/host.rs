//! What tests need of the host: privileges, programs, namespaces, and processes that end with the test.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// User and group "nobody".
pub(crate) const NOBODY: u32 = 65_534;
/// A wait this long has failed: no machine is this slow.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(120);
/// Time between two checks of a condition.
const POLL: Duration = Duration::from_millis(10);

/// Waits until a condition holds; false if it does not within [`WAIT_MAX`].
pub(crate) fn becomes_true(mut condition: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while !condition() {
        if begin.elapsed() > WAIT_MAX {
            return false;
        }
        std::thread::sleep(POLL);
    }
    true
}

/// The same for what a user is promised within a second: five of them, in naps of this process. Where no core is free a nap takes longer, as does what is waited for; with
/// a core for each, what takes ten times as long as promised fails.
pub(crate) fn becomes_true_soon(mut condition: impl FnMut() -> bool) -> bool {
    const NAPS_MAX: u32 = 500;
    (0..NAPS_MAX).any(|_| {
        let holds = condition();
        if !holds {
            std::thread::sleep(POLL);
        }
        holds
    })
}

/// Waits until a condition holds, and fails with `failure` if it does not.
pub(crate) fn wait_until(failure: &str, condition: impl FnMut() -> bool) {
    assert!(becomes_true(condition), "{failure}");
}

/// True for root; else prints that the test is skipped.
pub(crate) fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("skipped: needs root");
    }
    root
}

/// True if all these programs are installed; else prints that the test is skipped.
pub(crate) fn has_programs(names: &[&str]) -> bool {
    let is_there = |name: &str| ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].iter().any(|directory| Path::new(directory).join(name).exists());
    let missing = names.iter().find(|name| !is_there(name));
    if let Some(missing) = missing {
        println!("skipped: {missing} is not installed");
    }
    missing.is_none()
}

/// An address on loopback where nothing listens.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap()
}

/// Sends a signal to a child.
pub(crate) fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// A process that is terminated and waited for when this is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Starts a command without input and output; nothing if the program does not exist.
    pub(crate) fn start(command: &mut Command) -> Option<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok().map(Self)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

/// A network namespace of the test; it is deleted when this is dropped.
pub(crate) struct Netns(pub(crate) String);

impl Netns {
    /// A namespace with a unique name and loopback up. If none can be made: nothing, and a note that the test is skipped.
    pub(crate) fn add(name: &str) -> Option<Self> {
        if !is_root() {
            return None;
        }
        let netns = Self(format!("t-{name}-{}", std::process::id()));
        let ip = |args: &[&str]| Command::new("ip").args(args).output().is_ok_and(|output| output.status.success());
        if !ip(&["netns", "add", &netns.0]) || !ip(&["-n", &netns.0, "link", "set", "lo", "up"]) {
            println!("skipped: no network namespace can be made here (needs ip(8))");
            return None;
        }
        Some(netns)
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}
