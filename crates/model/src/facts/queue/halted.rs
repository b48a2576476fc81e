//! Processes that something outside halts: a signal, a debugger, or the freezer of their control group.

use chokepoint_statistics::wilson;

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::pool::{stop_hurts, waiting_at, worker_pids};
use crate::observation::{CgroupId, CpuUse, Freezer};

/// State of a process that a signal has stopped, and of one that a tracer has (proc_pid_stat(5)).
const STOPPED: char = 'T';
const TRACED: char = 't';
/// Fewest looks for a statement.
const LOOKS_MIN: usize = 2;

/// What halts a process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum HaltedBy<'a> {
    /// A signal (SIGSTOP), or a debugger.
    Signal,
    /// Its control group is frozen.
    Freezer(&'a CgroupId, &'a Freezer),
}

/// How often a process was seen halted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Halt<'a> {
    pub(crate) pid: u32,
    pub(crate) by: HaltedBy<'a>,
    /// Looks at its state.
    pub(crate) looks: usize,
    /// Looks in which it was halted.
    pub(crate) halted: usize,
}

impl<'a> Halt<'a> {
    /// `None` if it never was, and if nobody looked.
    pub(crate) fn of(ctx: &Context<'a>, pid: u32) -> Option<Self> {
        let process = ctx.obs.processes.get(&pid)?;
        let states: Vec<char> = ctx.in_window(&process.cpu).map(|(_, used)| used.state).collect();
        let by_signal =
            Self::counted(pid, HaltedBy::Signal, states.len(), states.iter().filter(|state| [STOPPED, TRACED].contains(state)).count());
        let groups = process.cgroups.last().map(CgroupId::freezable).unwrap_or_default();
        let frozen = groups.iter().filter_map(|id| ctx.obs.freezers.get_key_value(id)).filter_map(|(id, series)| {
            let looks: Vec<&Freezer> = ctx.in_window(series).map(|(_, freezer)| freezer).collect();
            let halted = looks.iter().filter(|freezer| freezer.is_frozen).count();
            Self::counted(pid, HaltedBy::Freezer(id, looks.last()?), looks.len(), halted)
        });
        frozen.chain(by_signal).max_by(|a, b| a.share().total_cmp(&b.share()))
    }

    fn counted(pid: u32, by: HaltedBy<'a>, looks: usize, halted: usize) -> Option<Self> {
        (looks >= LOOKS_MIN && halted > 0).then_some(Self { pid, by, looks, halted })
    }

    /// Share of the looks in which it was halted.
    pub(crate) fn share(&self) -> f64 {
        self.halted as f64 / self.looks.max(1) as f64
    }
}

/// How a process was halted for the whole window: in each look, and it did not run between them either.
pub(crate) fn whole<'a>(ctx: &Context<'a>, pid: u32) -> Option<Halt<'a>> {
    let ran = || ctx.clocked(pid, |used: &CpuUse| used.run_ns).is_some_and(|ran| ran > 0.0);
    Halt::of(ctx, pid).filter(|halt| halt.halted == halt.looks && !ran())
}

/// What halted the first of these processes that was halted all the time; a signal if it is not known.
pub(crate) fn halted_by<'a>(ctx: &Context<'a>, pids: &[u32]) -> HaltedBy<'a> {
    pids.iter().find_map(|pid| whole(ctx, *pid)).map_or(HaltedBy::Signal, |halt| halt.by)
}

/// Those of these processes that were halted all the time.
pub(crate) fn stopped(ctx: &Context<'_>, pids: &[u32]) -> Vec<u32> {
    pids.iter().copied().filter(|pid| whole(ctx, *pid).is_some()).collect()
}

/// Processes of a tier that are halted again and again, and go on each time: cpulimit, a script, a snapshot that freezes their group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HaltedProcesses<'a> {
    /// Their ids.
    pub(crate) pids: Vec<u32>,
    /// Number of all processes that serve.
    pub(crate) of: usize,
    /// How the one that is halted most is.
    pub(crate) most: Halt<'a>,
    /// Share of the time, on average over these.
    pub(crate) share: f64,
    /// Mean number of requests that wait for them.
    pub(crate) waiting: f64,
}

impl<'a> HaltedProcesses<'a> {
    /// `None` if none was seen halted, or only all the time.
    pub(crate) fn of(ctx: &Context<'a>, tier: &Tier) -> Option<Self> {
        let serving = worker_pids(ctx, tier);
        let halts = serving.iter().filter(|pid| whole(ctx, **pid).is_none()).filter_map(|pid| Some((*pid, Halt::of(ctx, *pid)?)));
        // A tracer's own looks tell how much it costs.
        let is_traced = |pid: &u32| {
            ctx.obs.processes.get(pid).is_some_and(|process| process.tracing.last().is_some_and(|tracing| tracing.tracer.is_some()))
        };
        let halts: Vec<(u32, Halt<'_>)> = halts.filter(|(pid, _)| !is_traced(pid)).collect();
        let most = halts.iter().map(|(_, halt)| *halt).max_by(|a, b| a.share().total_cmp(&b.share()))?;
        let share = halts.iter().map(|(_, halt)| halt.share()).sum::<f64>() / halts.len() as f64;
        let waiting = waiting_at(ctx, tier) * halts.len() as f64 / serving.len().max(1) as f64;
        Some(Self { pids: halts.into_iter().map(|(pid, _)| pid).collect(), of: serving.len(), most, share, waiting })
    }

    /// True if what it costs is harm: not more of the requests' time than the processes surely are halted, and not more than they wait for them. They surely are for the lower end of
    /// the 95 % interval of their share; and where they were seen halted more than once, in the spells in which nothing was answered (`paused`, a share of the time).
    pub(crate) fn hurt(&self, ctx: &Context<'_>, paused: f64) -> bool {
        let surely = wilson(self.share, self.most.looks as u64).0;
        stop_hurts(ctx, self.waiting, if self.most.halted > 1 { surely.max(paused) } else { surely })
    }
}
