//! What waited for a pool, and whether more comes than it serves.

use super::Pool;
use crate::facts::Context;
use crate::facts::path::Tier;

/// Growth of a watched queue over the window, as a share of its mean, from which more comes than is served.
const GROWTH_MIN: f64 = 0.25;

/// What waited before a tier in each sample: to be accepted, and to be read.
pub(crate) struct Queued([Vec<u64>; 2]);

impl Queued {
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier) -> Self {
        Self::before(ctx, tier, Pool::of(ctx, tier).as_ref())
    }

    /// The same of a tier whose pool is known.
    pub(super) fn before(ctx: &Context<'_>, tier: &Tier, pool: Option<&Pool>) -> Self {
        let unread = pool.filter(|pool| pool.unread).map(|pool| [pool.queued.clone(), pool.unaccepted.clone()]);
        Self(unread.unwrap_or_else(|| [ctx.queued(tier), Vec::new()]))
    }

    /// Share of the samples in which something waited.
    pub(crate) fn waited_share(&self) -> f64 {
        let share = |part: &Vec<u64>| part.iter().filter(|queued| **queued > 0).count() as f64 / part.len().max(1) as f64;
        self.0.iter().map(share).fold(0.0, f64::max)
    }

    /// What it gained in the window.
    fn growth(&self) -> f64 {
        let mean = |part: &[u64]| part.iter().sum::<u64>() as f64 / part.len() as f64;
        let gained = |queued: &Vec<u64>| match queued.len() / 3 {
            0 => 0.0,
            // Between the middles of the first and the last third.
            third => 1.5 * (mean(&queued[queued.len() - third..]) - mean(&queued[..third])),
        };
        self.0.iter().map(gained).sum()
    }

    /// The same in each second.
    pub(crate) fn grown_rps(&self, ctx: &Context<'_>) -> f64 {
        self.growth().max(0.0) / ctx.seconds().max(1e-6)
    }

    /// True if more comes than is served.
    pub(crate) fn grows(&self) -> bool {
        let mean: f64 = self.0.iter().map(|queued| queued.iter().sum::<u64>() as f64 / queued.len().max(1) as f64).sum();
        self.growth() > (GROWTH_MIN * mean).max(2.0 * mean.sqrt())
    }
}
