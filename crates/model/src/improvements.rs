//! What could be faster though nothing is choked. An improvement is told, and tried only where something else was mended before: a server on
//! which nothing is wrong is left alone.

mod from_profile;
mod polling;

use crate::facts::Context;
use crate::fix::{FAILED_SHARE_NOISE, NOISE_SHARE};
use crate::load::LoadResult;
use crate::observation::CpuUse;
use crate::path::Tier;
use crate::report::{Evidence, Finding, Role, StationState};
use crate::stations::Placed;
use crate::stations::upstream_connect::{Edge, edges};

pub(crate) use from_profile::FINDINGS as FROM_PROFILE;

/// CPU time of both ends for opening, accepting and closing a connection on one host, microseconds: with kept ones an answer of nginx and
/// php-fpm cost 63 to 75 us less (docs/measuring.md, "What a connection costs"). Only its order counts: what it gives is measured before it is
/// kept.
const CONNECTION_CPU_US: f64 = 60.0;

/// The improvements of a server that nothing holds back but its cores.
pub(crate) fn improvements(ctx: &Context<'_>, stations: &[Placed], findings: &[Finding]) -> Vec<Finding> {
    let is_choked = findings.iter().any(|finding| finding.role == Role::Cause);
    let failed = || ctx.failed_share().is_some_and(|share| share > FAILED_SHARE_NOISE);
    let mut shown = if is_choked || failed() { Vec::new() } else { from_profile::findings(ctx, stations) };
    // Whatever else is wrong: who reads these cores' figures is to know that they say nothing.
    shown.extend(polling::findings(ctx, stations));
    let Some(load) = ctx.obs.load.as_ref().filter(|load| !is_choked && ctx.can_divide_by_good() && hardly_failed(load)) else {
        return shown;
    };
    let churning = edges(ctx).into_iter().filter_map(|edge| churn(ctx, stations, load, &edge));
    churning.chain(shown).collect()
}

fn hardly_failed(load: &LoadResult) -> bool {
    load.requests.saturating_sub(load.good) as f64 <= FAILED_SHARE_NOISE * load.requests as f64
}

/// A connection for each request, where the pages are so cheap that it is more of their cost than noise can hide.
fn churn(ctx: &Context<'_>, stations: &[Placed], load: &LoadResult, edge: &Edge<'_>) -> Option<Finding> {
    // The upstream elsewhere spends its own CPU, which nobody reads here.
    let upstream = edge.upstream.filter(|_| edge.churns() && is_busy(ctx, stations, edge.tier))?;
    let pids = || edge.tier.pids.iter().chain(&upstream.pids);
    let ticks_per_s = ctx.obs.kernel.last().map_or(100, |kernel| kernel.ticks_per_s).max(1) as f64;
    let used = |ticks: fn(&CpuUse) -> u64| -> f64 {
        let grown = |pid: &u32| {
            let (first, last, _) = ctx.inside(&ctx.obs.processes.get(pid)?.cpu)?;
            Some(ticks(last).saturating_sub(ticks(first)) as f64)
        };
        pids().filter_map(grown).sum::<f64>() / ticks_per_s
    };
    // The readings inside the window may begin later and end earlier than the load.
    let span_us = pids().find_map(|pid| ctx.inside(&ctx.obs.processes.get(pid)?.cpu).map(|(_, _, elapsed_us)| elapsed_us))?;
    let requests = load.goodput_rps() * span_us as f64 / 1e6;
    let (all_us, system_us) =
        (1e6 * used(|cpu| cpu.user_ticks + cpu.system_ticks) / requests, 1e6 * used(|cpu| cpu.system_ticks) / requests);
    if !all_us.is_finite() || all_us <= 0.0 {
        return None;
    }
    // All of it is the kernel's work: it cannot cost more than that.
    let share = CONNECTION_CPU_US.min(system_us) / all_us;
    (share >= NOISE_SHARE).then(|| {
        let mut proofs = edge.proofs(ctx);
        let text = edge.args("evidence-churn-cpu").with("us", all_us).with("connection", CONNECTION_CPU_US.min(system_us));
        let text = ctx.text(text.with("share", share * 100.0));
        proofs.push(Evidence { text, source: "/proc/PID/stat".to_owned(), value: Some(all_us) });
        edge.finding(ctx, proofs, "finding-upstream-connection-churn-explanation")
    })
}

/// True where the cores of a tier are what limits it.
fn is_busy(ctx: &Context<'_>, stations: &[Placed], tier: &Tier) -> bool {
    let cores = stations.iter().filter(|placed| placed.station.station == "cpu" && placed.station.state == StationState::Saturated);
    cores.into_iter().any(|placed| ctx.owner(&placed.station.tier).has(tier.id))
}
