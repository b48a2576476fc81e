//! The cores on which the path's servers may run: who used how much of them, and who waited for one.

mod cost;
pub(crate) mod limiting;
mod polling;
mod threads;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use cost::Cost;
pub(crate) use limiting::{Limiting, are_spent, cores_are_spare, few_threads, limiting};
pub(crate) use polling::{Polling, Sign, polling};
pub(crate) use threads::Threads;

use super::{Context, CoreGroupId, TierId};
use crate::facts::path::Tier;
use crate::observation::load::GeneratorThread;
use crate::observation::{CoreTimes, CpuTimes};
use crate::output::report::Ceiling;

/// Share of the servers' cores at which they count as all busy. A closed loop that is limited by CPU leaves 0-2 % idle; with 100 clock
/// ticks a second and a ten-second window one per cent is ten ticks, so 95 % is clear of the grain.
pub(crate) const SATURATED_UTILIZATION: f64 = 0.95;
/// Share from which the headroom is told as small.
pub(crate) const NEAR_UTILIZATION: f64 = 0.80;
/// From here on cores for which threads wait are the limit as well: work that comes in bursts leaves some of their time idle between them, and a tenth more
/// than now is all that they could give.
pub(super) const CROWDED_UTILIZATION: f64 = 0.90;
/// Share of the servers' cores that other programs may use before what is said about the servers' CPU has to say so (DESIGN.md).
pub(super) const TENANTS_SHARE_MAX: f64 = 0.15;
/// The same, above which busy cores say nothing about servers that nobody asked for all that they can do, where their waits for a core could
/// not be read.
pub(super) const TENANTS_SHARE_MOST: f64 = 0.5;
/// How many times as long as alone an answer of a closed loop may take for the cores to be no limit of it: where they are, the requests of all
/// connections wait for one another.
pub(crate) const QUICK_TIMES: f64 = 1.5;

/// Cores on which the same tiers may run.
pub(crate) struct CoreGroup<'a> {
    /// Its place among the path's groups.
    pub(crate) id: CoreGroupId,
    /// The cores.
    pub(crate) cores: BTreeSet<u32>,
    /// The tiers, in the order of the path.
    pub(crate) tiers: Vec<&'a Tier>,
}

impl CoreGroup<'_> {
    /// How many cores there are.
    pub(crate) fn count(&self) -> f64 {
        self.cores.len() as f64
    }

    /// The cores as they are told: "0-1".
    pub(crate) fn list(&self) -> String {
        core_list(&self.cores.iter().copied().collect::<Vec<u32>>())
    }

    fn has(&self, tier: TierId) -> bool {
        self.tiers.iter().any(|own| own.id == tier)
    }
}

/// The path's tiers by the cores on which they may run.
pub(super) fn groups<'a>(ctx: &Context<'a>) -> Vec<CoreGroup<'a>> {
    let mut groups: BTreeMap<BTreeSet<u32>, Vec<&Tier>> = BTreeMap::new();
    let online: BTreeSet<u32> = ctx.obs.cpu.last().map(|times| times.cores.iter().map(|(core, _)| *core).collect()).unwrap_or_default();
    for tier in &ctx.path.tiers {
        let mut cores: BTreeSet<u32> = BTreeSet::new();
        for pid in &tier.pids {
            if let Some(identity) = ctx.obs.processes.get(pid).and_then(|process| process.identity.first()) {
                cores.extend(identity.cpus_allowed.iter().filter(|core| online.contains(core)));
            }
        }
        // Where the processes could not be read, the servers may run anywhere.
        let cores = if cores.is_empty() { online.clone() } else { cores };
        groups.entry(cores).or_default().push(tier);
    }
    let numbered = groups.into_iter().enumerate();
    numbered.map(|(place, (cores, tiers))| CoreGroup { id: CoreGroupId(place), cores, tiers }).collect()
}

/// The cores on which a tier may run, with the tiers that share them.
fn group_of<'c, 'a>(ctx: &'c Context<'a>, tier: &Tier) -> Option<&'c CoreGroup<'a>> {
    ctx.core_groups().iter().find(|group| group.has(tier.id))
}

/// The cores on which any of some tiers may run.
pub(crate) struct Cores {
    /// How many there are.
    pub(crate) count: f64,
    /// How many of them were idle on average.
    pub(crate) idle: f64,
    /// How many of them programs used on average that serve nothing of this path, as far as is known.
    pub(crate) others: f64,
}

/// The cores on which any of these tiers may run; nothing where their use could not be read.
pub(crate) fn cores_of(ctx: &Context<'_>, tiers: &[&Tier]) -> Option<Cores> {
    let theirs = || ctx.core_groups().iter().filter(|group| tiers.iter().any(|tier| group.has(tier.id)));
    let others = theirs().filter_map(|group| Some(Shared::of(ctx, group)?.others_at_most().max(0.0))).sum();
    let cores: BTreeSet<u32> = theirs().flat_map(|group| group.cores.iter().copied()).collect();
    let (count, busy) = (cores.len() as f64, busy(ctx, &cores)?);
    (count > 0.0).then_some(Cores { count, idle: (count - busy).max(0.0), others })
}

/// Cores that each of these processes used by the clock ticks that it was charged; without those that were not read twice.
fn charged<'p>(ctx: &Context<'_>, pids: impl IntoIterator<Item = &'p u32>) -> Vec<f64> {
    let ticks_per_s = ticks_per_s(ctx);
    pids.into_iter().filter_map(|pid| cores_by(ctx, *pid, ticks_per_s)).collect()
}

/// CPU time that these tiers' processes used and that could be read, in cores; nothing where none of it could.
pub(crate) fn own_cores<'p>(ctx: &Context<'_>, pids: impl IntoIterator<Item = &'p u32>) -> Option<f64> {
    let own = charged(ctx, pids);
    (!own.is_empty()).then(|| own.iter().sum())
}

/// Share of their time that these processes spent on cores; nothing where no process was read twice.
pub(crate) fn charged_share(ctx: &Context<'_>, pids: &[u32]) -> Option<f64> {
    let own = charged(ctx, pids);
    (!own.is_empty()).then(|| own.iter().sum::<f64>() / own.len() as f64)
}

/// Use of some cores.
pub(crate) struct Use {
    /// Cores that may be used.
    pub(crate) limit: f64,
    /// How many were.
    pub(crate) busy: f64,
    /// Of those, what programs used that serve nothing of this path.
    pub(crate) others: f64,
    /// What of it was counted in nanoseconds, and not by clock ticks.
    pub(crate) clocked: f64,
}

/// The most good answers a second for which these cores have CPU time.
pub(crate) fn ceiling_of(ctx: &Context<'_>, used: &Use) -> Option<Ceiling> {
    Cost::of_use(ctx, used)?.ceiling()
}

/// Busy share of the cores on which a tier may run; nothing where it could not be read.
pub(crate) fn utilization_of(ctx: &Context<'_>, tier: &Tier) -> Option<f64> {
    let group = group_of(ctx, tier)?;
    let busy = busy(ctx, &group.cores)?;
    (!group.cores.is_empty()).then(|| busy / group.count())
}

/// Share of the cores on which a tier may run that the path's own processes used, of this tier and of those that share its cores; nothing where
/// it could not be read.
pub(crate) fn own_share(ctx: &Context<'_>, tier: &Tier) -> Option<f64> {
    let group = group_of(ctx, tier)?;
    let own = own_cores(ctx, group.tiers.iter().flat_map(|tier| &tier.pids))?;
    (!group.cores.is_empty()).then(|| own / group.count())
}

/// Share of the cores on which a tier may run that its own processes used in the kernel; nothing where it could not be read.
pub(crate) fn kernel_share(ctx: &Context<'_>, tier: &Tier) -> Option<f64> {
    let group = group_of(ctx, tier)?;
    let ticks_per_us = ticks_per_s(ctx) / 1e6;
    let used = |pid: &u32| {
        let (first, last, elapsed_us) = ctx.inside(&ctx.obs.processes.get(pid)?.cpu)?;
        Some(last.system_ticks.saturating_sub(first.system_ticks) as f64 / ticks_per_us / elapsed_us as f64)
    };
    let own: Vec<f64> = tier.pids.iter().filter_map(used).collect();
    (!own.is_empty() && !group.cores.is_empty()).then(|| own.iter().sum::<f64>() / group.count())
}

/// The servers' cores of which other programs used more than [`TENANTS_SHARE_MAX`], and the share.
pub(crate) fn other_tenants(ctx: &Context<'_>) -> Vec<(String, f64)> {
    let shares = ctx.core_groups().iter().filter_map(|group| Some((group.list(), others_share(ctx, group)?)));
    shares.filter(|(_, share)| *share > TENANTS_SHARE_MAX).collect()
}

/// Who used some cores, in cores.
struct Shared {
    /// All that ran, interrupts and soft interrupts included.
    busy: f64,
    /// Those alone.
    interrupts: f64,
    /// The path's servers, with the interrupts that came while they ran: their clocks go on.
    own: f64,
    /// The load generator.
    generator: f64,
}

impl Shared {
    /// Nothing where the servers' own use could not be read: it cannot be told apart then.
    fn of(ctx: &Context<'_>, group: &CoreGroup<'_>) -> Option<Self> {
        let (first, last, elapsed_us) = ctx.inside(&ctx.obs.cpu)?;
        let ticks = ticks_per_s(ctx) * elapsed_us.max(1) as f64 / 1e6;
        let used =
            |of: fn(&CoreTimes) -> u64| group.cores.iter().filter_map(|core| grown(first, last, *core, of)).sum::<u64>() as f64 / ticks;
        let shares_cores = |thread: &&GeneratorThread| thread.cpus.iter().any(|core| group.cores.contains(core));
        let generator = ctx.obs.load.iter().flat_map(|load| &load.threads).filter(shares_cores);
        Some(Self {
            busy: used(CoreTimes::busy),
            interrupts: used(interrupts),
            own: own_cores(ctx, group.tiers.iter().flat_map(|tier| &tier.pids))?,
            generator: generator.map(|thread| thread.cpu_us as f64 / thread.wall_us.max(1) as f64).sum(),
        })
    }

    /// What neither the servers nor the interrupts nor the load generator used. Interrupts that came while the servers ran are taken off twice, so that it is
    /// the least that others used.
    fn others(&self) -> f64 {
        self.busy - self.interrupts - self.own - self.generator
    }

    /// The same with those interrupts taken off once: as many as fell into the servers' time where they came evenly.
    fn others_at_most(&self) -> f64 {
        let within = (self.own / self.busy.max(f64::MIN_POSITIVE)).min(1.0);
        self.others() + within * self.interrupts
    }
}

/// Share of these cores that other programs used at least. Nothing where the servers' own use could not be read.
pub(super) fn others_share(ctx: &Context<'_>, group: &CoreGroup<'_>) -> Option<f64> {
    Some(Shared::of(ctx, group)?.others() / group.cores.len().max(1) as f64)
}

/// Clock ticks of a core that served interrupts, or that its hypervisor kept.
pub(super) fn interrupts(times: &CoreTimes) -> u64 {
    times.irq + times.softirq + times.steal
}

/// Clock ticks a second in which the kernel counts CPU time.
pub(super) fn ticks_per_s(ctx: &Context<'_>) -> f64 {
    ctx.obs.kernel.last().map_or(100, |kernel| kernel.ticks_per_s).max(1) as f64
}

/// Cores that a process used in the window: the larger of what its clock ticks and its threads' own clocks tell. The ticks of many young processes are
/// too few, each cut off to whole ones; the clocks lack the threads that ended. Both over the time between its own readings: those of another process,
/// or of the cores, may be of other times.
pub(super) fn cores_by(ctx: &Context<'_>, pid: u32, ticks_per_s: f64) -> Option<f64> {
    let (first, last, elapsed_us) = ctx.inside(&ctx.obs.processes.get(&pid)?.cpu)?;
    let ticks = (last.user_ticks + last.system_ticks).saturating_sub(first.user_ticks + first.system_ticks);
    let ticked = ticks as f64 / ticks_per_s * 1e6 / elapsed_us as f64;
    Some(ctx.clocked(pid, |used| used.run_ns).map_or(ticked, |clocked| ticked.max(clocked)))
}

fn times(cores: &[(u32, CoreTimes)], core: u32) -> Option<&CoreTimes> {
    cores.iter().find(|(number, _)| *number == core).map(|(_, times)| times)
}

/// By how much one of a core's times grew between two readings, clock ticks.
pub(super) fn grown(first: &CpuTimes, last: &CpuTimes, core: u32, of: fn(&CoreTimes) -> u64) -> Option<u64> {
    Some(of(times(&last.cores, core)?).saturating_sub(of(times(&first.cores, core)?)))
}

/// Busy share of a core between two readings of its times.
fn busy_share(first: &CoreTimes, last: &CoreTimes) -> f64 {
    let total = last.total().saturating_sub(first.total());
    if total == 0 { 0.0 } else { last.busy().saturating_sub(first.busy()) as f64 / total as f64 }
}

/// Mean number of these tiers' processes that were runnable and waited for a core.
pub(crate) fn waiting(ctx: &Context<'_>, tiers: &[&Tier]) -> Option<f64> {
    let delays: Vec<f64> = tiers.iter().flat_map(|tier| &tier.pids).filter_map(|pid| delayed(ctx, *pid)).collect();
    (!delays.is_empty()).then(|| delays.iter().sum())
}

/// Mean number of a process's threads that were runnable and waited for a core.
pub(super) fn delayed(ctx: &Context<'_>, pid: u32) -> Option<f64> {
    ctx.clocked(pid, |used| used.run_delay_ns)
}

/// CPU time of a good answer on all cores of the path together, seconds; zero where it cannot be told.
pub(crate) fn cost_s(ctx: &Context<'_>) -> f64 {
    let cost_s = |group: &CoreGroup<'_>| Some(Cost::of(ctx, group, busy(ctx, &group.cores)?)?.value_s);
    ctx.core_groups().iter().filter_map(cost_s).sum()
}

/// How many of these cores were busy on average: at least as many as their servers' own clocks tell. The kernel looks at the clock ticks what a core does;
/// work that the same clock sets off, such as answers at a steady rate, it may miss nearly all of (a core of 38 % counted as 8 %: docs/measuring.md).
pub(crate) fn busy(ctx: &Context<'_>, cores: &BTreeSet<u32>) -> Option<f64> {
    let (first, last, _) = ctx.inside(&ctx.obs.cpu)?;
    let ticked: f64 = cores.iter().filter_map(|core| Some(busy_share(times(&first.cores, *core)?, times(&last.cores, *core)?))).sum();
    let within = ctx.core_groups().iter().filter(|group| group.cores.is_subset(cores));
    let own = within.map(|group| ran(ctx, &group.tiers)).sum::<f64>();
    Some(ticked.max(own.min(cores.len() as f64)))
}

/// Cores that the processes of these tiers used at least, by their threads' own clocks: those of which that was read twice.
pub(super) fn ran(ctx: &Context<'_>, tiers: &[&Tier]) -> f64 {
    tiers.iter().flat_map(|tier| &tier.pids).filter_map(|pid| ctx.clocked(*pid, |used| used.run_ns)).sum()
}

/// Cores as a person writes them: "0", "0-3", "0,2".
pub(crate) fn core_list(cpus: &[u32]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for cpu in sorted {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let part = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}
