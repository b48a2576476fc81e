//! Whether cores, or a small number of threads, limit their servers.

use super::polling::{self, Polling, polling};
use super::{
    CROWDED_UTILIZATION, CoreGroup, NEAR_UTILIZATION, QUICK_TIMES, SATURATED_UTILIZATION, TENANTS_SHARE_MAX, TENANTS_SHARE_MOST, Threads,
    Turns, busy, cores_used_by, delayed, interrupts, is_shared, left_over, of_passing, others_share, own_cores, part_beside_others,
    ticks_between, ticks_per_s, waiting,
};
use crate::facts::harm::Cost;
use crate::facts::path::Tier;
use crate::facts::pool::worker_pids;
use crate::facts::{Context, quota};
use crate::output::report::LedgerPlaceKind;

/// Demand of the servers for these cores as a share of them, above one if several wait: their use and that of interrupts, plus the mean number of threads that
/// were ready and waited. `None` if any of it could not be read.
fn wanted_share(ctx: &Context<'_>, group: &CoreGroup<'_>) -> Option<f64> {
    let (first, last, elapsed_us) = ctx.inside(&ctx.obs.cpu)?;
    let elapsed_s = elapsed_us as f64 / 1e6;
    let ticks_per_s = ticks_per_s(ctx);
    let served = |core: &u32| ticks_between(first, last, *core, interrupts);
    let interrupts = group.cores.iter().filter_map(served).map(|ticks| ticks as f64 / ticks_per_s / elapsed_s);
    let ready = |pid: &u32| cores_used_by(ctx, *pid, ticks_per_s).and(delayed(ctx, *pid));
    let waiting: f64 = group.tiers.iter().flat_map(|tier| lasting(ctx, tier)).map(ready).sum::<Option<f64>>()?;
    let own = own_cores(ctx, group.tiers.iter().flat_map(|tier| &tier.pids))? + waiting + of_passing(ctx, &group.tiers);
    Some((own + interrupts.sum::<f64>()) / group.cores.len().max(1) as f64)
}

/// The processes of a tier without children that were there for a moment only, too short to be read twice: what they used is small, or is their parent's (a fork before it executes
/// another program).
fn lasting<'t>(ctx: &Context<'_>, tier: &'t Tier) -> impl Iterator<Item = &'t u32> {
    let parent = |pid: &u32| ctx.obs.processes.get(pid)?.identity.last().map(|identity| identity.parent);
    let is_read = |pid: &u32| ctx.obs.processes.get(pid).is_some_and(|process| process.cpu.points().len() > 1);
    tier.pids.iter().filter(move |pid| is_read(pid) || parent(pid).is_none_or(|parent| !tier.pids.contains(&parent)))
}

/// Share of these cores used by other programs, if the servers did not need the cores fully. Such cores do not limit the servers, however little is idle.
pub(crate) fn left_to_others(ctx: &Context<'_>, group: &CoreGroup<'_>) -> Option<f64> {
    let others = others_share(ctx, group).filter(|share| *share > TENANTS_SHARE_MAX)?;
    // Servers with many processes also wait for each other. As long as answers take little longer than a single one, that wait is no limit.
    let is_quick = ctx.answer_us().is_some_and(|(alone, loaded)| loaded < QUICK_TIMES * alone);
    let most = others > TENANTS_SHARE_MOST;
    let unwanted = match wanted_share(ctx, group) {
        Some(wanted) => is_quick || wanted < SATURATED_UTILIZATION,
        None => !ctx.obs.request.loaded && most,
    };
    let is_so = unwanted || most && wait_inside(ctx, group).is_some() || is_left_by_few(ctx, group);
    is_so.then_some(others)
}

/// True if these cores would not be full without programs that have only what the servers leave (SCHED_IDLE, a low priority), and these servers have few threads, which are always
/// ready. Servers with threads for every core, which wait for one, want what such programs get while the kernel moves threads.
fn is_left_by_few(ctx: &Context<'_>, group: &CoreGroup<'_>) -> bool {
    let full = SATURATED_UTILIZATION * group.count();
    busy(ctx, &group.cores).is_some_and(|busy| busy >= full && busy - left_over(ctx, group) < full)
        && saturated_threads(ctx, group).is_some()
}

/// Requests of these servers that wait inside them for something else than a core, if most do: mean number. `None` too if those that are worked on spend half of that time
/// or more at the cores: what the others wait for then needs a core. Their number is what it would be if each took as long as one alone.
pub(crate) fn wait_inside(ctx: &Context<'_>, group: &CoreGroup<'_>) -> Option<f64> {
    let account = ctx.account()?;
    let at = |is_there: fn(LedgerPlaceKind) -> bool| group.tiers.iter().map(|tier| account.at_places(tier.id.0, is_there)).sum::<f64>();
    let inside = at(|place| place == LedgerPlaceKind::Waiting);
    let at_cores = at(|place| matches!(place, LedgerPlaceKind::Cpu | LedgerPlaceKind::Ready));
    let worked_on = account.alone(ctx).unwrap_or(0.0);
    (2.0 * inside > account.under_way() && 2.0 * at_cores < worked_on.max(1.0)).then_some(inside)
}

/// Requests that wait inside servers whose cores other programs use for the most part, mean number, where it could not be read whether their threads wait for a core.
pub(crate) fn perhaps_for_cores(ctx: &Context<'_>, group: &CoreGroup<'_>) -> Option<f64> {
    let is_untold = ctx.obs.request.loaded && wanted_share(ctx, group).is_none();
    let is_full = busy(ctx, &group.cores).is_some_and(|busy| busy >= SATURATED_UTILIZATION * group.count());
    wait_inside(ctx, group).filter(|_| is_untold && is_full && left_to_others(ctx, group).is_some())
}

/// How many times as long as they run threads wait for a core at least, where others have it in bursts: one that shares a core with another waits as long as it runs, and less where the core
/// is idle at times.
const BURSTS_TIMES: f64 = 2.0;

/// Cores with time left that others have in bursts.
pub(crate) struct Bursts {
    /// Mean number of cores that the servers used.
    pub(crate) ran: f64,
    /// Mean number of their threads that were ready and waited for a core.
    pub(crate) delayed: f64,
    /// Share of the cores that others used.
    pub(crate) others: f64,
}

impl Bursts {
    /// `None` if these cores are full, or if it was not read how long the servers' threads waited for them.
    pub(crate) fn of(ctx: &Context<'_>, group: &CoreGroup<'_>) -> Option<Self> {
        busy(ctx, &group.cores).filter(|busy| *busy < SATURATED_UTILIZATION * group.count() && group.is_known())?;
        let (ran, delayed) = (own_cores(ctx, group.tiers.iter().flat_map(|tier| &tier.pids))?, waiting(ctx, &group.tiers)?);
        // Threads of a pool that are woken at once wait for each other.
        let is_more = |share: &f64| *share > TENANTS_SHARE_MAX && *share * group.count() > ran;
        let others = others_share(ctx, group).filter(is_more)?;
        let is_stopped = group.tiers.iter().any(|tier| quota::stops(ctx, tier));
        let waits = |account: &crate::ledger::Account| {
            let of_group: f64 = group.tiers.iter().map(|tier| account.waits_for_threads(tier.id.0)).sum();
            // Where less than one at a time waits so, of requests that are only watched, hardly any does.
            let are_some = ctx.obs.request.loaded || of_group >= 1.0;
            are_some && Cost::of_time(of_group / account.under_way().max(f64::MIN_POSITIVE)).hurts()
        };
        // No more of the time threads wait than this.
        let waits_long = Cost::of_time(delayed.min(1.0)).hurts();
        // Who has only what the servers leave is off the core as soon as one of them is ready.
        let (names, is_left) = super::taken::most_of_others(ctx, group, others * group.count());
        let is_so =
            !is_stopped && waits_long && (names.is_empty() || !is_left) && delayed >= BURSTS_TIMES * ran && ctx.account().is_none_or(waits);
        is_so.then_some(Self { ran, delayed, others })
    }
}

/// True if all servers of the path had room on their cores: the cores were not busy, or only with other programs that the servers hardly waited for.
pub(crate) fn cores_are_spare(ctx: &Context<'_>) -> bool {
    let spare = |group: &CoreGroup<'_>| {
        let idle = busy(ctx, &group.cores).is_some_and(|busy| busy < NEAR_UTILIZATION * group.count());
        let unwanted = || wanted_share(ctx, group).is_some_and(|wanted| wanted < NEAR_UTILIZATION);
        let contended = others_share(ctx, group).is_some_and(|share| share > TENANTS_SHARE_MAX);
        if contended { unwanted() } else { idle }
    };
    ctx.core_groups().iter().all(spare)
}

/// True if some of the servers' cores were full of the servers' own work, nearly all of it for good answers. They have no time for more answers, whatever else
/// requests wait for.
pub(crate) fn are_spent(ctx: &Context<'_>) -> bool {
    let full = |group: &CoreGroup<'_>| {
        let (limit, tiers) = (group.count(), &group.tiers);
        let wanted =
            |busy: f64| busy >= SATURATED_UTILIZATION * limit && !polling::fills(&polling(ctx, tiers), busy, limit, waiting(ctx, tiers));
        busy(ctx, &group.cores).is_some_and(wanted) && others_share(ctx, group).is_some_and(|share| share <= TENANTS_SHARE_MAX)
    };
    ctx.failed_share().is_some_and(|share| !Cost::share_of_requests(share).hurts()) && ctx.core_groups().iter().any(full)
}

/// True if a tier's cores are full, with other programs' work too, and the servers want all of them: what its workers wait for (a database on the same cores) may lack a core as
/// they do, and more workers would add to that.
pub(crate) fn are_crowded(ctx: &Context<'_>, tier: &Tier) -> bool {
    let is_its = |group: &&CoreGroup<'_>| group.tiers.iter().any(|other| other.id == tier.id);
    ctx.core_groups().iter().filter(is_its).any(|group| {
        let is_full = busy(ctx, &group.cores).is_some_and(|busy| busy >= SATURATED_UTILIZATION * group.count());
        let has_others = others_share(ctx, group).is_some_and(|share| share > TENANTS_SHARE_MAX);
        let are_wanted = wanted_share(ctx, group).is_some_and(|wanted| wanted >= SATURATED_UTILIZATION);
        is_full && has_others && are_wanted && left_to_others(ctx, group).is_none()
    })
}

/// True if the cores limit their servers: nearly all are busy, or few are idle and the servers' threads that run or wait for one would fill all of them; and the servers are known and need them.
pub(crate) fn are_limiting(ctx: &Context<'_>, group: &CoreGroup<'_>, utilization: f64) -> bool {
    let wait_for_all = || waiting(ctx, &group.tiers).is_some_and(|waiting| waiting >= group.count());
    // Beside other programs, what the servers want may be what these leave.
    let want_all = || !is_shared(ctx, group) && wanted_share(ctx, group).is_some_and(|wanted| wanted >= 1.0);
    let is_crowded = || utilization >= CROWDED_UTILIZATION && (wait_for_all() || want_all());
    group.is_known()
        && (utilization >= SATURATED_UTILIZATION || is_crowded())
        && left_to_others(ctx, group).is_none()
        && !polling::fills(
            &polling(ctx, &group.tiers),
            utilization * group.cores.len() as f64,
            group.cores.len() as f64,
            waiting(ctx, &group.tiers),
        )
}

/// A tier that polls, so that its busy cores or always running threads are no sign of load.
pub(crate) fn polled<'a>(ctx: &Context<'_>, group: &CoreGroup<'a>) -> Option<Polling<'a>> {
    let used = busy(ctx, &group.cores)?;
    let is_full = |one: &Polling<'_>| {
        used >= CROWDED_UTILIZATION * group.cores.len() as f64 || Threads::exhausted(ctx, one.tier, group.cores.len()).is_some()
    };
    polling(ctx, &group.tiers).into_iter().find(is_full)
}

/// The tier whose few threads run all the time and limit it. Threads stopped by a quota are always ready too, and polling threads always run; both are
/// excluded.
pub(crate) fn saturated_threads<'a>(ctx: &Context<'_>, group: &CoreGroup<'a>) -> Option<(&'a Tier, Threads)> {
    let polls = polling(ctx, &group.tiers);
    let polls = |tier: &Tier| polls.iter().any(|one| one.is_all && one.tier.id == tier.id);
    let mut free = group.tiers.iter().filter(|tier| !quota::stops(ctx, tier) && !polls(tier));
    free.find_map(|tier| Some((*tier, Threads::exhausted(ctx, tier, group.cores.len())?)))
}

/// Cores, or fewer threads than cores, whose time is the limit.
pub(crate) struct Limiting<'c, 'a> {
    /// The cores that the servers may run on.
    pub(crate) group: &'c CoreGroup<'a>,
    /// The tiers limited by it: those that share the cores, or the tier of the threads.
    pub(crate) tiers: Vec<&'a Tier>,
    /// Number of serving threads, if they are the limit and not the cores.
    pub(crate) threads: Option<usize>,
    /// The process with the most threads that take turns on one core, where each such process counts as one thread.
    pub(crate) turns: Option<Turns>,
    /// Mean number of idle cores.
    pub(crate) idle: f64,
    /// Where other programs have a part of these cores, the servers' part of the rest: their own time is what limits then.
    pub(crate) own_part: Option<f64>,
}

impl<'a> Limiting<'_, 'a> {
    /// The time that these cores or threads have in this many seconds, seconds.
    pub(crate) fn time_s(&self, seconds: f64) -> f64 {
        self.threads.unwrap_or(self.group.cores.len()).max(1) as f64 * seconds
    }

    /// The tier whose threads are the limit and how many workers it has, if others are there and have nothing to do: the connections are with those that run.
    pub(crate) fn with_idle_workers(&self, ctx: &Context<'_>) -> Option<(&'a Tier, usize)> {
        let (threads, tier) = self.threads.filter(|_| self.turns.is_none()).zip(self.tiers.first())?;
        let workers = worker_pids(ctx, tier).len();
        (workers > threads).then_some((*tier, workers))
    }

    /// The most that throughput could grow on the cores that are idle, and those that others `held` and could do without, as a share of today's. All that grows with it takes its part
    /// of them: servers, interrupts, and the load generator where it runs there.
    pub(crate) fn room(&self, ctx: &Context<'_>, held: f64) -> f64 {
        let others = others_share(ctx, self.group).unwrap_or(0.0).max(0.0) * self.group.count();
        // Threads that run all the time use as many cores.
        let least = self.threads.map_or(f64::MIN_POSITIVE, |threads| threads as f64);
        (self.idle + held) / (self.group.count() - self.idle - others).max(least)
    }
}

/// The cores and threads whose time limits their servers.
pub(crate) fn limiting<'c, 'a>(ctx: &'c Context<'a>) -> Vec<Limiting<'c, 'a>> {
    let of = |group: &'c CoreGroup<'a>| {
        let busy = busy(ctx, &group.cores)?;
        let idle = (group.count() - busy).max(0.0);
        if are_limiting(ctx, group, busy / group.count().max(1.0)) {
            return Some(Limiting {
                group,
                tiers: group.tiers.clone(),
                threads: None,
                turns: None,
                idle,
                own_part: part_beside_others(ctx, group),
            });
        }
        let (tier, threads) = saturated_threads(ctx, group)?;
        Some(Limiting { group, tiers: vec![tier], threads: Some(threads.serving), turns: threads.turns, idle, own_part: None })
    };
    ctx.core_groups().iter().filter_map(of).collect()
}

/// A tier with fewer serving threads than cores, the number of these threads, and the number of cores. The threads cannot use the other cores.
pub(crate) fn few_threads<'a>(ctx: &Context<'a>) -> Option<(&'a str, usize, usize)> {
    ctx.core_groups().iter().find_map(|group| {
        let serving: usize = group.tiers.iter().map(|tier| Threads::serving(ctx, tier)).sum::<Option<usize>>()?;
        (serving > 0 && serving < group.cores.len()).then(|| (group.tiers[0].name.as_str(), serving, group.cores.len()))
    })
}
