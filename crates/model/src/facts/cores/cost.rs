//! The CPU cost of a good answer, and how many answers the cores have time for.

use super::{Context, CoreGroup, CoreUse, TENANTS_SHARE_MAX, busy, clocked_cores, group_of, others_share, own_cores, ticks_per_s};
use crate::facts::ceiling::ceiling_spread;
use crate::facts::path::Tier;
use crate::facts::traffic;
use crate::observation::load::LoadResult;
use crate::output::report::Ceiling;

/// Largest drop of the cost from idle to busy cores, as a share of the cost on busy cores: 0.2 to 1.5 on the stacks tried, the most on cores that are nearly
/// idle and whose caches go cold between two answers (docs/measuring.md).
const FALL_MOST: f64 = 1.2;
/// Cost of a failed answer as a share of that of a good one: lower bound, upper bound and estimate. It is never measured separately, and neither costs more
/// than the whole of a request. The estimate is the middle.
const FAILED_SHARE_LEAST: f64 = 0.0;
const FAILED_SHARE_MOST: f64 = 1.0;
const FAILED_SHARE: f64 = f64::midpoint(FAILED_SHARE_LEAST, FAILED_SHARE_MOST);

/// Upper bound of the servers' extra CPU time for one request after a rest, as a multiple of the reference workload's: nginx with php-fpm took 2.8 to 3.6
/// times as much (docs/measuring.md), and an interpreter with a larger application touches more memory. A long computation pays it once as well.
const FOOTPRINTS_MOST: f64 = 8.0;
/// Bounds of the drop of the servers' cost once their cores no longer rest, as shares of what the reference workload shows.
const COLD_SHARE_LEAST: f64 = 0.5;
const COLD_SHARE_MOST: f64 = 1.3;
/// Largest share of an answer's cost that cold caches may cause.
const COLD_MOST: f64 = 0.8;

/// Further uncertainty of what the cores can pass: the speed of a core varies. On a virtual machine the same work took 55 to 76 us from one minute to the next
/// (docs/measuring.md).
const CORES_SPREAD: f64 = 0.2;

/// By what factor an answer gets cheaper from this load to full cores.
struct CostDrop {
    value: f64,
    least: f64,
    most: f64,
}

impl CostDrop {
    /// For an answer that cost `cost_s` on `limit` cores with this share idle, from the cost of rests measured on this host. If that was not measured, only
    /// bounds are known: no drop, and the largest drop seen elsewhere, which grows with the cores' idle share. The estimate is then their geometric mean.
    fn of(ctx: &Context<'_>, load: &LoadResult, cost_s: f64, idle: f64, limit: f64) -> Self {
        let rest_us = idle * limit / (load.throughput_rps() * ctx.times_own()) * 1e6;
        let told = ctx.obs.warmth.as_ref().and_then(|warmth| Some((warmth.times(rest_us)?, warmth.extra_ns(rest_us)?)));
        let Some((times, extra_ns)) = told else {
            let most = 1.0 + FALL_MOST * idle * idle;
            return Self { value: most.sqrt(), least: 1.0, most };
        };
        let cold = (1.0 - 1.0 / times).min(FOOTPRINTS_MOST * extra_ns / 1e9 / cost_s);
        let by = |share: f64| 1.0 / (1.0 - (share * cold).min(COLD_MOST));
        Self { value: by(1.0), least: by(COLD_SHARE_LEAST), most: by(COLD_SHARE_MOST) }
    }
}

/// What the cores of a tier have time for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Carried {
    /// Answers a second to all clients. `None` if what one costs is not known.
    pub(crate) rate_rps: Option<f64>,
    /// CPU time of the tier's own processes for an answer, seconds; zero if not known.
    pub(crate) cpu_s: f64,
}

/// What the cores of a tier have time for: what its answers cost them, that of the kernel and of the other tiers on them included.
pub(crate) fn carried(ctx: &Context<'_>, tier: &Tier) -> Carried {
    let group = group_of(ctx, tier);
    let cost = group.and_then(|group| AnswerCost::of(ctx, group, busy(ctx, &group.cores)?));
    let own = own_cores(ctx, &tier.pids).unwrap_or(0.0);
    if let Some(cost) = cost {
        let cpu_s = ctx.answers_rps().filter(|rate| *rate > 0.0).map_or(0.0, |rate| own / rate);
        return Carried { rate_rps: Some(cost.cores / cost.value_s), cpu_s: cpu_s.min(cost.value_s) };
    }
    let answers_rps = traffic::of(ctx).filter(|_| ctx.obs.load.is_none()).map(|watched| watched.goodput_rps).filter(|rate| *rate > 0.0);
    let used = group.and_then(|group| Some((group.count(), own_cores(ctx, group.tiers.iter().flat_map(|tier| &tier.pids))?)));
    let rate_rps = answers_rps.zip(used).filter(|(_, (_, used))| *used > 0.0).map(|(rate, (cores, used))| rate * cores / used);
    Carried { rate_rps, cpu_s: answers_rps.map_or(0.0, |rate| own / rate) }
}

/// CPU time that a good answer will cost under full load, seconds, without the cost of failed answers and other programs.
pub(crate) struct AnswerCost {
    /// Cores that other programs leave. Use by others beyond [`TENANTS_SHARE_MAX`] is contested, and no prediction relies on it.
    cores: f64,
    pub(crate) value_s: f64,
    least_s: f64,
    most_s: f64,
}

impl AnswerCost {
    /// From the busy time of these cores.
    pub(crate) fn of(ctx: &Context<'_>, group: &CoreGroup<'_>, busy: f64) -> Option<Self> {
        let limit = group.count();
        let others = others_share(ctx, group).unwrap_or(0.0).max(0.0) * limit;
        Self::of_use(ctx, &CoreUse { limit, busy, others, clocked: clocked_cores(ctx, &group.tiers).min(busy) })
    }

    /// A small number of clock ticks is inaccurate: the bounds include twice the standard deviation of that number. The estimate and the lower bound include
    /// the drop under load; the upper bound assumes no drop.
    pub(crate) fn of_use(ctx: &Context<'_>, used: &CoreUse) -> Option<Self> {
        let CoreUse { limit, busy, others, clocked } = *used;
        let load = ctx.obs.load.as_ref().filter(|_| ctx.can_divide_by_good())?;
        let own = (busy - others).max(clocked);
        let (good_rps, ended_rps) = (load.goodput_rps() * ctx.times_own(), load.throughput_rps() * ctx.times_own());
        let cost_s = |failed_share: f64| own / (good_rps + failed_share * (ended_rps - good_rps));
        let idle = if limit > 0.0 { (1.0 - busy / limit).clamp(0.0, 1.0) } else { 0.0 };
        let fall = CostDrop::of(ctx, load, cost_s(FAILED_SHARE), idle, limit);
        let ticks = |cores: f64| cores * ctx.seconds() * ticks_per_s(ctx);
        let grain = 2.0 * ticks((own - clocked).max(0.0)).sqrt() / ticks(own);
        let least_s = cost_s(FAILED_SHARE_MOST) / fall.most / (1.0 + grain);
        let most_s = cost_s(FAILED_SHARE_LEAST) / fall.least * (1.0 + grain);
        (own > 0.0).then(|| Self {
            cores: limit - others.min(TENANTS_SHARE_MAX * limit),
            value_s: cost_s(FAILED_SHARE) / fall.value,
            least_s,
            most_s,
        })
    }

    pub(crate) fn ceiling(&self) -> Option<Ceiling> {
        ceiling_spread(self.cores / self.value_s, self.cores / self.most_s, self.cores / self.least_s, CORES_SPREAD)
    }
}
