//! What a good answer costs the cores, and how many of them the cores have time for.

use std::collections::BTreeSet;

use super::{Context, TENANTS_SHARE_MAX, Use, others_share, ran, ticks_per_s};
use crate::path::Tier;
use crate::report::Ceiling;
use crate::stations::ceiling_between;

/// CPU time of a page on the stack tried, microseconds: with idle cores, and near saturation (DESIGN.md). The cost of an answer falls as load
/// rises, because work is done in larger batches.
const COST_US_IDLE: f64 = 159.0;
/// The same near saturation.
const COST_US_BUSY: f64 = 119.0;
/// By how much the cost may fall at the most from idle to busy cores, as a share of the latter: 0.2 to 1.5 on the stacks tried, the most of it on cores that
/// have next to nothing to do and whose caches go cold between two answers (docs/measuring.md).
const FALL_MOST: f64 = 1.2;
/// What a failed answer costs of a good one: 27 to 46 us where a page cost 119 to 159 (DESIGN.md). Least, most and the middle of them.
const FAILED_SHARE_LEAST: f64 = 27.0 / COST_US_IDLE;
const FAILED_SHARE_MOST: f64 = 46.0 / COST_US_BUSY;
const FAILED_SHARE: f64 = (27.0 + 46.0) / (COST_US_IDLE + COST_US_BUSY);

/// CPU time that a good answer will cost under full load, seconds: without what failed answers cost, nor what other programs took.
pub(super) struct Cost {
    /// Cores that other programs leave. What they take beyond [`TENANTS_SHARE_MAX`] is contested, and no prediction may rest on it.
    cores: f64,
    pub(super) value_s: f64,
    least_s: f64,
    most_s: f64,
}

impl Cost {
    /// From the busy time of these cores.
    pub(super) fn of(ctx: &Context<'_>, cores: &BTreeSet<u32>, tiers: &[&Tier], busy: f64) -> Option<Self> {
        let limit = cores.len() as f64;
        let others = others_share(ctx, cores, tiers).unwrap_or(0.0).max(0.0) * limit;
        Self::of_use(ctx, &Use { limit, busy, others, clocked: ran(ctx, tiers).min(busy) })
    }

    /// What was counted by clock ticks few of them tell badly: twice the standard deviation of their number is in the bounds. The fall under
    /// load is in the estimate, and at its most in the least of it; the most is that it does not fall.
    pub(super) fn of_use(ctx: &Context<'_>, used: &Use) -> Option<Self> {
        let Use { limit, busy, others, clocked } = *used;
        let load = ctx.obs.load.as_ref().filter(|_| ctx.can_divide_by_good())?;
        let own = (busy - others).max(clocked);
        let failed_rps = load.throughput_rps() - load.goodput_rps();
        let cost_s = |failed_share: f64| own / (load.goodput_rps() + failed_share * failed_rps);
        let idle = if limit > 0.0 { (1.0 - busy / limit).clamp(0.0, 1.0) } else { 0.0 };
        let fall = 1.0 + (COST_US_IDLE / COST_US_BUSY - 1.0) * idle;
        let ticks = |cores: f64| cores * ctx.seconds() * ticks_per_s(ctx);
        let grain = 2.0 * ticks((own - clocked).max(0.0)).sqrt() / ticks(own);
        let least_s = cost_s(FAILED_SHARE_MOST) / (1.0 + FALL_MOST * idle * idle) / (1.0 + grain);
        let most_s = cost_s(FAILED_SHARE_LEAST) * (1.0 + grain);
        (own > 0.0).then(|| Self {
            cores: limit - others.min(TENANTS_SHARE_MAX * limit),
            value_s: cost_s(FAILED_SHARE) / fall,
            least_s,
            most_s,
        })
    }

    pub(super) fn ceiling(&self) -> Option<Ceiling> {
        ceiling_between(self.cores / self.value_s, self.cores / self.most_s, self.cores / self.least_s)
    }
}
