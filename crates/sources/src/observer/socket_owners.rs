//! Which processes hold a socket, from the links in `/proc/PID/fd`. A process is searched again only if that is needed.

use std::collections::{BTreeMap, BTreeSet};

use super::stop::Stop;
use crate::root::{Root, link_of_path};
use crate::text::process::files::socket_inode;

/// Most descriptors of one process to look at.
const FILES_MAX: usize = 65_536;

/// The processes that hold a socket, by the socket's inode.
pub(crate) type PidsBySocket = BTreeMap<u64, BTreeSet<u32>>;

/// Index of the processes that hold the wanted sockets.
#[derive(Debug, Default)]
pub(crate) struct SocketOwners {
    /// The wanted sockets, each with the turn since which it is wanted.
    wanted: BTreeMap<u64, u64>,
    /// Processes, each with the turn in which it was last searched.
    searched: BTreeMap<u32, u64>,
    turn: u64,
    pids_by_socket: PidsBySocket,
    /// Wanted sockets of each process that holds some.
    sockets_by_pid: BTreeMap<u32, Vec<u64>>,
}

impl SocketOwners {
    /// Updates the index: searches processes that are new since the last call, and all that were not searched since a socket is wanted, if it still is at the call
    /// after that: first those that hold others. Ends after about `links_max` descriptors; the next call goes on. A process that opens nothing new keeps its
    /// sockets until it ends, so no other search is needed.
    pub(crate) fn refresh(&mut self, root: &Root, wanted: &BTreeSet<u64>, links_max: usize, stop: &Stop) -> &PidsBySocket {
        let pids: BTreeSet<u32> = root.pids().unwrap_or_default().into_iter().collect();
        self.turn += 1;
        self.wanted.retain(|inode, _| wanted.contains(inode));
        for inode in wanted {
            self.wanted.entry(*inode).or_insert(self.turn);
        }
        for pid in self.searched.keys().filter(|pid| !pids.contains(pid)).copied().collect::<Vec<_>>() {
            self.forget(pid);
            self.searched.remove(&pid);
        }
        // Sockets that came and went since cost nothing more.
        let since = self.wanted.values().filter(|turn| **turn < self.turn).max().copied().unwrap_or(0);
        let due = |pid: &u32| self.searched.get(pid).is_none_or(|turn| *turn < since);
        let mut due: Vec<u32> = pids.into_iter().filter(due).collect();
        due.sort_by_key(|pid| (self.searched.contains_key(pid), !self.sockets_by_pid.contains_key(pid)));
        let mut links = 0;
        for pid in due {
            if links >= links_max || stop.is_set() {
                break;
            }
            self.forget(pid);
            self.searched.insert(pid, self.turn);
            let open: Vec<u64> = sockets(root, pid).collect();
            links += 1 + open.len();
            let held: Vec<u64> = open.into_iter().filter(|inode| self.wanted.contains_key(inode)).collect();
            for inode in &held {
                self.pids_by_socket.entry(*inode).or_default().insert(pid);
            }
            if !held.is_empty() {
                self.sockets_by_pid.insert(pid, held);
            }
        }
        self.pids_by_socket.retain(|inode, pids| !pids.is_empty() && self.wanted.contains_key(inode));
        &self.pids_by_socket
    }

    fn forget(&mut self, pid: u32) {
        for inode in self.sockets_by_pid.remove(&pid).into_iter().flatten() {
            if let Some(pids) = self.pids_by_socket.get_mut(&inode) {
                pids.remove(&pid);
            }
        }
    }
}

/// The inode of each descriptor of a process that is a socket, else zero; none if it has ended or is not accessible.
fn sockets(root: &Root, pid: u32) -> impl Iterator<Item = u64> {
    let directory = format!("proc/{pid}/fd");
    let (names, _) = root.names(&directory, FILES_MAX, None).unwrap_or_default();
    let path = root.path(&directory);
    names.into_iter().map(move |name| {
        let target = link_of_path(&path.join(name)).ok();
        target.and_then(|target| socket_inode(target.to_str()?)).unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn process(tree: &Path, pid: u32, targets: &[&str]) {
        let directory = tree.join(format!("proc/{pid}/fd"));
        std::fs::create_dir_all(&directory).unwrap();
        for (fd, target) in targets.iter().enumerate() {
            symlink(target, directory.join(fd.to_string())).unwrap();
        }
    }

    #[test]
    fn new_processes_and_newly_wanted_sockets_are_found_and_ended_processes_dropped() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::new(tree.path());
        process(tree.path(), 10, &["socket:[5]", "pipe:[6]", "/dev/null", "socket:[x]"]);
        process(tree.path(), 11, &["socket:[5]", "socket:[7]"]);
        let mut socket_owners = SocketOwners::default();
        let mut refresh = |wanted: &BTreeSet<u64>| socket_owners.refresh(&root, wanted, usize::MAX, &Stop::default()).clone();
        assert_eq!(refresh(&BTreeSet::from([5])), BTreeMap::from([(5, BTreeSet::from([10, 11]))]));
        process(tree.path(), 12, &["socket:[5]"]);
        std::fs::remove_dir_all(tree.path().join("proc/10")).unwrap();
        let both = BTreeSet::from([5, 7]);
        let expected = BTreeMap::from([(5, BTreeSet::from([11, 12])), (7, BTreeSet::from([11]))]);
        assert_eq!(refresh(&both), BTreeMap::from([(5, BTreeSet::from([11, 12]))]));
        assert_eq!(refresh(&both), expected);
        assert_eq!(refresh(&BTreeSet::new()), BTreeMap::new());
    }

    #[test]
    fn this_process_is_found_by_its_own_listener() {
        use std::os::fd::AsRawFd;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let link = std::fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
        let inode: u64 = link.to_str().unwrap().trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
        let pids_by_socket =
            SocketOwners::default().refresh(&Root::default(), &BTreeSet::from([inode]), usize::MAX, &Stop::default()).clone();
        assert!(pids_by_socket[&inode].contains(&std::process::id()));
    }

    #[test]
    fn a_new_socket_costs_a_part_of_the_host_at_a_time_and_one_that_is_gone_nothing() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::new(tree.path());
        for pid in 100..200 {
            process(tree.path(), pid, &["/dev/null", "pipe:[6]", "socket:[1]"]);
        }
        process(tree.path(), 250, &["socket:[5]", "socket:[77]"]);
        let (mut owners, stop) = (SocketOwners::default(), Stop::default());
        let searched = |owners: &SocketOwners| owners.searched.values().filter(|turn| **turn == owners.turn).count();
        owners.refresh(&root, &BTreeSet::from([5]), usize::MAX, &stop);
        assert_eq!(searched(&owners), 101);
        // A listener is new in each turn and gone in the next.
        for inode in 1_000..1_050 {
            owners.refresh(&root, &BTreeSet::from([5, inode]), 20, &stop);
            assert_eq!(searched(&owners), 0, "{inode}");
        }
        // A known server opened another one, and a new process holds it too.
        process(tree.path(), 300, &["socket:[77]"]);
        assert_eq!(owners.refresh(&root, &BTreeSet::from([5, 77]), 20, &stop)[&77], BTreeSet::from([300]));
        assert_eq!(
            owners.refresh(&root, &BTreeSet::from([5, 77]), 1, &stop)[&77],
            BTreeSet::from([250, 300]),
            "a known server is searched first"
        );
        let mut turns = 0;
        while owners.refresh(&root, &BTreeSet::from([5, 77]), 20, &stop).len() == 2 && searched(&owners) > 0 {
            assert!(searched(&owners) <= 5, "{}", searched(&owners));
            turns += 1;
        }
        assert_eq!(turns, 20, "all are searched, a few at a time");
    }
}
