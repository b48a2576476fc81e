//! Samples of the system calls of a pool's busy workers: whether they wait for a server that they called, or for their client.

use std::collections::{BTreeMap, BTreeSet};

use super::{MOST, computes, is_seen_computing, worker_pids};
use crate::facts::Context;
use crate::facts::path::{Tier, answers};
use crate::observation::{Identity, Listener, ListenerAddress, NetnsId, SocketAddress, Syscall, TcpState, ThreadCalls, UnixPeer};

/// Fewest samples of busy workers for a statement. Something that takes a fifth of the workers' time is found in most of five samples once in seventeen times
/// (binomial, 5.8 %).
const LOOKS_MIN: usize = 5;

/// The peer that a worker's system call waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Peer {
    /// A listener: the worker is idle.
    Listener,
    /// The client of the worker.
    Client,
    /// A server that it called, from this namespace.
    Upstream(NetnsId, ListenerAddress),
    /// Nobody: the call waits for no socket (a timer, a lock, a file), or the worker ran.
    Nobody,
}

/// The peer in each sample of a busy worker. `None` if the other end was not seen. Samples of idle workers are left out.
pub(crate) fn at_busy(ctx: &Context<'_>, tier: &Tier) -> Vec<Option<Peer>> {
    let pids = worker_pids(ctx, tier);
    let processes = pids.iter().filter_map(|pid| ctx.obs.processes.get(pid));
    let calls: Vec<&Syscall> = processes.flat_map(|process| ctx.in_window(&process.syscall).map(|(_, call)| call)).collect();
    let ends = ends(ctx, &calls.iter().flat_map(|call| call.sockets.iter().copied()).collect());
    let peer = |call: &Syscall| {
        let at: Vec<&Peer> = call.sockets.iter().filter_map(|inode| ends.get(inode)).collect();
        let idle = at.contains(&&Peer::Listener) || matches!(call.call.as_deref(), Some("accept" | "accept4"));
        // A worker that waits for both its client and a server waits for the server: it called the server to answer its client.
        let upstream = at.iter().find(|end| matches!(end, Peer::Upstream(..)));
        let peer = || if call.sockets.is_empty() { Some(Peer::Nobody) } else { upstream.or(at.first()).map(|end| (*end).clone()) };
        (!idle).then(peer)
    };
    calls.into_iter().filter_map(peer).collect()
}

/// The server whose answer the main thread of the only process that serves waits for most of the time, in a call of its own: meanwhile that process reads nothing that others ask.
pub(crate) fn held_at(ctx: &Context<'_>, tier: &Tier) -> Option<ListenerAddress> {
    if worker_pids(ctx, tier).len() != 1 {
        return None;
    }
    let busy = at_busy(ctx, tier);
    let mut at: BTreeMap<&ListenerAddress, usize> = BTreeMap::new();
    for peer in busy.iter().flatten() {
        if let Peer::Upstream(_, address) = peer {
            *at.entry(address).or_default() += 1;
        }
    }
    let (address, looks) = at.into_iter().max_by_key(|(_, looks)| *looks)?;
    are_most(looks, busy.len()).then(|| address.clone())
}

/// Those of these processes whose main thread was seen to wait at a listener, in accept(2), or for a client.
pub(super) fn at_clients(ctx: &Context<'_>, pids: &[u32]) -> BTreeSet<u32> {
    let processes = pids.iter().filter_map(|pid| Some((*pid, ctx.obs.processes.get(pid)?)));
    let calls: Vec<(u32, &Syscall)> = processes.flat_map(|(pid, process)| process.syscall.values().map(move |call| (pid, call))).collect();
    let ends = ends(ctx, &calls.iter().flat_map(|(_, call)| call.sockets.iter().copied()).collect());
    let serves = |call: &Syscall| {
        let is_clients = |inode: &u64| matches!(ends.get(inode), Some(Peer::Listener | Peer::Client));
        matches!(call.call.as_deref(), Some("accept" | "accept4")) || call.sockets.iter().any(is_clients)
    };
    calls.into_iter().filter(|(_, call)| serves(call)).map(|(pid, _)| pid).collect()
}

/// Share of the requests that the workers of `caller` serve for which they wait at `tier`, at least and at most, by the looks at those that serve one: the other end of some sockets is
/// not known. `None` with too few looks, or if the workers have several threads, of which only the main thread's sockets are known.
pub(crate) fn share_waiting_at(ctx: &Context<'_>, caller: &Tier, tier: &Tier) -> Option<(f64, f64)> {
    let mut workers = worker_pids(ctx, caller).iter().filter_map(|pid| ctx.obs.processes.get(pid));
    if !workers.all(|process| process.cpu.last().is_some_and(|used| used.threads == 1)) {
        return None;
    }
    let is_there = |netns: NetnsId, address: &ListenerAddress| tier_at(ctx, netns, address) == Some(tier.id.0);
    // What waits for its client serves nothing yet, or nothing more.
    let serving: Vec<Option<Peer>> = at_busy(ctx, caller).into_iter().filter(|peer| *peer != Some(Peer::Client)).collect();
    let at = serving.iter().filter(|peer| matches!(peer, Some(Peer::Upstream(netns, address)) if is_there(*netns, address))).count();
    let unknown = serving.iter().filter(|peer| peer.is_none()).count();
    let share = |looks: usize| looks as f64 / serving.len() as f64;
    are_enough(serving.len()).then(|| (share(at), share(at + unknown)))
}

/// True for a thread that waits in accept(2), or in epoll_wait(2), for whatever comes.
pub(super) fn waits_for_work(call: &Syscall) -> bool {
    matches!(call.call.as_deref(), Some("accept" | "accept4" | "epoll_wait" | "epoll_pwait" | "epoll_pwait2"))
}

/// Looks at the main thread of a process, and those at which it waited for new work alone: in accept(2), at a listener, or in epoll_wait(2), where a selector waits for
/// the connections of its threads. A look while it ran shows neither.
pub(crate) fn accepts_only(ctx: &Context<'_>, tier: &Tier, pid: u32) -> (usize, usize) {
    let listens: BTreeSet<u64> = tier.listeners.iter().map(|placed| placed.listener.inode).collect();
    let calls = ctx.obs.processes.get(&pid).into_iter().flat_map(|process| ctx.in_window(&process.syscall).map(|(_, call)| call));
    let waits: Vec<&Syscall> = calls.filter(|call| call.call.is_some()).collect();
    let is_for_work = |call: &&&Syscall| waits_for_work(call) || call.sockets.iter().any(|inode| listens.contains(inode));
    (waits.iter().filter(is_for_work).count(), waits.len())
}

/// Share of the threads of these processes besides the main thread, and besides those that accept, that wait for a lock or a signal to go on. `None` with too few looks.
pub(crate) fn locked_share(ctx: &Context<'_>, pids: &[u32]) -> Option<f64> {
    let processes = pids.iter().filter_map(|pid| ctx.obs.processes.get(pid));
    let calls = processes.flat_map(|process| ctx.in_window(&process.syscall).map(|(_, call)| call.threads));
    let seen: Vec<ThreadCalls> = calls.filter(|threads| threads.looked > 0).collect();
    let (mut locked, mut all) = (0, 0);
    for threads in &seen {
        locked += threads.locked;
        all += threads.looked.saturating_sub(threads.accepting);
    }
    (are_enough(seen.len()) && all > 0).then(|| f64::from(locked) / f64::from(all))
}

/// Share of the looks at a tier's busy workers at which they waited in a system call for a lock: of a file (flock(2), fcntl(2)), of memory (futex(2)), or a semaphore (semop(2)).
/// `None` with too few looks.
pub(crate) fn lock_share(ctx: &Context<'_>, tier: &Tier) -> Option<f64> {
    let processes = worker_pids(ctx, tier).iter().filter_map(|pid| ctx.obs.processes.get(pid));
    let calls: Vec<&Syscall> = processes.flat_map(|process| ctx.in_window(&process.syscall).map(|(_, call)| call)).collect();
    let is_lock = |call: &&&Syscall| matches!(call.call.as_deref(), Some("flock" | "fcntl" | "futex" | "semop" | "semtimedop"));
    let busy = at_busy(ctx, tier).len();
    are_enough(busy).then(|| calls.iter().filter(is_lock).count() as f64 / busy as f64)
}

/// Share of the looks that more of them must find in epoll_wait(2) than the workers' idle time explains: less is chance, with as few looks as that.
const LOOPS_SHARE_MIN: f64 = 0.25;

/// True if processes of one thread each wait in epoll_wait(2) although they hold connections: `held` of them each, on average. What serves one connection at a time waits
/// there only while it has none.
pub(crate) fn are_loops(ctx: &Context<'_>, workers: &[&Identity], held: f64) -> bool {
    let processes = workers.iter().filter_map(|identity| ctx.obs.processes.get(&identity.pid));
    let processes = processes.filter(|process| process.cpu.last().is_some_and(|used| used.threads == 1));
    let calls = processes.flat_map(|process| ctx.in_window(&process.syscall).map(|(_, call)| call));
    let (mut waiting, mut looks) = (0, 0);
    for call in calls {
        looks += 1;
        waiting += usize::from(matches!(call.call.as_deref(), Some("epoll_wait" | "epoll_pwait" | "epoll_pwait2")));
    }
    are_enough(looks) && waiting as f64 > (1.0 - held.min(1.0) + LOOPS_SHARE_MIN) * looks as f64
}

/// True if there are enough samples for a statement.
pub(crate) fn are_enough(looks: usize) -> bool {
    looks >= LOOKS_MIN
}

/// True if these are most of the samples, and there are enough of them.
pub(crate) fn are_most(part: usize, looks: usize) -> bool {
    are_enough(looks) && part as f64 >= MOST * looks as f64
}

/// True if most of a pool's busy workers wait for a calling server that has no core: to send the rest of its request, to take the answer or to close. More
/// workers would wait for it too.
pub(crate) fn callers_lack_cores(ctx: &Context<'_>, tier: &Tier) -> bool {
    let callers = || ctx.path.callers(tier.id);
    if !callers().any(|caller| computes(ctx, caller)) {
        return false;
    }
    let busy = at_busy(ctx, tier);
    // What workers wait for may be unread, and of watched traffic it is not known whether they lack: full cores of a caller that is seen to compute explain it.
    if !are_enough(busy.len()) && ctx.obs.load.is_none() {
        return callers().any(|caller| is_seen_computing(ctx, caller));
    }
    are_most(busy.iter().filter(|peer| **peer == Some(Peer::Client)).count(), busy.len())
}

/// The peers of these sockets, as far as seen.
fn ends(ctx: &Context<'_>, wanted: &BTreeSet<u64>) -> BTreeMap<u64, Peer> {
    let mut ends = BTreeMap::new();
    for (&netns, view) in &ctx.obs.netns {
        let mut listeners: BTreeMap<&ListenerAddress, &Listener> = BTreeMap::new();
        for listener in view.listeners.values().flatten() {
            listeners.insert(&listener.address, listener);
            if wanted.contains(&listener.inode) {
                ends.insert(listener.inode, Peer::Listener);
            }
        }
        let is_accepted = |address: &SocketAddress| listeners.values().any(|listener| listener.accepts(address));
        let read = view.sockets.values().flatten().filter(|socket| socket.state != TcpState::TimeWait);
        read.for_each(|socket| see(&mut ends, wanted, (netns, &is_accepted), (&socket.address, socket.inode)));
        // A connection that is made for one request is often met by the samples of requests alone, which are taken more often.
        if wanted.iter().any(|inode| !ends.contains_key(inode)) {
            let sampled = view.request_samples.values().flat_map(|sample| &sample.sockets);
            let unseen: BTreeSet<u64> = wanted.iter().copied().filter(|inode| !ends.contains_key(inode)).collect();
            sampled.for_each(|socket| see(&mut ends, &unseen, (netns, &is_accepted), (&socket.address, socket.inode)));
        }
    }
    ends
}

/// Adds what a socket shows of the wanted ones.
fn see(
    ends: &mut BTreeMap<u64, Peer>,
    wanted: &BTreeSet<u64>,
    (netns, is_accepted): (NetnsId, &dyn Fn(&SocketAddress) -> bool),
    (address, inode): (&SocketAddress, u64),
) {
    match address {
        SocketAddress::Tcp { remote, .. } if wanted.contains(&inode) => {
            let upstream = Peer::Upstream(netns, ListenerAddress::Tcp(remote.0.to_canonical(), remote.1));
            ends.insert(inode, if is_accepted(address) { Peer::Client } else { upstream });
        }
        // The accepting end has the listener's path and names the connecting end. Before it is accepted, it has no inode of its own.
        SocketAddress::Unix { path: Some(path), peer } => {
            if let UnixPeer::Inode(caller) = peer
                && wanted.contains(caller)
            {
                ends.insert(*caller, Peer::Upstream(netns, ListenerAddress::Unix(path.clone())));
            }
            if wanted.contains(&inode) {
                ends.insert(inode, Peer::Client);
            }
        }
        _ => {}
    }
}

/// The tier of the path that answers at an address called from a namespace.
pub(crate) fn tier_at(ctx: &Context<'_>, from: NetnsId, address: &ListenerAddress) -> Option<usize> {
    let here = |tier: &Tier| {
        tier.listeners.iter().any(|placed| match address {
            ListenerAddress::Tcp(ip, port) => {
                ctx.obs.netns.get(&placed.netns).is_some_and(|view| answers(view, placed.netns == from, &placed.listener, *ip, *port))
            }
            ListenerAddress::Unix(_) => placed.listener.address == *address,
        })
    };
    ctx.path.tiers.iter().position(here)
}
