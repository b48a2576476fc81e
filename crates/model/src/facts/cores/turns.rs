//! Processes whose threads take turns, so that all of them together are worth one core: interpreters with one lock, and programs that keep one core busy and no more.

use super::threads::READY_SHARE;
use super::{CoreUsers, SATURATED_UTILIZATION, TENANTS_SHARE_MAX, cores_used_by, delayed, ticks_per_s};
use crate::facts::Context;
use crate::facts::path::{Runtime, Tier};
use crate::observation::{CpuUse, ProcessView};

/// The most that the program's own code uses of the one core, with the grain of the clocks: what runs outside of the lock is mostly the kernel's.
const USER_MAX: f64 = 2.0 - SATURATED_UTILIZATION;

/// The threads of a process that take turns on one core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Turns {
    /// Number of threads.
    pub(crate) threads: u32,
    /// Mean number of cores that they kept busy.
    pub(crate) ran: f64,
    /// True if the lock of its interpreter is why. Otherwise the reason is not known: it shows in how they ran.
    pub(crate) by_interpreter: bool,
}

impl Turns {
    /// The threads of a process that take turns and were never without work. `None` if it has one thread, which says by itself whether it is at its limit.
    pub(crate) fn of(ctx: &Context<'_>, pid: u32) -> Option<Self> {
        let process = ctx.obs.processes.get(&pid)?;
        let runtime = process.identity.first().and_then(Runtime::of);
        if runtime.is_some_and(Runtime::has_one_lock) { Self::under_lock(ctx, process, pid) } else { Self::on_one_core(ctx, process, pid) }
    }

    /// Of an interpreter with one lock: they used a whole core, with what other programs kept from a ready thread of theirs, and the program's own code not more.
    fn under_lock(ctx: &Context<'_>, process: &ProcessView, pid: u32) -> Option<Self> {
        let (first, last, elapsed_us) = ctx.inside(&process.cpu)?;
        let ticks_per_s = ticks_per_s(ctx);
        let user = last.user_ticks.saturating_sub(first.user_ticks) as f64 / ticks_per_s * 1e6 / elapsed_us.max(1) as f64;
        let ran = cores_used_by(ctx, pid, ticks_per_s)?;
        // A thread that serves one connection is seldom met at the ends.
        let threads = ctx.in_window(&process.cpu).map(|(_, used)| used.threads).fold(first.threads.max(last.threads), u32::max);
        // What others take beyond that is theirs to answer for.
        let kept_off = kept_off(ctx, pid).min(TENANTS_SHARE_MAX);
        let is_so = threads > 1 && ran + kept_off >= SATURATED_UTILIZATION && user <= USER_MAX;
        is_so.then_some(Self { threads, ran, by_interpreter: true })
    }

    /// Of any other program: from each reading to the next they used one core, never clearly less or more, and on average one request or more stood unread for each that they worked on, although
    /// a core was idle. Threads that may run beside each other read such a request at once. (GOMAXPROCS=1; one lock that all take; an event loop with helpers.)
    fn on_one_core(ctx: &Context<'_>, process: &ProcessView, pid: u32) -> Option<Self> {
        let (first, last, elapsed_us) = ctx.inside(&process.cpu)?;
        let threads: Vec<(u32, u64)> = last.ran_since(first).filter(|(_, ran_ns)| *ran_ns > 0).collect();
        // A thread that is always ready says so by itself.
        let is_always =
            |(id, ran_ns): &(u32, u64)| (ran_ns + last.delayed_since(first, *id)) as f64 >= READY_SHARE * 1e3 * elapsed_us as f64;
        if threads.len() < 2 || threads.iter().any(is_always) {
            return None;
        }
        let readings: Vec<&(u64, CpuUse)> = ctx.in_window(&process.cpu).collect();
        let shares = readings.windows(2).map(|two| {
            let ran_ns = two[1].1.run_ns?.saturating_sub(two[0].1.run_ns?);
            Some(ran_ns as f64 / (two[1].0.saturating_sub(two[0].0).max(1) as f64 * 1e3))
        });
        let shares: Vec<f64> = shares.collect::<Option<_>>()?;
        let is_one = |share: &f64| (SATURATED_UTILIZATION..=USER_MAX).contains(share);
        let tier = ctx.path.tiers.iter().find(|tier| tier.pids.contains(&pid))?;
        let stand = ctx.account()?.waits_for_threads(tier.id.0);
        let ran = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        let is_so = shares.len() > 1 && shares.iter().all(is_one) && stand >= ran;
        is_so.then_some(Self { threads: threads.len() as u32, ran, by_interpreter: false })
    }

    /// The same for a tier: the process with the most threads that take turns.
    pub(crate) fn of_tier(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        tier.pids.iter().filter_map(|pid| Self::of(ctx, *pid)).max_by_key(|turns| turns.threads)
    }

    /// Why one of them runs at a time, for sentences: "interpreter" or "untold".
    pub(crate) fn by(self) -> &'static str {
        if self.by_interpreter { "interpreter" } else { "untold" }
    }
}

/// Mean number of cores that other programs had while a thread of the process was ready, at most: zero if that was not read.
fn kept_off(ctx: &Context<'_>, pid: u32) -> f64 {
    let group = ctx.core_groups().iter().find(|group| group.tiers.iter().any(|tier| tier.pids.contains(&pid)));
    let others = group.and_then(|group| CoreUsers::of(ctx, group)).map_or(0.0, |users| users.others_at_most().max(0.0));
    delayed(ctx, pid).unwrap_or(0.0).min(others)
}
