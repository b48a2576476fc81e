//! Whose requests stand at a server: those of a pool that calls it, or those of other callers.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::Context;
use crate::facts::path::{Endpoint, Tier};
use crate::observation::{ListenerAddress, NetnsView, RequestSocket, SocketAddress, TcpState};

/// The calling ends of connections to a server, as their namespace shows them.
struct CallingEnds {
    /// By local and remote end: the inode, and when it was first and last seen, microseconds.
    seen: BTreeMap<(Endpoint, Endpoint), (u64, u64, u64)>,
    /// Sockets that the pool's processes have.
    own: BTreeSet<u64>,
    /// Sockets that other processes have.
    others: BTreeSet<u64>,
    /// For each of the pool's processes, when its sockets were read.
    read_us: Vec<Vec<u64>>,
}

/// Who made a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caller {
    Pool,
    Other,
    Unknown,
}

impl CallingEnds {
    fn of(ctx: &Context<'_>, pool: &Tier, server: &Tier, view: &NetnsView) -> Self {
        let mut ends = Self { seen: BTreeMap::new(), own: BTreeSet::new(), others: BTreeSet::new(), read_us: Vec::new() };
        for (pid, process) in &ctx.obs.processes {
            let held = process.files.values().flat_map(|files| &files.sockets).copied();
            if pool.pids.contains(pid) {
                ends.own.extend(held);
                ends.read_us.push(process.files.points().iter().map(|(at_us, _)| *at_us).collect());
            } else {
                ends.others.extend(held);
            }
        }
        let ports: BTreeSet<u16> = server.listeners.iter().filter_map(|placed| port(&placed.listener.address)).collect();
        let read = view.sockets.points().iter().flat_map(|(at_us, all)| all.iter().map(move |one| (*at_us, &one.address, one.inode)));
        let sampled = view.request_samples.points().iter();
        let sampled = sampled.flat_map(|(at_us, sample)| sample.sockets.iter().map(move |one| (*at_us, &one.address, one.inode)));
        for (at_us, address, inode) in read.chain(sampled) {
            if let SocketAddress::Tcp { local, remote } = address
                && ports.contains(&remote.1)
            {
                let (seen_inode, first_us, last_us) = ends.seen.entry(key(*local, *remote)).or_insert((inode, at_us, at_us));
                // A closed socket has none any more.
                *seen_inode = (*seen_inode).max(inode);
                (*first_us, *last_us) = ((*first_us).min(at_us), (*last_us).max(at_us));
            }
        }
        ends
    }

    /// Who made the connection whose accepted end has these addresses.
    fn caller(&self, local: Endpoint, remote: Endpoint) -> Caller {
        let Some(&(inode, first_us, last_us)) = self.seen.get(&key(remote, local)) else { return Caller::Unknown };
        if self.own.contains(&inode) {
            return Caller::Pool;
        }
        // While it was there, the sockets of each of the pool's processes were read, and it was none of them.
        let was_read = |times: &Vec<u64>| times.iter().any(|at_us| (first_us..=last_us).contains(at_us));
        let is_none_of_them = || inode != 0 && !self.read_us.is_empty() && self.read_us.iter().all(was_read);
        if self.others.contains(&inode) || is_none_of_them() { Caller::Other } else { Caller::Unknown }
    }
}

fn port(address: &ListenerAddress) -> Option<u16> {
    if let ListenerAddress::Tcp(_, port) = address { Some(*port) } else { None }
}

fn key(local: Endpoint, remote: Endpoint) -> (Endpoint, Endpoint) {
    ((local.0.to_canonical(), local.1), (remote.0.to_canonical(), remote.1))
}

/// The share of the requests at a server, 0 to 1, that can be a pool's: all but those on connections that are known to be another caller's. All of them where no connection of the pool
/// was recognised there, as behind a translation of addresses, or where they do not show what is asked on them (unix sockets).
pub(crate) fn share_at(ctx: &Context<'_>, pool: &Tier, server: &Tier) -> f64 {
    let views = ctx.obs.netns.get(&pool.netns).zip(ctx.obs.netns.get(&server.netns));
    let Some((calling, serving)) = views else { return 1.0 };
    let ends = CallingEnds::of(ctx, pool, server, calling);
    let (mut of_others, mut all, mut is_recognised) = (0.0, 0.0, false);
    for (_, sample) in ctx.in_window(&serving.request_samples) {
        for socket in sample.sockets.iter().filter(|socket| socket.state == TcpState::Established && server.accepts(&socket.address)) {
            let SocketAddress::Tcp { local, remote } = socket.address else { continue };
            let caller = ends.caller(local, remote);
            is_recognised |= caller == Caller::Pool;
            if may_be_asked(socket) {
                all += sample.weight(socket);
                of_others += if caller == Caller::Other { sample.weight(socket) } else { 0.0 };
            }
        }
    }
    if is_recognised && all > 0.0 { 1.0 - of_others / all } else { 1.0 }
}

/// False for a connection whose last data went out: nothing is asked on it.
fn may_be_asked(socket: &RequestSocket) -> bool {
    socket.receive_queue > 0 || socket.times.is_none_or(|times| times.received_last() != Some(false))
}
