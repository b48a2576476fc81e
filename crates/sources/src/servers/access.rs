//! Whose rights apply when the files of a server are read: those of its master, and of every user who can influence which file is read. So these users cannot
//! bring anything into a report that they could not read themselves.

use std::fs::File;
use std::io;
use std::path::Path;

use chokepoint_config::glob;
use chokepoint_foreign::{FileId, Files, Rights, SocketAtPath};
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

    /// Runs `read`, which looks for what a file names and reads it. What the first user other than this program's names, or leads this path to, is waited for within
    /// that user's budget ([`chokepoint_foreign::of_file`]).
    ///
    /// # Errors
    /// As of [`chokepoint_foreign::of_file`].
    pub(super) fn within_budget<T: Send + 'static>(
        &self,
        files: &Files,
        path: &str,
        read: impl FnOnce(&Files, &Self) -> T + Send + 'static,
    ) -> io::Result<T> {
        let user = self.0.first().map(Rights::uid).or_else(|| files.first_owner(path));
        let Some(user) = user.filter(|user| *user != rustix::process::geteuid().as_raw()) else { return Ok(read(files, self)) };
        let (files, access) = (files.try_clone()?, self.clone());
        chokepoint_foreign::of_file(user, path, move || read(&files, &access))
    }

    /// Opens a regular file that all users may read.
    pub(super) fn open(&self, files: &Files, path: impl AsRef<Path>) -> io::Result<File> {
        let path = path.as_ref();
        self.each(&|| files.open(path))
    }

    /// Locates a socket that all users may connect to, held by its descriptor.
    pub(super) fn locate_socket(&self, files: &Files, path: &str) -> io::Result<SocketAtPath> {
        let file = self.each(&|| {
            let socket = files.locate(path)?;
            let own = format!("/proc/self/fd/{}", socket.as_raw_fd());
            accessat(CWD, own, rustix::fs::Access::WRITE_OK, AtFlags::EACCESS)?;
            Ok(socket)
        })?;
        SocketAtPath::new(file)
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

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn what_a_user_delays_is_given_up_and_what_another_names_is_read() {
        let files = Files::of_directory(Path::new("/")).unwrap();
        let (mut never, writer) = io::pipe().unwrap();
        let of = |uid: u32| Access(vec![Rights::new(uid, uid, Vec::new())]);
        let late = of(47_110).within_budget(&files, "/srv/late.conf", move |_, _| never.read(&mut [0]).is_ok());
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let again = of(47_110).within_budget(&files, "/srv/late.conf", |_, _| true);
        assert_eq!(again.unwrap_err().to_string(), "reading what user 47110 names takes too long");
        for access in [of(47_111), Access::default()] {
            assert!(access.within_budget(&files, "/srv/late.conf", |_, _| true).unwrap());
        }
        let told = chokepoint_foreign::left_out().join("\n");
        assert!(told.contains("a configuration or log that user 47110 names was not read") && told.ends_with("/srv/late.conf"), "{told}");
        drop(writer);
    }
}
