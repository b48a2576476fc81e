//! Whose rights apply when the files of a server are read: those of its master, and of every user who can influence which file is read. So these users cannot
//! bring anything into a report that they could not read themselves.

use std::fs::File;
use std::io;
use std::path::Path;

use chokepoint_config::glob;
use chokepoint_foreign::{FileId, Files, Rights};
use chokepoint_recording::Outcome;
use rustix::fd::AsRawFd;
use rustix::fs::{AtFlags, CWD, accessat};
use serde::{Deserialize, Serialize};

use crate::root::{Root, outcome_of};

/// Needed for another user's `/proc/PID/root` (proc_pid_root(5)) and for files that only root may read.
pub(super) const NEEDS: &str = "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH";

/// The file tree that a process sees.
pub(super) fn files(root: &Root, pid: u32) -> Result<Files, Outcome> {
    Files::of_process(&root.path("proc"), pid).map_err(|error| outcome_of(&error, Some(NEEDS)))
}

/// The users who all must be able to read a file, without root. It only gets narrower. Empty: the user of this program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Access(Vec<Rights>);

impl Access {
    /// The access of a process, as far as the user who started it has it too.
    pub(super) fn of_process(root: &Root, pid: u32) -> Result<Self, Outcome> {
        let rights = Rights::all_of_process(&root.path("proc"), pid).map_err(|error| outcome_of(&error, None))?;
        Ok(Self::default().narrowed(rights))
    }

    /// The same with additional users. Only root can use the rights of others.
    pub(super) fn narrowed(&self, by: Vec<Rights>) -> Self {
        let mut all = self.0.clone();
        if rustix::process::geteuid().is_root() {
            let is_new = |rights: &Rights| rights.uid() != 0 && self.0.iter().all(|known| known.uid() != rights.uid());
            all.extend(by.into_iter().filter(is_new));
        }
        Self(all)
    }

    /// The users.
    pub(super) fn into_rights(self) -> Vec<Rights> {
        self.0
    }

    /// True if it has fewer users than another.
    pub(super) fn is_wider_than(&self, other: &Self) -> bool {
        self.0.len() < other.0.len()
    }

    /// The paths that match a pattern, with the rights of the user who was added last.
    pub(super) fn matching(&self, files: &Files, pattern: &str, paths_max: usize, names_left: &mut usize) -> io::Result<Vec<String>> {
        match self.0.last().filter(|_| glob::is_pattern(pattern)) {
            Some(rights) => rights.run(|| files.matching_within(pattern, paths_max, names_left))?,
            None => files.matching_within(pattern, paths_max, names_left),
        }
    }

    /// Opens a regular file that all users may read.
    pub(super) fn open(&self, files: &Files, path: impl AsRef<Path>) -> io::Result<File> {
        let path = path.as_ref();
        self.each(&|| files.open(path))
    }

    /// Locates a socket that all users may connect to, named by its descriptor.
    pub(super) fn locate_socket(&self, files: &Files, path: &str) -> io::Result<File> {
        self.each(&|| {
            let socket = files.locate(path)?;
            let own = format!("/proc/self/fd/{}", socket.as_raw_fd());
            accessat(CWD, own, rustix::fs::Access::WRITE_OK, AtFlags::EACCESS)?;
            Ok(socket)
        })
    }

    fn each(&self, open: &(dyn Fn() -> io::Result<File> + Sync)) -> io::Result<File> {
        let Some((first, rest)) = self.0.split_first() else { return open() };
        let file = first.run(open)??;
        let id = FileId::of(&file.metadata()?);
        for rights in rest {
            if FileId::of(&rights.run(open)??.metadata()?) != id {
                return Err(io::Error::from_raw_os_error(libc::EACCES));
            }
        }
        Ok(file)
    }

    /// A remark for reasons that names the users; empty for the user of this program.
    pub(super) fn remark(&self) -> String {
        let users: Vec<String> = self.0.iter().map(|rights| rights.uid().to_string()).collect();
        if users.is_empty() { String::new() } else { format!(" (read with the rights of user {})", users.join(" and of user ")) }
    }

    /// True if it is the access of this program's user.
    pub(super) fn is_own(&self) -> bool {
        self.0.is_empty()
    }
}
