//! Whether the cores, or threads that are fewer than these, are what limits their servers.

use super::polling::{self, Polling, polling};
use super::{
    CROWDED_UTILIZATION, CoreGroup, NEAR_UTILIZATION, QUICK_TIMES, SATURATED_UTILIZATION, TENANTS_SHARE_MAX, TENANTS_SHARE_MOST, Threads,
    busy, cores_by, delayed, grown, interrupts, others_share, ticks_per_s, waiting,
};
use crate::facts::path::Tier;
use crate::facts::{Context, quota};
use crate::judge::harm::Cost;

/// Share of these cores that their servers wanted, which is above one where several of them wait: what they and the interrupts used, and how
/// many of them were ready to run and waited on average. Nothing where that could not be read of each of them.
fn wanted_share(ctx: &Context<'_>, group: &CoreGroup<'_>) -> Option<f64> {
    let (first, last, elapsed_us) = ctx.inside(&ctx.obs.cpu)?;
    let elapsed_s = elapsed_us as f64 / 1e6;
    let ticks_per_s = ticks_per_s(ctx);
    let served = |core: &u32| grown(first, last, *core, interrupts);
    let interrupts = group.cores.iter().filter_map(served).map(|ticks| ticks as f64 / ticks_per_s / elapsed_s);
    let ready = |pid: &u32| Some(cores_by(ctx, *pid, ticks_per_s)? + delayed(ctx, *pid)?);
    let own: f64 = group.tiers.iter().flat_map(|tier| &tier.pids).map(ready).sum::<Option<f64>>()?;
    Some((own + interrupts.sum::<f64>()) / group.cores.len().max(1) as f64)
}

/// What other programs used of cores that their servers did not want whole: such cores are no limit of theirs, however little is left idle.
pub(crate) fn left_to_others(ctx: &Context<'_>, group: &CoreGroup<'_>) -> Option<f64> {
    let others = others_share(ctx, group).filter(|share| *share > TENANTS_SHARE_MAX)?;
    // Servers of many processes wait for one another, too: as long as answers take little longer than alone, what they wait for is no limit.
    let is_quick = ctx.answer_us().is_some_and(|(alone, loaded)| loaded < QUICK_TIMES * alone);
    let unwanted = match wanted_share(ctx, group) {
        Some(wanted) => is_quick || wanted < SATURATED_UTILIZATION,
        None => !ctx.obs.request.loaded && others > TENANTS_SHARE_MOST,
    };
    unwanted.then_some(others)
}

/// True where all servers of the path left room on their cores: the cores were not busy, or only with other programs' work for which the
/// servers hardly waited.
pub(crate) fn cores_are_spare(ctx: &Context<'_>) -> bool {
    let spare = |group: &CoreGroup<'_>| {
        let idle = busy(ctx, &group.cores).is_some_and(|busy| busy < NEAR_UTILIZATION * group.count());
        let unwanted = || wanted_share(ctx, group).is_some_and(|wanted| wanted < NEAR_UTILIZATION);
        let contended = others_share(ctx, group).is_some_and(|share| share > TENANTS_SHARE_MAX);
        if contended { unwanted() } else { idle }
    };
    ctx.core_groups().iter().all(spare)
}

/// True where some cores of the path's servers were full of their own work, nearly all of it for good answers: their time allows no more of them,
/// whatever else is waited for.
pub(crate) fn are_spent(ctx: &Context<'_>) -> bool {
    let full = |group: &CoreGroup<'_>| {
        let (limit, tiers) = (group.count(), &group.tiers);
        let wanted =
            |busy: f64| busy >= SATURATED_UTILIZATION * limit && !polling::fills(&polling(ctx, tiers), busy, limit, waiting(ctx, tiers));
        busy(ctx, &group.cores).is_some_and(wanted) && others_share(ctx, group).is_some_and(|share| share <= TENANTS_SHARE_MAX)
    };
    ctx.failed_share().is_some_and(|share| !Cost::share_of_requests(share).hurts()) && ctx.core_groups().iter().any(full)
}

/// True where cores are as good as all busy, or have little left and threads wait for them, and their servers want them so.
pub(crate) fn is_wanted(ctx: &Context<'_>, group: &CoreGroup<'_>, utilization: f64) -> bool {
    let is_crowded =
        || utilization >= CROWDED_UTILIZATION && waiting(ctx, &group.tiers).is_some_and(|waiting| waiting >= group.cores.len() as f64);
    (utilization >= SATURATED_UTILIZATION || is_crowded())
        && left_to_others(ctx, group).is_none()
        && !polling::fills(
            &polling(ctx, &group.tiers),
            utilization * group.cores.len() as f64,
            group.cores.len() as f64,
            waiting(ctx, &group.tiers),
        )
}

/// A tier that polls, where cores are busy or threads run all the time that say nothing for it.
pub(crate) fn polled<'a>(ctx: &Context<'_>, group: &CoreGroup<'a>) -> Option<Polling<'a>> {
    let used = busy(ctx, &group.cores)?;
    let is_full = |one: &Polling<'_>| {
        used >= CROWDED_UTILIZATION * group.cores.len() as f64 || Threads::exhausted(ctx, one.tier, group.cores.len()).is_some()
    };
    polling(ctx, &group.tiers).into_iter().find(is_full)
}

/// The tier whose few threads run all the time. Threads that a quota stops are ready to run all the time, too, and those that poll run whether they
/// serve or not.
pub(crate) fn too_few<'a>(ctx: &Context<'_>, group: &CoreGroup<'a>) -> Option<(&'a Tier, Threads)> {
    let polls = polling(ctx, &group.tiers);
    let polls = |tier: &Tier| polls.iter().any(|one| one.is_all && one.tier.id == tier.id);
    let mut free = group.tiers.iter().filter(|tier| !quota::stops(ctx, tier) && !polls(tier));
    free.find_map(|tier| Some((*tier, Threads::exhausted(ctx, tier, group.cores.len())?)))
}

/// Cores, or threads that are fewer than these, whose time is what limits.
pub(crate) struct Limiting<'c, 'a> {
    /// The cores on which the servers may run.
    pub(crate) group: &'c CoreGroup<'a>,
    /// The tiers whose time it is: those that share the cores, or that of the threads alone.
    pub(crate) tiers: Vec<&'a Tier>,
    /// How many threads serve, where these are what limits and not the cores.
    pub(crate) threads: Option<usize>,
    /// How many of the cores were idle on average.
    pub(crate) idle: f64,
}

/// The cores and threads whose time limits their servers: where the station of the cores is saturated, and by what.
pub(crate) fn limiting<'c, 'a>(ctx: &'c Context<'a>) -> Vec<Limiting<'c, 'a>> {
    let of = |group: &'c CoreGroup<'a>| {
        let busy = busy(ctx, &group.cores)?;
        let idle = (group.count() - busy).max(0.0);
        if is_wanted(ctx, group, busy / group.count().max(1.0)) {
            return Some(Limiting { group, tiers: group.tiers.clone(), threads: None, idle });
        }
        let (tier, threads) = too_few(ctx, group)?;
        Some(Limiting { group, tiers: vec![tier], threads: Some(threads.serving), idle })
    };
    ctx.core_groups().iter().filter_map(of).collect()
}

/// A tier whose cores have fewer threads that do the work of servers, with how many of both there are: what is left of the cores is not for them.
pub(crate) fn few_threads<'a>(ctx: &Context<'a>) -> Option<(&'a str, usize, usize)> {
    ctx.core_groups().iter().find_map(|group| {
        let serving: usize = group.tiers.iter().map(|tier| Threads::serving(ctx, tier)).sum::<Option<usize>>()?;
        (serving > 0 && serving < group.cores.len()).then(|| (group.tiers[0].name.as_str(), serving, group.cores.len()))
    })
}
