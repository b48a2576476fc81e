//! Processes that serve the connections which their parent accepted, and hold no listener themselves: a database's, one for each connection; the workers of a server whose first process
//! accepts for all of them.

use std::collections::BTreeSet;

use super::PlacedListener;
use crate::observation::{Observation, ProcessView};

/// The children of these holders of listeners that have connections which were accepted there, and which none of the holders has.
pub(super) fn with_connections(obs: &Observation, holders: &[u32], listeners: &[PlacedListener]) -> Vec<u32> {
    let is_child = |(pid, process): &(&u32, &ProcessView)| {
        let parent = process.identity.last().map(|identity| identity.parent);
        !holders.contains(pid) && parent.is_some_and(|parent| holders.contains(&parent))
    };
    let children: Vec<(&u32, &ProcessView)> = obs.processes.iter().filter(is_child).collect();
    if children.is_empty() {
        return Vec::new();
    }
    let mut accepted: BTreeSet<u64> = BTreeSet::new();
    for placed in listeners {
        let sockets = obs.netns.get(&placed.netns).into_iter().flat_map(|view| view.sockets.values().flatten());
        accepted.extend(sockets.filter(|socket| socket.inode != 0 && placed.listener.accepts(&socket.address)).map(|socket| socket.inode));
    }
    for files in holders.iter().filter_map(|pid| obs.processes.get(pid)).flat_map(|process| process.files.values()) {
        for inode in &files.sockets {
            accepted.remove(inode);
        }
    }
    let serves = |process: &ProcessView| process.files.values().any(|files| files.sockets.iter().any(|inode| accepted.contains(inode)));
    children.into_iter().filter(|(_, process)| serves(process)).map(|(pid, _)| *pid).collect()
}
