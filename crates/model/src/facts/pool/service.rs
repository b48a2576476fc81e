//! How long a request holds a worker of a pool, without its waits for something that has a limit of its own.

use super::{Pool, Queued, SAMPLES_MIN};
use crate::facts::Context;
use crate::facts::GOOD_MIN;
use crate::facts::cores::other_tenants;
use crate::facts::path::Tier;
use crate::facts::quota::stops;
use crate::facts::suffered::GATEWAY;
use crate::facts::traffic::{self, Statuses};
use crate::observation::load::Percentiles;
use crate::observation::{AccessLog, CpuUse};
use crate::output::report::Ceiling;

/// How long a request holds a worker, without waits for a core or in the queue of an upstream tier. Seconds.
pub(crate) struct Service {
    pub(crate) held_s: f64,
    pub(crate) held_s_least: f64,
    pub(crate) held_s_most: f64,
    /// Requests a second that held one.
    served_rps: f64,
}

impl Service {
    /// From the workers' log if it has durations; else from sockets by Little's law, if the number of served requests is known.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> Option<Self> {
        let load = ctx.obs.load.as_ref().filter(|load| load.good >= GOOD_MIN && pool.busy.len() >= SAMPLES_MIN)?;
        // Logs whose growth is known.
        let logs: Vec<&AccessLog> = ctx.access_logs(tier).filter(|log| log.gained().is_some() && log.lines >= GOOD_MIN).collect();
        let lines: f64 = logs.iter().filter_map(|log| log.gained()).sum();
        let served = match ctx.can_divide_by_good() {
            true => ctx.answers_rps()?,
            false if lines > 0.0 => lines / ctx.seconds().max(1e-6),
            false => return None,
        };
        // Between none and all of the failed requests held a worker.
        let served_most = served.max(load.throughput_rps() * ctx.times_own());
        let per_request_s = |processes: f64| processes / served;
        let running_s = per_request_s(processes(ctx, tier, |used| used.run_ns));
        let queued_s = per_request_s(ctx.queued_mean(ctx.behind(tier)));
        let for_core_s = per_request_s(processes(ctx, tier, |used| used.run_delay_ns));
        // The wait for a core that other programs keep busy counts. The wait for a core that the servers filled themselves is the cores' own queue, and the
        // wait for the next period of a quota is the quota's.
        let stays_s = if other_tenants(ctx).is_empty() || stops(ctx, tier) { 0.0 } else { for_core_s };
        let alone_s = |held_s: f64| (held_s - queued_s - for_core_s).max(running_s);
        let net_s = |held_s: f64| alone_s(held_s) + stays_s;
        let by_sockets = pool.busy_mean() / served;
        let by_log = logs.iter().max_by_key(|log| log.lines).and_then(|log| log.duration_us).map(|times| mean_s(&times));
        let held_s = net_s(by_log.unwrap_or(by_sockets));
        let least = alone_s(pool.busy_mean() / served_most).min(held_s);
        let most = net_s(by_sockets).max(held_s);
        (held_s > 0.0 && held_s.is_finite()).then_some(Self { held_s, held_s_least: least, held_s_most: most, served_rps: served })
    }
}

/// True if this ceiling of a tier's pool supposes that waits end which hold its workers today: for a core, or in the queue of a server behind. Predictions
/// count on that. As long as they last, a pool with all its workers taken passes less.
pub(crate) fn supposes_no_waits(ctx: &Context<'_>, tier: &Tier, ceiling: &Ceiling) -> bool {
    let pool = Pool::of(ctx, tier);
    let service = || Some((pool.as_ref()?, Service::of(ctx, tier, pool.as_ref()?)?));
    service().is_some_and(|(pool, service)| ceiling.low * pool.busy_mean() / pool.workers as f64 > service.served_rps)
}

/// How long a request holds a worker, seconds: as it was measured under load, or else by Little's law from the answers of watched traffic.
pub(crate) fn held_s(ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> Option<f64> {
    if let Some(service) = Service::of(ctx, tier, pool) {
        return Some(service.held_s);
    }
    let account = || ctx.account().filter(|_| ctx.obs.load.is_none());
    let passed = || 1.0 - share_by_gateway(ctx, tier);
    let came = || Some(passed() * account()?.rate_rps()? - Queued::before(ctx, tier, Some(pool)).grown_rps(ctx));
    let answers_rps = logged_rps(ctx, tier).or_else(came)?;
    (answers_rps > 0.0 && pool.busy_mean() > 0.0).then(|| pool.busy_mean() / answers_rps)
}

/// Answers a second of watched traffic that its log has and that a worker gave, good or not. What a gateway answers because a server behind it refused or was silent, that
/// server's workers did not.
fn logged_rps(ctx: &Context<'_>, tier: &Tier) -> Option<f64> {
    let watched = traffic::of(ctx).filter(|watched| ctx.obs.load.is_none() && watched.duration_s > 0.0)?;
    Some((1.0 - share_by_gateway(ctx, tier)) * watched.requests as f64 / watched.duration_s)
}

/// Share of the watched responses that a gateway before this tier made, because a server behind it refused or was silent.
fn share_by_gateway(ctx: &Context<'_>, tier: &Tier) -> f64 {
    let Some(seen) = Statuses::of(ctx).filter(|_| !ctx.path.is_first(tier)) else { return 0.0 };
    let by_gateway = GATEWAY.iter().filter_map(|status| seen.by_status.get(status)).sum::<u64>();
    by_gateway as f64 / seen.requests.max(1) as f64
}

/// Mean number of a tier's threads in the state that this clock counts.
fn processes(ctx: &Context<'_>, tier: &Tier, clock_ns: fn(&CpuUse) -> Option<u64>) -> f64 {
    tier.pids.iter().filter_map(|pid| ctx.clocked(*pid, clock_ns)).sum()
}

/// The mean of a distribution with these percentiles, seconds. Values between two percentiles are interpolated. The lower half counts as the median, so the
/// mean is rather too long than too short.
fn mean_s(times: &Percentiles) -> f64 {
    let points = [(0.5, times.p50), (0.75, times.p75), (0.9, times.p90), (0.95, times.p95), (0.99, times.p99), (0.999, times.p999)];
    let between = points.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) as f64 / 2.0);
    let tail = 0.001 * times.p999 as f64;
    (0.5 * times.p50 as f64 + between.sum::<f64>() + tail) / 1e6
}
