//! Whether a log is evidence: nobody but root, its server's own users and the user of this program can have written or replaced it, and it is the file that the server
//! has open.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::Path;

use chokepoint_foreign::{FileId, Files, Rights, Untrusted, Writers, read_kernel, users_of};

use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, makedev, statx};

use crate::root::Root;

/// Most descriptors of a master to compare with a log.
const FDS_MAX: usize = 4096;
/// Most workers whose user is looked at.
const WORKERS_MAX: usize = 64;
/// Most bytes of a file of the kernel about a process, and of the names of users in the server's own file system.
const FACTS_BYTES_MAX: usize = 64 << 10;
const USERS_BYTES_MAX: usize = 1 << 20;
/// How a reason ends why a log that is there is no evidence.
pub const NOT_READ: &str = ": not read";

/// The users of a server.
pub(in crate::servers) struct ServerUsers {
    /// The master's, its workers' where all are one user's, and this program's.
    known: Vec<u32>,
    /// The names of users where the server is (passwd(5)), and which user ids those are here (user_namespaces(7)): first there, first here, how many.
    names: String,
    ids: Vec<[u32; 3]>,
}

impl ServerUsers {
    /// Those of a master. `with_workers`: all of its processes are of one server.
    pub(in crate::servers) fn of(root: &Root, pid: u32, files: &Files, with_workers: bool) -> Self {
        let proc = root.path("proc");
        let fact = |name: String| read_kernel(proc.join(name), FACTS_BYTES_MAX).unwrap_or_default();
        let mut known = vec![rustix::process::geteuid().as_raw(), rustix::process::getuid().as_raw()];
        known.extend(Rights::all_of_process(&proc, pid).into_iter().flatten().map(|rights| rights.uid()));
        if with_workers {
            let workers = fact(format!("{pid}/task/{pid}/children"));
            let workers = workers.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).take(WORKERS_MAX);
            known.extend(workers.filter_map(|worker| Some(Rights::of_process(&proc, worker).ok()?.uid())));
        }
        let ids: Vec<[u32; 3]> = fact(format!("{pid}/uid_map")).lines().filter_map(ids).collect();
        let names = files.read("/etc/passwd", USERS_BYTES_MAX).map(|(bytes, _)| String::from_utf8_lossy(&bytes).into_owned());
        let mut users = Self { known, names: names.unwrap_or_default(), ids };
        // Root of its container.
        users.known.push(users.here(0));
        users.known.sort_unstable();
        users.known.dedup();
        users
    }

    /// Who may write a log: the users of the server, and those whom the configuration names.
    pub(in crate::servers) fn writers(&self, named: &BTreeSet<String>) -> Vec<u32> {
        let named = users_of(named.iter().map(String::as_str), &self.names);
        self.known.iter().copied().chain(named.into_iter().map(|uid| self.here(uid))).collect()
    }

    fn here(&self, uid: u32) -> u32 {
        let of = |[there, here, count]: &[u32; 3]| uid.checked_sub(*there).filter(|at| at < count).map(|at| here.saturating_add(at));
        self.ids.iter().find_map(of).unwrap_or(uid)
    }
}

fn ids(line: &str) -> Option<[u32; 3]> {
    let numbers: Vec<u32> = line.split_ascii_whitespace().map(|number| number.parse().ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

/// Checks that this open file is at the path, and that only these users may have written or replaced it.
pub(in crate::servers) fn check(files: &Files, path: &Path, file: &File, writers: &[u32]) -> io::Result<()> {
    let found = files.written_by(path, &Writers::new(writers.to_vec())).map_err(|why| match why {
        Untrusted::Writable { path: at, by } if at == path => io::Error::other(format!("it may be written by {by}{NOT_READ}")),
        Untrusted::Writable { path: at, by } => {
            io::Error::other(format!("it may be written by {by}, to whom {} is open{NOT_READ}", at.display()))
        }
        Untrusted::Io { source, .. } => source,
    })?;
    if FileId::of(&found.metadata()?) == FileId::of(&file.metadata()?) {
        return Ok(());
    }
    Err(io::Error::other("it was replaced while it was opened"))
}

/// Why a file is none that a process has open; `None` if it is, or if that cannot be read.
pub(in crate::servers) fn why_not_open(root: &Root, pid: u32, file: &File) -> Option<String> {
    let wanted = FileId::of(&file.metadata().ok()?);
    let directory = format!("proc/{pid}/fd");
    let (names, are_more) = root.names(&directory, FDS_MAX, None).ok()?;
    let directory = root.path(&directory);
    let open: Vec<FileId> = names.into_iter().filter_map(|name| regular_file(&directory.join(name))).collect();
    let is_known = !are_more && !open.is_empty();
    (is_known && !open.contains(&wanted)).then(|| format!("the server has another file open, or none{NOT_READ}"))
}

/// The regular file behind a link of the kernel. A file system that another user runs (FUSE) is not asked about it.
fn regular_file(link: &Path) -> Option<FileId> {
    let about = statx(CWD, link, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE | StatxFlags::INO).ok()?;
    let is_file = FileType::from_raw_mode(u32::from(about.stx_mode)) == FileType::RegularFile;
    is_file.then(|| FileId { device: makedev(about.stx_dev_major, about.stx_dev_minor), inode: about.stx_ino })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_ids_of_a_container_are_those_of_the_host() {
        let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let names = "root:x:0:0::/:\nnginx:x:101:101::/:\n".to_owned();
        let users = ServerUsers { known: vec![7], names: names.clone(), ids: vec![[0, 1000, 1], [1, 100_000, 65_536]] };
        assert_eq!(users.writers(&named(&["nginx", "none"])), [7, 100_100]);
        assert_eq!((users.here(0), users.here(70_000)), (1000, 70_000));
        let users = ServerUsers { known: Vec::new(), names, ids: vec![[0, 0, u32::MAX]] };
        assert_eq!(users.writers(&named(&["nginx", "12"])), [12, 101]);
    }
}
