//! Workers that have answered, have ended their side of the connection, and wait for their client to end the other (a lingering close).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::{MOST, Pool, PoolKind, SAMPLES_MIN, WAITED_SHARE, exhausted, held, held_mean, looks, waited_share, worker_pids};
use crate::facts::Context;
use crate::facts::harm::Cost;
use crate::facts::path::Tier;
use crate::facts::sum::mean;
use crate::observation::{NetnsView, Socket, SocketAddress, TcpState};

/// A tier whose workers wait for the ends of their clients while other connections wait to be accepted.
pub(crate) struct EndsAwaited {
    /// Mean number of connections that are answered and ended, and still held by a process.
    pub(crate) held: f64,
    /// Mean number of all connections that are held.
    pub(crate) taken: f64,
    /// Number of workers, if they are a pool.
    pub(crate) workers: Option<usize>,
    /// Mean number of connections that waited to be accepted.
    pub(crate) waiting: f64,
    /// Samples of busy workers: those that waited for a client that had been answered, and all. None if system calls could not be read.
    pub(crate) looks: Option<(usize, usize)>,
    /// Median time since the answer, milliseconds, if it is known.
    pub(crate) since_answer_ms: Option<u64>,
    /// Mean number of the other ends on this host that know of the server's end and are not closed (CLOSE_WAIT).
    pub(crate) left_open: f64,
}

impl EndsAwaited {
    /// By sockets where a pool is full of such connections; by system calls where the main thread of each process waits so (a thread that accepts connections
    /// serves nobody meanwhile). An event loop waits for many ends at once, in epoll_wait(2), and no connection waits for it.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        let view = ctx.obs.netns.get(&tier.netns)?;
        let samples = held(ctx, tier, view);
        if samples.len() < SAMPLES_MIN {
            return None;
        }
        let sockets = sockets_ended(ctx, tier);
        let looks = seen(ctx, tier, &sockets);
        let are_seen = looks.is_some_and(|(ends, all)| looks::are_most(ends, all));
        let queued = ctx.queued(tier);
        let ended = mean(samples.iter().map(|held| held.ended as u64));
        let is_full = |pool: &Pool| pool.ended_mean() >= MOST * pool.busy_mean();
        let pool = exhausted(ctx, tier).map(|(pool, _)| pool).filter(is_full);
        // If the workers could be looked at, they must have been seen to wait. A look is at a main thread: it says nothing of the others of its process.
        let are_threads = pool.as_ref().is_some_and(|pool| pool.kind == PoolKind::Threads);
        let by_pool = pool.is_some() && (are_seen || are_threads || looks.is_none_or(|(_, all)| !looks::are_enough(all)));
        let waiting = mean(queued.iter().copied());
        let waited = waited_share(&queued) >= WAITED_SHARE && waiting >= 1.0;
        let by_looks = are_seen && waited && Cost::of_time(waiting / (waiting + held_mean(&samples))).hurts();
        (by_pool || by_looks).then(|| Self {
            held: ended,
            taken: held_mean(&samples),
            workers: pool.map(|pool| pool.workers),
            waiting,
            looks: looks.filter(|(_, all)| *all > 0),
            since_answer_ms: since_answer_ms(ctx, tier),
            left_open: left_open(ctx, &sockets),
        })
    }
}

/// Both ends of a connection, the server's first.
type Ends = ((IpAddr, u16), (IpAddr, u16));

/// The accepted sockets of a tier that were seen answered, ended and held by a process: their inodes and their ends.
fn sockets_ended(ctx: &Context<'_>, tier: &Tier) -> BTreeMap<u64, Ends> {
    let Some(view) = ctx.obs.netns.get(&tier.netns) else { return BTreeMap::new() };
    let read = ctx.in_window(&view.sockets).flat_map(|(_, sockets)| sockets);
    let read = read.map(|socket| (&socket.address, socket.state, socket.inode, socket.receive_queue));
    let sampled = ctx.in_window(&view.request_samples).flat_map(|(_, sample)| &sample.sockets);
    let sampled = sampled.map(|socket| (&socket.address, socket.state, socket.inode, socket.receive_queue));
    let ended = |(address, state, inode, unread): (&SocketAddress, TcpState, u64, u32)| {
        let is_ended = state == TcpState::FinWait2 && unread == 0 && inode != 0 && tier.accepts(address);
        match address {
            SocketAddress::Tcp { local, remote } if is_ended => Some((inode, (plain(*local), plain(*remote)))),
            _ => None,
        }
    };
    read.chain(sampled).filter_map(ended).collect()
}

/// An address as both ends write it.
fn plain((ip, port): (IpAddr, u16)) -> (IpAddr, u16) {
    (ip.to_canonical(), port)
}

/// Looks at busy workers: how many waited for such a socket, and all. `None` if no system call was read.
fn seen(ctx: &Context<'_>, tier: &Tier, ended: &BTreeMap<u64, Ends>) -> Option<(usize, usize)> {
    let pids = worker_pids(ctx, tier);
    let processes = pids.iter().filter_map(|pid| ctx.obs.processes.get(pid));
    let calls: Vec<_> = processes.flat_map(|process| ctx.in_window(&process.syscall).map(|(_, call)| call)).collect();
    if calls.is_empty() {
        return None;
    }
    let all = looks::at_busy(ctx, tier).len();
    let ends = calls.iter().filter(|call| call.sockets.iter().any(|inode| ended.contains_key(inode))).count();
    Some((ends, all))
}

fn since_answer_ms(ctx: &Context<'_>, tier: &Tier) -> Option<u64> {
    let view = ctx.obs.netns.get(&tier.netns)?;
    let sockets = ctx.in_window(&view.request_samples).flat_map(|(_, sample)| &sample.sockets);
    let ended = sockets.filter(|socket| socket.state == TcpState::FinWait2 && socket.inode != 0 && tier.accepts(&socket.address));
    let mut ages: Vec<u64> = ended.filter_map(|socket| Some(socket.times?.last_data_sent_ms)).collect();
    ages.sort_unstable();
    ages.get(ages.len() / 2).copied()
}

/// Mean number of the clients' ends of these connections that are told of the server's end and are open.
fn left_open(ctx: &Context<'_>, ended: &BTreeMap<u64, Ends>) -> f64 {
    let others: BTreeSet<Ends> = ended.values().map(|(local, remote)| (*remote, *local)).collect();
    let is_open = |address: &SocketAddress| match address {
        SocketAddress::Tcp { local, remote } => others.contains(&(plain(*local), plain(*remote))),
        SocketAddress::Unix { .. } => false,
    };
    let of_view = |view: &NetnsView| {
        let open =
            |sockets: &[Socket]| sockets.iter().filter(|socket| socket.state == TcpState::CloseWait && is_open(&socket.address)).count();
        mean(ctx.in_window(&view.sockets).map(|(_, sockets)| open(sockets) as u64))
    };
    ctx.obs.netns.values().map(of_view).sum()
}
