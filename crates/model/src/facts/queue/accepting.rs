//! Whether those who listen accept what stands in their accept queue: a queue that stays full is no burst.

use crate::facts::Context;
use crate::facts::path::{PlacedListener, Tier};
use crate::facts::pool::SAMPLES_MIN;
use crate::observation::{CpuUse, ProcessView};

/// States of a process that a signal or a tracer has stopped (proc_pid_stat(5)).
const STOPPED: [char; 2] = ['T', 't'];

/// One listener's queue, sample by sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lengths {
    /// Connections in it.
    lengths: Vec<u32>,
    /// Samples in which it was at its limit.
    pub(crate) full: usize,
}

/// Why nobody accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Idle {
    /// This process is stopped.
    Stopped(u32),
    /// None of them ran.
    Asleep,
}

impl Lengths {
    /// `None` if there are too few samples for a statement.
    pub(crate) fn of(ctx: &Context<'_>, placed: &PlacedListener) -> Option<Self> {
        let view = ctx.obs.netns.get(&placed.netns)?;
        let all = ctx.in_window(&view.listeners).map(|(_, listeners)| listeners);
        let own: Vec<_> = all.filter_map(|listeners| listeners.iter().find(|listener| listener.inode == placed.listener.inode)).collect();
        let is_full = |length: u32, limit: u32| length > limit || (length == limit && limit > 0);
        let full = own.iter().filter(|listener| is_full(listener.accept_queue, listener.accept_queue_limit)).count();
        (own.len() >= SAMPLES_MIN).then(|| Self { lengths: own.iter().map(|listener| listener.accept_queue).collect(), full })
    }

    /// Samples.
    pub(crate) fn samples(&self) -> usize {
        self.lengths.len()
    }

    /// True if it was at its limit most of the time. The next connection then finds it full, however the connections are spread.
    pub(crate) fn is_mostly_full(&self) -> bool {
        2 * self.full > self.samples()
    }

    /// True if some connections waited in every sample and none was seen to leave it.
    fn never_fell(&self) -> bool {
        self.lengths[0] > 0 && self.lengths.is_sorted()
    }

    /// The shortest and the longest.
    pub(crate) fn range(&self) -> (u32, u32) {
        (self.lengths.iter().copied().min().unwrap_or(0), self.lengths.iter().copied().max().unwrap_or(0))
    }
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
    Lengths::of(ctx, placed).filter(Lengths::never_fell)?;
    let pids = holders(ctx, tier, placed);
    if pids.is_empty() {
        return None;
    }
    let process = |pid: &u32| ctx.obs.processes.get(pid);
    if pids.iter().all(|pid| process(pid).is_some_and(|process| stopped_looks(ctx, process).is_some())) {
        return pids.first().copied().map(Idle::Stopped);
    }
    let slept = |pid: &u32| ctx.clocked(*pid, |used: &CpuUse| used.run_ns).is_some_and(|ran| ran == 0.0);
    pids.iter().all(slept).then_some(Idle::Asleep)
}

/// Number of readings of a process, if it was stopped in each.
pub(crate) fn stopped_looks(ctx: &Context<'_>, process: &ProcessView) -> Option<usize> {
    let states: Vec<char> = ctx.in_window(&process.cpu).map(|(_, used)| used.state).collect();
    (states.len() >= 2 && states.iter().all(|state| STOPPED.contains(state))).then_some(states.len())
}
