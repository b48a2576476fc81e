//! Whether more workers could do more: the existing ones wait for something other than a core, or compute while cores are idle.

use super::{MOST, Pool, PoolKind, looks};
use crate::facts::Context;
use crate::facts::cores::{SATURATED_UTILIZATION, Turns, charged_share, children_cores, group_of, utilization_of};
use crate::facts::path::{Runtime, Tier};

/// Largest share of time running or ready for workers that count as waiting for something other than a core. Workers that compute, or that lose their cores to
/// other programs, are always ready, and more of them would not help.
pub(super) const READY_SHARE_MAX: f64 = 0.5;
/// Busy share of the pool's cores used instead if the kernel has no scheduler statistics.
const CPU_SHARE_MAX: f64 = 0.9;
/// Largest busy share of the pool's cores that leaves room for more computing workers.
const SPARE_SHARE_MAX: f64 = 0.8;
/// Largest share of their time that such workers may wait for a core: with idle cores there is almost no wait.
const DELAYED_SHARE_MAX: f64 = 0.1;
/// Largest mean number of a process's threads running or ready that still counts as waiting. With one thread running all the time they may take turns, as
/// under an interpreter's lock, and more threads would not help.
const THREADS_READY_MAX: f64 = 0.9;
/// Share of a process's threads that wait for a lock, at most, while they do not take turns: half. Of threads in turns all but one wait for it.
const LOCKED_SHARE_MAX: f64 = 0.5;
/// Mean number of threads running or ready from which they do not take turns.
const THREADS_READY_MIN: f64 = 1.2;

/// Evidence that more workers could do more.
pub(crate) enum IdleEvidence {
    /// Share of their time that the workers ran or were ready.
    Workers(f64),
    /// Busy share of their cores, if the kernel has no scheduler statistics.
    Cores(f64),
    /// Busy share of their cores while they compute.
    Beside(f64),
    /// Connections that are never accepted while others are kept, whatever the workers do.
    Left,
}

impl IdleEvidence {
    /// `None` if more workers would only share the same cores.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> Option<Self> {
        // Of threads under one lock one runs at a time, however many there are.
        if pool.kind == PoolKind::Threads && Turns::of_tier(ctx, tier).is_some() {
            return None;
        }
        // Workers that wait for processes which they started compute in these.
        if has_full_cores(ctx, tier) && group_of(ctx, tier).is_some_and(|group| children_cores(ctx, &tier.pids) >= MOST * group.count()) {
            return None;
        }
        let cores = || utilization_of(ctx, tier);
        let Some(ready) = ready_share(ctx, &tier.pids) else {
            let compute = charged_share(ctx, &tier.pids).is_some_and(|share| share > READY_SHARE_MAX);
            return cores().filter(|share| *share <= CPU_SHARE_MAX && !compute).map(IdleEvidence::Cores);
        };
        let at_once = ready.ready() * ready.processes as f64;
        let (workers, may_wait, may_compute) = match pool.kind {
            PoolKind::Processes => (ready.processes as f64, ready.ready() <= READY_SHARE_MAX, true),
            PoolKind::Threads => {
                // Where no lock makes threads take turns, they wait as processes do. Where other programs use the cores, threads are ready for longer; taking turns
                // they would wait for a lock meanwhile.
                let are_apart =
                    || has_no_lock(ctx, tier) || looks::locked_share(ctx, &tier.pids).is_some_and(|share| share < LOCKED_SHARE_MAX);
                let hardly_ready = at_once <= READY_SHARE_MAX * pool.workers as f64;
                (
                    pool.workers as f64,
                    at_once <= THREADS_READY_MAX || hardly_ready && are_apart(),
                    at_once >= THREADS_READY_MIN && runs_many(ctx, tier, &ready),
                )
            }
            // A loop with time to spare accepts waiting connections. A loop with more load looks like one without time.
            PoolKind::Loops => (ready.processes as f64, ready.ready() <= READY_SHARE_MAX, false),
        };
        if may_wait {
            return Some(IdleEvidence::Workers(at_once / workers));
        }
        // Something keeps the idle cores from the workers: a quota, or the affinity of threads.
        let waits_for_core = ready.delayed * ready.processes as f64 > DELAYED_SHARE_MAX * workers;
        cores().filter(|busy| *busy <= SPARE_SHARE_MAX && !waits_for_core && may_compute).map(IdleEvidence::Beside)
    }
}

/// True if the runtime of a tier's programs is known to run many threads at once. An event loop (Node.js) is not known to, and computes in one.
fn has_no_lock(ctx: &Context<'_>, tier: &Tier) -> bool {
    let identities = || tier.pids.iter().filter_map(|pid| ctx.obs.processes.get(pid)?.identity.last());
    identities().count() > 0 && identities().all(|identity| Runtime::of(identity) == Some(Runtime::Java))
}

/// True unless one lock lets a process of the tier run one thread at a time, and its threads ran no longer than that: however many are ready, more would take turns as well.
fn runs_many(ctx: &Context<'_>, tier: &Tier, ready: &Ready) -> bool {
    let identities = tier.pids.iter().filter_map(|pid| ctx.obs.processes.get(pid)?.identity.last());
    ready.ran >= THREADS_READY_MIN || !identities.filter_map(Runtime::of).any(Runtime::has_one_lock)
}

/// Shares of their time that processes ran on cores and waited for one, all threads included.
pub(crate) struct Ready {
    processes: usize,
    ran: f64,
    delayed: f64,
}

impl Ready {
    /// The sum of both.
    pub(crate) fn ready(&self) -> f64 {
        self.ran + self.delayed
    }
}

/// Means over these processes. `None` without schedstats.
fn ready_share(ctx: &Context<'_>, pids: &[u32]) -> Option<Ready> {
    let share = |pid: &u32| Some((ctx.clocked(*pid, |used| used.run_ns)?, ctx.clocked(*pid, |used| used.run_delay_ns)?));
    let shares: Vec<(f64, f64)> = pids.iter().filter_map(share).collect();
    let processes = shares.len();
    let sum = shares.iter().fold((0.0, 0.0), |sum, share| (sum.0 + share.0, sum.1 + share.1));
    (processes > 0).then(|| Ready { processes, ran: sum.0 / processes as f64, delayed: sum.1 / processes as f64 })
}

/// True if a tier computes on cores that are all busy, or may: whether its processes ran was not read.
pub(crate) fn computes(ctx: &Context<'_>, tier: &Tier) -> bool {
    let shares = ready_shares(ctx, tier);
    has_full_cores(ctx, tier) && (shares.is_empty() || shares.iter().any(|share| *share > READY_SHARE_MAX))
}

/// True if a tier was seen to compute on cores that are all busy.
pub(crate) fn is_seen_computing(ctx: &Context<'_>, tier: &Tier) -> bool {
    has_full_cores(ctx, tier) && ready_shares(ctx, tier).iter().any(|share| *share > READY_SHARE_MAX)
}

fn has_full_cores(ctx: &Context<'_>, tier: &Tier) -> bool {
    utilization_of(ctx, tier).is_some_and(|share| share >= SATURATED_UTILIZATION)
}

/// For each process of a tier the share of its time that it ran or was ready, where that was read.
fn ready_shares(ctx: &Context<'_>, tier: &Tier) -> Vec<f64> {
    tier.pids.iter().filter_map(|pid| Some(ready_share(ctx, &[*pid])?.ready())).collect()
}
