//! Servers that the kernel gives less time than a program beside them, because somebody lowered their priority.

use super::taken::{Taken, Taker};
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::observation::{BusyProcess, CgroupCpu, CgroupId};

/// The nice value of whoever nobody gave another one (sched(7)). Behind a program that was given more than that, a server's priority is not lowered: the program's is raised.
pub(crate) const USUAL_NICE: i32 = 0;

/// What keeps a server behind the program that takes most of its cores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Lowered<'a> {
    /// Its control group, or one above it, has less than the usual share, and the program is in another one.
    Group(&'a CgroupId, &'a CgroupCpu, u64),
    /// Its process of the class SCHED_IDLE: it runs where nobody else wants to (sched(7)).
    Idle(u32),
    /// The nice value of its process is higher than the program's in the same group.
    Nice(u32, i32, i32),
    /// The nice value of its process's session is higher than that of the program's (sched(7), autogroup).
    Session(u32, i32, i32),
}

impl<'a> Lowered<'a> {
    /// `None` if both have the same, or if it was not read.
    pub(crate) fn of(ctx: &Context<'a>, taken: &Taken<'_, 'a>, tier: &'a Tier) -> Option<Self> {
        // One at real-time priority runs before all that have none, whatever these settings say.
        let taker = taken.takers.first().map(Taker::first).filter(|taker| taker.realtime.is_none())?;
        group(ctx, tier, taker)
            .or_else(|| taken.servers.iter().filter(|server| tier.pids.contains(&server.pid)).find_map(|server| process(server, taker)))
    }
}

/// The level with the smallest part of the usual share among those that hold the tier and not the program.
fn group<'a>(ctx: &Context<'a>, tier: &Tier, taker: &BusyProcess) -> Option<Lowered<'a>> {
    let own = tier.pids.iter().find_map(|pid| CgroupId::of_cpu(ctx.obs.processes.get(pid)?.cgroups.last()?))?;
    let other = CgroupId { version: own.version, path: taker.cgroup.clone()? };
    let levels = own.levels().into_iter().filter(|level| !level.holds(&other));
    let lowered = levels.filter_map(|level| {
        let (id, series) = ctx.obs.cgroups.get_key_value(&level)?;
        let (now, usual) = (series.last()?, id.version.usual_share().1);
        let share = now.share.filter(|share| *share < usual)?;
        Some(Lowered::Group(id, now, share))
    });
    let share = |lowered: &Lowered<'_>| if let Lowered::Group(.., share) = lowered { *share } else { u64::MAX };
    lowered.min_by_key(share)
}

/// What makes a process yield where both are scheduled in one group: nice values are compared within a session, or between sessions.
fn process<'a>(server: &BusyProcess, taker: &BusyProcess) -> Option<Lowered<'a>> {
    if server.task_group.is_none() || server.task_group != taker.task_group {
        return None;
    }
    if server.session != taker.session {
        let (own, other) = (server.session_nice?, taker.session_nice?);
        return (own > other.max(USUAL_NICE)).then_some(Lowered::Session(server.pid, own, other));
    }
    if server.is_idle_class && !taker.is_idle_class {
        return Some(Lowered::Idle(server.pid));
    }
    (server.nice > taker.nice.max(USUAL_NICE)).then_some(Lowered::Nice(server.pid, server.nice, taker.nice))
}
