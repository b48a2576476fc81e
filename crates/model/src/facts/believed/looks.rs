//! What can have come and gone between two looks at a number. A limit is reached for a moment, and a look is a moment: the most that was seen and what can have come since the last look
//! together are the most that there can have been.

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::suffered::in_flight_peak;
use crate::facts::traffic;
use crate::observation::load::Loop;
use crate::observation::{Counters, NetnsId};

/// The longest time of the window without a look, seconds. `None` without a look.
pub(super) fn longest_gap_s(ctx: &Context<'_>, times_us: impl Iterator<Item = u64>) -> Option<f64> {
    let (begin, end) = ctx.window_us;
    let mut times: Vec<u64> = times_us.map(|at| at.clamp(begin, end.max(begin))).collect();
    times.sort_unstable();
    times.first()?;
    let ends = times.iter().skip(1).copied().chain([end]);
    let between = times.iter().zip(ends).map(|(from, to)| to.saturating_sub(*from)).max()?;
    Some(between.max(times[0] - begin) as f64 / 1e6)
}

/// The most connections that a namespace can have opened within so many seconds, by these counters: at the largest rate between two of their readings. `None` if they were not
/// read around the window.
pub(super) fn opened(ctx: &Context<'_>, netns: NetnsId, counters: &[&str], seconds: f64) -> Option<f64> {
    let view = ctx.obs.netns.get(&netns)?;
    ctx.around(&view.netstat)?;
    let sum = |read: &Counters| counters.iter().map(|name| read.get(name).copied()).sum::<Option<i64>>();
    let mut most: f64 = 0.0;
    for pair in view.netstat.points().windows(2) {
        let [(from_us, first), (to_us, last)] = pair else { continue };
        let grown = sum(last)?.saturating_sub(sum(first)?).max(0);
        let elapsed_s = to_us.saturating_sub(*from_us).max(1) as f64 / 1e6;
        most = most.max(grown as f64 / elapsed_s);
    }
    Some(most * seconds)
}

/// Requests that can have come to a tier within so many seconds. `None` if their rate is not known.
pub(super) fn came(ctx: &Context<'_>, tier: &Tier, seconds: f64) -> Option<f64> {
    let gained = ctx.access_logs(tier).map(|log| log.gained()).sum::<Option<f64>>().map(|lines| lines / ctx.seconds().max(1e-6));
    let told = traffic::of(ctx).map(|traffic| traffic.throughput_rps);
    let rate = gained.into_iter().chain(told).reduce(f64::max).filter(|rate| *rate > 0.0)?;
    Some(rate * seconds)
}

/// The most requests of clients that a tier can have at once, where the load has all of them and gave none up that the server may still work on.
pub(super) fn at_once_most(ctx: &Context<'_>, tier: &Tier) -> Option<f64> {
    let load = ctx.obs.load.as_ref().filter(|load| matches!(load.shape, Loop::Closed { .. }))?;
    let gave_up = load.errors.response_timeout + load.errors.connect_timeout > 0;
    (!gave_up && ctx.others(tier.netns).had_none()).then(|| in_flight_peak(load))
}
