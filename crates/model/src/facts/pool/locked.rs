//! Threads of a full pool that wait for other threads of their process: for one lock, or for locks and conditions of their own (a semaphore, a queue).

use super::{MOST, Pool, PoolKind, as_quick_as_alone, looks, worker_pids};
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::observation::ThreadCalls;

/// Threads that wait for other threads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LockAwaited {
    /// Mean number of the taken threads that wait so.
    pub(crate) waiting: f64,
    /// True if they wait at one address: for one lock in memory.
    pub(crate) at_one: bool,
    /// Number of looks at the threads of a process.
    pub(crate) looks: usize,
    /// Mean number of threads at each look, and of those that waited so.
    pub(crate) looked: f64,
    pub(crate) seen: f64,
}

impl LockAwaited {
    /// `None` if the threads could not be looked at, if their requests do not stand inside the tier, or if a request takes no longer than one alone. A wait with an end
    /// of its own (a sleep, a timeout) is no wait for others.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> Option<Self> {
        if pool.kind != PoolKind::Threads || pool.workers < 2 || as_quick_as_alone(ctx, tier) == Some(true) {
            return None;
        }
        // Those that call another server, and wait for the thread that speaks to it, are not inside.
        ctx.account().filter(|account| account.inside(tier.id.0).value >= MOST * pool.busy_mean())?;
        let at_one = Self::seen(ctx, tier, pool, |calls| calls.at_one);
        let untimed = || Self::seen(ctx, tier, pool, |calls| calls.untimed);
        at_one.map(|awaited| Self { at_one: true, ..awaited }).or_else(untimed)
    }

    /// The same by the looks at which these threads wait so. Threads that serve nobody may wait in the same way for work, so all that are not taken count as those.
    fn seen(ctx: &Context<'_>, tier: &Tier, pool: &Pool, waits: fn(&ThreadCalls) -> u32) -> Option<Self> {
        let (mut all, mut waiting, mut looks, mut looked, mut seen) = (0.0, 0.0, 0, 0, 0);
        for process in worker_pids(ctx, tier).iter().filter_map(|pid| ctx.obs.processes.get(pid)) {
            let others = f64::from(process.cpu.last()?.threads.saturating_sub(1));
            let calls: Vec<ThreadCalls> = ctx.in_window(&process.syscall).map(|(_, call)| call.threads).collect();
            let sum = |of: fn(&ThreadCalls) -> u32| calls.iter().map(|calls| f64::from(of(calls))).sum::<f64>();
            let of_all = sum(|calls| calls.looked);
            if of_all == 0.0 {
                continue;
            }
            let those = calls.iter().map(|calls| f64::from(waits(calls))).sum::<f64>();
            // Of many threads only some are looked at.
            all += others * (1.0 - sum(|calls| calls.accepting) / of_all);
            waiting += others * those / of_all;
            looks += calls.iter().filter(|calls| calls.looked > 0).count();
            (looked, seen) = (looked + of_all as u64, seen + those as u64);
        }
        let spare = (all - pool.workers as f64).max(0.0);
        let waiting = (waiting - spare).min(pool.busy_mean());
        let mean = |sum: u64| sum as f64 / looks.max(1) as f64;
        let awaited = Self { waiting, at_one: false, looks, looked: mean(looked), seen: mean(seen) };
        (looks::are_enough(looks) && waiting >= MOST * pool.busy_mean()).then_some(awaited)
    }
}
