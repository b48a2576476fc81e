//! Which processes of a tier serve: those that accept connections, and neither the process that started them nor the ones that they started to work for them.

use std::collections::{BTreeMap, BTreeSet};

use super::looks;
use crate::facts::Context;
use crate::facts::path::{Tier, starters};
use crate::facts::profile::Profiled;
use crate::judge::finding::Evidence;
use crate::observation::Identity;
use crate::output::message::Message;

/// The time between two readings of a process, microseconds.
const SECOND_US: u64 = 1_000_000;

/// Time without a reading after which a process has ended, microseconds: two of those that are taken once a second.
const ENDED_US: u64 = 2 * SECOND_US;

/// The processes of a tier that serve. A parent with connections of its own, none of whose children were seen with one, serves, and these children work for it: a process pool
/// (`multiprocessing`, `child_process.fork`), which has the listener open because it began as a copy of its parent, as a prefork server's workers do. Else a parent serves
/// nobody and its children do.
pub(in crate::facts) fn serving(ctx: &Context<'_>, tier: &Tier) -> Vec<u32> {
    let mut serving: Vec<u32> = tier.pids.iter().copied().filter(|pid| identity(ctx, *pid).is_some()).collect();
    let starters = starters(ctx.obs, &tier.pids);
    if starters.is_empty() {
        return serving;
    }
    let seen = Seen::of(ctx, tier);
    let children = |starter: u32| serving.iter().copied().filter(move |pid| parent(ctx, *pid) == Some(starter));
    let mut others: BTreeSet<u32> = BTreeSet::new();
    for starter in starters {
        let serves_alone = seen.serves(starter) && !children(starter).any(|child| seen.serves(child));
        if serves_alone { others.extend(children(starter)) } else { others.extend([starter]) }
    }
    serving.retain(|pid| !others.contains(pid));
    serving
}

/// The workers of a tier.
pub(crate) fn worker_pids<'c>(ctx: &'c Context<'_>, tier: &Tier) -> &'c [u32] {
    ctx.workers(tier)
}

/// Who they are.
pub(crate) fn identities<'a>(ctx: &Context<'a>, tier: &Tier) -> Vec<&'a Identity> {
    worker_pids(ctx, tier).iter().filter_map(|pid| identity(ctx, *pid)).collect()
}

/// How many of these processes were there at once, in each half of the window: in a quarter of the seconds in which any was read there were as many or more. One that ended and the one that
/// took its place are a single worker, and it may take a while until that is found. One that was never read was there all the time.
fn in_halves(ctx: &Context<'_>, workers: &[&Identity]) -> (usize, usize) {
    let half_us = u64::midpoint(ctx.window_us.0, ctx.window_us.1);
    let seen: Vec<(u64, u64)> = workers.iter().map(|worker| seen(ctx, worker.pid).unwrap_or((0, u64::MAX))).collect();
    let usual = |(from_us, to_us): (u64, u64)| {
        let seconds = from_us / SECOND_US..=to_us / SECOND_US;
        let there = |second: u64| seen.iter().filter(|(began, ended)| (began / SECOND_US..=ended / SECOND_US).contains(&second)).count();
        let mut counts: Vec<usize> = seconds.map(there).filter(|count| *count > 0).collect();
        counts.sort_unstable();
        counts.get(3 * counts.len() / 4).copied().unwrap_or(0)
    };
    (usual((ctx.window_us.0, half_us)), usual((half_us, ctx.window_us.1)))
}

/// How many of these processes were there at once.
pub(super) fn at_once(ctx: &Context<'_>, workers: &[&Identity]) -> usize {
    let (before, after) = in_halves(ctx, workers);
    before.max(after)
}

/// True if there were more of them in the window's second half. Servers check about once a second whether they need more.
pub(super) fn grew_late(ctx: &Context<'_>, workers: &[&Identity]) -> bool {
    let (before, after) = in_halves(ctx, workers);
    after > before
}

/// How many workers of a tier ended while others went on.
pub(super) fn ended(ctx: &Context<'_>, tier: &Tier) -> usize {
    let last: Vec<u64> = worker_pids(ctx, tier).iter().filter_map(|pid| Some(seen(ctx, *pid)?.1)).filter(|last| *last < u64::MAX).collect();
    let newest = last.iter().copied().max().unwrap_or(0);
    last.into_iter().filter(|last| *last + ENDED_US < newest).count()
}

/// Evidence that workers of a full tier ended: none of them was one too many.
pub(crate) fn ended_proof(ctx: &Context<'_>, tier: &Tier) -> Option<Evidence> {
    let count = ended(ctx, tier);
    let text = Message::new("evidence-workers-ended").with("count", count as f64).with("tier", tier.name.as_str());
    (count > 0).then(|| Evidence::new(text, "/proc/PID/stat", Some(count as f64)))
}

/// When a process was first and last read, microseconds; without an end if what it used was never read.
fn seen(ctx: &Context<'_>, pid: u32) -> Option<(u64, u64)> {
    let process = ctx.obs.processes.get(&pid)?;
    Some((process.identity.points().first()?.0, process.cpu.points().last().map_or(u64::MAX, |(at_us, _)| *at_us)))
}

/// How many processes a tier started each second, and how many serve, if it started more than that while the profile was taken: each was replaced.
pub(crate) fn replaced(ctx: &Context<'_>, tier: &Tier) -> Option<(f64, usize)> {
    let profiled = Profiled::of(ctx)?;
    let (per_s, serving) = (profiled.starts_per_s(tier)?, worker_pids(ctx, tier).len());
    (serving > 0 && per_s * profiled.profile.seconds() > serving as f64).then_some((per_s, serving))
}

fn identity<'a>(ctx: &Context<'a>, pid: u32) -> Option<&'a Identity> {
    ctx.obs.processes.get(&pid)?.identity.first()
}

fn parent(ctx: &Context<'_>, pid: u32) -> Option<u32> {
    Some(ctx.obs.processes.get(&pid)?.identity.last()?.parent)
}

/// What shows that a process serves.
struct Seen {
    /// For each process the accepted connections that it was seen to hold.
    held: BTreeMap<u32, BTreeSet<u64>>,
    /// Processes that were seen to accept, or to wait at a connection that they had accepted.
    at_clients: BTreeSet<u32>,
}

impl Seen {
    fn of(ctx: &Context<'_>, tier: &Tier) -> Self {
        let mut accepted: BTreeSet<u64> = BTreeSet::new();
        if let Some(view) = ctx.obs.netns.get(&tier.netns) {
            let read = view.sockets.values().flatten().map(|socket| (&socket.address, socket.inode));
            let sampled = view.request_samples.values().flat_map(|sample| &sample.sockets).map(|socket| (&socket.address, socket.inode));
            accepted.extend(read.chain(sampled).filter(|(address, inode)| *inode != 0 && tier.accepts(address)).map(|(_, inode)| inode));
        }
        let held = |pid: &u32| {
            let files = &ctx.obs.processes.get(pid)?.files;
            let inodes = files.values().flat_map(|files| &files.sockets).copied();
            Some((*pid, inodes.filter(|inode| accepted.contains(inode)).collect()))
        };
        Self { held: tier.pids.iter().filter_map(held).collect(), at_clients: looks::at_clients(ctx, &tier.pids) }
    }

    /// True if a process accepted a connection: it holds one that no other has, for what a copy of a process inherits its parent has as well.
    fn serves(&self, pid: u32) -> bool {
        let is_own = |inode: &u64| !self.held.iter().any(|(other, held)| *other != pid && held.contains(inode));
        self.at_clients.contains(&pid) || self.held.get(&pid).is_some_and(|held| held.iter().any(is_own))
    }
}
