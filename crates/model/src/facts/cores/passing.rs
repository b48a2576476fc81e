//! Processes that a tier starts and that end soon, as for CGI: each is met once, so that no clock of theirs is read twice, and their state at that look says whether they had work.

use super::passing_children_cores;
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::observation::CpuUse;

/// The processes that a tier started and that ended, at the looks at those that started them: mean numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Passing {
    /// Those that were there.
    pub(crate) alive: f64,
    /// Those of them that ran or were ready to.
    pub(crate) at_cores: f64,
    /// Mean number of cores that they used.
    pub(crate) ran: f64,
}

impl Passing {
    /// All zero where none were met.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier) -> Self {
        let met = tier.pids.iter().map(|pid| started_by(ctx, *pid));
        let (alive, at_cores) = met.fold((0.0, 0.0), |sum, met| (sum.0 + met.0, sum.1 + met.1));
        let ran = if alive > 0.0 { passing_children_cores(ctx, &tier.pids).min(alive) } else { 0.0 };
        Self { alive, at_cores: at_cores.max(ran), ran }
    }

    /// Mean number of them that were ready and waited for a core.
    pub(crate) fn delayed(self) -> f64 {
        self.at_cores - self.ran
    }

    /// For each of them the share of the time that it ran, and that it was ready without a core.
    pub(crate) fn shares(self) -> impl Iterator<Item = (f64, f64)> {
        let processes = self.alive.ceil();
        let each = (self.ran / processes.max(1.0), self.delayed() / processes.max(1.0));
        std::iter::repeat_n(each, processes as usize)
    }
}

/// The processes that one started, at each of its readings, on average: all, and those that ran or were ready. Those that stay are no part of it, nor are workers.
fn started_by(ctx: &Context<'_>, parent: u32) -> (f64, f64) {
    let Some(own) = ctx.obs.processes.get(&parent) else { return (0.0, 0.0) };
    let looks = ctx.in_window(&own.cpu).count();
    let [.., (before_us, _), (last_us, _)] = own.cpu.points() else { return (0.0, 0.0) };
    // Processes are read one after the other: what is there at the last look is read within half of the time to the look before.
    let stays_from_us = last_us - (last_us - before_us) / 2;
    // Whoever holds a listener of the path is a worker: what comes next is its to serve, and its own clocks say what it waits for.
    let is_worker = |pid: u32| ctx.path.tiers.iter().any(|tier| tier.pids.contains(&pid));
    let mut met: Vec<&CpuUse> = Vec::new();
    for (pid, child) in &ctx.obs.processes {
        let is_its = child.identity.last().is_some_and(|identity| identity.parent == parent);
        let ended = child.cpu.points().last().is_some_and(|(at_us, _)| *at_us < stays_from_us);
        if is_its && ended && !is_worker(*pid) {
            met.extend(ctx.in_window(&child.cpu).map(|(_, used)| used));
        }
    }
    let mean = |number: usize| number as f64 / looks.max(1) as f64;
    let is_there = |used: &&&CpuUse| !matches!(used.state, 'Z' | 'X');
    (mean(met.iter().filter(is_there).count()), mean(met.iter().filter(|used| used.state == 'R').count()))
}
