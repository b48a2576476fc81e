//! The server's own test of its configuration (`nginx -t`, `php-fpm -t`), also of a file that is not in its place yet.

use std::ffi::CString;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use chokepoint_model::change::ServerKind;

use super::master::Master;
use crate::netns;

/// How long a test may take: nginx looks up every upstream's name in it.
const TEST_TIME_MAX: Duration = Duration::from_secs(60);
/// How often it is looked whether it ended.
const TEST_POLL: Duration = Duration::from_millis(10);
/// Bytes of its words that are kept.
const SAID_BYTES_MAX: u64 = 65_536;
/// Lines of its words that are told.
const SAID_LINES_MAX: usize = 5;

/// Tests the configuration; with `instead`, as it would be with that file in place of the other. The error is what the server said.
///
/// The test runs the master's own program in the master's network namespace, because nginx tries to bind what it listens on. The file in place of
/// the other is mounted over it in a mount namespace that only the test sees; where that is not allowed, the test is left to the one that follows
/// once the file is in its place.
pub(super) fn run(master: &Master, main: &str, instead: Option<(&Path, &Path)>) -> Result<(), String> {
    let place = match master.netns().map(|id| netns::Place::find(id, Path::new("/"))) {
        Some(Ok(place)) => place,
        _ => return Err(format!("the network namespace of process {} cannot be found", master.pid)),
    };
    // A thread of its own: what it does to its mount namespace ends with it.
    let tested = place.run(|| {
        thread::scope(|scope| {
            let work = || match instead.map(|(new, old)| mount_over(new, old)) {
                Some(Err(_)) => Ok(()),
                _ => test(master, main),
            };
            let Ok(handle) = thread::Builder::new().name("trial".to_owned()).spawn_scoped(scope, work) else {
                return Err("no thread can be started".to_owned());
            };
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    });
    tested.unwrap_or_else(|error| Err(format!("its network namespace cannot be entered ({error})")))
}

fn test(master: &Master, main: &str) -> Result<(), String> {
    // The running program, also where an upgrade replaced its file.
    let mut command = Command::new(format!("/proc/{}/exe", master.pid));
    match master.kind {
        ServerKind::Nginx => {
            command.args(["-t", "-c", main]);
            for option in ["-p", "-g", "-e"] {
                if let Some(value) = master.argument(option) {
                    command.args([option, &value]);
                }
            }
        }
        ServerKind::PhpFpm => {
            command.args(["-t", "-y", main]);
        }
    }
    let child = command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| format!("its test cannot be started ({error})"))?;
    let pipe = child.stderr.take();
    let words = thread::spawn(move || {
        let mut said = Vec::new();
        let Some(mut pipe) = pipe else { return said };
        let _ = pipe.by_ref().take(SAID_BYTES_MAX).read_to_end(&mut said);
        // Read on, so that the test does not wait for a full pipe.
        let _ = io::copy(&mut pipe, &mut io::sink());
        said
    });
    let passed = wait(&mut child)?;
    let said = words.join().unwrap_or_default();
    if passed { Ok(()) } else { Err(told(&String::from_utf8_lossy(&said))) }
}

fn wait(child: &mut Child) -> Result<bool, String> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) if start.elapsed() < TEST_TIME_MAX => thread::sleep(TEST_POLL),
            other => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(
                    other.map_or_else(|error| error.to_string(), |_| format!("its test did not end within {} s", TEST_TIME_MAX.as_secs()))
                );
            }
        }
    }
}

/// The lines that say what is wrong, else the last ones.
fn told(said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let is_error = |line: &&&str| ["[emerg]", "[alert]", "[crit]", "ERROR:", "ALERT:"].iter().any(|mark| line.contains(mark));
    let errors: Vec<&str> = lines.iter().filter(is_error).take(SAID_LINES_MAX).copied().collect();
    let chosen = if errors.is_empty() { lines[lines.len().saturating_sub(SAID_LINES_MAX)..].to_vec() } else { errors };
    if chosen.is_empty() { "it gives no reason".to_owned() } else { chosen.join("; ") }
}

/// Lets the calling thread, and what it starts, see one file in place of another.
#[allow(unsafe_code)]
fn mount_over(new: &Path, old: &Path) -> io::Result<()> {
    let path = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other);
    let (new, old) = (path(new)?, path(old)?);
    let failed = |result: libc::c_int| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    // SAFETY: takes no pointers; the thread gets a mount namespace, root and current directory of its own, which nothing else in it relies on.
    failed(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    let (root, none) = (c"/", std::ptr::null::<libc::c_char>());
    // SAFETY: the path ends with a zero; the kernel takes no source, type and data for this flag (mount(2)). Mounts made here stay here.
    failed(unsafe { libc::mount(none, root.as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, std::ptr::null()) })?;
    // SAFETY: both paths end with a zero and live through the call; a bind mount takes no type and data.
    failed(unsafe { libc::mount(new.as_ptr(), old.as_ptr(), none, libc::MS_BIND, std::ptr::null()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_picked_out_of_what_the_server_says() {
        let nginx = "nginx: [warn] x\nnginx: [emerg] unknown directive \"y\" in /z:3\nnginx: configuration file /z test failed\n";
        assert_eq!(told(nginx), "nginx: [emerg] unknown directive \"y\" in /z:3");
        assert_eq!(told("a\n\nb\n"), "a; b");
        assert_eq!(told(""), "it gives no reason");
    }
}
