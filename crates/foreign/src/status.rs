//! What procfs says about the users, groups and capabilities of a process.

use std::io;
use std::path::Path;

use crate::files::read_kernel;

/// The longest status that is read: one of a process with the most groups (NGROUPS_MAX, getgroups(2)) has 700 kB.
const BYTES_MAX: usize = 1 << 20;

/// The lines of proc_pid_status(5) that are read; users and groups are real, effective, saved and file-system.
pub(crate) struct Status {
    pub(crate) uids: [u32; 4],
    pub(crate) gids: [u32; 4],
    pub(crate) groups: Vec<u32>,
    pub(crate) capabilities: u64,
}

impl Status {
    pub(crate) fn of(proc: &Path, pid: u32) -> io::Result<Self> {
        Self::parse(&read_kernel(proc.join(pid.to_string()).join("status"), BYTES_MAX)?).ok_or_else(unreadable)
    }

    /// Parses proc_pid_status(5). The name may contain anything except a newline, which the kernel writes as "\n".
    fn parse(text: &str) -> Option<Self> {
        let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        let numbers = |name: &str| line(name)?.split_ascii_whitespace().map(|number| number.parse().ok()).collect::<Option<Vec<u32>>>();
        Some(Self {
            uids: numbers("Uid:")?.try_into().ok()?,
            gids: numbers("Gid:")?.try_into().ok()?,
            groups: numbers("Groups:")?,
            capabilities: u64::from_str_radix(line("CapEff:")?.trim(), 16).ok()?,
        })
    }
}

/// The real user of a process, whom it cannot change without a right to: the owner of its directory is root, if it wants that (PR_SET_DUMPABLE, prctl(2)). `proc`: where
/// procfs is mounted.
///
/// # Errors
/// It has ended, or its status is malformed.
pub(crate) fn real_user(proc: &Path, pid: u32) -> io::Result<u32> {
    Status::of(proc, pid).map(|status| status.uids[0])
}

pub(crate) fn unreadable() -> io::Error {
    io::Error::from(io::ErrorKind::InvalidData)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_status_is_refused() {
        let text = "Name:\tUid: 0 0 0 0\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9 10 \nCapEff:\t00000000a80425fb\n";
        let status = Status::parse(text).unwrap();
        assert_eq!((status.uids, status.gids, status.groups), ([1, 2, 3, 4], [5, 6, 7, 8], vec![9, 10]));
        assert_eq!(status.capabilities, 0xa804_25fb);
        for at in 0..text.find("CapEff").unwrap() {
            assert!(Status::parse(&text[..at]).is_none());
        }
        assert!(Status::parse(&text.replace("1\t2\t3\t4", "1\t2\t3")).is_none());
    }
}
