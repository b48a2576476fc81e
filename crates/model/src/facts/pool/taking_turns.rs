//! Workers of a full pool that wait for each other: by the rate and the time of a single request, so few go on at a time that the others must wait for them.

use super::{MOST, Pool, PoolKind, workers};
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::quota::stops;
use crate::facts::suffered::WAKES_US;
use crate::observation::{SocketAddress, TcpSample};

/// How many times as long as a single answer a request may hold its worker if nothing that it waits for is slowed by the load. It allows for chance and is less
/// than two requests taking turns.
const ALONE_TIMES: f64 = 1.3;

/// For how long the kernel delays an acknowledgement (TCP_DELACK_MIN, include/net/tcp.h), microseconds.
const DELAYED_US: f64 = 40_000.0;
/// Ends of answers that must have been seen held back.
const HELD_BACK_MIN: usize = 10;

/// Workers that wait for each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TakingTurns {
    /// Mean number of workers with a request that waits inside the tier.
    pub(crate) waiting: f64,
    /// Requests that go on at a time, at most, if each takes as long as one alone (Little's law).
    pub(crate) at_once: f64,
    /// Requests a second, of any kind.
    pub(crate) rate_rps: f64,
    /// Median time of a single answer, microseconds.
    pub(crate) alone_us: f64,
}

impl TakingTurns {
    /// `None` if it is not known how long a single request takes, if the load asked for no more, if a quota stops the workers, or if some of them ended.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> Option<Self> {
        ctx.obs.load.as_ref().filter(|load| load.wants_more())?;
        let account = ctx.account().filter(|_| pool.kind != PoolKind::Loops && pool.workers > 1 && !stops(ctx, tier))?;
        // A request that is never answered holds its worker until somebody kills that, whatever others do.
        if workers::ended(ctx, tier) > 0 {
            return None;
        }
        let (alone_us, rate_rps) = (alone_us(ctx, tier)?, account.rate_rps()?);
        // A full pool holds about as many in each sample. Who gave up leaves a request behind that holds no worker.
        let inside = account.inside(tier.id.0).value.min(pool.busy_mean());
        let of_one = |us: f64| rate_rps * us / 1e6;
        // All of an answer's time may pass in this tier, and with the wake-ups that a single request does not need.
        let explained = of_one(alone_us + WAKES_US * ctx.path.tiers.len() as f64);
        let held = Self { waiting: inside, at_once: of_one(alone_us), rate_rps, alone_us };
        // How long other clients' requests take alone is not known: they may hold workers for as long as they like.
        let of_others = account.others().filter(|_| !ctx.path.calls_itself()).map_or(0.0, |(others, _)| others);
        (inside - explained - of_others > MOST * pool.busy_mean()).then_some(held)
    }
}

/// True if a request holds a worker no longer than a whole answer takes with no other request under way, apart from waits for a core. Then what it waits for takes
/// its time for each request and has room for more. `None` if one of both is not known.
pub(crate) fn as_quick_as_alone(ctx: &Context<'_>, tier: &Tier) -> Option<bool> {
    let answers_rps = ctx.answers_rps().filter(|rate| ctx.can_divide_by_good() && *rate > 0.0)?;
    let pool = Pool::of(ctx, tier)?;
    let for_core: f64 = tier.pids.iter().filter_map(|pid| ctx.clocked(*pid, |used| used.run_delay_ns)).sum();
    let held_us = 1e6 * (pool.busy_mean() - for_core) / answers_rps;
    Some(held_us <= ALONE_TIMES * alone_us(ctx, tier)?)
}

/// Median time of a single answer, microseconds. Where ends of answers are held back until the client acknowledges what came before, that was so for single answers as
/// well: the client's delay is no time of a worker.
fn alone_us(ctx: &Context<'_>, tier: &Tier) -> Option<f64> {
    let alone_us = ctx.alone_us()?;
    let without_us = alone_us - DELAYED_US;
    Some(if without_us > 0.0 && holds_back(ctx, tier) { without_us } else { alone_us })
}

/// True if ends of answers were seen held back although their connections had room for them.
fn holds_back(ctx: &Context<'_>, tier: &Tier) -> bool {
    let Some(view) = ctx.obs.netns.get(&tier.netns) else { return false };
    let is_held = |sample: &&TcpSample| {
        let is_end = sample.unsent.is_some_and(|bytes| bytes > 0 && bytes < sample.mss);
        is_end && sample.unacked > 0 && tier.accepts(&SocketAddress::Tcp { local: sample.local, remote: sample.remote })
    };
    ctx.in_window(&view.tcp_samples).flat_map(|(_, all)| all).filter(is_held).count() >= HELD_BACK_MIN
}
