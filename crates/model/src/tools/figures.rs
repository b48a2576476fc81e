//! The figures of one measurement for a table that compares several: CPU by kind, CPU per answer, link, memory, and what others used.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::Context;
use crate::facts::cores::{cost_s, interrupts, own_cores, ticks_per_s};
use crate::facts::path::egress::egress;
use crate::facts::path::{self, Tier};
use crate::observation::{CoreTimes, NetnsId, Observation};
use crate::output::catalogue::Catalogue;

/// Figures of a measurement. What could not be read is `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// CPU time of a good answer, summed over the cores of the path, microseconds. It includes interrupts.
    pub cpu_us_per_good: Option<f64>,
    /// How the cores of the measured server spent their time.
    pub cores: Option<CoreShares>,
    /// Bits a second that the first tier sends.
    pub link_bits_per_s: Option<f64>,
    /// Resident memory of the measured server's processes, bytes. Pages that they share count in each.
    pub resident_bytes: Option<u64>,
    /// Mean number of cores used by programs that are neither on the path nor the load generator, a lower bound.
    pub others_cores: Option<f64>,
    /// What the hypervisor took of the time of all cores, 0 to 1.
    pub steal_share: Option<f64>,
    /// Connections that the programs of a namespace accepted in the window.
    pub accepted: BTreeMap<NetnsId, u64>,
}

/// Shares of the time of some cores, 0 to 1. They add up to 1 with what the hypervisor took.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CoreShares {
    /// User mode.
    pub user: f64,
    /// Kernel mode, without interrupts.
    pub system: f64,
    /// Interrupts and soft interrupts.
    pub softirq: f64,
    /// Idle, also while input or output was outstanding.
    pub idle: f64,
}

/// The figures of an observation. `pid`: a process of the measured server; without one it is the first tier.
pub fn figures(obs: &Observation, pid: Option<u32>, words: &Catalogue) -> Figures {
    let path = path::discover(obs);
    let ctx = Context::new(obs, &path, words);
    let runs = |tier: &&Tier| pid.is_some_and(|pid| tier.pids.iter().any(|own| *own == pid || parent_of(obs, *own) == Some(pid)));
    let tier = path.tiers.iter().find(runs).or(path.tiers.first());
    let cost_us = cost_s(&ctx) * 1e6;
    let accepted = |id: &NetnsId| Some((*id, ctx.netstat_growth(obs.netns.get(id)?, "Tcp.PassiveOpens")?));
    Figures {
        cpu_us_per_good: (cost_us > 0.0).then_some(cost_us),
        cores: tier.and_then(|tier| core_shares(&ctx, tier)),
        link_bits_per_s: egress(&ctx).map(|(_, flow)| flow.tx_bits_per_s),
        resident_bytes: tier.and_then(|tier| resident_bytes(obs, tier)),
        others_cores: others_cores(&ctx),
        steal_share: shares(&ctx, |_| true, |times| times.steal),
        accepted: obs.netns.keys().filter_map(accepted).collect(),
    }
}

fn parent_of(obs: &Observation, pid: u32) -> Option<u32> {
    Some(obs.processes.get(&pid)?.identity.first()?.parent)
}

fn core_shares(ctx: &Context<'_>, tier: &Tier) -> Option<CoreShares> {
    let cores: &BTreeSet<u32> =
        ctx.core_groups().iter().find(|group| group.tiers.iter().any(|own| own.id == tier.id)).map(|group| &group.cores)?;
    let share = |of: fn(&CoreTimes) -> u64| shares(ctx, |core| cores.contains(&core), of);
    Some(CoreShares {
        user: share(|times| times.user + times.nice)?,
        system: share(|times| times.system)?,
        softirq: share(|times| times.irq + times.softirq)?,
        idle: share(|times| times.idle + times.iowait)?,
    })
}

/// Share of the time of some cores.
fn shares(ctx: &Context<'_>, is_wanted: impl Fn(u32) -> bool, of: fn(&CoreTimes) -> u64) -> Option<f64> {
    let (first, last, _) = ctx.inside(&ctx.obs.cpu)?;
    let (mut part, mut whole) = (0, 0);
    for (core, end) in last.cores.iter().filter(|(core, _)| is_wanted(*core)) {
        let (_, begin) = first.cores.iter().find(|(number, _)| number == core)?;
        part += of(end).saturating_sub(of(begin));
        whole += end.total().saturating_sub(begin.total());
    }
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn resident_bytes(obs: &Observation, tier: &Tier) -> Option<u64> {
    let one = |pid: &u32| Some(obs.processes.get(pid)?.cpu.last()?.resident_bytes);
    let all: Vec<u64> = tier.pids.iter().filter_map(one).collect();
    (!all.is_empty()).then(|| all.iter().sum())
}

/// Cores used by programs outside of the path and of the load.
fn others_cores(ctx: &Context<'_>) -> Option<f64> {
    let (first, last, elapsed_us) = ctx.inside(&ctx.obs.cpu)?;
    let of_time = |times: &CoreTimes| times.busy().saturating_sub(interrupts(times));
    let spent = |cores: &[(u32, CoreTimes)]| cores.iter().map(|(_, times)| of_time(times)).sum::<u64>();
    let busy = spent(&last.cores).saturating_sub(spent(&first.cores)) as f64 / (ticks_per_s(ctx) * elapsed_us.max(1) as f64 / 1e6);
    let own = own_cores(ctx, ctx.path.tiers.iter().flat_map(|tier| &tier.pids))?;
    let threads = ctx.obs.load.iter().flat_map(|load| &load.threads);
    let generator: f64 = threads.map(|thread| thread.cpu_us as f64 / thread.wall_us.max(1) as f64).sum();
    Some((busy - own - generator).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::CpuTimes;
    use crate::reading::Reading;

    #[test]
    fn shares_are_of_the_time_between_two_readings() {
        let mut obs = Observation::default();
        let times = |user, idle, steal| CpuTimes { cores: vec![(0, CoreTimes { user, idle, steal, ..CoreTimes::default() })] };
        obs.cpu.push(0, Reading::Ok(times(10, 10, 0)));
        obs.cpu.push(1_000_000, Reading::Ok(times(70, 40, 10)));
        obs.window_us = Some((0, 1_000_000));
        let figures = figures(&obs, None, &Catalogue::english());
        assert_eq!((figures.steal_share, figures.cores, figures.others_cores), (Some(0.1), None, None));
        assert_eq!(figures.cpu_us_per_good, None);
    }

    #[test]
    fn what_was_not_read_is_not_zero() {
        let figures = figures(&Observation::default(), Some(7), &Catalogue::english());
        assert_eq!(figures, Figures::default());
    }
}
