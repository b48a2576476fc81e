//! Connections to servers behind the first one that others than the path made: another application that uses the same database. What stands on them is no request of the
//! path's, and they are none of the connections that a tier may open.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::facts::path::Endpoint;
use crate::facts::{Context, TierId};
use crate::observation::{NetnsId, RequestSample, RequestSocket};

use super::connections::{called, ends, tier_of};

/// The two ends of a connection, as its caller has them: its own first.
type Ends = (Endpoint, Endpoint);

/// The calling end of a connection, as it was sampled.
struct Calling {
    inode: u64,
    cookie: u64,
    /// The tier that it calls.
    to: usize,
    /// The first and the last sample at which a process holds it, microseconds.
    seen_us: (u64, u64),
}

/// The cookies of both ends of all connections between this namespace and servers of the path that none of the path's processes holds: each that may have made it was seen
/// without it while it was there. A connection that is too short for that, or whose caller is elsewhere, counts as the path's.
pub(super) fn strangers(ctx: &Context<'_>, id: NetnsId, samples: &[&(u64, RequestSample)]) -> BTreeSet<u64> {
    if ctx.path.tiers.len() < 2 {
        return BTreeSet::new();
    }
    let held: BTreeSet<u64> = ctx.path.tiers.iter().flat_map(|tier| &tier.pids).flat_map(|pid| sockets_of(ctx, *pid)).collect();
    let mut tiers: HashMap<u64, Option<usize>> = HashMap::new();
    let mut calling: BTreeMap<Ends, Calling> = BTreeMap::new();
    let mut accepted: BTreeMap<Ends, u64> = BTreeMap::new();
    let listed = inodes_listed(ctx, id);
    let all = samples.iter().flat_map(|(at_us, sample)| sample.sockets.iter().map(move |socket| (*at_us, socket)));
    for (at_us, socket) in all.filter(|(_, socket)| socket.cookie != 0) {
        let Some((local, remote)) = ends(socket) else { continue };
        if tiers.entry(socket.cookie).or_insert_with(|| tier_of(ctx, id, &socket.address)).is_some() {
            accepted.insert((remote, local), socket.cookie);
        } else if let Some(known) = calling.get_mut(&(local, remote)) {
            // Whoever closed it no longer holds it, while the kernel still waits for the other end.
            known.seen_us.1 = if socket.inode == known.inode { at_us } else { known.seen_us.1 };
        } else if let Some(to) = called(ctx, id, remote).filter(|to| *to > 0 && is_held_by_another(socket, &held)) {
            let first_us = listed.get(&socket.inode).map_or(at_us, |first_us| at_us.min(*first_us));
            calling.insert((local, remote), Calling { inode: socket.inode, cookie: socket.cookie, to, seen_us: (first_us, at_us) });
        }
    }
    let strange = calling.into_iter().filter(|(_, end)| callers_lack(ctx, end));
    strange.flat_map(|(ends, end)| std::iter::once(end.cookie).chain(accepted.get(&ends).copied())).collect()
}

/// When each inode was first in a list of all sockets, microseconds. The first list is read before the descriptors of the processes that hold them.
fn inodes_listed(ctx: &Context<'_>, id: NetnsId) -> HashMap<u64, u64> {
    let first = ctx.obs.netns.get(&id).and_then(|view| view.sockets.points().first());
    first.into_iter().flat_map(|(at_us, sockets)| sockets.iter().map(|socket| (socket.inode, *at_us))).collect()
}

/// True if a socket has a process and none of the path's was seen to hold it.
fn is_held_by_another(socket: &RequestSocket, held: &BTreeSet<u64>) -> bool {
    socket.inode != 0 && !held.contains(&socket.inode)
}

fn sockets_of<'c>(ctx: &'c Context<'_>, pid: u32) -> impl Iterator<Item = u64> + 'c {
    let views = ctx.obs.processes.get(&pid);
    views.into_iter().flat_map(|view| view.files.values()).flat_map(|files| files.sockets.iter().copied())
}

/// True if the descriptors of all processes that may have made this connection were read while it was there.
fn callers_lack(ctx: &Context<'_>, end: &Calling) -> bool {
    let pids: Vec<u32> = ctx.path.callers(TierId(end.to)).flat_map(|tier| tier.pids.iter().copied()).collect();
    let was_read = |pid: &u32| {
        let (from_us, to_us) = end.seen_us;
        let readings = ctx.obs.processes.get(pid).map(|view| view.files.points()).unwrap_or_default();
        readings.iter().any(|(at_us, files)| (from_us..=to_us).contains(at_us) && !files.sockets.contains(&end.inode))
    };
    !pids.is_empty() && pids.iter().all(was_read)
}
