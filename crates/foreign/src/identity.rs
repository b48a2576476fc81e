//! The identity of a process: its executable file, users, groups and namespaces; not its command line, which it controls itself.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::delay::of_process;
use crate::files::{open_kernel, read_kernel};
use crate::rights::Rights;
use crate::status::{Status, unreadable};

/// The identity of a file: the device of its file system and its inode (inode(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// The device's number.
    pub device: u64,
    /// The inode's number.
    pub inode: u64,
}

impl FileId {
    /// From a file's metadata.
    pub fn of(file: &fs::Metadata) -> Self {
        Self { device: file.dev(), inode: file.ino() }
    }
}

/// Namespaces of a process by their numbers (namespaces(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Namespaces {
    /// Of user and group ids.
    pub user: u64,
    /// Of the file system.
    pub mount: u64,
    /// Of the network.
    pub network: u64,
    /// Of process ids.
    pub pid: u64,
}

/// A running process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Its pid.
    pub pid: u32,
    /// Its start time, clock ticks since boot. Together with the pid it is unique.
    pub start_ticks: u64,
    /// Its executable file.
    pub executable: FileId,
    /// The path of the executable below the process's root, with " (deleted)" at its end if it was replaced.
    pub executable_path: PathBuf,
    /// Real, effective, saved and file-system user.
    pub uids: [u32; 4],
    /// The same for groups.
    pub gids: [u32; 4],
    /// Its supplementary groups.
    pub groups: Vec<u32>,
    /// Its effective capabilities, a bit each (capabilities(7)).
    pub capabilities: u64,
    /// Its namespaces.
    pub namespaces: Namespaces,
}

/// The beginning of a process's command line, at most `bytes_max` bytes, from procfs at `proc` ("/proc"). Its words end with a zero byte. The process writes
/// it as it likes, and says how long it is: up to its whole memory (PR_SET_MM_MAP of prctl(2)).
///
/// # Errors
/// It has ended, is not accessible, or delays the reading ([`of_process`]).
pub fn command_line(proc: &Path, pid: u32, bytes_max: usize) -> io::Result<Vec<u8>> {
    let path = proc.join(pid.to_string()).join("cmdline");
    of_process(proc, pid, move || {
        let mut bytes = Vec::new();
        open_kernel(&path)?.take(bytes_max as u64).read_to_end(&mut bytes).map(|_| bytes)
    })?
}

impl Identity {
    /// The identity of the process with this pid, from procfs at `proc` ("/proc").
    ///
    /// # Errors
    /// It has ended, is a kernel thread, or is not accessible (CAP_SYS_PTRACE for other users').
    pub fn of(proc: &Path, pid: u32) -> io::Result<Self> {
        let of = |file: &str| proc.join(pid.to_string()).join(file);
        let start_ticks = start(&of("stat"))?;
        let status = Status::of(proc, pid)?;
        let exe = of("exe");
        let namespace = |name: &str| fs::metadata(of("ns").join(name)).map(|meta| meta.ino());
        let identity = Self {
            pid,
            start_ticks,
            executable: FileId::of(&fs::metadata(&exe)?),
            executable_path: fs::read_link(&exe)?,
            uids: status.uids,
            gids: status.gids,
            groups: status.groups,
            capabilities: status.capabilities,
            namespaces: Namespaces {
                user: namespace("user")?,
                mount: namespace("mnt")?,
                network: namespace("net")?,
                pid: namespace("pid")?,
            },
        };
        // Otherwise another process got the pid in between.
        if start(&of("stat"))? == start_ticks { Ok(identity) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
    }

    /// True while the same process runs.
    pub fn is_running(&self, proc: &Path) -> bool {
        start(&proc.join(self.pid.to_string()).join("stat")).is_ok_and(|start| start == self.start_ticks)
    }

    /// The effective user.
    pub fn uid(&self) -> u32 {
        self.uids[1]
    }

    /// The rights with which it opens files, without its capabilities.
    pub fn rights(&self) -> Rights {
        Rights::new(self.uids[3], self.gids[3], self.groups.clone())
    }
}

/// The start time (proc_pid_stat(5), field 22). It follows the name, which may contain anything.
fn start(stat: &Path) -> io::Result<u64> {
    let text = read_kernel(stat, 1 << 12)?;
    let behind_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    behind_name.split_ascii_whitespace().nth(22 - 3).and_then(|field| field.parse().ok()).ok_or_else(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_identified() {
        let proc = Path::new("/proc");
        let own = Identity::of(proc, std::process::id()).unwrap();
        assert_eq!(own.executable, FileId::of(&fs::metadata(std::env::current_exe().unwrap()).unwrap()));
        assert_eq!(own.uid(), rustix::process::geteuid().as_raw());
        assert_eq!(own.rights().uid(), own.uid());
        assert!(own.is_running(proc));
        assert_eq!(Identity::of(proc, std::process::id()).unwrap(), own);
        assert!(!Identity { start_ticks: own.start_ticks + 1, ..own }.is_running(proc));
        assert!(Identity::of(proc, u32::MAX).is_err());
    }
}
