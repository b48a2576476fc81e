//! The rights with which a file is read: those of the user whose server reads it, so that root reveals nothing that this user could not read.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;

use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use serde::{Deserialize, Serialize};

use crate::status::Status;

/// Most groups of a process (NGROUPS_MAX, getgroups(2)).
const GROUPS_MAX: usize = 65_536;

/// The user, group and supplementary groups with which a process opens files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
}

impl Rights {
    /// Rights of this user, group and supplementary groups.
    pub fn new(uid: u32, gid: u32, groups: Vec<u32>) -> Self {
        Self { uid, gid, groups }
    }

    /// The rights with which a process opens files, from procfs at `proc` ("/proc"), without its capabilities.
    ///
    /// # Errors
    /// It has ended, or its status is malformed.
    pub fn of_process(proc: &Path, pid: u32) -> io::Result<Self> {
        let status = Status::of(proc, pid)?;
        Ok(Self::new(status.uids[3], status.gids[3], status.groups))
    }

    /// The rights of all users that a process acts for: those with which it opens files, and those of the user who started it, whom a set-uid program serves.
    ///
    /// # Errors
    /// As [`Rights::of_process`].
    pub fn all_of_process(proc: &Path, pid: u32) -> io::Result<Vec<Self>> {
        let status = Status::of(proc, pid)?;
        let [real, effective] = [0, 3].map(|which| (status.uids[which], status.gids[which]));
        let of = |(uid, gid)| Self::new(uid, gid, status.groups.clone());
        Ok(if real == effective { vec![of(effective)] } else { vec![of(effective), of(real)] })
    }

    /// The rights of a file's owner: the file's user and group, and no other group.
    pub fn of_owner(file: &Metadata) -> Self {
        Self { uid: file.uid(), gid: file.gid(), groups: Vec::new() }
    }

    /// The user.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// Runs `work` on a thread that opens files with these rights and no capability (setfsuid(2), capabilities(7)). Without the privilege to change users, it
    /// runs with the own rights, without capabilities that override file modes. For the user root, whom file modes do not restrict, nothing changes.
    ///
    /// # Errors
    /// The thread cannot be started, or the rights cannot be taken. Then nothing ran.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        let effective = capabilities(None)?.effective;
        if self.uid == 0 || effective.is_empty() {
            return Ok(work());
        }
        let may_take = effective.contains(CapabilitySet::SETUID | CapabilitySet::SETGID);
        restricted(|| if may_take { self.take() } else { drop_capabilities() }, work)
    }

    /// Takes the rights permanently for the calling thread.
    fn take(&self) -> io::Result<()> {
        set_groups(&self.groups[..self.groups.len().min(GROUPS_MAX)])?;
        set_file_ids(self.uid, self.gid)?;
        // The kernel drops the capabilities that override file modes on a change from root to another user, but not on a change from another user, or with
        // SECBIT_NO_SETUID_FIXUP.
        drop_capabilities()
    }
}

/// Runs `work` with the own user's rights to files, without the capabilities that this program was given beyond them (setcap(8)): they are for readings of the
/// kernel, and no licence to open what the caller names.
///
/// # Errors
/// As of [`Rights::run`].
pub fn as_caller<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    if rustix::process::geteuid().is_root() || capabilities(None)?.effective.is_empty() {
        return Ok(work());
    }
    // The groups stay those of the process: the thread takes nobody else's rights.
    restricted(drop_capabilities, work)
}

/// Runs `work` on a thread of its own after `restrict`: rights belong to a thread, and end with it in any case.
fn restricted<T: Send>(restrict: impl FnOnce() -> io::Result<()> + Send, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("rights".to_owned()).spawn_scoped(scope, || restrict().map(|()| work()))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Drops all effective capabilities of the calling thread.
fn drop_capabilities() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.effective = CapabilitySet::empty();
    Ok(set_capabilities(None, sets)?)
}

/// Sets the groups of this thread only. The C library would set those of all threads.
#[allow(unsafe_code)]
fn set_groups(groups: &[u32]) -> io::Result<()> {
    // SAFETY: the kernel reads `groups.len()` numbers of 32 bits from the slice, which outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets the user and group with which this thread opens files. These calls return no error; a second call shows whether they worked.
#[allow(unsafe_code)]
fn set_file_ids(uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: these calls take and return numbers and change only the calling thread.
    let (gid_now, uid_now) = unsafe {
        libc::setfsgid(gid);
        libc::setfsuid(uid);
        (libc::setfsgid(u32::MAX), libc::setfsuid(u32::MAX))
    };
    let is = |now: libc::c_int, wanted: u32| u32::try_from(now) == Ok(wanted);
    if is(gid_now, gid) && is(uid_now, uid) { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EPERM)) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    #[test]
    fn a_file_is_read_with_the_rights_of_its_owner() {
        if rustix::process::geteuid().as_raw() != 0 {
            println!("skipped: only root has others' rights");
            return;
        }
        let tree = tempfile::tempdir().unwrap();
        fs::set_permissions(tree.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let file = |name: &str, uid: u32, gid: u32, mode: u32| {
            let path = tree.path().join(name);
            fs::write(&path, name).unwrap();
            chown(&path, Some(uid), Some(gid)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let (own, roots, group) = (file("own", 4001, 4001, 0o600), file("roots", 0, 0, 0o600), file("group", 0, 4002, 0o640));
        let user = Rights::new(4001, 4001, vec![4002]);
        let read = |path: &Path| user.run(|| fs::read(path).map_err(|error| error.kind())).unwrap();
        assert!(read(&own).is_ok() && read(&group).is_ok());
        assert_eq!(read(&roots), Err(io::ErrorKind::PermissionDenied));
        let owner = Rights::of_owner(&fs::metadata(&own).unwrap());
        assert!(owner.run(|| fs::read(&group).is_err()).unwrap(), "an owner's other groups are not known");
        assert!(Rights::new(0, 0, Vec::new()).run(|| fs::read(&roots).is_ok()).unwrap());
        // A user with the capability to read everything, but not to become another user.
        let capable = thread::spawn(move || {
            set_file_ids(4003, 4003).unwrap();
            let mut sets = capabilities(None).unwrap();
            sets.effective = CapabilitySet::DAC_READ_SEARCH;
            set_capabilities(None, sets).unwrap();
            assert!(fs::read(&roots).is_ok(), "the capability is there");
            (user.run(|| fs::read(&roots).is_ok()).unwrap(), roots)
        });
        let (is_readable, roots) = capable.join().unwrap();
        assert!(!is_readable);
        assert!(fs::read(&roots).is_ok(), "the calling thread has its rights still");
    }
}
