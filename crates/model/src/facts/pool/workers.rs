//! Which processes of a tier serve: those that accept connections, and neither the process that started them nor the ones that they started to work for them.

use std::collections::{BTreeMap, BTreeSet};

use super::serving::level;
use super::{Held, MOST, looks};
use crate::facts::Context;
use crate::facts::path::{Tier, starters};
use crate::facts::profile::Profiled;
use crate::judge::finding::Evidence;
use crate::observation::Identity;
use crate::output::message::Message;

/// The time between two readings of a process, microseconds.
const SECOND_US: u64 = 1_000_000;

/// Shortest time between two readings that tells whether a worker went on: who serves takes up a request and answers it within it, or its clients have waited that long.
const STILL_US: u64 = SECOND_US / 2;

/// A process that runs for less than this share of the time does nothing: a tick of the slowest clock (100 Hz) in ten seconds.
const STILL_SHARE: f64 = 0.001;

/// Longest time between two processes that are read in one turn, microseconds: they are read one after the other, within milliseconds.
const ROUND_US: u64 = SECOND_US / 10;

/// Time without a reading after which a process has ended, microseconds: two of those that are taken once a second.
const ENDED_US: u64 = 2 * SECOND_US;

/// The processes of a tier that serve. A parent with connections of its own, none of whose children were seen with one, serves, and these children work for it: a process pool
/// (`multiprocessing`, `child_process.fork`), which has the listener open because it began as a copy of its parent, as a prefork server's workers do. A parent that serves
/// beside its children (uWSGI without a master) is one of the workers. Else a parent serves nobody and its children do.
pub(in crate::facts) fn serving(ctx: &Context<'_>, tier: &Tier) -> Vec<u32> {
    let is_holder = |pid: &u32| !tier.children.contains(pid) && identity(ctx, *pid).is_some();
    let mut serving: Vec<u32> = tier.pids.iter().copied().filter(is_holder).collect();
    let starters = starters(ctx.obs, &serving);
    if starters.is_empty() {
        return serving;
    }
    let seen = Seen::of(ctx, tier);
    let children = |starter: u32| serving.iter().copied().filter(move |pid| parent(ctx, *pid) == Some(starter));
    let mut others: BTreeSet<u32> = BTreeSet::new();
    for starter in starters {
        let (itself, some_child) = (seen.serves(starter), children(starter).any(|child| seen.serves(child)));
        match (itself, some_child) {
            (true, true) => {}
            (true, false) => others.extend(children(starter)),
            (false, _) => others.extend([starter]),
        }
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

/// How many of these processes were there at once, in each half of the window: a quarter of the times at which all that are known were read, as many or more were. One that
/// ended and the one that took its place are a single worker, and it may take a while until that is found. One whose times were never read was there since it was found.
pub(super) fn in_halves(ctx: &Context<'_>, workers: &[&Identity]) -> (usize, usize) {
    let half_us = u64::midpoint(ctx.window_us.0, ctx.window_us.1);
    let mut readings: Vec<(u64, u32)> = Vec::new();
    let (mut unread, mut unread_before) = (0, 0);
    for worker in workers {
        let times = ctx.obs.processes.get(&worker.pid).map_or(&[][..], |process| process.cpu.points());
        if times.is_empty() {
            unread += 1;
            unread_before += usize::from(seen(ctx, worker.pid).is_none_or(|(first_us, _)| first_us <= half_us));
        }
        readings.extend(times.iter().map(|(at_us, _)| (*at_us, worker.pid)));
    }
    readings.sort_unstable();
    let (mut before, mut after): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut round: BTreeSet<u32> = BTreeSet::new();
    for (n, (at_us, pid)) in readings.iter().enumerate() {
        round.insert(*pid);
        let is_last = readings.get(n + 1).is_none_or(|(next_us, next)| round.contains(next) || next_us - at_us > ROUND_US);
        if is_last {
            (if *at_us <= half_us { &mut before } else { &mut after }).push(round.len());
            round.clear();
        }
    }
    let usual = |mut counts: Vec<usize>| {
        counts.sort_unstable();
        counts.get(3 * counts.len() / 4).copied().unwrap_or(0)
    };
    (usual(before) + unread_before, usual(after) + unread)
}

/// How many of these processes were there at once.
pub(super) fn at_once(ctx: &Context<'_>, workers: &[&Identity]) -> usize {
    let (before, after) = in_halves(ctx, workers);
    before.max(after)
}

/// How many workers that are killed and replaced must have been there to hold these connections, if each is a process with one thread and so serves one at a time: those that take the
/// places of others may end before they are found. Zero if a process has more threads, or its threads were not read.
pub(super) fn replaced_at_once(ctx: &Context<'_>, tier: &Tier, samples: &[Held]) -> usize {
    let has_one_thread =
        |pid: &u32| ctx.obs.processes.get(pid).and_then(|process| process.cpu.last()).is_some_and(|used| used.threads == 1);
    if !worker_pids(ctx, tier).iter().all(has_one_thread) {
        return 0;
    }
    let held: Vec<usize> = samples.iter().map(|held| held.all()).collect();
    level(&held).unwrap_or(0)
}

/// The workers of a tier that ended while another of its processes went on.
fn ended_pids(ctx: &Context<'_>, tier: &Tier) -> Vec<u32> {
    let newest = tier.pids.iter().filter_map(|pid| Some(seen(ctx, *pid)?.1)).filter(|last| *last < u64::MAX).max().unwrap_or(0);
    let is_over = |pid: &u32| seen(ctx, *pid).is_some_and(|(_, last)| last < u64::MAX && last + ENDED_US < newest);
    worker_pids(ctx, tier).iter().copied().filter(is_over).collect()
}

/// How many workers of a tier ended while another of its processes went on: others serve, or the one that starts them.
pub(super) fn ended(ctx: &Context<'_>, tier: &Tier) -> usize {
    ended_pids(ctx, tier).len()
}

/// Workers that end with a request that they do not go on with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Hung {
    /// Workers that ended.
    pub(crate) ended: usize,
    /// Those of them that were read twice within the window.
    pub(crate) told: usize,
    /// Those of these that had not run from one reading to the next before they ended.
    pub(crate) still: usize,
    /// The share of the workers' time that passed so.
    pub(crate) share: f64,
}

impl Hung {
    /// `None` unless most of the workers that ended had not run before, and most of the time of all workers passes so. Who works through requests, however long it waits in each, runs
    /// between them.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        let ended = ended_pids(ctx, tier);
        let (mut still, mut told, mut still_us, mut all_us) = (0, 0, 0, 0);
        for pid in worker_pids(ctx, tier) {
            let Some(process) = ctx.obs.processes.get(pid) else { continue };
            let readings: Vec<(u64, u64)> = ctx.in_window(&process.cpu).filter_map(|(at_us, used)| Some((*at_us, used.run_ns?))).collect();
            let mut is_still = None;
            for two in readings.windows(2).filter(|two| two[1].0 - two[0].0 >= STILL_US) {
                let elapsed_us = two[1].0 - two[0].0;
                let ran = two[1].1.saturating_sub(two[0].1) as f64 / (1e3 * elapsed_us as f64);
                let is_now = ran < STILL_SHARE;
                all_us += elapsed_us;
                still_us += if is_now { elapsed_us } else { 0 };
                is_still = Some(is_now);
            }
            if let Some(is_still) = is_still.filter(|_| ended.contains(pid)) {
                told += 1;
                still += usize::from(is_still);
            }
        }
        let share = still_us as f64 / all_us.max(1) as f64;
        let is_most = still > 0 && still as f64 >= MOST * told as f64 && share >= MOST;
        is_most.then_some(Self { ended: ended.len(), told, still, share })
    }
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
