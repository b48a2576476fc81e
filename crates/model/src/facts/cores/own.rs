//! CPU time of the path's own processes, with that of their children, whether these ended or stay: a worker that serves a few requests, a database's process for each connection.

use std::collections::BTreeSet;

use super::{group_of, ticks_per_s};
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::profile::Profiled;
use crate::observation::{BusyProcess, CpuUse};

/// CPU time of some processes, in cores.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Used {
    /// Of those that are there for the whole window, or began in it and stayed.
    lasting: f64,
    /// Of their children that began or ended in it.
    children: f64,
    /// Of their children that stay and are no processes of the path.
    staying: f64,
}

impl Used {
    /// `None` if no process was read twice.
    fn of(ctx: &Context<'_>, pids: &BTreeSet<u32>) -> Option<Self> {
        let ticks_per_s = ticks_per_s(ctx);
        let is_reaped = |pid: u32| is_reaped(ctx, pid, pids);
        let waited_for: f64 = pids.iter().filter_map(|pid| ended_children(ctx, *pid, pids, ticks_per_s)).sum();
        let staying = staying_children(ctx, pids, ticks_per_s);
        let used = |is_left_out: &dyn Fn(u32) -> bool| {
            let all: Vec<f64> =
                pids.iter().filter(|pid| !is_left_out(**pid)).filter_map(|pid| cores_used_by(ctx, *pid, ticks_per_s)).collect();
            (!all.is_empty()).then(|| all.iter().sum::<f64>())
        };
        // Of children for which nobody waits (SIGCHLD is ignored: wait(2)) the kernel counts nothing. A profile has met them.
        let profiled = Profiled::of(ctx);
        let met = profiled.and_then(|profiled| Some((profiled.profile.span_us.0, profiled.cores_of_started(pids)?)));
        if let Some((began_us, children)) = met.filter(|(_, children)| *children > waited_for) {
            let first_us = |pid: u32| Some(ctx.obs.processes.get(&pid)?.cpu.points().first()?.0);
            let began_meanwhile = |pid: u32| first_us(pid).is_some_and(|first_us| first_us > began_us);
            return Some(Self { lasting: used(&|pid| began_meanwhile(pid) || is_reaped(pid))?, children, staying });
        }
        Some(Self { lasting: used(&is_reaped)?, children: waited_for, staying })
    }
}

/// The busiest programs of the host at one moment.
type Busiest = (u64, Vec<BusyProcess>);

/// The readings of the busiest programs in the window or around it but for the first, and the time from that to the last, seconds.
pub(super) fn busiest<'a>(ctx: &Context<'a>) -> Option<(f64, &'a [Busiest])> {
    let points = ctx.obs.busy_processes.points();
    // What they used is known from one reading to the next.
    let begin = points.iter().rposition(|(at_us, _)| *at_us <= ctx.window_us.0).unwrap_or(0);
    let end = points.iter().position(|(at_us, _)| *at_us >= ctx.window_us.1).unwrap_or(points.len().saturating_sub(1));
    let [(from_us, _), readings @ ..] = points.get(begin..=end)? else { return None };
    let (to_us, _) = readings.last()?;
    Some((to_us.saturating_sub(*from_us) as f64 / 1e6, readings))
}

/// Cores that descendants of these processes use which are no processes of the path and were there at the last reading: a database's processes, each with a connection that is kept, hold
/// no listener. As far as they are among the busiest programs.
fn staying_children(ctx: &Context<'_>, pids: &BTreeSet<u32>, ticks_per_s: f64) -> f64 {
    let Some((elapsed_s, readings)) = busiest(ctx) else { return 0.0 };
    let Some((_, last)) = readings.last() else { return 0.0 };
    let on_path: BTreeSet<u32> = ctx.path.tiers.iter().flat_map(|tier| tier.pids.iter().copied()).collect();
    // Of a server that another one started the nearest counts.
    let is_theirs = |process: &&BusyProcess| {
        let nearest = process.parents.iter().find(|parent| on_path.contains(parent));
        !on_path.contains(&process.pid) && nearest.is_some_and(|parent| pids.contains(parent))
    };
    let theirs: BTreeSet<(u32, u64)> = last.iter().filter(is_theirs).map(|process| (process.pid, process.start_ticks)).collect();
    let all = readings.iter().flat_map(|(_, processes)| processes);
    let grown = all.filter(|process| theirs.contains(&(process.pid, process.start_ticks))).map(|process| process.grown_ticks);
    grown.fold(0, u64::saturating_add) as f64 / ticks_per_s / elapsed_s.max(f64::MIN_POSITIVE)
}

/// CPU time of these processes, in cores, as far as it was read: with that of their children. `None` if none was.
pub(crate) fn own_cores<'p>(ctx: &Context<'_>, pids: impl IntoIterator<Item = &'p u32>) -> Option<f64> {
    let used = Used::of(ctx, &pids.into_iter().copied().collect())?;
    Some(used.lasting + used.children + used.staying)
}

/// CPU time of the children of these processes, in cores, as far as it was read.
pub(crate) fn children_cores(ctx: &Context<'_>, pids: &[u32]) -> f64 {
    Used::of(ctx, &pids.iter().copied().collect()).map_or(0.0, |used| used.children + used.staying)
}

/// The same of those that stay and are no processes of the path alone: a database's, one for each connection.
pub(crate) fn staying_children_cores(ctx: &Context<'_>, pids: &[u32]) -> f64 {
    staying_children(ctx, &pids.iter().copied().collect(), ticks_per_s(ctx))
}

/// The same of those that began or ended in the window alone.
pub(crate) fn passing_children_cores(ctx: &Context<'_>, pids: &[u32]) -> f64 {
    Used::of(ctx, &pids.iter().copied().collect()).map_or(0.0, |used| used.children)
}

/// Share of their time that these processes spent on cores. `None` if no process was read twice.
pub(crate) fn charged_share(ctx: &Context<'_>, pids: &[u32]) -> Option<f64> {
    let ticks_per_s = ticks_per_s(ctx);
    let own: Vec<f64> = pids.iter().filter_map(|pid| cores_used_by(ctx, *pid, ticks_per_s)).collect();
    (!own.is_empty()).then(|| own.iter().sum::<f64>() / own.len() as f64)
}

/// Share of a tier's cores used by its own processes in kernel mode. `None` if it could not be read.
pub(crate) fn kernel_share(ctx: &Context<'_>, tier: &Tier) -> Option<f64> {
    let group = group_of(ctx, tier)?;
    let ticks_per_us = ticks_per_s(ctx) / 1e6;
    let used = |pid: &u32| {
        let (first, last, elapsed_us) = ctx.inside(&ctx.obs.processes.get(pid)?.cpu)?;
        Some(last.system_ticks.saturating_sub(first.system_ticks) as f64 / ticks_per_us / elapsed_us as f64)
    };
    let own: Vec<f64> = tier.pids.iter().filter_map(used).collect();
    (!own.is_empty() && !group.cores.is_empty()).then(|| own.iter().sum::<f64>() / group.count())
}

/// Cores that a process used in the window: the larger of the figure from its clock ticks and that from its threads' clocks. Many young processes have too few
/// ticks, each truncated to whole ones; the threads' clocks miss threads that ended. Both are taken over the time between the process's own readings, which
/// may differ from those of other processes and of the cores.
pub(in crate::facts) fn cores_used_by(ctx: &Context<'_>, pid: u32, ticks_per_s: f64) -> Option<f64> {
    let (first, last, elapsed_us) = ctx.inside(&ctx.obs.processes.get(&pid)?.cpu)?;
    let ticked = ticks(last).saturating_sub(ticks(first)) as f64 / ticks_per_s * 1e6 / elapsed_us as f64;
    Some(ctx.clocked(pid, |used| used.run_ns).map_or(ticked, |clocked| ticked.max(clocked)))
}

fn ticks(used: &CpuUse) -> u64 {
    used.user_ticks.saturating_add(used.system_ticks)
}

/// The parent of a process, if that is among these and the time of its children was read.
fn counting_parent(ctx: &Context<'_>, pid: u32, pids: &BTreeSet<u32>) -> Option<u32> {
    let parent = ctx.obs.processes.get(&pid)?.identity.last()?.parent;
    let counts = || ctx.inside(&ctx.obs.processes.get(&parent)?.cpu)?.1.reaped_ticks;
    pids.contains(&parent).then(counts).flatten().map(|_| parent)
}

/// True if a process ended in the window, and its parent was read after that: what it used is among what the parent's children used.
fn is_reaped(ctx: &Context<'_>, pid: u32, pids: &BTreeSet<u32>) -> bool {
    let Some(gone_us) = ctx.obs.processes.get(&pid).and_then(|process| process.cpu.gone_us()) else { return false };
    let parent = counting_parent(ctx, pid, pids).and_then(|parent| ctx.obs.processes.get(&parent));
    parent.is_some_and(|parent| ctx.in_window(&parent.cpu).last().is_some_and(|(at_us, _)| *at_us >= gone_us))
}

/// Cores that the children of a process used in the window which ended in it, whether they were seen or not. The kernel counts a child's time once its parent has
/// waited for it, all of its life at once: what it had used before the window is taken off.
fn ended_children(ctx: &Context<'_>, pid: u32, pids: &BTreeSet<u32>, ticks_per_s: f64) -> Option<f64> {
    let used = &ctx.obs.processes.get(&pid)?.cpu;
    let (first, last, elapsed_us) = ctx.inside(used)?;
    let grown = last.reaped_ticks?.saturating_sub(first.reaped_ticks?);
    if grown == 0 {
        return Some(0.0);
    }
    let mut own_us = ctx.in_window(used).map(|(at_us, _)| *at_us);
    let begin_us = own_us.next()?;
    // Processes that are known from the beginning are read one after the other; what began later is first read at a later turn.
    let same_turn_us = begin_us + own_us.next().map_or(0, |next_us| next_us - begin_us) / 2;
    let before = |child: &&u32| {
        let readings = ctx.obs.processes.get(child)?.cpu.points();
        readings.iter().rfind(|(at_us, _)| *at_us <= same_turn_us).map(|(_, used)| ticks(used))
    };
    let reaped = pids.iter().filter(|child| counting_parent(ctx, **child, pids) == Some(pid) && is_reaped(ctx, **child, pids));
    let earlier: u64 = reaped.filter_map(|child| before(&child)).sum();
    // Nobody used more than all cores since the first reading: a child that was never seen may have run long before.
    let cores = ctx.obs.cpu.last().map_or(f64::INFINITY, |times| times.cores.len() as f64);
    Some((grown.saturating_sub(earlier) as f64 / ticks_per_s * 1e6 / elapsed_us as f64).min(cores))
}
