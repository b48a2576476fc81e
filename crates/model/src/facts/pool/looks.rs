//! Looks at the system calls of a pool's busy workers: for whom they wait, the server that they called or whoever called them.

use std::collections::{BTreeMap, BTreeSet};

use super::{computes, worker_pids};
use crate::facts::path::Tier;
use crate::facts::{Context, is_end_of};
use crate::observation::{ListenerAddress, NetnsId, SocketAddress, Syscall, TcpState, UnixPeer};

/// Looks at busy workers below which nothing is said: in most of five one is found where it stands for a fifth of its time once in seventeen times (binomial, 5.8 %).
const LOOKS_MIN: usize = 5;
/// Share of the looks in which a worker must have waited for the same side: there for as long as everywhere else together.
const SHARE_MIN: f64 = 0.5;

/// What a look at a worker's system call found at the other end of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Peer {
    /// It waits to be called: it is idle.
    Listener,
    /// Whoever called it.
    Client,
    /// A server that it called, from this namespace.
    Upstream(NetnsId, ListenerAddress),
}

/// What each look at a busy worker found at the other end; `None` where it waited for no socket, or for one of which the other end was not seen. Looks at idle workers
/// are left out.
pub(crate) fn at_busy(ctx: &Context<'_>, tier: &Tier) -> Vec<Option<Peer>> {
    let pids = worker_pids(ctx, tier);
    let processes = pids.iter().filter_map(|pid| ctx.obs.processes.get(pid));
    let calls: Vec<&Syscall> = processes.flat_map(|process| ctx.in_window(&process.syscall).map(|(_, call)| call)).collect();
    let ends = ends(ctx, &calls.iter().flat_map(|call| call.sockets.iter().copied()).collect());
    let peer = |call: &Syscall| {
        let at: Vec<&Peer> = call.sockets.iter().filter_map(|inode| ends.get(inode)).collect();
        let idle = at.contains(&&Peer::Listener) || matches!(call.call.as_deref(), Some("accept" | "accept4"));
        // One that waits for both waits for the server: it called it to answer its client.
        let upstream = at.iter().find(|end| matches!(end, Peer::Upstream(..)));
        (!idle).then(|| upstream.or(at.first()).map(|end| (*end).clone()))
    };
    calls.into_iter().filter_map(peer).collect()
}

/// True where these are most of the looks, and enough of them to tell.
pub(crate) fn are_most(part: usize, looks: usize) -> bool {
    looks >= LOOKS_MIN && part as f64 >= SHARE_MIN * looks as f64
}

/// True where most of a pool's busy workers wait for a server that called them and has no core to go on with: to send the rest of its request, to take the answer or to
/// close. More workers would wait for it as well.
pub(crate) fn callers_lack_cores(ctx: &Context<'_>, tier: &Tier) -> bool {
    let mut callers = ctx.path.tiers.iter().filter(|caller| caller.upstreams.contains(&tier.id.0));
    if !callers.any(|caller| computes(ctx, caller)) {
        return false;
    }
    let busy = at_busy(ctx, tier);
    are_most(busy.iter().filter(|peer| **peer == Some(Peer::Client)).count(), busy.len())
}

/// What is at the other end of these sockets; without those of which it was not seen.
fn ends(ctx: &Context<'_>, wanted: &BTreeSet<u64>) -> BTreeMap<u64, Peer> {
    let mut ends = BTreeMap::new();
    for (&netns, view) in &ctx.obs.netns {
        let mut bound: BTreeSet<&ListenerAddress> = BTreeSet::new();
        for listener in view.listeners.values().flatten() {
            bound.insert(&listener.address);
            if wanted.contains(&listener.inode) {
                ends.insert(listener.inode, Peer::Listener);
            }
        }
        let accepted = |(ip, port): (std::net::IpAddr, u16)| bound.iter().any(|address| is_end_of(address, (ip, port)));
        for socket in view.sockets.values().flatten().filter(|socket| socket.state != TcpState::TimeWait) {
            match &socket.address {
                SocketAddress::Tcp { local, remote } if wanted.contains(&socket.inode) => {
                    let upstream = Peer::Upstream(netns, ListenerAddress::Tcp(remote.0.to_canonical(), remote.1));
                    ends.insert(socket.inode, if accepted(*local) { Peer::Client } else { upstream });
                }
                // The called end has the listener's path, and tells who called; before it is accepted it has no inode of its own.
                SocketAddress::Unix { path: Some(path), peer } => {
                    if let UnixPeer::Inode(caller) = peer
                        && wanted.contains(caller)
                    {
                        ends.insert(*caller, Peer::Upstream(netns, ListenerAddress::Unix(path.clone())));
                    }
                    if wanted.contains(&socket.inode) {
                        ends.insert(socket.inode, Peer::Client);
                    }
                }
                _ => {}
            }
        }
    }
    ends
}
