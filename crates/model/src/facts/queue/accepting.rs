//! Whether those who listen accept what stands in their accept queue: a queue that stays full is no burst.

use super::halted::stopped;
use crate::facts::Context;
use crate::facts::path::{PlacedListener, Tier};
use crate::facts::pool::SAMPLES_MIN;
use crate::observation::{CpuUse, Listener};

/// One listener's queue, sample by sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lengths {
    /// Connections in it before the window began. `None` if it was not read then.
    before: Option<u32>,
    /// Connections in it.
    lengths: Vec<u32>,
    /// Samples in which it was at its limit.
    pub(crate) full: usize,
}

/// Why nobody accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Idle {
    /// These processes are stopped.
    Stopped(Vec<u32>),
    /// These are all that could accept, and none of them ran.
    Asleep(Vec<u32>),
}

impl Lengths {
    /// `None` if there are too few samples for a statement.
    pub(crate) fn of(ctx: &Context<'_>, placed: &PlacedListener) -> Option<Self> {
        let view = ctx.obs.netns.get(&placed.netns)?;
        let all = ctx.in_window(&view.listeners).map(|(_, listeners)| listeners);
        let own: Vec<_> = all.filter_map(|listeners| listeners.iter().find(|listener| listener.inode == placed.listener.inode)).collect();
        let is_full = |length: u32, limit: u32| length > limit || (length == limit && limit > 0);
        let full = own.iter().filter(|listener| is_full(listener.accept_queue, listener.accept_queue_limit)).count();
        let is_own = |listener: &&Listener| listener.inode == placed.listener.inode;
        let earlier = view.listeners.points().iter().rev().find(|(at_us, _)| *at_us < ctx.window_us.0);
        let before = earlier.and_then(|(_, listeners)| listeners.iter().find(is_own)).map(|listener| listener.accept_queue);
        (own.len() >= SAMPLES_MIN).then(|| Self { before, lengths: own.iter().map(|listener| listener.accept_queue).collect(), full })
    }

    /// Samples.
    pub(crate) fn samples(&self) -> usize {
        self.lengths.len()
    }

    /// True if it was at its limit most of the time. The next connection then finds it full, however the connections are spread.
    pub(crate) fn is_mostly_full(&self) -> bool {
        2 * self.full > self.samples()
    }

    /// Samples in which connections waited.
    pub(crate) fn waited(&self) -> usize {
        self.lengths.iter().filter(|length| **length > 0).count()
    }

    /// True if some connections waited in most samples, and none was seen to leave it. Before the first one came it was empty.
    fn never_fell(&self) -> bool {
        self.waited() >= SAMPLES_MIN && 2 * self.waited() > self.samples() && self.lengths.is_sorted()
    }

    /// Those that came in the window, if most of those that waited at its end were there before it, and none was seen to leave.
    pub(crate) fn came_to_those_before(&self) -> Option<u32> {
        let (first, last) = (self.before?, *self.lengths.last()?);
        let have_stayed = first > 0 && 2 * first > last && self.lengths.first().is_some_and(|length| *length >= first);
        (have_stayed && self.lengths.is_sorted()).then(|| last - first)
    }

    /// By how much it grew in the window.
    pub(crate) fn growth(&self) -> u32 {
        self.lengths.last().zip(self.lengths.first()).map_or(0, |(last, first)| last.saturating_sub(*first))
    }

    /// The shortest and the longest while connections waited.
    pub(crate) fn range(&self) -> (u32, u32) {
        let waited = || self.lengths.iter().copied().filter(|length| *length > 0);
        (waited().min().unwrap_or(0), waited().max().unwrap_or(0))
    }
}

/// The sockets of a tier that listen at the same address as this one, itself included: with SO_REUSEPORT each has its own queue, and the kernel gives each its share of
/// the connections, whether its process accepts them or not (socket(7)).
pub(crate) fn at_same_address<'t>(tier: &'t Tier, placed: &PlacedListener) -> impl Iterator<Item = &'t PlacedListener> {
    tier.listeners.iter().filter(move |own| own.netns == placed.netns && own.listener.address == placed.listener.address)
}

/// True if other sockets of the tier listen at the same address.
pub(crate) fn shares_address(tier: &Tier, placed: &PlacedListener) -> bool {
    at_same_address(tier, placed).nth(1).is_some()
}

/// Share of the samples in which connections waited at every one of the sockets that share an address. 1 if none do. Where one of them is empty, whoever has it accepts
/// what comes, and the others wait for their own process, not for a place in the server.
pub(crate) fn waited_at_each(ctx: &Context<'_>, tier: &Tier) -> f64 {
    let apart = tier.listeners.iter().filter(|placed| shares_address(tier, placed)).filter_map(|placed| Lengths::of(ctx, placed));
    apart.map(|lengths| lengths.waited() as f64 / lengths.samples() as f64).fold(1.0, f64::min)
}

/// The processes that have a listener's socket; all of its tier if their descriptors were not read.
pub(crate) fn holders(ctx: &Context<'_>, tier: &Tier, placed: &PlacedListener) -> Vec<u32> {
    let has = |pid: &&u32| {
        let files = ctx.obs.processes.get(pid).and_then(|process| process.files.last());
        files.is_some_and(|files| files.sockets.contains(&placed.listener.inode))
    };
    let own: Vec<u32> = tier.pids.iter().filter(has).copied().collect();
    if own.is_empty() { tier.pids.clone() } else { own }
}

/// Why nobody accepted a connection in the window. `None` if somebody may have: to accept one, a process has to run.
pub(crate) fn idle(ctx: &Context<'_>, tier: &Tier, placed: &PlacedListener) -> Option<Idle> {
    let never_fell = |placed: &PlacedListener| Lengths::of(ctx, placed).is_some_and(|lengths| lengths.never_fell());
    let pids = holders(ctx, tier, placed);
    if pids.is_empty() || !never_fell(placed) {
        return None;
    }
    let stopped = stopped(ctx, &pids);
    if stopped.len() == pids.len() {
        return Some(Idle::Stopped(stopped));
    }
    let slept = |pid: &u32| ctx.clocked(*pid, |used: &CpuUse| used.run_ns).is_some_and(|ran| ran == 0.0);
    if pids.iter().all(slept) {
        return Some(Idle::Asleep(pids));
    }
    // Workers of one master may all have all the sockets of an address open, and each accepts from one of them.
    let stuck = at_same_address(tier, placed).filter(|own| never_fell(own)).count();
    (shares_address(tier, placed) && stuck <= stopped.len()).then_some(Idle::Stopped(stopped))
}
