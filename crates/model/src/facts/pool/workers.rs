//! Which processes of a tier serve: those that accept connections, and neither the process that started them nor the ones that they started to work for them.

use std::collections::{BTreeMap, BTreeSet};

use super::looks;
use crate::facts::Context;
use crate::facts::path::{Tier, starters};
use crate::facts::profile::Profiled;
use crate::observation::Identity;

/// The processes of a tier that serve, and those that only work for these.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Workers {
    /// Processes that serve.
    pub(crate) serving: Vec<u32>,
    /// Children of those that serve nobody themselves: a process pool (`multiprocessing`, `child_process.fork`). They have the listener open because they began as a copy of their
    /// parent, as a prefork server's workers do.
    pub(crate) helpers: Vec<u32>,
}

impl Workers {
    /// A parent with connections of its own, none of whose children were seen with one, serves; these children work for it. Else a parent serves nobody and its children do.
    pub(in crate::facts) fn of(ctx: &Context<'_>, tier: &Tier) -> Self {
        let known: Vec<u32> = tier.pids.iter().copied().filter(|pid| identity(ctx, *pid).is_some()).collect();
        let starters = starters(ctx.obs, &tier.pids);
        let mut workers = Self { serving: known, helpers: Vec::new() };
        let families: Vec<(u32, Vec<u32>)> = starters
            .iter()
            .map(|starter| (*starter, workers.serving.iter().copied().filter(|pid| parent(ctx, *pid) == Some(*starter)).collect()))
            .collect();
        let seen = Seen::of(ctx, tier);
        let serves_alone = |starter: u32, children: &[u32]| seen.serves(starter) && !children.iter().any(|child| seen.serves(*child));
        let (parents, masters): (Vec<_>, Vec<_>) = families.into_iter().partition(|(starter, children)| serves_alone(*starter, children));
        workers.helpers = parents.into_iter().flat_map(|(_, children)| children).collect();
        let is_other = |pid: u32| workers.helpers.contains(&pid) || masters.iter().any(|(master, _)| *master == pid);
        workers.serving.retain(|pid| !is_other(*pid));
        workers
    }
}

/// The workers of a tier.
pub(crate) fn worker_pids<'c>(ctx: &'c Context<'_>, tier: &Tier) -> &'c [u32] {
    ctx.workers(tier).map_or(&[], |workers| &workers.serving)
}

/// Who they are.
pub(crate) fn identities<'a>(ctx: &Context<'a>, tier: &Tier) -> Vec<&'a Identity> {
    worker_pids(ctx, tier).iter().filter_map(|pid| identity(ctx, *pid)).collect()
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
