//! The cores that the path's servers may run on: who used them, and who waited for one.

mod collecting;
mod cost;
mod elsewhere;
pub(crate) mod limiting;
mod lowered;
mod own;
mod passing;
mod polling;
mod taken;
mod threads;
mod turns;
mod work;
mod yielding;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use collecting::Collecting;
pub(crate) use cost::{AnswerCost, Carried, carried};
pub(crate) use limiting::{Limiting, are_spent, cores_are_spare, few_threads, limiting};
pub(crate) use lowered::{Lowered, USUAL_NICE};
pub(super) use own::cores_used_by;
pub(crate) use own::{charged_share, children_cores, kernel_share, own_cores, passing_children_cores, staying_children_cores};
pub(crate) use passing::Passing;
pub(crate) use polling::{Polling, PollingSign, polling};
pub(crate) use taken::{Taken, Taker, left_over, may_be_its_children, taken};
pub(crate) use threads::Threads;
pub(crate) use turns::Turns;
pub(crate) use work::{MainWork, is_main_work_known};

use super::{Context, CoreGroupId, TierId};
use crate::facts::harm::NOISE_SHARE;
use crate::facts::path::Tier;
use crate::fix::change::core_list;
use crate::observation::load::GeneratorThread;
use crate::observation::{CoreTimes, CpuTimes};
use crate::output::report::Ceiling;

/// Share of the servers' cores that counts as all busy. A closed loop that is limited by CPU leaves 0-2 % idle. With 100 clock ticks a second and a ten-second
/// window one per cent is ten ticks, so 95 % is clear of that resolution.
pub(crate) const SATURATED_UTILIZATION: f64 = 0.95;
/// From this share on the headroom is reported as small.
pub(crate) const NEAR_UTILIZATION: f64 = 0.80;
/// From this share on, cores are the limit too if the servers would use more of them than there are. Bursty work leaves some of their time idle, and they could give no more than noise.
pub(super) const CROWDED_UTILIZATION: f64 = 1.0 / (1.0 + NOISE_SHARE);
/// Share of the servers' cores that other programs may use before statements about the servers' CPU have to mention them (DESIGN.md).
pub(crate) const TENANTS_SHARE_MAX: f64 = 0.15;
/// The same for an observation without load. Above this share busy cores say nothing about the servers if their waits for a core could not be read.
pub(super) const TENANTS_SHARE_MOST: f64 = 0.5;
/// A closed loop's answer may take this many times as long as a single one before the cores count as its limit. If cores are the limit, the requests of all
/// connections wait for each other.
pub(crate) const QUICK_TIMES: f64 = 1.5;

/// A set of cores and the tiers that may run on it.
pub(crate) struct CoreGroup<'a> {
    /// Its index among the path's groups.
    pub(crate) id: CoreGroupId,
    /// The cores.
    pub(crate) cores: BTreeSet<u32>,
    /// The tiers, in the order of the path.
    pub(crate) tiers: Vec<&'a Tier>,
}

impl CoreGroup<'_> {
    /// Number of cores.
    pub(crate) fn count(&self) -> f64 {
        self.cores.len() as f64
    }

    /// True if the processes of each of its tiers are known, so that their use of the cores can be told from that of others.
    pub(crate) fn is_known(&self) -> bool {
        self.tiers.iter().all(|tier| tier.is_known())
    }

    /// The cores for the report: "0-1".
    pub(crate) fn list(&self) -> String {
        core_list(&self.cores.iter().copied().collect::<Vec<u32>>())
    }

    fn has(&self, tier: TierId) -> bool {
        self.tiers.iter().any(|own| own.id == tier)
    }
}

/// The path's tiers, grouped by the cores that they may run on.
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
        // If the processes could not be read, the servers may run on any core.
        let cores = if cores.is_empty() { online.clone() } else { cores };
        groups.entry(cores).or_default().push(tier);
    }
    let numbered = groups.into_iter().enumerate();
    numbered.map(|(place, (cores, tiers))| CoreGroup { id: CoreGroupId(place), cores, tiers }).collect()
}

/// The cores that a tier may run on, with the tiers that share them.
pub(crate) fn group_of<'c, 'a>(ctx: &'c Context<'a>, tier: &Tier) -> Option<&'c CoreGroup<'a>> {
    ctx.core_groups().iter().find(|group| group.has(tier.id))
}

/// The cores that any of several tiers may run on.
pub(crate) struct Cores {
    /// Number of cores.
    pub(crate) count: f64,
    /// Mean number of idle cores.
    pub(crate) idle: f64,
    /// Mean number of cores that programs outside this path used, as far as known.
    pub(crate) others: f64,
}

/// The cores that any of these tiers may run on. `None` if their use could not be read.
pub(crate) fn cores_of(ctx: &Context<'_>, tiers: &[&Tier]) -> Option<Cores> {
    let theirs = || ctx.core_groups().iter().filter(|group| tiers.iter().any(|tier| group.has(tier.id)));
    let others = theirs().filter_map(|group| Some(CoreUsers::of(ctx, group)?.others_at_most().max(0.0))).sum();
    let cores: BTreeSet<u32> = theirs().flat_map(|group| group.cores.iter().copied()).collect();
    let (count, busy) = (cores.len() as f64, busy(ctx, &cores)?);
    (count > 0.0).then_some(Cores { count, idle: (count - busy).max(0.0), others })
}

/// Use of a set of cores.
pub(crate) struct CoreUse {
    /// Number of cores.
    pub(crate) limit: f64,
    /// Mean number of busy cores.
    pub(crate) busy: f64,
    /// Part of `busy` used by programs outside this path.
    pub(crate) others: f64,
    /// Part of `busy` that was measured in nanoseconds instead of clock ticks.
    pub(crate) clocked: f64,
}

/// The most good answers a second that these cores have CPU time for.
pub(crate) fn ceiling_of(ctx: &Context<'_>, used: &CoreUse) -> Option<Ceiling> {
    AnswerCost::of_use(ctx, used)?.ceiling()
}

/// Mean number of idle cores of the host that these servers may not use.
pub(crate) fn idle_beside(ctx: &Context<'_>, group: &CoreGroup<'_>) -> Option<f64> {
    let online = ctx.obs.cpu.last()?.cores.iter().map(|(core, _)| *core);
    let beside: BTreeSet<u32> = online.filter(|core| !group.cores.contains(core)).collect();
    Some((beside.len() as f64 - busy(ctx, &beside)?).max(0.0))
}

/// Busy share of the busiest cores that servers of the path may run on and that they do not share with other programs. `None` if there are none, or if none could be read.
pub(crate) fn most_busy(ctx: &Context<'_>) -> Option<f64> {
    let own = ctx.core_groups().iter().filter(|group| !is_shared(ctx, group));
    own.filter_map(|group| Some(busy(ctx, &group.cores)? / group.count().max(1.0))).max_by(f64::total_cmp)
}

/// True if other programs use more than [`TENANTS_SHARE_MAX`] of these cores, or if it is not known whether they do.
fn is_shared(ctx: &Context<'_>, group: &CoreGroup<'_>) -> bool {
    others_share(ctx, group).is_none_or(|share| share > TENANTS_SHARE_MAX)
}

/// Busy share of the cores that a tier may run on. `None` if it could not be read.
pub(crate) fn utilization_of(ctx: &Context<'_>, tier: &Tier) -> Option<f64> {
    let group = group_of(ctx, tier)?;
    let busy = busy(ctx, &group.cores)?;
    (!group.cores.is_empty()).then(|| busy / group.count())
}

/// Share of a tier's cores used by the path's processes: this tier and those that share its cores. `None` if it could not be read.
pub(crate) fn own_share(ctx: &Context<'_>, tier: &Tier) -> Option<f64> {
    let group = group_of(ctx, tier)?;
    share_of_cores(ctx, group, group.tiers.iter().flat_map(|tier| &tier.pids))
}

/// Share of a tier's cores used by its own processes alone. `None` if it could not be read.
pub(crate) fn share_of_tier(ctx: &Context<'_>, tier: &Tier) -> Option<f64> {
    let group = group_of(ctx, tier)?;
    share_of_cores(ctx, group, &tier.pids)
}

/// Share of a group's cores used by these processes. `None` if none of them was read twice.
fn share_of_cores<'p>(ctx: &Context<'_>, group: &CoreGroup<'_>, pids: impl IntoIterator<Item = &'p u32>) -> Option<f64> {
    let own = own_cores(ctx, pids)?;
    (!group.cores.is_empty()).then(|| own / group.count())
}

/// The groups of cores with more than [`TENANTS_SHARE_MAX`] used by other programs, and that share.
pub(crate) fn other_tenants(ctx: &Context<'_>) -> Vec<(String, f64)> {
    shared_groups(ctx).map(|(group, share)| (group.list(), share)).collect()
}

fn shared_groups<'c, 'a>(ctx: &'c Context<'a>) -> impl Iterator<Item = (&'c CoreGroup<'a>, f64)> {
    let shares = ctx.core_groups().iter().filter_map(|group| Some((group, others_share(ctx, group)?)));
    shares.filter(|(_, share)| *share > TENANTS_SHARE_MAX)
}

/// The same with the names of those programs.
pub(crate) fn named_tenants(ctx: &Context<'_>) -> Vec<OtherTenants> {
    let named = |(group, share): (&CoreGroup<'_>, f64)| {
        let (names, yield_all) = taken::most_of_others(ctx, group, share * group.count());
        OtherTenants { cores: group.list(), share, names, yield_all }
    };
    shared_groups(ctx).map(named).collect()
}

/// Programs beside the servers on a group of cores.
pub(crate) struct OtherTenants {
    /// The cores: "0-1".
    pub(crate) cores: String,
    /// The share of these cores that they used, 0 to 1.
    pub(crate) share: f64,
    /// Those that make up most of it, by name. Empty if they are not known.
    pub(crate) names: Vec<String>,
    /// True if each of these has only what the servers leave.
    pub(crate) yield_all: bool,
}

/// Who used a group of cores, in cores.
struct CoreUsers {
    /// All busy time, including interrupts and soft interrupts.
    busy: f64,
    /// Interrupts and soft interrupts.
    interrupts: f64,
    /// The path's servers, including interrupts that came while they ran: their clocks go on.
    own: f64,
    /// The load generator.
    generator: f64,
}

impl CoreUsers {
    /// `None` if the servers' own use could not be read.
    fn of(ctx: &Context<'_>, group: &CoreGroup<'_>) -> Option<Self> {
        let (first, last, elapsed_us) = ctx.inside(&ctx.obs.cpu)?;
        let ticks = ticks_per_s(ctx) * elapsed_us.max(1) as f64 / 1e6;
        let used = |of: fn(&CoreTimes) -> u64| {
            group.cores.iter().filter_map(|core| ticks_between(first, last, *core, of)).sum::<u64>() as f64 / ticks
        };
        let shares_cores = |thread: &&GeneratorThread| thread.cpus.iter().any(|core| group.cores.contains(core));
        let generator = ctx.obs.load.iter().flat_map(|load| &load.threads).filter(shares_cores);
        Some(Self {
            busy: used(CoreTimes::busy),
            interrupts: used(interrupts),
            own: own_cores(ctx, group.tiers.iter().flat_map(|tier| &tier.pids))?,
            generator: generator.map(|thread| thread.cpu_us as f64 / thread.wall_us.max(1) as f64).sum(),
        })
    }

    /// Use by other programs, a lower bound: interrupts that came while the servers ran are subtracted twice.
    fn others(&self) -> f64 {
        self.busy - self.interrupts - self.own - self.generator
    }

    /// An upper bound: assumes that interrupts came evenly, and subtracts those in the servers' time once.
    fn others_at_most(&self) -> f64 {
        let within = (self.own / self.busy.max(f64::MIN_POSITIVE)).min(1.0);
        self.others() + within * self.interrupts
    }
}

/// Share of these cores that other programs used, a lower bound. `None` if the servers' own use could not be read.
pub(crate) fn others_share(ctx: &Context<'_>, group: &CoreGroup<'_>) -> Option<f64> {
    Some(CoreUsers::of(ctx, group)?.others() / group.cores.len().max(1) as f64)
}

/// Of the time that these servers, their interrupts and the load take of cores which others use as well, the servers' part: less work for an answer leaves more for the next one of that,
/// and the same to the others. `None` if others use no more than [`TENANTS_SHARE_MAX`], or if that is not known: then all of the cores' time is what limits.
fn part_beside_others(ctx: &Context<'_>, group: &CoreGroup<'_>) -> Option<f64> {
    others_share(ctx, group).filter(|share| *share > TENANTS_SHARE_MAX)?;
    let users = CoreUsers::of(ctx, group)?;
    Some(users.own / (users.own + users.interrupts + users.generator).max(f64::MIN_POSITIVE))
}

/// Clock ticks of a core spent on interrupts, or stolen by the hypervisor.
pub(crate) fn interrupts(times: &CoreTimes) -> u64 {
    times.irq + times.softirq + times.steal
}

/// Clock ticks a second in which the kernel counts CPU time.
pub(crate) fn ticks_per_s(ctx: &Context<'_>) -> f64 {
    ctx.obs.kernel.last().map_or(100, |kernel| kernel.ticks_per_s).max(1) as f64
}

fn times(cores: &[(u32, CoreTimes)], core: u32) -> Option<&CoreTimes> {
    cores.iter().find(|(number, _)| *number == core).map(|(_, times)| times)
}

/// Growth of one of a core's times between two readings, clock ticks.
pub(super) fn ticks_between(first: &CpuTimes, last: &CpuTimes, core: u32, of: fn(&CoreTimes) -> u64) -> Option<u64> {
    Some(of(times(&last.cores, core)?).saturating_sub(of(times(&first.cores, core)?)))
}

/// Busy share of a core between two readings.
fn busy_share(first: &CoreTimes, last: &CoreTimes) -> f64 {
    let total = last.total().saturating_sub(first.total());
    if total == 0 { 0.0 } else { last.busy().saturating_sub(first.busy()) as f64 / total as f64 }
}

/// Mean number of these tiers' threads that were runnable and waited for a core.
pub(crate) fn waiting(ctx: &Context<'_>, tiers: &[&Tier]) -> Option<f64> {
    let delays: Vec<f64> = tiers.iter().flat_map(|tier| &tier.pids).filter_map(|pid| delayed(ctx, *pid)).collect();
    (!delays.is_empty()).then(|| delays.iter().sum::<f64>() + of_passing(ctx, tiers))
}

/// The same of the processes that they started and that ended soon.
fn of_passing(ctx: &Context<'_>, tiers: &[&Tier]) -> f64 {
    tiers.iter().map(|tier| Passing::of(ctx, tier).delayed()).sum()
}

/// Mean number of a process's threads that were runnable and waited for a core.
pub(super) fn delayed(ctx: &Context<'_>, pid: u32) -> Option<f64> {
    ctx.clocked(pid, |used| used.run_delay_ns)
}

/// CPU time of a good answer, summed over all cores of the path, seconds; zero if unknown.
pub(crate) fn cost_s(ctx: &Context<'_>) -> f64 {
    let cost_s = |group: &CoreGroup<'_>| Some(AnswerCost::of(ctx, group, busy(ctx, &group.cores)?)?.value_s);
    ctx.core_groups().iter().filter_map(cost_s).sum()
}

/// Mean number of these cores that were busy, at least as many as the servers' own clocks show. The kernel samples a core's activity at clock ticks. It may
/// miss nearly all work that the same clock triggers, such as answers at a steady rate (a core of 38 % counted as 8 %: docs/measuring.md).
pub(crate) fn busy(ctx: &Context<'_>, cores: &BTreeSet<u32>) -> Option<f64> {
    let (first, last, _) = ctx.inside(&ctx.obs.cpu)?;
    let ticked: f64 = cores.iter().filter_map(|core| Some(busy_share(times(&first.cores, *core)?, times(&last.cores, *core)?))).sum();
    let within = ctx.core_groups().iter().filter(|group| group.cores.is_subset(cores));
    let own = within.map(|group| clocked_cores(ctx, &group.tiers)).sum::<f64>();
    Some(ticked.max(own.min(cores.len() as f64)))
}

/// Cores that these tiers' processes used, a lower bound from their threads' clocks. Processes read less than twice are left out.
pub(super) fn clocked_cores(ctx: &Context<'_>, tiers: &[&Tier]) -> f64 {
    tiers.iter().flat_map(|tier| &tier.pids).filter_map(|pid| ctx.clocked(*pid, |used| used.run_ns)).sum()
}
