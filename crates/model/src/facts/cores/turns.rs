//! Interpreters with one lock: of the threads of such a process one runs the program's code at a time, so that all of them together are worth one core.

use super::{CoreUsers, SATURATED_UTILIZATION, TENANTS_SHARE_MAX, cores_used_by, delayed, ticks_per_s};
use crate::facts::Context;
use crate::facts::path::{Runtime, Tier};

/// The most that the program's own code uses of the one core, with the grain of the clocks: what runs outside of the lock is mostly the kernel's.
const USER_MAX: f64 = 2.0 - SATURATED_UTILIZATION;

/// The threads of a process that take turns on one core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Turns {
    /// Number of threads.
    pub(crate) threads: u32,
    /// Mean number of cores that they kept busy.
    pub(crate) ran: f64,
}

impl Turns {
    /// The threads of a process whose interpreter has one lock, and was never without work: they used a whole core, with what other programs kept from a ready thread of theirs, and the
    /// program's own code not more. `None` if it has one thread, which says by itself whether it is at its limit.
    pub(crate) fn of(ctx: &Context<'_>, pid: u32) -> Option<Self> {
        let process = ctx.obs.processes.get(&pid)?;
        process.identity.first().and_then(Runtime::of).filter(|runtime| runtime.has_one_lock())?;
        let (first, last, elapsed_us) = ctx.inside(&process.cpu)?;
        let ticks_per_s = ticks_per_s(ctx);
        let user = last.user_ticks.saturating_sub(first.user_ticks) as f64 / ticks_per_s * 1e6 / elapsed_us.max(1) as f64;
        let ran = cores_used_by(ctx, pid, ticks_per_s)?;
        // A thread that serves one connection is seldom met at the ends.
        let threads = ctx.in_window(&process.cpu).map(|(_, used)| used.threads).fold(first.threads.max(last.threads), u32::max);
        // What others take beyond that is theirs to answer for.
        let kept_off = kept_off(ctx, pid).min(TENANTS_SHARE_MAX);
        (threads > 1 && ran + kept_off >= SATURATED_UTILIZATION && user <= USER_MAX).then_some(Self { threads, ran })
    }

    /// The same for a tier: the process with the most threads that take turns.
    pub(crate) fn of_tier(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        tier.pids.iter().filter_map(|pid| Self::of(ctx, *pid)).max_by_key(|turns| turns.threads)
    }
}

/// Mean number of cores that other programs had while a thread of the process was ready, at most: zero if that was not read.
fn kept_off(ctx: &Context<'_>, pid: u32) -> f64 {
    let group = ctx.core_groups().iter().find(|group| group.tiers.iter().any(|tier| tier.pids.contains(&pid)));
    let others = group.and_then(|group| CoreUsers::of(ctx, group)).map_or(0.0, |users| users.others_at_most().max(0.0));
    delayed(ctx, pid).unwrap_or(0.0).min(others)
}
