//! Programs that poll without sleeping. Their cores are busy with or without requests, so busy cores are no sign of load.

use std::collections::BTreeSet;

use super::NEAR_UTILIZATION;
use super::threads::{READY_SHARE, SERVING_SHARE};
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::profile::{POLLING, ProfileShare, Profiled};
use crate::observation::{NetnsId, ThreadTimes};

/// Shortest time before a load whose readings count. The kernel updates the time of a running thread at clock ticks, up to 10 ms apart.
const QUIET_US_MIN: u64 = 60_000;
/// Share of that time in which the thread must have run or been ready: all of it, less the resolution of the ticks.
const QUIET_READY_SHARE: f64 = 0.8;
/// Share of that time in which the thread must have run. A thread that only waits for a core may have been woken for work.
const QUIET_RAN_SHARE: f64 = 0.5;
/// Largest rate of segments received in the quiet time, as a share of the rate under load. The thread's work was no requests then.
const QUIET_SEGMENTS_SHARE: f64 = 0.05;
/// Largest mean number of other waiting threads per core that still counts as no wait.
const WAITING_MAX: f64 = 0.1;
/// Share of a program's own samples from which polling fills its time.
const POLLED_SHARE_MIN: f64 = 0.5;

/// Threads of a tier that never sleep, with or without requests.
pub(crate) struct Polling<'a> {
    /// The tier.
    pub(crate) tier: &'a Tier,
    /// Mean number of cores they kept busy.
    pub(crate) cores: f64,
    /// Mean number of them that waited for a core.
    pub(crate) delayed: f64,
    /// True if no other thread of the tier serves.
    pub(crate) is_all: bool,
    /// How it was detected.
    pub(crate) sign: PollingSign,
}

/// How polling was detected.
#[derive(Clone, Copy)]
pub(crate) enum PollingSign {
    /// The threads also ran all the time before the load, while hardly anything was received.
    Quiet {
        /// Number of threads.
        threads: usize,
        /// Mean number of cores they kept busy then.
        ran: f64,
        /// Length of the quiet time, microseconds.
        elapsed_us: u64,
    },
    /// Most of the program's samples are in functions that poll.
    Sampled(ProfileShare),
}

/// The tiers that poll.
pub(crate) fn polling<'a>(ctx: &Context<'_>, tiers: &[&'a Tier]) -> Vec<Polling<'a>> {
    tiers.iter().filter_map(|tier| quiet(ctx, tier).or_else(|| sampled(ctx, tier))).collect()
}

/// True if the busy cores would have room without the polling threads, and almost none of the servers' other threads wait for a core.
pub(super) fn fills(all: &[Polling<'_>], busy: f64, limit: f64, waiting: Option<f64>) -> bool {
    let cores: f64 = all.iter().map(|one| one.cores).sum();
    let delayed: f64 = all.iter().map(|one| one.delayed).sum();
    cores > 0.0 && busy - cores < NEAR_UTILIZATION * limit && waiting.unwrap_or(0.0) - delayed < WAITING_MAX * limit
}

fn quiet<'a>(ctx: &Context<'_>, tier: &'a Tier) -> Option<Polling<'a>> {
    let first = ctx.path.tiers.first()?;
    if ![first.netns, tier.netns].into_iter().all(|id| is_quiet(ctx, id)) || [first, tier].into_iter().any(|asked| is_asked(ctx, asked)) {
        return None;
    }
    let mut all =
        Polling { tier, cores: 0.0, delayed: 0.0, is_all: true, sign: PollingSign::Quiet { threads: 0, ran: 0.0, elapsed_us: 0 } };
    let (mut threads, mut ran_before, mut watched_us) = (0, 0.0, 0);
    for pid in tier.pids.iter().copied().collect::<BTreeSet<u32>>() {
        let Some(process) = ctx.obs.processes.get(&pid) else { continue };
        let [(begin_us, begin), (end_us, end), ..] = process.cpu.points() else { continue };
        let Some((first, last, elapsed_us)) = ctx.inside(&process.cpu) else { continue };
        let is_before = *end_us <= quiet_until_us(ctx) && end_us.saturating_sub(*begin_us) >= QUIET_US_MIN;
        for thread in &last.thread_times {
            let Some((ran, delayed)) = spent(&first.thread_times, thread, elapsed_us) else { continue };
            if ran < SERVING_SHARE {
                continue;
            }
            let before = end.thread_times.iter().find(|one| one.id == thread.id);
            let before = before.and_then(|one| spent(&begin.thread_times, one, end_us - begin_us)).filter(|_| is_before);
            let never_slept = |(ran, delayed): (f64, f64)| ran >= QUIET_RAN_SHARE && ran + delayed >= QUIET_READY_SHARE;
            match before {
                Some(before) if ran + delayed >= READY_SHARE && never_slept(before) => {
                    (threads, ran_before, watched_us) = (threads + 1, ran_before + before.0, end_us - begin_us);
                    (all.cores, all.delayed) = (all.cores + ran, all.delayed + delayed);
                }
                _ => all.is_all = false,
            }
        }
    }
    all.sign = PollingSign::Quiet { threads, ran: ran_before, elapsed_us: watched_us };
    (threads > 0).then_some(all)
}

/// Shares of a time in which a thread ran and waited for a core. `None` if it did not exist at the beginning.
fn spent(begin: &[ThreadTimes], end: &ThreadTimes, elapsed_us: u64) -> Option<(f64, f64)> {
    let begin = begin.iter().find(|begin| begin.id == end.id)?;
    let share = |end: u64, begin: u64| end.saturating_sub(begin) as f64 / 1e3 / elapsed_us.max(1) as f64;
    Some((share(end.run_ns, begin.run_ns), share(end.delay_ns, begin.delay_ns)))
}

/// End of the time that certainly had no requests: before the load and the single requests that precede it.
fn quiet_until_us(ctx: &Context<'_>) -> u64 {
    ctx.window_us.0.saturating_sub(ctx.obs.unloaded.as_ref().map_or(0, |few| few.duration_us))
}

/// True if a namespace received hardly anything before the load, according to two readings, and much more under load.
fn is_quiet(ctx: &Context<'_>, id: NetnsId) -> bool {
    let Some(view) = ctx.obs.netns.get(&id).filter(|_| ctx.obs.load.is_some()) else { return false };
    let [(begin_us, begin), (end_us, end), ..] = view.netstat.points() else { return false };
    let Some((first, last, elapsed_us)) = ctx.inside(&view.netstat).filter(|_| *end_us <= quiet_until_us(ctx)) else { return false };
    let rate = |begin: Option<&i64>, end: Option<&i64>, us: u64| Some(end?.saturating_sub(*begin?).max(0) as f64 / us.max(1) as f64);
    const SEGMENTS: &str = "Tcp.InSegs";
    let before = rate(begin.get(SEGMENTS), end.get(SEGMENTS), end_us.saturating_sub(*begin_us));
    let under_load = rate(first.get(SEGMENTS), last.get(SEGMENTS), elapsed_us).filter(|rate| *rate > 0.0);
    before.zip(under_load).is_some_and(|(before, under_load)| before <= QUIET_SEGMENTS_SHARE * under_load)
}

/// True if somebody held a connection to a tier before the load. The request on it may be computed all the time although nothing is received.
fn is_asked(ctx: &Context<'_>, tier: &Tier) -> bool {
    let Some((_, sockets)) = ctx.obs.netns.get(&tier.netns).and_then(|view| view.sockets.points().first()) else { return false };
    sockets.iter().any(|socket| socket.inode != 0 && tier.accepts(&socket.address))
}

fn sampled<'a>(ctx: &Context<'_>, tier: &'a Tier) -> Option<Polling<'a>> {
    let profiled = Profiled::of(ctx)?;
    let share = profiled.share_within(tier, POLLING).filter(|share| share.low >= POLLED_SHARE_MIN)?;
    Some(Polling { tier, cores: share.value * profiled.cores_used(tier), delayed: 0.0, is_all: true, sign: PollingSign::Sampled(share) })
}
