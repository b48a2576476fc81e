//! Whose programs were sampled: processes of one name may be of different users, or run different files, and are not added up.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use chokepoint_foreign::{FileId, Identity};

use crate::profile::Thread;

/// Where procfs is mounted.
const PROC: &str = "/proc";
/// Most processes of which this is kept. Further ones go by their names.
const PROCESSES_MAX: usize = 10_000;

/// The user of a process and what it executes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Owner {
    uid: u32,
    executable: FileId,
    path: String,
}

impl Owner {
    fn of(pid: u32) -> Option<Self> {
        let identity = Identity::of(Path::new(PROC), pid).ok()?;
        let path = identity.executable_path.to_string_lossy().into_owned();
        Some(Self { uid: identity.uid(), executable: identity.executable, path })
    }
}

/// The owners of sampled processes.
#[derive(Debug, Default)]
pub(crate) struct Owners(HashMap<u32, Option<Owner>>);

impl Owners {
    /// A process was seen.
    pub(crate) fn see(&mut self, pid: u32) {
        if self.0.len() < PROCESSES_MAX {
            self.0.entry(pid).or_insert_with(|| Owner::of(pid));
        }
    }

    /// Names the programs of these threads so that each name stands for one user and one executable: "nginx (user 1000)", "nginx (/usr/bin/python3)". A name that is clear stays.
    pub(crate) fn tell_apart(mut self, threads: &mut [Thread]) {
        // A worker gives its master's rights up soon after it was started.
        for (pid, owner) in &mut self.0 {
            *owner = Owner::of(*pid).or(owner.take());
        }
        self.rename(threads);
    }

    fn rename(&self, threads: &mut [Thread]) {
        let mut named: BTreeMap<String, BTreeSet<&Owner>> = BTreeMap::new();
        for thread in threads.iter() {
            if let Some(Some(owner)) = self.0.get(&thread.pid) {
                named.entry(thread.program.clone()).or_default().insert(owner);
            }
        }
        for thread in threads {
            let (Some(Some(owner)), Some(owners)) = (self.0.get(&thread.pid), named.get(&thread.program)) else { continue };
            let is_of_several_users = owners.iter().any(|other| other.uid != owner.uid);
            let runs_several = owners.iter().any(|other| other.uid == owner.uid && other.executable != owner.executable);
            let of_whom = match (is_of_several_users, runs_several) {
                (false, false) => continue,
                (true, false) => format!("user {}", owner.uid),
                (false, true) => owner.path.clone(),
                (true, true) => format!("user {}, {}", owner.uid, owner.path),
            };
            thread.program = format!("{} ({of_whom})", thread.program);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(owners: &[(u32, u32, u64)]) -> Vec<String> {
        let owner = |uid, inode| Owner { uid, executable: FileId { device: 1, inode }, path: format!("/bin/{inode}") };
        let known = Owners(owners.iter().map(|(pid, uid, inode)| (*pid, Some(owner(*uid, *inode)))).collect());
        let thread = |(pid, ..): &(u32, u32, u64)| Thread {
            pid: *pid,
            tid: *pid,
            name: "t".to_owned(),
            program: "nginx".to_owned(),
            started_by: None,
        };
        let mut threads: Vec<Thread> = owners.iter().map(thread).collect();
        known.rename(&mut threads);
        threads.into_iter().map(|thread| thread.program).collect()
    }

    #[test]
    fn one_name_stands_for_one_user_and_one_executable() {
        assert_eq!(named(&[(1, 33, 7), (2, 33, 7)]), ["nginx", "nginx"]);
        assert_eq!(named(&[(1, 33, 7), (2, 1001, 8), (3, 33, 7)]), ["nginx (user 33)", "nginx (user 1001)", "nginx (user 33)"]);
        assert_eq!(named(&[(1, 33, 7), (2, 33, 8)]), ["nginx (/bin/7)", "nginx (/bin/8)"]);
        let both = named(&[(1, 33, 7), (2, 33, 8), (3, 1001, 8)]);
        assert_eq!(both, ["nginx (user 33, /bin/7)", "nginx (user 33, /bin/8)", "nginx (user 1001)"]);
    }

    #[test]
    fn what_is_not_known_keeps_its_name() {
        let mut threads = [Thread { pid: 5, tid: 5, name: "t".to_owned(), program: "a".to_owned(), started_by: None }];
        let mut owners = Owners::default();
        owners.see(u32::MAX);
        owners.see(std::process::id());
        owners.tell_apart(&mut threads);
        assert_eq!(threads[0].program, "a");
    }
}
