//! Whether more workers could do more: the ones that are there wait for something that is no core, or compute beside cores that are idle.

use super::{Of, Pool};
use crate::facts::Context;
use crate::facts::cores::{SATURATED_UTILIZATION, charged_share, utilization_of};
use crate::facts::path::Tier;

/// Share of their time in which workers may run, or be ready to, for them to count as waiting for something else than a core: workers that
/// compute, or whose cores a neighbour takes, are ready all the time, and more of them would not help.
const READY_SHARE_MAX: f64 = 0.5;
/// Busy share of the pool's cores that stands in for it where the kernel keeps no scheduler statistics.
const CPU_SHARE_MAX: f64 = 0.9;
/// Busy share of the pool's cores up to which workers that compute leave room for more of them.
const SPARE_SHARE_MAX: f64 = 0.8;
/// Share of their time that those may wait for a core: with idle cores there is next to no wait.
const DELAYED_SHARE_MAX: f64 = 0.1;
/// Mean number of a process's threads that may run, or be ready to, for them to count as waiting: with one all the time they may take turns, as
/// under an interpreter's lock, and more of them would not help.
const THREADS_READY_MAX: f64 = 0.9;
/// Mean number from which they do not take turns.
const THREADS_READY_MIN: f64 = 1.2;

/// What shows that more workers could do more.
pub(crate) enum Idle {
    /// The share of their time in which they ran or were ready to.
    Workers(f64),
    /// The busy share of their cores, where the kernel keeps no scheduler statistics.
    Cores(f64),
    /// The busy share of their cores, beside which they compute.
    Beside(f64),
    /// Connections that are never taken while others are kept, whatever the workers do.
    Left,
}

impl Idle {
    /// Nothing where more workers would only share the same cores.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> Option<Self> {
        let cores = || utilization_of(ctx, tier);
        let Some(ready) = ready_share(ctx, &tier.pids) else {
            let compute = charged_share(ctx, &tier.pids).is_some_and(|share| share > READY_SHARE_MAX);
            return cores().filter(|share| *share <= CPU_SHARE_MAX && !compute).map(Idle::Cores);
        };
        let at_once = ready.ready() * ready.processes as f64;
        let (workers, may_wait, may_compute) = match pool.of {
            Of::Processes => (ready.processes as f64, ready.ready() <= READY_SHARE_MAX, true),
            Of::Threads => (pool.workers as f64, at_once <= THREADS_READY_MAX, at_once >= THREADS_READY_MIN),
            // One that has time to spare takes what waits at its door; more than that cannot be told from one that has none.
            Of::Loops => (ready.processes as f64, ready.ready() <= READY_SHARE_MAX, false),
        };
        if may_wait {
            return Some(Idle::Workers(at_once / workers));
        }
        // Idle cores that the workers wait for are kept from them: by a quota, or by an affinity of threads.
        let waits_for_core = ready.delayed * ready.processes as f64 > DELAYED_SHARE_MAX * workers;
        cores().filter(|busy| *busy <= SPARE_SHARE_MAX && !waits_for_core && may_compute).map(Idle::Beside)
    }
}

/// Shares of their time that processes spent on cores and waiting for one, all threads of each.
pub(crate) struct Ready {
    processes: usize,
    ran: f64,
    delayed: f64,
}

impl Ready {
    /// Both together.
    pub(crate) fn ready(&self) -> f64 {
        self.ran + self.delayed
    }
}

/// Means over these processes; nothing where schedstats are missing.
fn ready_share(ctx: &Context<'_>, pids: &[u32]) -> Option<Ready> {
    let share = |pid: &u32| Some((ctx.clocked(*pid, |used| used.run_ns)?, ctx.clocked(*pid, |used| used.run_delay_ns)?));
    let shares: Vec<(f64, f64)> = pids.iter().filter_map(share).collect();
    let processes = shares.len();
    let sum = shares.iter().fold((0.0, 0.0), |sum, share| (sum.0 + share.0, sum.1 + share.1));
    (processes > 0).then(|| Ready { processes, ran: sum.0 / processes as f64, delayed: sum.1 / processes as f64 })
}

/// True where a tier computes on cores that are all busy.
pub(crate) fn computes(ctx: &Context<'_>, tier: &Tier) -> bool {
    let saturated = utilization_of(ctx, tier).is_some_and(|share| share >= SATURATED_UTILIZATION);
    let shares: Vec<f64> = tier.pids.iter().filter_map(|pid| Some(ready_share(ctx, &[*pid])?.ready())).collect();
    saturated && (shares.is_empty() || shares.iter().any(|share| *share > READY_SHARE_MAX))
}
