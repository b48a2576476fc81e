//! CPU quotas: which one limits which tier, and how often it throttled its cgroup in the window.

use super::{Context, cores};
use crate::facts::path::Tier;
use crate::observation::series::Series;
use crate::observation::{CgroupCpu, CgroupId, CgroupVersion};

/// Share of throttled periods from which throttling is mentioned.
pub(crate) const NOTED_SHARE: f64 = 0.01;
/// A nested quota counts as alike if it throttles at least this share as often as the outer one: both throttle their processes in turns.
const ALIKE_SHARE: f64 = 0.5;

/// Throttling of a cgroup in the window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Throttled {
    /// Periods that ended with the cgroup throttled.
    pub(crate) periods: u64,
    /// Periods in which a process ran or was runnable.
    pub(crate) of: u64,
    /// Throttled periods as a share of all periods of the window. A mostly idle cgroup has few periods of its own.
    pub(crate) share: f64,
    /// Time throttled, summed over cores, as a share of the window. `None` if the kernel does not report it.
    stopped: Option<f64>,
    /// Length of a period, microseconds.
    period_us: f64,
}

impl Throttled {
    fn of(first: &CgroupCpu, last: &CgroupCpu, elapsed_us: u64) -> Option<Self> {
        let grew = |count: fn(&CgroupCpu) -> Option<u64>| Some(count(last)?.saturating_sub(count(first)?));
        let periods = grew(|cpu| cpu.throttled_periods)?;
        let (period_us, elapsed_us) = (last.period_us as f64, elapsed_us as f64);
        Some(Self {
            periods,
            of: grew(|cpu| cpu.periods).unwrap_or(periods).max(periods),
            share: (periods as f64 * period_us / elapsed_us).min(1.0),
            stopped: grew(|cpu| cpu.throttled_ns).map(|ns| ns as f64 / 1e3 / elapsed_us),
            period_us,
        })
    }

    /// Share of the window in which it was throttled, a lower bound: the kernel sums over the throttled cores, at most this many.
    pub(crate) fn stopped_share(&self, cores: f64) -> f64 {
        self.stopped.map_or(0.0, |stopped| (stopped / cores.max(1.0)).min(self.share))
    }

    /// Cores that throttling kept from it, an upper bound.
    pub(crate) fn stopped_most(&self) -> f64 {
        self.stopped.unwrap_or(f64::MAX)
    }

    /// Length of one throttling, microseconds, a lower bound.
    pub(crate) fn stop_us(&self, cores: f64) -> f64 {
        if self.share > 0.0 { (self.stopped_share(cores) / self.share * self.period_us).min(self.period_us) } else { 0.0 }
    }
}

/// A cgroup with a CPU limit, and the tiers for which it is the tightest limit.
#[derive(Debug, Clone)]
pub(crate) struct Quota<'a> {
    pub(crate) id: &'a CgroupId,
    /// Its last reading.
    pub(crate) now: &'a CgroupCpu,
    pub(crate) tiers: Vec<&'a Tier>,
    /// The limit, cores.
    pub(crate) limit: f64,
    /// Cores used by all of its processes.
    pub(crate) used: Option<f64>,
    /// Cores used by the tiers' processes.
    pub(crate) own: Option<f64>,
    pub(crate) throttled: Option<Throttled>,
}

impl<'a> Quota<'a> {
    fn of(ctx: &Context<'a>, id: &'a CgroupId, series: &'a Series<CgroupCpu>, tiers: Vec<&'a Tier>) -> Option<Self> {
        let now = series.last()?;
        let limit = now.limit_cores()?;
        let seen = cores::own_cores(ctx, tiers.iter().flat_map(|tier| &tier.pids));
        let is_read = |pid: &u32| ctx.obs.processes.get(pid).is_some_and(|process| ctx.inside(&process.cpu).is_some());
        // A process that was not read may have used all of it.
        let own = seen.filter(|_| tiers.iter().flat_map(|tier| &tier.pids).all(is_read));
        let window = ctx.inside(series);
        // Without the cgroup's own counter, use is what its read processes used.
        let used = window.and_then(|(first, last, elapsed_us)| used_cores(first, last, elapsed_us)).or(seen);
        let throttled = window.and_then(|(first, last, elapsed_us)| Throttled::of(first, last, elapsed_us));
        Some(Self { id, now, tiers, limit, used, own, throttled })
    }

    /// Share of the limit that was used.
    pub(crate) fn utilization(&self) -> Option<f64> {
        self.used.map(|used| used / self.limit)
    }

    /// Cores used by programs in the cgroup that are not on this path, as far as known.
    pub(crate) fn others(&self) -> f64 {
        self.used.zip(self.own).map_or(0.0, |(used, own)| (used - own).max(0.0))
    }

    /// Nested cgroups of the same servers that their own limits throttle about as often, outer ones first. If only the outer limit is raised, they still
    /// throttle the servers.
    pub(crate) fn alike_within(&self, ctx: &Context<'a>) -> Vec<&'a CgroupId> {
        let least = ALIKE_SHARE * self.throttled.map_or(1.0, |throttled| throttled.share);
        let all = self.tiers.iter().flat_map(|tier| holding(ctx, tier));
        let alike = all.filter(|(id, series)| {
            let share = ctx.inside(series).and_then(|(first, last, elapsed_us)| Throttled::of(first, last, elapsed_us));
            *id != self.id && self.id.holds(id) && share.is_some_and(|throttled| throttled.periods > 0 && throttled.share >= least)
        });
        let mut alike: Vec<&CgroupId> = alike.map(|(id, _)| id).collect();
        alike.sort_by(|a, b| a.path.len().cmp(&b.path.len()).then(a.cmp(b)));
        alike.dedup();
        alike
    }

    /// How tight it is: the share of throttled periods, then the share of the limit in use.
    fn tightness(&self) -> (f64, f64) {
        (self.throttled.map_or(0.0, |throttled| throttled.share), self.utilization().unwrap_or(0.0))
    }
}

fn used_cores(first: &CgroupCpu, last: &CgroupCpu, elapsed_us: u64) -> Option<f64> {
    Some(last.used_ns?.saturating_sub(first.used_ns?) as f64 / 1e3 / elapsed_us as f64)
}

/// The file with a cgroup's limit.
pub(crate) fn file(id: &CgroupId) -> &'static str {
    match id.version {
        CgroupVersion::V1 => "cpu.cfs_quota_us",
        CgroupVersion::V2 => "cpu.max",
    }
}

/// The quotas of the path: the tightest of each tier. Tiers with the same quota share an entry.
pub(super) fn limited<'a>(ctx: &Context<'a>) -> Vec<Quota<'a>> {
    let mut found: Vec<Quota<'a>> = Vec::new();
    for tier in &ctx.path.tiers {
        let quotas = holding(ctx, tier).into_iter().filter_map(|(id, series)| Quota::of(ctx, id, series, vec![tier]));
        let tighter = |a: &Quota<'_>, b: &Quota<'_>| {
            let ((a_share, a_used), (b_share, b_used)) = (a.tightness(), b.tightness());
            // Of two equally tight quotas the inner one throttles first.
            a_share.total_cmp(&b_share).then(a_used.total_cmp(&b_used)).then(a.id.path.len().cmp(&b.id.path.len()))
        };
        let Some(tightest) = quotas.max_by(tighter) else { continue };
        match found.iter_mut().find(|quota| quota.id == tightest.id) {
            Some(quota) => quota.tiers.push(tier),
            None => found.push(tightest),
        }
    }
    let whole = |quota: Quota<'a>| Quota::of(ctx, quota.id, ctx.obs.cgroups.get(quota.id)?, quota.tiers);
    found.into_iter().filter_map(whole).collect()
}

/// The cgroups with a limit that contain at least half of a tier's processes.
fn holding<'a>(ctx: &Context<'a>, tier: &Tier) -> Vec<(&'a CgroupId, &'a Series<CgroupCpu>)> {
    let of = |pid: &u32| CgroupId::of_cpu(ctx.obs.processes.get(pid)?.cgroups.last()?);
    let theirs: Vec<CgroupId> = tier.pids.iter().filter_map(of).collect();
    let holds = |id: &CgroupId| !theirs.is_empty() && theirs.iter().filter(|own| id.holds(own)).count() * 2 >= theirs.len();
    let is_limited = |series: &Series<CgroupCpu>| series.last().is_some_and(|cpu| cpu.limit_cores().is_some());
    ctx.obs.cgroups.iter().filter(|(id, series)| is_limited(series) && holds(id)).collect()
}

/// True if a quota throttles a tier's processes at least now and then. Ready processes are then no sign of busy cores.
pub(crate) fn stops(ctx: &Context<'_>, tier: &Tier) -> bool {
    let holds = |quota: &Quota<'_>| quota.tiers.iter().any(|other| other.id == tier.id);
    ctx.quotas().iter().filter(|quota| holds(quota)).any(|quota| quota.throttled.is_some_and(|throttled| throttled.share >= NOTED_SHARE))
}
