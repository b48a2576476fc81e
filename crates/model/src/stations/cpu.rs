//! Station `cpu`: the cores on which the path's servers may run.

use std::collections::{BTreeMap, BTreeSet};

use super::load_generator::core_list;
use super::{Context, Placed, StationDef, blank};
use crate::message::Message;
use crate::observation::CoreTimes;
use crate::path::Tier;
use crate::report::{At, Ceiling, Station, StationKind, StationState};

pub(super) const STATION: StationDef = StationDef { id: "cpu", kind: StationKind::Rate, findings: &[], read, judge: |_, _| Vec::new() };

/// Share of the servers' cores at which they count as all busy. A closed loop that is limited by CPU leaves 0-2 % idle; with 100 clock
/// ticks a second and a ten-second window one per cent is ten ticks, so 95 % is clear of the grain.
pub(super) const SATURATED_UTILIZATION: f64 = 0.95;
/// Share from which the headroom is told as small.
pub(super) const NEAR_UTILIZATION: f64 = 0.80;
/// Share of the servers' cores that other programs may use before what is said about the servers' CPU has to say so (DESIGN.md).
const TENANTS_SHARE_MAX: f64 = 0.15;
/// The cost of an answer falls as load rises: 159 us when idle to 119 us near saturation on the stack tried (DESIGN.md). A ceiling
/// computed from idle cores may therefore be this much too low.
const COST_FALL_MAX: f64 = 159.0 / 119.0 - 1.0;
/// Spread of the cost of an answer between runs alike (worst of the prototype's undisturbed runs, DESIGN.md).
const COST_SPREAD: f64 = 0.14;

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

/// Busy share of the cores on which a tier may run; nothing where it could not be read.
pub(crate) fn utilization_of(ctx: &Context<'_>, tier: &Tier) -> Option<f64> {
    let (first, last, _) = ctx.inside(&ctx.obs.cpu)?;
    let (cores, _) = groups(ctx).into_iter().find(|(_, tiers)| tiers.iter().any(|other| other.name == tier.name))?;
    let busy: f64 = cores.iter().filter_map(|core| Some(busy_share(times(&first.cores, *core)?, times(&last.cores, *core)?))).sum();
    (!cores.is_empty()).then(|| busy / cores.len() as f64)
}

/// Share of the cores on which a tier may run that the path's own processes used, of this tier and of those that share its cores; nothing where
/// it could not be read.
pub(crate) fn own_share(ctx: &Context<'_>, tier: &Tier) -> Option<f64> {
    let ticks_per_s = ctx.obs.kernel.last().map_or(100, |kernel| kernel.ticks_per_s).max(1) as f64;
    let (_, _, elapsed_us) = ctx.inside(&ctx.obs.cpu)?;
    let (cores, tiers) = groups(ctx).into_iter().find(|(_, tiers)| tiers.iter().any(|other| other.name == tier.name))?;
    let own: Vec<f64> = tiers.iter().flat_map(|tier| &tier.pids).filter_map(|pid| own_seconds(ctx, *pid, ticks_per_s)).collect();
    let cores_s = cores.len() as f64 * elapsed_us as f64 / 1e6;
    (!own.is_empty() && cores_s > 0.0).then(|| own.iter().sum::<f64>() / cores_s)
}

/// Share of the servers' cores that neither the servers nor the interrupts used, where it is over [`TENANTS_SHARE_MAX`]: the cores and the
/// share. Nothing where the servers' own use could not be read: it cannot be told apart then.
pub(crate) fn other_tenants(ctx: &Context<'_>) -> Vec<(String, f64)> {
    let ticks_per_s = ctx.obs.kernel.last().map_or(100, |kernel| kernel.ticks_per_s).max(1) as f64;
    let share = |(cores, tiers): (&BTreeSet<u32>, &Vec<&Tier>)| {
        let (first, last, elapsed_us) = ctx.inside(&ctx.obs.cpu)?;
        let used = |core: &u32| {
            let (before, after) = (times(&first.cores, *core)?, times(&last.cores, *core)?);
            let interrupts = (after.irq + after.softirq + after.steal).saturating_sub(before.irq + before.softirq + before.steal);
            Some(after.busy().saturating_sub(before.busy()).saturating_sub(interrupts) as f64 / ticks_per_s)
        };
        let all: f64 = cores.iter().filter_map(used).sum();
        let own: Vec<f64> = tiers.iter().flat_map(|tier| &tier.pids).filter_map(|pid| own_seconds(ctx, *pid, ticks_per_s)).collect();
        let cores_s = cores.len() as f64 * elapsed_us as f64 / 1e6;
        let generator: f64 = ctx
            .obs
            .load
            .iter()
            .flat_map(|load| &load.threads)
            .filter(|thread| thread.cpus.iter().any(|core| cores.contains(core)))
            .map(|thread| thread.cpu_us as f64 / 1e6)
            .sum();
        let others = (all - own.iter().sum::<f64>() - generator) / cores_s.max(1e-6);
        let list: Vec<u32> = cores.iter().copied().collect();
        (!own.is_empty() && others > TENANTS_SHARE_MAX).then(|| (core_list(&list), others))
    };
    groups(ctx).iter().filter_map(share).collect()
}

/// CPU time of a process in the window, seconds.
fn own_seconds(ctx: &Context<'_>, pid: u32, ticks_per_s: f64) -> Option<f64> {
    let (first, last, _) = ctx.inside(&ctx.obs.processes.get(&pid)?.cpu)?;
    let ticks = (last.user_ticks + last.system_ticks).saturating_sub(first.user_ticks + first.system_ticks);
    Some(ticks as f64 / ticks_per_s)
}

fn reading(ctx: &Context<'_>, cores: &BTreeSet<u32>, tiers: &[&Tier]) -> Station {
    let list: Vec<u32> = cores.iter().copied().collect();
    let at = At { cpu: Some(core_list(&list)), ..At::default() };
    let names: Vec<&str> = tiers.iter().map(|tier| tier.name.as_str()).collect();
    let mut station = blank(&STATION, names.join("+"), at, "cores");
    let Some((first, last, _)) = ctx.inside(&ctx.obs.cpu) else {
        station.why = ctx.text(Message::new("state-cpu-unknown"));
        return station;
    };
    let busy: f64 = cores.iter().filter_map(|core| Some(busy_share(times(&first.cores, *core)?, times(&last.cores, *core)?))).sum();
    let limit = cores.len() as f64;
    let utilization = if limit > 0.0 { busy / limit } else { 0.0 };
    station.limit = Some(limit);
    station.used = Some(busy);
    station.utilization = Some(utilization);
    station.waiting = waiting(ctx, tiers);
    station.ceiling_rps = ceiling(ctx, busy, limit, utilization);
    let args = |id: &'static str| Message::new(id).with("count", limit).with("cores", core_list(&list)).with("share", utilization * 100.0);
    let (state, why) = if utilization >= SATURATED_UTILIZATION {
        (StationState::Saturated, args("state-cpu-saturated"))
    } else if utilization >= NEAR_UTILIZATION {
        (StationState::Near, args("state-cpu-near"))
    } else {
        (StationState::Ok, args("state-cpu-ok"))
    };
    station.state = state;
    station.why = ctx.text(why);
    station
}

fn times(cores: &[(u32, CoreTimes)], core: u32) -> Option<&CoreTimes> {
    cores.iter().find(|(number, _)| *number == core).map(|(_, times)| times)
}

/// Busy share of a core between two readings of its times.
fn busy_share(first: &CoreTimes, last: &CoreTimes) -> f64 {
    let total = last.total().saturating_sub(first.total());
    if total == 0 { 0.0 } else { last.busy().saturating_sub(first.busy()) as f64 / total as f64 }
}

/// Mean number of these tiers' processes that were runnable and waited for a core.
fn waiting(ctx: &Context<'_>, tiers: &[&Tier]) -> Option<f64> {
    let pids = tiers.iter().flat_map(|tier| &tier.pids);
    let delay = |pid: &u32| {
        let (first, last, elapsed_us) = ctx.inside(&ctx.obs.processes.get(pid)?.cpu)?;
        Some(last.run_delay_ns?.saturating_sub(first.run_delay_ns?) as f64 / 1e3 / elapsed_us as f64)
    };
    let delays: Vec<f64> = pids.filter_map(delay).collect();
    (!delays.is_empty()).then(|| delays.iter().sum())
}

/// Cores over CPU-seconds per good answer, with the fall of the cost under load in the upper bound.
fn ceiling(ctx: &Context<'_>, busy: f64, limit: f64, utilization: f64) -> Option<Ceiling> {
    let load = ctx.obs.load.as_ref().filter(|_| ctx.can_divide_by_good())?;
    let cost_s = busy / load.goodput_rps();
    if !cost_s.is_finite() || cost_s <= 0.0 {
        return None;
    }
    let value = limit / cost_s;
    let idle = (1.0 - utilization).clamp(0.0, 1.0);
    Some(Ceiling { value, low: value * (1.0 - COST_SPREAD), high: value * (1.0 + COST_SPREAD + COST_FALL_MAX * idle) })
}
