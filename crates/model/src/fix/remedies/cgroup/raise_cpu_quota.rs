//! Remedy `raise-cpu-quota`: grants as much CPU time as the cgroup's processes ask for, as far as there are cores.

use crate::facts::Context;
use crate::facts::Quota;
use crate::facts::quota::file;
use crate::fix::change::{Activation, Change};
use crate::fix::remedies::definition::{Proposal, RemedyDef};
use crate::fix::remedy::Signal;
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::judge::stations::cpu_quota::{Harm, cores_held, harm};
use crate::observation::load::Loop;
use crate::observation::{CgroupCpu, CgroupId, CgroupVersion};
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const REMEDY: RemedyDef =
    RemedyDef { id: "raise-cpu-quota", finding: FindingId::THROTTLED, activation: Activation::Live, propose };

/// Room above the mean demand: a period is short, and requests come unevenly.
const ROOM: f64 = 1.2;
/// A quota is raised by at least a tenth, or left alone.
const STEP_MIN: f64 = 1.1;
/// Share of a cgroup's CPU time below which the use by others is within the resolution of clock ticks.
const OTHERS_SHARE_MIN: f64 = 0.05;
/// Quotas are set in whole milliseconds per period.
const GRAIN_US: f64 = 1_000.0;

fn propose(ctx: &Context<'_>, placed: &StationReading) -> Option<Proposal> {
    let quota = of(ctx, placed)?;
    let (wanted, sum) = wanted(ctx, quota, placed)?;
    let raised = raised(ctx, quota, wanted);
    let is_writable = raised.iter().all(|(_, level, _)| level.writable != Some(false));
    let change: Vec<Change> =
        if is_writable { raised.iter().map(|(id, level, cores)| change(id, level, *cores)).collect() } else { Vec::new() };
    let text = if is_writable { "remedy-raise-cpu-quota-text" } else { "remedy-raise-cpu-quota-text-other" };
    let text = Message::new(text).with("cgroup", quota.id.path.as_str()).with("from", quota.limit).with("to", wanted).with("sum", sum);
    let signal = match harm(ctx, quota)? {
        Harm::Rate => Signal::Goodput,
        Harm::Wait | Harm::Tail => Signal::LatencyP99,
    };
    Some(Proposal { reload: None, change, text, risk: Message::new("remedy-raise-cpu-quota-risk"), signal, lifts: Lift::Limit(wanted) })
}

/// The quota that a reading is about.
pub(super) fn of<'c, 'a>(ctx: &'c Context<'a>, placed: &StationReading) -> Option<&'c Quota<'a>> {
    ctx.quotas().iter().find(|quota| placed.at.cgroup.as_deref() == Some(quota.now.dir.as_str()))
}

/// Cores that the cgroup's processes ask for: those that they used and those that they waited for (Little's law), but no more than the offered rate needs, and
/// the sum that gives them; `None` if that is hardly more than they have. Capped at the cores on which the servers may run; what others in the cgroup use is added.
pub(super) fn wanted(ctx: &Context<'_>, quota: &Quota<'_>, placed: &StationReading) -> Option<(f64, Message)> {
    let online = ctx.obs.cpu.last()?.cores.len() as f64;
    let used = quota.used?;
    let others = Some(quota.others()).filter(|others| *others >= OTHERS_SHARE_MIN * used).unwrap_or(0.0);
    let most = ((cores_held(ctx, quota)? + others).min(online), Message::new("sum-cores-most"));
    let sum = Message::new("sum-cores-asked").with("used", used).with("waiting", placed.waiting.unwrap_or(0.0));
    let asked = placed.waiting.map_or_else(|| most.clone(), |waiting| (ROOM * (used + waiting), sum));
    let offered = ctx.obs.load.as_ref().and_then(|load| match load.shape {
        Loop::Open { rate_per_s, .. } if ctx.can_divide_by_good() => {
            let sum = Message::new("sum-cores-offered").with("used", used).with("rate", rate_per_s).with("goodput", load.goodput_rps());
            Some((ROOM * used * rate_per_s / load.goodput_rps(), sum))
        }
        _ => None,
    });
    let lower = |a: (f64, Message), b: (f64, Message)| if b.0 < a.0 { b } else { a };
    let wanted = match harm(ctx, quota)? {
        Harm::Rate => offered.into_iter().fold(asked, lower),
        // The mean is enough, but short moments are not: at such a moment each process may ask for a core.
        Harm::Wait | Harm::Tail if processes(quota) > asked.0 => (processes(quota), Message::new("sum-cores-processes")),
        Harm::Wait | Harm::Tail => asked,
    };
    let (cores, sum) = lower(wanted, most);
    let period_us = quota.now.period_us as f64;
    let whole = (cores * period_us / GRAIN_US).ceil() * GRAIN_US / period_us;
    (whole >= STEP_MIN * quota.limit).then(|| (whole, sum.with("needed", whole)))
}

fn processes(quota: &Quota<'_>) -> f64 {
    quota.tiers.iter().map(|tier| tier.pids.len()).sum::<usize>() as f64
}

/// The levels to raise, the outermost first. Version 1 refuses a quota above that of the parent cgroup; in version 2 it has no effect. A level above the
/// quota also gets what the others in it use. Levels below it are raised if they stop the same servers too.
fn raised<'a>(ctx: &Context<'a>, quota: &Quota<'a>, wanted: f64) -> Vec<(&'a CgroupId, &'a CgroupCpu, f64)> {
    let online = ctx.obs.cpu.last().map_or(wanted, |times| times.cores.len() as f64);
    let mut levels = quota.id.levels();
    levels.reverse();
    levels.extend(quota.alike_within(ctx).into_iter().cloned());
    let known = levels.iter().filter_map(|level| ctx.obs.cgroups.get_key_value(level));
    let short = known.filter_map(|(id, series)| {
        let now = series.last()?;
        let others = if quota.id.holds(id) { 0.0 } else { (used(ctx, id)? - quota.used?).max(0.0) };
        let cores = (wanted + others).min(online.max(wanted));
        (now.limit_cores()? < cores).then_some((id, now, cores))
    });
    short.collect()
}

/// Cores that a cgroup used in the window; zero if it keeps no account.
fn used(ctx: &Context<'_>, id: &CgroupId) -> Option<f64> {
    let used = ctx
        .inside(ctx.obs.cgroups.get(id)?)
        .and_then(|(first, last, elapsed_us)| Some(last.used_ns?.saturating_sub(first.used_ns?) as f64 / 1e3 / elapsed_us as f64));
    Some(used.unwrap_or(0.0))
}

fn change(id: &CgroupId, level: &CgroupCpu, cores: f64) -> Change {
    let quota_us = (cores * level.period_us as f64 / GRAIN_US).ceil() * GRAIN_US;
    let line = |quota_us: &str| match id.version {
        CgroupVersion::V1 => quota_us.to_owned(),
        CgroupVersion::V2 => format!("{quota_us} {}", level.period_us),
    };
    let from = level.quota_us.map_or_else(|| "max".to_owned(), |quota| quota.to_string());
    Change::Cgroup { dir: level.dir.clone(), file: file(id).to_owned(), from: line(&from), to: line(&format!("{quota_us:.0}")) }
}
