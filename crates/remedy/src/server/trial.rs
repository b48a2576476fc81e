//! The server's own test of its configuration (`nginx -t`, `php-fpm -t`), also with a file that is not in its place yet. The test executes the master's
//! program, so it runs with the master's rights, and only if no other user controls anything that it executes.

use std::ffi::CString;
use std::fs::{File, Metadata};
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, fchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use chokepoint_foreign::{FileId, of_process, other_writer, trusted};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::confined;
use super::edit::{self, Parts};
use super::file::take_owner_and_mode;
use super::known_master::path_of;
use super::master::Master;
use super::view::View;
use crate::netns;

/// Timeout of a test: nginx resolves every upstream's name in it.
const TEST_TIME_MAX: Duration = Duration::from_secs(60);
/// How often to check for its end.
const TEST_POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
/// Most bytes kept of its messages.
const SAID_BYTES_MAX: usize = 65_536;
/// Most lines reported of its messages.
const SAID_LINES_MAX: usize = 5;
/// Most bytes read of an executable to find its built-in prefix: nginx has 1 to 20 MB.
const EXECUTABLE_BYTES_MAX: u64 = 32 << 20;
/// Most bytes read of a process's mappings: a server has some 200, of 100 bytes each.
const MAPS_BYTES_MAX: u64 = 4 << 20;
/// Mount points for the test's private file system, of which one exists on every host.
const MOUNT_POINTS: [&str; 4] = ["/tmp", "/run", "/var", "/mnt"];

/// Bytes to test in place of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Instead<'a> {
    /// The file, links resolved.
    pub(super) path: &'a Path,
    /// Owner and mode of the file.
    pub(super) meta: &'a Metadata,
    pub(super) bytes: &'a [u8],
}

/// The command line of the test: program and arguments.
pub(super) fn command_line(master: &Master, main: &str) -> Vec<String> {
    std::iter::once(path_of(&master.identity)).chain(master.def.test_arguments(main, master.also(), &master.title)).collect()
}

/// Tests the configuration; with `instead`, as if the file had these bytes. The error is the server's message, or why the test did not run.
///
/// The test runs in the master's network namespace, because nginx tries to bind its addresses. The replacement is mounted over the file in a private
/// mount namespace. Where that is not allowed, only the later test with the file in its place counts.
pub(super) fn run(master: &Master, main: &str, instead: Option<Instead<'_>>) -> Result<(), String> {
    let program = checked(master, main)?;
    let pid = master.pid();
    let Ok(place) = netns::NetnsHandle::find(master.netns(), Path::new("/")) else {
        return Err(format!("the network namespace of process {pid} cannot be found"));
    };
    // The checks above apply only to this process.
    if !master.is_same() {
        return Err(format!("process {pid} has been replaced by another one"));
    }
    // A new thread, whose private mount namespace ends with it.
    let tested = place.run(|| {
        thread::scope(|scope| {
            let work = || match instead.map(|instead| put_over(&instead, master.identity.uid())) {
                Some(Err(_)) => Ok(()),
                _ => test(&program, master, main),
            };
            let Ok(handle) = thread::Builder::new().name("trial".to_owned()).spawn_scoped(scope, work) else {
                return Err("no thread can be started".to_owned());
            };
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    });
    tested.unwrap_or_else(|error| Err(format!("its network namespace cannot be entered ({error})")))
}

/// The master's program, if no other user can change it or anything that its test loads. Executes nothing.
pub(super) fn checked(master: &Master, main: &str) -> Result<File, String> {
    let not_run = |why: String| format!("its test was not run, because {why}");
    if let Some(why) = master.is_elsewhere() {
        return Err(not_run(why.to_owned()));
    }
    let uid = master.identity.uid();
    let program = program(master).map_err(not_run)?;
    let view = View::of(Some(master), main)?;
    let parts = edit::parts(&view, main, master.kind)?;
    let files = parts.reading.files.iter().chain(&parts.reading.directories).map(PathBuf::from);
    for path in files.chain(programs(master, &program, &parts, main)).chain(loaded(master.pid()).map_err(not_run)?) {
        match trusted(&path, uid) {
            // The server itself reports missing files.
            Err(chokepoint_foreign::Untrusted::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            looked => drop(looked.map_err(|why| not_run(why.to_string()))?),
        }
    }
    Ok(program)
}

/// The file that the master executes. If its path was replaced since, only the file's own owner and mode count.
fn program(master: &Master) -> Result<File, String> {
    let identity = &master.identity;
    let path = path_of(identity);
    let unreadable = |error: io::Error| format!("{path}: {error}");
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
    let opened = rustix::fs::open(format!("/proc/{}/exe", master.pid()), flags, rustix::fs::Mode::empty());
    let program = File::from(opened.map_err(|error| unreadable(error.into()))?);
    let meta = program.metadata().map_err(unreadable)?;
    if !meta.is_file() || FileId::of(&meta) != identity.executable {
        return Err(format!("process {} has been replaced by another one", master.pid()));
    }
    if let Some(by) = other_writer(&program, &meta, identity.uid()).map_err(unreadable)? {
        return Err(format!("{path} can be changed by {by}"));
    }
    if !identity.executable_path.to_string_lossy().ends_with(" (deleted)") {
        let at_path = trusted(Path::new(&path), identity.uid()).map_err(|why| why.to_string())?;
        if FileId::of(&at_path.metadata().map_err(unreadable)?) != identity.executable {
            return Err(format!("{path} is not what process {} executes", master.pid()));
        }
    }
    Ok(program)
}

/// Executable files that the master has mapped and its test will load too: libraries, modules, PHP extensions. Files replaced since are left out, because
/// the test loads the files now at their paths. A user without access to the mappings is not root and executes the test with the own rights.
fn loaded(pid: u32) -> Result<Vec<PathBuf>, String> {
    let read = move || File::open(format!("/proc/{pid}/maps")).and_then(|maps| io::read_to_string(maps.take(MAPS_BYTES_MAX)));
    let text = of_process(Path::new("/proc"), pid, read)
        .map_err(|error| format!("the memory mappings of process {pid} cannot be read ({error})"))?;
    let text = text.unwrap_or_default();
    let path = |line: &str| {
        let mut fields = line.splitn(6, ' ');
        let is_executed = fields.nth(1).is_some_and(|may| may.contains('x'));
        let path = fields.nth(3).map(str::trim_start).filter(|path| path.starts_with('/') && !path.ends_with(" (deleted)"));
        path.filter(|_| is_executed).map(PathBuf::from)
    };
    let mut paths: Vec<PathBuf> = text.lines().filter_map(path).collect();
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
}

/// Possible paths of the files that the configuration makes the server execute: relative to its prefix or the main file's directory.
fn programs(master: &Master, program: &File, parts: &Parts, main: &str) -> Vec<PathBuf> {
    let prefix = || master.def.prefix(&master.title, &built_in(master, program));
    let directories: Vec<PathBuf> = if parts.programs.iter().all(|path| path.starts_with('/')) {
        vec![PathBuf::from("/")]
    } else {
        Path::new(main).parent().map(Path::to_owned).into_iter().chain(prefix().map(PathBuf::from)).collect()
    };
    parts.programs.iter().flat_map(|path| directories.iter().map(move |directory| directory.join(path))).collect()
}

/// What the program says of how it was built, without running it.
fn built_in(master: &Master, program: &File) -> Vec<String> {
    let mut bytes = Vec::new();
    let read = File::open(format!("/proc/self/fd/{}", program.as_raw_fd()));
    let read = read.and_then(|readable| readable.take(EXECUTABLE_BYTES_MAX).read_to_end(&mut bytes));
    read.map_or_else(|_| Vec::new(), |_| master.def.built_in(&bytes))
}

fn test(program: &File, master: &Master, main: &str) -> Result<(), String> {
    let mut command = confined::command(program, &path_of(&master.identity), &master.identity)?;
    let failed = |error: io::Error| format!("its test cannot be started ({error})");
    let (said, pipe) = io::pipe().map_err(failed)?;
    if rustix::process::geteuid().as_raw() == 0 {
        // The master's user must be able to open an `error_log /dev/stderr`.
        fchown(&pipe, Some(master.identity.uid()), Some(master.identity.gids[1])).map_err(failed)?;
    }
    command
        .args(master.def.test_arguments(main, master.also(), &master.title))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::from(pipe));
    // Ctrl-C must reach this process only: the test's result decides whether a change can be taken back.
    command.process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    // Closes its copy of the pipe's end.
    drop(command);
    let mut messages = Vec::new();
    let passed = wait(&mut child, said, &mut messages)?;
    if passed { Ok(()) } else { Err(relevant_lines(&String::from_utf8_lossy(&messages))) }
}

/// Waits for the test's end and reads its messages meanwhile. Does not wait for other processes that it may have started.
fn wait(child: &mut Child, mut said: PipeReader, messages: &mut Vec<u8>) -> Result<bool, String> {
    let start = Instant::now();
    let mut is_open = true;
    loop {
        let ended = child.try_wait();
        while is_open {
            let mut ready = [PollFd::new(&said, PollFlags::IN)];
            let pause = if matches!(ended, Ok(None)) { TEST_POLL } else { Timespec { tv_sec: 0, tv_nsec: 0 } };
            if !poll(&mut ready, Some(&pause)).is_ok_and(|count| count > 0) {
                break;
            }
            let mut piece = [0_u8; 4096];
            match said.read(&mut piece) {
                Ok(0) | Err(_) => is_open = false,
                Ok(count) => messages.extend_from_slice(&piece[..count.min(SAID_BYTES_MAX.saturating_sub(messages.len()))]),
            }
            if start.elapsed() > TEST_TIME_MAX {
                break;
            }
        }
        match ended {
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) if start.elapsed() < TEST_TIME_MAX => {
                if !is_open {
                    thread::sleep(Duration::from_nanos(TEST_POLL.tv_nsec.unsigned_abs()));
                }
            }
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

/// The lines with errors, else the last ones.
fn relevant_lines(said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let is_error = |line: &&&str| ["[emerg]", "[alert]", "[crit]", "ERROR:", "ALERT:"].iter().any(|mark| line.contains(mark));
    let errors: Vec<&str> = lines.iter().filter(is_error).take(SAID_LINES_MAX).copied().collect();
    let chosen = if errors.is_empty() { lines[lines.len().saturating_sub(SAID_LINES_MAX)..].to_vec() } else { errors };
    if chosen.is_empty() { "it gives no reason".to_owned() } else { chosen.join("; ") }
}

/// Shows these bytes in place of a file to the calling thread and its children. They are in a private file system, so that the file's directory is not
/// touched.
#[allow(unsafe_code)]
fn put_over(instead: &Instead<'_>, uid: u32) -> io::Result<()> {
    // SAFETY: takes no pointers; the thread gets a mount namespace, root and current directory of its own, which nothing else in it relies on.
    done(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    mount(None, Path::new("/"), None, libc::MS_REC | libc::MS_PRIVATE)?;
    let old = trusted(instead.path, uid).map_err(io::Error::other)?;
    if FileId::of(&old.metadata()?) != FileId::of(instead.meta) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let point = MOUNT_POINTS.into_iter().map(Path::new).find(|point| point.is_dir()).ok_or(io::ErrorKind::NotFound)?;
    mount(Some(Path::new("tmpfs")), point, Some("tmpfs"), libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC)?;
    let mut new = File::options().write(true).create_new(true).mode(0o600).open(point.join("new"))?;
    new.write_all(instead.bytes)?;
    take_owner_and_mode(&new, instead.meta)?;
    let of = |file: &File| PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    mount(Some(&of(&new)), &of(&old), None, libc::MS_BIND)?;
    let point = CString::new(point.as_os_str().as_encoded_bytes()).map_err(io::Error::other)?;
    // SAFETY: the path ends with a zero and lives through the call.
    done(unsafe { libc::umount2(point.as_ptr(), libc::MNT_DETACH) })
}

/// mount(2), visible only in the calling thread's namespace.
#[allow(unsafe_code)]
fn mount(source: Option<&Path>, target: &Path, kind: Option<&str>, flags: libc::c_ulong) -> io::Result<()> {
    let text = |text: &[u8]| CString::new(text).map_err(io::Error::other);
    let source = source.map(|path| text(path.as_os_str().as_encoded_bytes())).transpose()?;
    let (target, kind) = (text(target.as_os_str().as_encoded_bytes())?, kind.map(|kind| text(kind.as_bytes())).transpose()?);
    let pointer = |text: &Option<CString>| text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
    // SAFETY: all texts end with a zero and live through the call; mount(2) takes no source or type for some flags, and needs no data.
    done(unsafe { libc::mount(pointer(&source), target.as_ptr(), pointer(&kind), flags, std::ptr::null()) })
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_mappings_of_a_process_are_found() {
        let own = loaded(std::process::id()).unwrap();
        let program = std::env::current_exe().unwrap();
        assert!(own.contains(&program) && own.iter().any(|path| path.to_string_lossy().contains("libc")), "{own:?}");
        assert!(loaded(u32::MAX).unwrap().is_empty());
    }

    #[test]
    fn error_lines_are_picked_from_the_servers_messages() {
        let nginx = "nginx: [warn] x\nnginx: [emerg] unknown directive \"y\" in /z:3\nnginx: configuration file /z test failed\n";
        assert_eq!(relevant_lines(nginx), "nginx: [emerg] unknown directive \"y\" in /z:3");
        assert_eq!(relevant_lines("a\n\nb\n"), "a; b");
        assert_eq!(relevant_lines(""), "it gives no reason");
    }
}
