//! The host's files: below `/` on a real host, below a directory in tests. Every read is bounded and has a reason for giving nothing.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use chokepoint_model::reading::{Lack, Reading};
use chokepoint_recording::Outcome;
use rustix::thread::CapabilitySet;

/// The file or directory does not exist.
pub const WHY_MISSING: &str = "the file does not exist";
/// The process ended before or while it was read.
pub const WHY_ENDED: &str = "the process ended";
/// The user may not read it.
pub const WHY_DENIED: &str = "permission denied";

/// Files of a process that it can delay ([`chokepoint_foreign::of_process`]).
const DELAYED: &[&str] = &["environ", "io", "maps", "numa_maps", "smaps", "smaps_rollup", "stack", "syscall"];

/// Most bytes of a list of child processes: some thousand workers.
const CHILDREN_BYTES_MAX: usize = 64 << 10;

/// The directory under which the host's `proc`, `sys` and `run` are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Default for Root {
    fn default() -> Self {
        Self(PathBuf::from("/"))
    }
}

impl Root {
    /// A tree at another place than `/`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// True for the running host, false for a tree of files.
    pub fn is_live(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// The path of a file of the host ("proc/stat" or "/proc/stat") in this tree.
    pub fn path(&self, file: &str) -> PathBuf {
        self.0.join(file.trim_start_matches('/'))
    }

    /// Opens a file for reading without waiting (O_NONBLOCK).
    pub fn open(&self, file: &str) -> io::Result<File> {
        open_path(&self.path(file))
    }

    /// The metadata of a file or directory of the kernel.
    pub fn metadata(&self, file: &str) -> io::Result<Metadata> {
        std::fs::metadata(self.path(file))
    }

    /// True if the file or directory exists.
    pub fn exists(&self, file: &str) -> bool {
        self.path(file).exists()
    }

    /// The beginning of a process's command line. Its words end with a zero byte.
    pub(crate) fn command_line(&self, pid: u32, bytes_max: usize) -> io::Result<Vec<u8>> {
        chokepoint_foreign::command_line(&self.path("proc"), pid, bytes_max)
    }

    /// `length` bytes of a process's memory, which it can delay: within [`Root::delayed`].
    pub(crate) fn memory(&self, pid: u32, address: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.open(&format!("proc/{pid}/mem"))?.read_exact_at(&mut bytes, address).map(|()| bytes)
    }

    /// Reads a file of at most `bytes_max` bytes; a longer one is `Failed("longer than N bytes")`. ENOENT and the like are `Absent`, EACCES
    /// and EPERM are `Absent` with `needs`, ESRCH is `Absent("the process ended")`, all else is `Failed`.
    pub fn read(&self, file: &str, bytes_max: usize, needs: Option<&str>) -> Outcome {
        match self.open(file).and_then(|file| read_bounded(file, bytes_max)) {
            Ok(bytes) if bytes.len() > bytes_max => Outcome::Failed(format!("longer than {bytes_max} bytes"), None),
            Ok(bytes) => Outcome::Ok(bytes),
            Err(error) => outcome_of(&error, needs),
        }
    }

    /// Reads `proc/PID/FILE` like [`Root::read`]. If the process has ended, the reason is that. What the process can delay is waited for within its user's budget.
    pub fn read_process(&self, pid: u32, file: &str, bytes_max: usize, needs: Option<&str>) -> Outcome {
        let path = format!("proc/{pid}/{file}");
        let is_delayed = file.rsplit('/').next().is_some_and(|name| DELAYED.contains(&name));
        let read = || {
            let (root, needs) = (self.clone(), needs.map(str::to_owned));
            let read = move || root.read(&path, bytes_max, needs.as_deref());
            if is_delayed { self.delayed(pid, read) } else { read() }
        };
        self.of_process(pid, read())
    }

    /// The outcome of a reading that the process can delay, within the budget of its user ([`chokepoint_foreign::of_process`]).
    pub(crate) fn delayed(&self, pid: u32, read: impl FnOnce() -> Outcome + Send + 'static) -> Outcome {
        chokepoint_foreign::of_process(&self.path("proc"), pid, read).unwrap_or_else(|error| outcome_of(&error, None))
    }

    /// Reads the target of a symbolic link, as bytes.
    pub fn link(&self, file: &str, needs: Option<&str>) -> Outcome {
        match link_of_path(&self.path(file)) {
            Ok(target) => Outcome::Ok(std::os::unix::ffi::OsStringExt::into_vec(target.into_os_string())),
            Err(error) => outcome_of(&error, needs),
        }
    }

    /// Reads the target of the link `proc/PID/FILE`. If the process has ended, the reason is that.
    pub fn link_process(&self, pid: u32, file: &str, needs: Option<&str>) -> Outcome {
        self.of_process(pid, self.link(&format!("proc/{pid}/{file}"), needs))
    }

    /// At most `names_max` names in a directory, in the kernel's order. The flag is true if there are more.
    pub fn names(&self, directory: &str, names_max: usize, needs: Option<&str>) -> Result<(Vec<OsString>, bool), Outcome> {
        let entries = std::fs::read_dir(self.path(directory)).map_err(|error| outcome_of(&error, needs))?;
        let mut names = Vec::new();
        for entry in entries {
            // If a process ends while its directory is read, the kernel returns ENOENT or ESRCH.
            let entry = entry.map_err(|error| outcome_of(&error, needs))?;
            if names.len() == names_max {
                return Ok((names, true));
            }
            names.push(entry.file_name());
        }
        Ok((names, false))
    }

    /// All process ids, ascending, at most 4,194,304 (the kernel's own bound, PID_MAX_LIMIT).
    pub fn pids(&self) -> Result<Vec<u32>, Outcome> {
        let (names, _) = self.names("proc", 1 << 22, None)?;
        let mut pids: Vec<u32> = names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect();
        pids.sort_unstable();
        Ok(pids)
    }

    /// The processes that the main thread of this one started and that it has not waited for, the youngest last. `None` if the kernel does not list them
    /// (CONFIG_PROC_CHILDREN, Linux 4.2; proc_tid_children(5)) or the process ended.
    pub(crate) fn children(&self, pid: u32) -> Option<Vec<u32>> {
        let Outcome::Ok(list) = self.read(&format!("proc/{pid}/task/{pid}/children"), CHILDREN_BYTES_MAX, None) else { return None };
        Some(String::from_utf8_lossy(&list).split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect())
    }

    /// Changes the reason of a missing or inaccessible file of an ended process to the end of the process. The links of an ended process are EACCES until its
    /// directory is gone (fs/proc/namespaces.c).
    pub(crate) fn of_process(&self, pid: u32, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Absent(why, _) if (why == WHY_MISSING || why == WHY_DENIED) && !self.path(&format!("proc/{pid}")).exists() => {
                Outcome::Absent(WHY_ENDED.to_owned(), None)
            }
            other => other,
        }
    }
}

/// Opens, without waiting, a path of the kernel or of this program's user: a file of procfs or sysfs, a bound namespace.
pub(crate) fn open_path(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY).open(path)
}

/// The metadata of such a file.
pub(crate) fn metadata_of_path(path: &Path) -> io::Result<Metadata> {
    std::fs::metadata(path)
}

/// The target of a link of the kernel.
pub(crate) fn link_of_path(path: &Path) -> io::Result<PathBuf> {
    std::fs::read_link(path)
}

/// First buffer size. Most files of /proc fit, so two calls of read(2) suffice. An empty buffer would take half a dozen.
const FIRST_BYTES: usize = 4096;

/// Reads at most one byte more than `bytes_max`, which shows the caller that there is more.
fn read_bounded(file: File, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(FIRST_BYTES);
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    bytes.shrink_to_fit();
    Ok(bytes)
}

/// An error of the operating system as the outcome of a reading (errno(3)).
pub fn outcome_of(error: &io::Error, needs: Option<&str>) -> Outcome {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR | libc::ENXIO | libc::ENODEV) => Outcome::Absent(WHY_MISSING.to_owned(), None),
        Some(libc::EACCES | libc::EPERM) => Outcome::Absent(WHY_DENIED.to_owned(), needs.map(str::to_owned)),
        Some(libc::ESRCH) => Outcome::Absent(WHY_ENDED.to_owned(), None),
        _ => Outcome::Failed(error.to_string(), needs.map(str::to_owned)),
    }
}

/// The privileges that would help, without those that this process has: some processes are hidden even from root, by a security policy or a hypervisor.
/// `needs`: names of capabilities, joined by "and" (capabilities(7)).
pub(crate) fn lacked(needs: &str) -> Option<String> {
    let effective = rustix::thread::capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    let has = |name: &str| name.strip_prefix("CAP_").and_then(CapabilitySet::from_name).is_some_and(|one| effective.contains(one));
    let lacked: Vec<&str> = needs.split(" and ").filter(|name| !has(name)).collect();
    (!lacked.is_empty()).then(|| lacked.join(" and "))
}

/// Parses an outcome. Bytes that do not parse are `Failed` with the parser's reason.
pub fn reading_of<T, E: std::fmt::Display>(outcome: &Outcome, parse: impl FnOnce(&[u8]) -> Result<T, E>) -> Reading<T> {
    match outcome {
        Outcome::Ok(bytes) => match parse(bytes) {
            Ok(value) => Reading::Ok(value),
            Err(error) => Reading::Failed(Lack::new(error.to_string())),
        },
        Outcome::Absent(why, needs) => Reading::Absent(Lack { why: why.clone(), needs: needs.clone() }),
        Outcome::Failed(why, needs) => Reading::Failed(Lack { why: why.clone(), needs: needs.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_bounded_and_have_reasons() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("proc/7")).unwrap();
        std::fs::write(tree.path().join("proc/7/stat"), b"0123456789").unwrap();
        let root = Root::new(tree.path());
        assert_eq!(root.read("proc/7/stat", 10, None), Outcome::Ok(b"0123456789".to_vec()));
        assert_eq!(root.read("/proc/7/stat", 9, None), Outcome::Failed("longer than 9 bytes".into(), None));
        assert_eq!(root.read("proc/none", 9, None), Outcome::Absent(WHY_MISSING.into(), None));
        assert_eq!(root.read_process(7, "none", 9, None), Outcome::Absent(WHY_MISSING.into(), None));
        assert_eq!(root.read_process(8, "stat", 9, None), Outcome::Absent(WHY_ENDED.into(), None));
        assert_eq!(root.pids(), Ok(vec![7]));
        assert!(matches!(root.read("proc", 9, None), Outcome::Failed(..)), "a directory is no file");
        assert!(!root.is_live());
    }

    #[test]
    fn only_privileges_that_are_missing_would_help() {
        let effective = rustix::thread::capabilities(None).unwrap().effective;
        let is_held = effective.contains(CapabilitySet::SYS_PTRACE);
        assert_eq!(lacked("CAP_SYS_PTRACE").is_none(), is_held);
        let both = lacked("CAP_SYS_PTRACE and CAP_UNKNOWN").unwrap();
        assert_eq!(both, if is_held { "CAP_UNKNOWN" } else { "CAP_SYS_PTRACE and CAP_UNKNOWN" });
    }

    #[test]
    fn errors_name_the_capability_that_would_help() {
        let denied = outcome_of(&io::Error::from_raw_os_error(libc::EACCES), Some("CAP_SYS_PTRACE"));
        assert_eq!(denied, Outcome::Absent(WHY_DENIED.into(), Some("CAP_SYS_PTRACE".into())));
        assert_eq!(outcome_of(&io::Error::from_raw_os_error(libc::ESRCH), None), Outcome::Absent(WHY_ENDED.into(), None));
        assert!(matches!(outcome_of(&io::Error::from_raw_os_error(libc::EIO), None), Outcome::Failed(..)));
        let root = Root::default();
        assert_eq!(root.of_process(u32::MAX, denied.clone()), Outcome::Absent(WHY_ENDED.into(), None), "no right would help");
        assert_eq!(root.of_process(std::process::id(), denied.clone()), denied);
    }
}
