//! Event loops with a limit of connections (maxconn, server.max-connections and their like): they stop accepting there, and the rest waits at the door.

use super::{Pool, STEADY_SHARE, WAITED_SHARE};
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::quota::stops;
use crate::judge::harm::Cost;
use crate::observation::load::Loop;

/// True where what serves these connections stops at a number of them. A loop that is stopped itself accepts nothing either, and one whose limit its
/// configuration tells has a station of its own.
pub(crate) fn are_capped(ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> bool {
    let waited = pool.waited_share >= WAITED_SHARE && pool.waiting >= 1.0;
    let ran = tier.pids.iter().filter_map(|pid| ctx.clocked(*pid, |used| used.run_ns)).sum::<f64>() > 0.0;
    waited && ran && ctx.nginx_of(tier).is_none() && !stops(ctx, tier)
}

/// True where as many are held at nearly every look, never more, somebody always waits at the door, and clients give up: a loop that is merely busy takes
/// in whoever comes, and serves them all more slowly.
pub(crate) fn leave_out(ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> bool {
    let at_most = pool.busy.iter().filter(|busy| **busy == pool.workers).count();
    let is_exact = at_most as f64 >= STEADY_SHARE * pool.busy.len() as f64;
    is_exact && ctx.queued(tier).iter().all(|queued| *queued > 0) && lost_share(ctx).is_some_and(|share| Cost::of_time(share).hurts())
}

/// Share of the clients' time that went by on requests which nobody answered within the timeout.
pub(crate) fn lost_share(ctx: &Context<'_>) -> Option<f64> {
    let load = ctx.obs.load.as_ref()?;
    let Loop::Closed { connections } = load.shape else { return None };
    let lost_us = (load.errors.connect_timeout + load.errors.response_timeout) as f64 * load.timeout_us as f64;
    Some(lost_us / (f64::from(connections.max(1)) * load.duration_us.max(1) as f64))
}
