//! Station `cpu`: the cores on which the path's servers may run.

mod cost;
mod polling;
mod threads;

use std::collections::{BTreeMap, BTreeSet};

use cost::Cost;
pub(crate) use polling::{Polling, Sign, polling};
use threads::Threads;

use super::load_generator::core_list;
use super::{Context, FAILED_SHARE_MAX, Placed, StationDef, blank, ceiling_between, cpu_quota};
use crate::load::GeneratorThread;
use crate::message::Message;
use crate::observation::{CoreTimes, CpuTimes};
use crate::path::Tier;
use crate::report::{At, Ceiling, Station, StationKind, StationState};

pub(super) const STATION: StationDef =
    StationDef { id: "cpu", kind: StationKind::Rate, findings: FINDINGS, read, judge: |_, _| Vec::new() };

/// What could be faster, judged from a profile (`improvements`): none of it is a fault.
const FINDINGS: &[&str] = crate::improvements::FROM_PROFILE;

/// Share of the servers' cores at which they count as all busy. A closed loop that is limited by CPU leaves 0-2 % idle; with 100 clock
/// ticks a second and a ten-second window one per cent is ten ticks, so 95 % is clear of the grain.
pub(crate) const SATURATED_UTILIZATION: f64 = 0.95;
/// Share from which the headroom is told as small.
pub(super) const NEAR_UTILIZATION: f64 = 0.80;
/// From here on cores for which threads wait are the limit as well: work that comes in bursts leaves some of their time idle between them, and a tenth more
/// than now is all that they could give.
const CROWDED_UTILIZATION: f64 = 0.90;
/// Share of the servers' cores that other programs may use before what is said about the servers' CPU has to say so (DESIGN.md).
const TENANTS_SHARE_MAX: f64 = 0.15;
/// The same, above which busy cores say nothing about servers that nobody asked for all that they can do, where their waits for a core could
/// not be read.
const TENANTS_SHARE_MOST: f64 = 0.5;
/// How many times as long as alone an answer of a closed loop may take for the cores to be no limit of it: where they are, the requests of all
/// connections wait for one another.
const QUICK_TIMES: f64 = 1.5;

fn read(ctx: &Context<'_>) -> Vec<Placed> {
    groups(ctx).iter().map(|(cores, tiers)| Placed { netns: None, station: reading(ctx, cores, tiers) }).collect()
}

/// The path's tiers by the cores on which they may run.
fn groups<'a>(ctx: &Context<'a>) -> BTreeMap<BTreeSet<u32>, Vec<&'a Tier>> {
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
    groups
}

/// The cores on which a tier may run, with the tiers that share them.
fn group_of<'a>(ctx: &Context<'a>, tier: &Tier) -> Option<(BTreeSet<u32>, Vec<&'a Tier>)> {
    groups(ctx).into_iter().find(|(_, tiers)| tiers.iter().any(|other| other.name == tier.name))
}

/// The cores on which any of some tiers may run.
pub(super) struct Cores {
    /// How many there are.
    pub(super) count: f64,
    /// How many of them were idle on average.
    pub(super) idle: f64,
    /// How many of them programs used on average that serve nothing of this path, as far as is known.
    pub(super) others: f64,
}

/// The cores on which any of these tiers may run; nothing where their use could not be read.
pub(super) fn cores_of(ctx: &Context<'_>, tiers: &[&Tier]) -> Option<Cores> {
    let theirs = |tier: &&Tier| tiers.iter().any(|other| other.name == tier.name);
    let mut groups = groups(ctx);
    groups.retain(|_, tiers| tiers.iter().any(theirs));
    let others = groups.iter().filter_map(|(cores, tiers)| Some(Shared::of(ctx, cores, tiers)?.others_at_most().max(0.0))).sum();
    let cores: BTreeSet<u32> = groups.into_keys().flatten().collect();
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
pub(super) struct Use {
    /// Cores that may be used.
    pub(super) limit: f64,
    /// How many were.
    pub(super) busy: f64,
    /// Of those, what programs used that serve nothing of this path.
    pub(super) others: f64,
    /// What of it was counted in nanoseconds, and not by clock ticks.
    pub(super) clocked: f64,
}

/// The most good answers a second for which these cores have CPU time.
pub(super) fn ceiling_of(ctx: &Context<'_>, used: &Use) -> Option<Ceiling> {
    Cost::of_use(ctx, used)?.ceiling()
}

/// Busy share of the cores on which a tier may run; nothing where it could not be read.
pub(crate) fn utilization_of(ctx: &Context<'_>, tier: &Tier) -> Option<f64> {
    let (cores, _) = group_of(ctx, tier)?;
    let busy = busy(ctx, &cores)?;
    (!cores.is_empty()).then(|| busy / cores.len() as f64)
}

/// Share of the cores on which a tier may run that the path's own processes used, of this tier and of those that share its cores; nothing where
/// it could not be read.
pub(crate) fn own_share(ctx: &Context<'_>, tier: &Tier) -> Option<f64> {
    let (cores, tiers) = group_of(ctx, tier)?;
    let own = own_cores(ctx, tiers.iter().flat_map(|tier| &tier.pids))?;
    (!cores.is_empty()).then(|| own / cores.len() as f64)
}

/// Share of the cores on which a tier may run that its own processes used in the kernel; nothing where it could not be read.
pub(crate) fn kernel_share(ctx: &Context<'_>, tier: &Tier) -> Option<f64> {
    let (cores, _) = group_of(ctx, tier)?;
    let ticks_per_us = ticks_per_s(ctx) / 1e6;
    let used = |pid: &u32| {
        let (first, last, elapsed_us) = ctx.inside(&ctx.obs.processes.get(pid)?.cpu)?;
        Some(last.system_ticks.saturating_sub(first.system_ticks) as f64 / ticks_per_us / elapsed_us as f64)
    };
    let own: Vec<f64> = tier.pids.iter().filter_map(used).collect();
    (!own.is_empty() && !cores.is_empty()).then(|| own.iter().sum::<f64>() / cores.len() as f64)
}

/// The servers' cores of which other programs used more than [`TENANTS_SHARE_MAX`], and the share.
pub(crate) fn other_tenants(ctx: &Context<'_>) -> Vec<(String, f64)> {
    let groups = groups(ctx);
    let shares = groups.iter().filter_map(|(cores, tiers)| Some((cores, others_share(ctx, cores, tiers)?)));
    let named = |(cores, share): (&BTreeSet<u32>, f64)| (core_list(&cores.iter().copied().collect::<Vec<u32>>()), share);
    shares.filter(|(_, share)| *share > TENANTS_SHARE_MAX).map(named).collect()
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
    fn of(ctx: &Context<'_>, cores: &BTreeSet<u32>, tiers: &[&Tier]) -> Option<Self> {
        let (first, last, elapsed_us) = ctx.inside(&ctx.obs.cpu)?;
        let ticks = ticks_per_s(ctx) * elapsed_us.max(1) as f64 / 1e6;
        let used = |of: fn(&CoreTimes) -> u64| cores.iter().filter_map(|core| grown(first, last, *core, of)).sum::<u64>() as f64 / ticks;
        let shares_cores = |thread: &&GeneratorThread| thread.cpus.iter().any(|core| cores.contains(core));
        let generator = ctx.obs.load.iter().flat_map(|load| &load.threads).filter(shares_cores);
        Some(Self {
            busy: used(CoreTimes::busy),
            interrupts: used(interrupts),
            own: own_cores(ctx, tiers.iter().flat_map(|tier| &tier.pids))?,
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
fn others_share(ctx: &Context<'_>, cores: &BTreeSet<u32>, tiers: &[&Tier]) -> Option<f64> {
    Some(Shared::of(ctx, cores, tiers)?.others() / cores.len().max(1) as f64)
}

/// Share of these cores that their servers wanted, which is above one where several of them wait: what they and the interrupts used, and how
/// many of them were ready to run and waited on average. Nothing where that could not be read of each of them.
fn wanted_share(ctx: &Context<'_>, cores: &BTreeSet<u32>, tiers: &[&Tier]) -> Option<f64> {
    let (first, last, elapsed_us) = ctx.inside(&ctx.obs.cpu)?;
    let elapsed_s = elapsed_us as f64 / 1e6;
    let ticks_per_s = ticks_per_s(ctx);
    let served = |core: &u32| grown(first, last, *core, interrupts);
    let interrupts = cores.iter().filter_map(served).map(|ticks| ticks as f64 / ticks_per_s / elapsed_s);
    let ready = |pid: &u32| Some(cores_by(ctx, *pid, ticks_per_s)? + delayed(ctx, *pid)?);
    let own: f64 = tiers.iter().flat_map(|tier| &tier.pids).map(ready).sum::<Option<f64>>()?;
    Some((own + interrupts.sum::<f64>()) / cores.len().max(1) as f64)
}

/// What other programs used of cores that their servers did not want whole: such cores are no limit of theirs, however little is left idle.
fn left_to_others(ctx: &Context<'_>, cores: &BTreeSet<u32>, tiers: &[&Tier]) -> Option<f64> {
    let others = others_share(ctx, cores, tiers).filter(|share| *share > TENANTS_SHARE_MAX)?;
    // Servers of many processes wait for one another, too: as long as answers take little longer than alone, what they wait for is no limit.
    let is_quick = ctx.answer_us().is_some_and(|(alone, loaded)| loaded < QUICK_TIMES * alone);
    let unwanted = match wanted_share(ctx, cores, tiers) {
        Some(wanted) => is_quick || wanted < SATURATED_UTILIZATION,
        None => !ctx.obs.request.loaded && others > TENANTS_SHARE_MOST,
    };
    unwanted.then_some(others)
}

/// True where all servers of the path left room on their cores: the cores were not busy, or only with other programs' work for which the
/// servers hardly waited.
pub(crate) fn cores_are_spare(ctx: &Context<'_>) -> bool {
    let spare = |(cores, tiers): (&BTreeSet<u32>, &Vec<&Tier>)| {
        let idle = busy(ctx, cores).is_some_and(|busy| busy < NEAR_UTILIZATION * cores.len() as f64);
        let unwanted = || wanted_share(ctx, cores, tiers).is_some_and(|wanted| wanted < NEAR_UTILIZATION);
        let contended = others_share(ctx, cores, tiers).is_some_and(|share| share > TENANTS_SHARE_MAX);
        if contended { unwanted() } else { idle }
    };
    groups(ctx).iter().all(spare)
}

/// True where some cores of the path's servers were full of their own work, nearly all of it for good answers: their time allows no more of them,
/// whatever else is waited for.
pub(super) fn are_spent(ctx: &Context<'_>) -> bool {
    let full = |(cores, tiers): (&BTreeSet<u32>, &Vec<&Tier>)| {
        let limit = cores.len() as f64;
        let wanted =
            |busy: f64| busy >= SATURATED_UTILIZATION * limit && !polling::fills(&polling(ctx, tiers), busy, limit, waiting(ctx, tiers));
        busy(ctx, cores).is_some_and(wanted) && others_share(ctx, cores, tiers).is_some_and(|share| share <= TENANTS_SHARE_MAX)
    };
    ctx.failed_share().is_some_and(|share| share <= FAILED_SHARE_MAX) && groups(ctx).iter().any(full)
}

/// Clock ticks of a core that served interrupts, or that its hypervisor kept.
fn interrupts(times: &CoreTimes) -> u64 {
    times.irq + times.softirq + times.steal
}

/// Clock ticks a second in which the kernel counts CPU time.
fn ticks_per_s(ctx: &Context<'_>) -> f64 {
    ctx.obs.kernel.last().map_or(100, |kernel| kernel.ticks_per_s).max(1) as f64
}

/// Cores that a process used in the window: the larger of what its clock ticks and its threads' own clocks tell. The ticks of many young processes are
/// too few, each cut off to whole ones; the clocks lack the threads that ended. Both over the time between its own readings: those of another process,
/// or of the cores, may be of other times.
fn cores_by(ctx: &Context<'_>, pid: u32, ticks_per_s: f64) -> Option<f64> {
    let (first, last, elapsed_us) = ctx.inside(&ctx.obs.processes.get(&pid)?.cpu)?;
    let ticks = (last.user_ticks + last.system_ticks).saturating_sub(first.user_ticks + first.system_ticks);
    let ticked = ticks as f64 / ticks_per_s * 1e6 / elapsed_us as f64;
    Some(ctx.clocked(pid, |used| used.run_ns).map_or(ticked, |clocked| ticked.max(clocked)))
}

fn reading(ctx: &Context<'_>, cores: &BTreeSet<u32>, tiers: &[&Tier]) -> Station {
    let list: Vec<u32> = cores.iter().copied().collect();
    let at = At { cpu: Some(core_list(&list)), ..At::default() };
    let names: Vec<&str> = tiers.iter().map(|tier| tier.name.as_str()).collect();
    let mut station = blank(&STATION, names.join("+"), at, "cores");
    let Some(busy) = busy(ctx, cores) else {
        station.why = ctx.text(Message::new("state-cpu-unknown"));
        return station;
    };
    let limit = cores.len() as f64;
    let utilization = if limit > 0.0 { busy / limit } else { 0.0 };
    station.limit = Some(limit);
    station.used = Some(busy);
    station.utilization = Some(utilization);
    station.waiting = waiting(ctx, tiers);
    station.ceiling_rps = Cost::of(ctx, cores, tiers, busy).and_then(|cost| cost.ceiling());
    let args = |id: &'static str| Message::new(id).with("count", limit).with("cores", core_list(&list)).with("share", utilization * 100.0);
    let left = left_to_others(ctx, cores, tiers).filter(|_| utilization >= SATURATED_UTILIZATION);
    let (state, why) = if is_wanted(ctx, cores, tiers, utilization) {
        let full = utilization >= SATURATED_UTILIZATION;
        let told = args(if full { "state-cpu-saturated" } else { "state-cpu-crowded" });
        (StationState::Saturated, told.with("waiting", station.waiting.unwrap_or(0.0)))
    } else if let Some((tier, threads)) = too_few(ctx, cores, tiers) {
        let told = args("state-cpu-threads").with("tier", tier.name.as_str()).with("threads", threads.serving as f64);
        // More than these threads give now they cannot give.
        station.ceiling_rps = now_at(ctx, &threads);
        (StationState::Saturated, told)
    } else if let Some(polls) = polled(ctx, cores, tiers) {
        // What an answer costs is lost in what is run in vain.
        station.ceiling_rps = None;
        let is_quick = ctx.answer_us().is_some_and(|(alone, loaded)| loaded < QUICK_TIMES * alone);
        let told = args("state-cpu-polling").with("tier", polls.tier.name.as_str()).with("ran", polls.cores);
        (if is_quick { StationState::Ok } else { StationState::Unknown }, told)
    } else if let Some(others) = left {
        (StationState::Near, args("state-cpu-others").with("others", others * 100.0))
    } else if utilization >= NEAR_UTILIZATION {
        (StationState::Near, args("state-cpu-near"))
    } else {
        (StationState::Ok, args("state-cpu-ok"))
    };
    station.state = state;
    station.why = ctx.text(why);
    station
}

/// True where cores are as good as all busy, or have little left and threads wait for them, and their servers want them so.
fn is_wanted(ctx: &Context<'_>, cores: &BTreeSet<u32>, tiers: &[&Tier], utilization: f64) -> bool {
    let is_crowded = || utilization >= CROWDED_UTILIZATION && waiting(ctx, tiers).is_some_and(|waiting| waiting >= cores.len() as f64);
    (utilization >= SATURATED_UTILIZATION || is_crowded())
        && left_to_others(ctx, cores, tiers).is_none()
        && !polling::fills(&polling(ctx, tiers), utilization * cores.len() as f64, cores.len() as f64, waiting(ctx, tiers))
}

/// A tier that polls, where cores are busy or threads run all the time that say nothing for it.
fn polled<'a>(ctx: &Context<'a>, cores: &BTreeSet<u32>, tiers: &[&'a Tier]) -> Option<Polling<'a>> {
    let used = busy(ctx, cores)?;
    let is_full =
        |one: &Polling<'_>| used >= CROWDED_UTILIZATION * cores.len() as f64 || Threads::exhausted(ctx, one.tier, cores.len()).is_some();
    polling(ctx, tiers).into_iter().find(is_full)
}

/// The tier whose few threads run all the time. Threads that a quota stops are ready to run all the time, too, and those that poll run whether they
/// serve or not.
fn too_few<'a>(ctx: &Context<'a>, cores: &BTreeSet<u32>, tiers: &[&'a Tier]) -> Option<(&'a Tier, Threads)> {
    let polls = polling(ctx, tiers);
    let polls = |tier: &Tier| polls.iter().any(|one| one.is_all && one.tier.name == tier.name);
    let mut free = tiers.iter().filter(|tier| !cpu_quota::stops(ctx, tier) && !polls(tier));
    free.find_map(|tier| Some((*tier, Threads::exhausted(ctx, tier, cores.len())?)))
}

/// Cores, or threads that are fewer than these, whose time is what limits.
pub(crate) struct Limiting<'a> {
    /// The cores on which the servers may run.
    pub(crate) cores: BTreeSet<u32>,
    /// The tiers whose time it is: those that share the cores, or that of the threads alone.
    pub(crate) tiers: Vec<&'a Tier>,
    /// How many threads serve, where these are what limits and not the cores.
    pub(crate) threads: Option<usize>,
    /// How many of the cores were idle on average.
    pub(crate) idle: f64,
}

impl Limiting<'_> {
    /// The cores as they are told: "0-1".
    pub(crate) fn list(&self) -> String {
        core_list(&self.cores.iter().copied().collect::<Vec<u32>>())
    }
}

/// The cores and threads whose time limits their servers: where this station is saturated, and by what.
pub(crate) fn limiting<'a>(ctx: &Context<'a>) -> Vec<Limiting<'a>> {
    let of = |(cores, tiers): (BTreeSet<u32>, Vec<&'a Tier>)| {
        let busy = busy(ctx, &cores)?;
        let idle = (cores.len() as f64 - busy).max(0.0);
        if is_wanted(ctx, &cores, &tiers, busy / cores.len().max(1) as f64) {
            return Some(Limiting { cores, tiers, threads: None, idle });
        }
        let (tier, threads) = too_few(ctx, &cores, &tiers)?;
        Some(Limiting { cores, tiers: vec![tier], threads: Some(threads.serving), idle })
    };
    groups(ctx).into_iter().filter_map(of).collect()
}

/// Goodput if these threads ran all the time.
fn now_at(ctx: &Context<'_>, threads: &Threads) -> Option<Ceiling> {
    let load = ctx.obs.load.as_ref().filter(|_| ctx.can_divide_by_good())?;
    let rate = load.goodput_rps() * threads.serving as f64 / threads.running;
    ceiling_between(rate, rate, rate)
}

fn times(cores: &[(u32, CoreTimes)], core: u32) -> Option<&CoreTimes> {
    cores.iter().find(|(number, _)| *number == core).map(|(_, times)| times)
}

/// By how much one of a core's times grew between two readings, clock ticks.
fn grown(first: &CpuTimes, last: &CpuTimes, core: u32, of: fn(&CoreTimes) -> u64) -> Option<u64> {
    Some(of(times(&last.cores, core)?).saturating_sub(of(times(&first.cores, core)?)))
}

/// Busy share of a core between two readings of its times.
fn busy_share(first: &CoreTimes, last: &CoreTimes) -> f64 {
    let total = last.total().saturating_sub(first.total());
    if total == 0 { 0.0 } else { last.busy().saturating_sub(first.busy()) as f64 / total as f64 }
}

/// Mean number of these tiers' processes that were runnable and waited for a core.
pub(super) fn waiting(ctx: &Context<'_>, tiers: &[&Tier]) -> Option<f64> {
    let delays: Vec<f64> = tiers.iter().flat_map(|tier| &tier.pids).filter_map(|pid| delayed(ctx, *pid)).collect();
    (!delays.is_empty()).then(|| delays.iter().sum())
}

/// Mean number of a process's threads that were runnable and waited for a core.
fn delayed(ctx: &Context<'_>, pid: u32) -> Option<f64> {
    ctx.clocked(pid, |used| used.run_delay_ns)
}

/// CPU time of a good answer on all cores of the path together, seconds; zero where it cannot be told.
pub(super) fn cost_s(ctx: &Context<'_>) -> f64 {
    let cost_s = |(cores, tiers): (&BTreeSet<u32>, &Vec<&Tier>)| Some(Cost::of(ctx, cores, tiers, busy(ctx, cores)?)?.value_s);
    groups(ctx).iter().filter_map(cost_s).sum()
}

/// How many of these cores were busy on average: at least as many as their servers' own clocks tell. The kernel looks at the clock ticks what a core does;
/// work that the same clock sets off, such as answers at a steady rate, it may miss nearly all of (a core of 38 % counted as 8 %: docs/measuring.md).
fn busy(ctx: &Context<'_>, cores: &BTreeSet<u32>) -> Option<f64> {
    let (first, last, _) = ctx.inside(&ctx.obs.cpu)?;
    let ticked: f64 = cores.iter().filter_map(|core| Some(busy_share(times(&first.cores, *core)?, times(&last.cores, *core)?))).sum();
    let groups = groups(ctx);
    let own = groups.iter().filter(|(own, _)| own.is_subset(cores)).map(|(_, tiers)| ran(ctx, tiers)).sum::<f64>();
    Some(ticked.max(own.min(cores.len() as f64)))
}

/// Cores that the processes of these tiers used at least, by their threads' own clocks: those of which that was read twice.
fn ran(ctx: &Context<'_>, tiers: &[&Tier]) -> f64 {
    tiers.iter().flat_map(|tier| &tier.pids).filter_map(|pid| ctx.clocked(*pid, |used| used.run_ns)).sum()
}

/// A tier whose cores have fewer threads that do the work of servers, with how many of both there are: what is left of the cores is not for them.
pub(crate) fn few_threads<'a>(ctx: &Context<'a>) -> Option<(&'a str, usize, usize)> {
    groups(ctx).into_iter().find_map(|(cores, tiers)| {
        let serving: usize = tiers.iter().map(|tier| Threads::serving(ctx, tier)).sum::<Option<usize>>()?;
        (serving > 0 && serving < cores.len()).then(|| (tiers[0].name.as_str(), serving, cores.len()))
    })
}
