//! Which processes hold a socket, from the links in `/proc/PID/fd`. A process is searched again only if that is needed.

use std::collections::{BTreeMap, BTreeSet};

use crate::root::{Root, link_of_path};
use crate::text::process::files::socket_inode;

/// Most descriptors of one process to look at.
const FILES_MAX: usize = 65_536;

/// The processes that hold a socket, by the socket's inode.
pub(crate) type PidsBySocket = BTreeMap<u64, BTreeSet<u32>>;

/// Index of the processes that hold the wanted sockets.
#[derive(Debug, Default)]
pub(crate) struct SocketOwners {
    wanted: BTreeSet<u64>,
    looked_at: BTreeSet<u32>,
    pids_by_socket: PidsBySocket,
}

impl SocketOwners {
    /// Updates the index: searches processes that are new since the last call, or all of them if a new socket is wanted. A process that opens nothing new
    /// keeps its sockets until it ends, so no other search is needed.
    pub(crate) fn refresh(&mut self, root: &Root, wanted: &BTreeSet<u64>) -> &PidsBySocket {
        let pids: BTreeSet<u32> = root.pids().unwrap_or_default().into_iter().collect();
        if !wanted.is_subset(&self.wanted) {
            self.looked_at.clear();
        }
        self.wanted.clone_from(wanted);
        for pid in pids.difference(&self.looked_at) {
            for socket_owners in self.pids_by_socket.values_mut() {
                socket_owners.remove(pid);
            }
            for inode in sockets(root, *pid).filter(|inode| wanted.contains(inode)) {
                self.pids_by_socket.entry(inode).or_default().insert(*pid);
            }
        }
        self.looked_at = pids;
        for socket_owners in self.pids_by_socket.values_mut() {
            socket_owners.retain(|pid| self.looked_at.contains(pid));
        }
        self.pids_by_socket.retain(|inode, socket_owners| !socket_owners.is_empty() && wanted.contains(inode));
        &self.pids_by_socket
    }
}

/// Inodes of the sockets that a process holds; none if it has ended or is not accessible.
fn sockets(root: &Root, pid: u32) -> impl Iterator<Item = u64> {
    let directory = format!("proc/{pid}/fd");
    let (names, _) = root.names(&directory, FILES_MAX, None).unwrap_or_default();
    let path = root.path(&directory);
    names.into_iter().filter_map(move |name| {
        let target = link_of_path(&path.join(name)).ok()?;
        socket_inode(target.to_str()?)
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
        assert_eq!(*socket_owners.refresh(&root, &BTreeSet::from([5])), BTreeMap::from([(5, BTreeSet::from([10, 11]))]));
        process(tree.path(), 12, &["socket:[5]"]);
        std::fs::remove_dir_all(tree.path().join("proc/10")).unwrap();
        let both = BTreeSet::from([5, 7]);
        let expected = BTreeMap::from([(5, BTreeSet::from([11, 12])), (7, BTreeSet::from([11]))]);
        assert_eq!(*socket_owners.refresh(&root, &both), expected);
        assert_eq!(*socket_owners.refresh(&root, &BTreeSet::new()), BTreeMap::new());
    }

    #[test]
    fn this_process_is_found_by_its_own_listener() {
        use std::os::fd::AsRawFd;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let link = std::fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
        let inode: u64 = link.to_str().unwrap().trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
        let pids_by_socket = SocketOwners::default().refresh(&Root::default(), &BTreeSet::from([inode])).clone();
        assert!(pids_by_socket[&inode].contains(&std::process::id()));
    }
}
