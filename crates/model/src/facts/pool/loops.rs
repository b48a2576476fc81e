//! Event loops with a limit of connections (maxconn, server.max-connections and similar): at the limit they stop accepting, and the other connections wait in
//! the queue.

use super::{Pool, STEADY_SHARE, WAITED_SHARE};
use crate::facts::Context;
use crate::facts::harm::Cost;
use crate::facts::path::Tier;
use crate::facts::quota::stops;
use crate::ledger::{Starved, starved};
use crate::observation::load::Loop;

/// True if the number of connections is limited. Excluded are a stopped loop, which accepts nothing either, and a server whose configuration shows the limit,
/// which has a station of its own.
pub(crate) fn are_capped(ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> bool {
    let waited = pool.waited_share >= WAITED_SHARE && pool.waiting >= 1.0;
    let ran = tier.pids.iter().filter_map(|pid| ctx.clocked(*pid, |used| used.run_ns)).sum::<f64>() > 0.0;
    waited && ran && ctx.nginx_of(tier).is_none() && !stops(ctx, tier)
}

/// True if nearly every sample has exactly the maximum number of connections, some always wait in the queue, and clients give up, or wait while others are served again and again. A loop that is merely busy
/// accepts every connection and serves all of them more slowly.
pub(crate) fn leave_out(ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> bool {
    let at_most = pool.busy.iter().filter(|busy| **busy == pool.workers).count();
    let is_exact = at_most as f64 >= STEADY_SHARE * pool.busy.len() as f64;
    let waits = ctx.queued(tier).iter().all(|queued| *queued > 0) && !seldom_looks(ctx, pool);
    is_exact && waits && (lost_share(ctx).is_some_and(|share| Cost::of_time(share).hurts()) || starves(ctx, tier).is_some())
}

/// Watched clients that wait to be accepted while others are answered again and again, if they would notice.
pub(crate) fn starves(ctx: &Context<'_>, tier: &Tier) -> Option<Starved> {
    let is_watched = ctx.obs.load.is_none() && ctx.path.is_first(tier);
    is_watched.then(|| starved(ctx)).flatten().filter(Starved::hurts)
}

/// True if clients give up as fast as the loop comes back to its listener or faster. It looks there once in a turn, and in a turn it answers each connection that it holds at
/// most once. Such a loop is slow, as one that computes for long at a time, and has no limit of its own.
fn seldom_looks(ctx: &Context<'_>, pool: &Pool) -> bool {
    let Some(load) = &ctx.obs.load else { return false };
    let turns_per_s = load.goodput_rps() / pool.workers.max(1) as f64;
    let given_up_per_s = (load.errors.connect_timeout + load.errors.response_timeout) as f64 * 1e6 / load.duration_us.max(1) as f64;
    given_up_per_s >= turns_per_s
}

/// Share of the clients' time spent on requests that timed out.
pub(crate) fn lost_share(ctx: &Context<'_>) -> Option<f64> {
    let load = ctx.obs.load.as_ref()?;
    let Loop::Closed { connections } = load.shape else { return None };
    let lost_us = (load.errors.connect_timeout + load.errors.response_timeout) as f64 * load.timeout_us as f64;
    Some(lost_us / (f64::from(connections.max(1)) * load.duration_us.max(1) as f64))
}
