//! Which processes hold a socket, from the links in `/proc/PID/fd`. A process is searched again only if that is needed.

use std::collections::{BTreeMap, BTreeSet};

use super::descriptors::{Budget, Candidate};
use super::stop::Stop;
use crate::root::Root;

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
    sockets_by_pid: BTreeMap<u32, BTreeSet<u64>>,
    budget: Budget,
}

impl SocketOwners {
    /// Updates the index: searches processes that are new since the last call, and all that were not searched since a socket is wanted, if it still is at the call
    /// after that: first those that hold others. Ends after about `links_max` descriptors; the next call goes on. A process that opens nothing new keeps its
    /// sockets until it ends, so no other search is needed. Of the processes of one user only so many descriptors are read (`descriptors.rs`).
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
        // A part of a search takes them as they come: whose they are is asked one by one.
        let candidate = |pid: u32| (pid, (links_max == usize::MAX).then(|| Candidate::of(root, pid)));
        let mut due: Vec<(u32, Option<Candidate>)> = pids.into_iter().filter(due).map(candidate).collect();
        due.sort_by_key(|(pid, known)| {
            (self.searched.contains_key(pid), !self.sockets_by_pid.contains_key(pid), known.as_ref().map(Candidate::rank))
        });
        self.budget.begin();
        let mut links = 0;
        for (pid, known) in due {
            if links >= links_max || stop.is_set() {
                break;
            }
            let process = known.unwrap_or_else(|| Candidate::of(root, pid));
            self.searched.insert(pid, self.turn);
            let table = self.budget.read(root, process, stop);
            links += 1 + table.links;
            let mut held: BTreeSet<u64> = table.sockets.into_iter().filter(|inode| self.wanted.contains_key(inode)).collect();
            if !table.is_whole {
                // What was found before and not looked for again is held still, as far as is known.
                held.extend(self.sockets_by_pid.get(&pid).into_iter().flatten());
            }
            self.forget(pid);
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
    fn a_known_holder_stays_one_where_its_user_has_used_up_the_bound() {
        use super::super::descriptors::{Amount, Bounds};
        let tree = tempfile::tempdir().unwrap();
        let root = Root::new(tree.path());
        process(tree.path(), 10, &["socket:[5]", "socket:[6]", "socket:[7]"]);
        let status = "Uid:\t64001\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t\nCapEff:\t0\n";
        std::fs::write(tree.path().join("proc/10/status"), status).unwrap();
        let much = Amount { links: 6, time: std::time::Duration::from_secs(600) };
        let bounds = Bounds { user: much, others: much, period: much.time };
        let mut owners = SocketOwners { budget: Budget::within(bounds), ..SocketOwners::default() };
        let held = PidsBySocket::from([(5, BTreeSet::from([10]))]);
        assert_eq!(*owners.refresh(&root, &BTreeSet::from([5]), usize::MAX, &Stop::default()), held);
        // Each further socket makes it due again, until nothing is left for its user.
        for inode in 100..110 {
            let wanted = BTreeSet::from([5, inode, 99]);
            assert_eq!(*owners.refresh(&root, &wanted, usize::MAX, &Stop::default()), held, "{inode}");
            assert_eq!(*owners.refresh(&root, &wanted, usize::MAX, &Stop::default()), held, "{inode}");
        }
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
