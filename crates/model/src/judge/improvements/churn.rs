//! A new upstream connection for each request while the cores are the limit: what opening and closing costs them.

use super::handshakes::{less, sealing_s};
use super::hot::TLS;
use crate::facts::Context;
use crate::facts::cores::{Limiting, limiting};
use crate::facts::harm::{NOISE_SHARE, gain_of};
use crate::facts::path::Tier;
use crate::facts::profile::{CONNECTION, ProfileShare, Profiled, TLS_HANDSHAKE, is_of};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::StationId;
use crate::judge::station::StationReading;
use crate::judge::stations::upstream_connect::{Edge, edges};
use crate::observation::load::LoadResult;
use crate::observation::{CpuUse, ProfilePart};
use crate::output::report::StationState;

/// CPU time of both ends for opening, accepting and closing a connection on one host, microseconds: with kept ones an answer of nginx and php-fpm cost 63 to
/// 75 us less (docs/measuring.md, "What a connection costs"). Used only if no profile shows the cost; then nothing is called a cause because of it.
const CONNECTION_CPU_US: f64 = 60.0;

/// One finding per edge. The flag is true if a profile shows waste: more than noise could be gained.
pub(super) fn findings(ctx: &Context<'_>, stations: &[StationReading]) -> Vec<(Finding, bool)> {
    let churning = edges(ctx).into_iter().filter(Edge::churns);
    let unsampled = |edge: &Edge<'_>| estimated(ctx, stations, ctx.obs.load.as_ref()?, edge);
    churning.filter_map(|edge| sampled(ctx, &edge).unwrap_or_else(|| unsampled(&edge))).collect()
}

/// By a profile: the share of the limiting time in which either end opens, accepts or closes these connections. The outer `None` means that no profile shows
/// it.
fn sampled(ctx: &Context<'_>, edge: &Edge<'_>) -> Option<Option<(Finding, bool)>> {
    let profiled = Profiled::of(ctx).filter(Profiled::names_kernel)?;
    let limiting = limiting(ctx);
    let is_its = |tier: &Tier| tier.id == edge.tier.id;
    let Some(limiting) = limiting.iter().find(|limiting| limiting.tiers.iter().any(|tier| is_its(tier))) else { return Some(None) };
    let of = |tier: &Tier, is_such: PartFilter| profiled.share(limiting, |part| tier.pids.contains(&part.pid) && is_such(part));
    let shaken = |tier: &Tier| of(tier, only_shakes).filter(|share| share.value > 0.0);
    // A server that calls itself has both ends.
    let answering = edge.upstream.filter(|upstream| !is_its(upstream));
    let ends = if edge.upstream.is_some_and(is_its) { 2.0 } else { 1.0 };
    let dialling = of(edge.tier, opens)?.times(dialled_share(ctx, edge, ends));
    let dialled = shaken(edge.tier).map(|share| share.times(surely_dialled_share(ctx, edge, ends)));
    let secured = secured(ctx, &profiled, limiting, edge);
    let shakes = match secured {
        Some(secured) => vec![secured],
        None => dialled.into_iter().chain(answering.and_then(shaken)).collect(),
    };
    let opened = answering.and_then(|upstream| of(upstream, opens));
    let share = shakes.into_iter().chain(opened).fold(dialling, ProfileShare::plus);
    if gain_of(share.value) < NOISE_SHARE {
        return Some(None);
    }
    let is_wasted = gain_of(share.low) >= NOISE_SHARE;
    let mut proofs = edge.proofs(ctx);
    let text = edge.args("evidence-churn-share").with("share", share.value * 100.0).with("samples", share.of);
    let text = text.with("low", share.low * 100.0).with("high", share.high * 100.0);
    let text = text.with("tls", if secured.is_some() { "yes" } else { "no" });
    proofs.push(Evidence::new(text, profiled.source(), Some(share.value)));
    let gain = |share: f64| gain_of(share) * 100.0;
    let text = edge.args("evidence-churn-gain").with("gain", gain(share.value)).with("low", gain(share.low)).with("high", gain(share.high));
    proofs.push(Evidence::new(text, "Amdahl 1967", Some(gain_of(share.value))));
    let explanation =
        if is_wasted { "finding-upstream-connection-churn-explanation-wasted" } else { "finding-upstream-connection-churn-explanation" };
    Some(Some((edge.finding(proofs, explanation), is_wasted)))
}

type PartFilter = fn(&ProfilePart) -> bool;

/// True for the work of opening and closing connections.
fn opens(part: &ProfilePart) -> bool {
    is_of(part, CONNECTION)
}

/// True for the work of a TLS handshake that is not opening.
fn only_shakes(part: &ProfilePart) -> bool {
    is_of(part, TLS_HANDSHAKE) && !is_of(part, CONNECTION)
}

/// The part of the limiting time that both ends spend on TLS for these connections and that neither bytes nor records explain: their handshakes, also where stacks end before a function that says so.
/// Where clients speak none, all TLS of the tier that dials is with its upstreams. `None` if it uses none, and if what was sent is not known.
fn secured(ctx: &Context<'_>, profiled: &Profiled<'_>, limiting: &Limiting<'_, '_>, edge: &Edge<'_>) -> Option<ProfileShare> {
    let upstream = edge.upstream.filter(|_| ctx.obs.request.scheme == "http" && ctx.path.is_first(edge.tier))?;
    let of = |tier: &Tier| profiled.share(limiting, |part| tier.pids.contains(&part.pid) && part.layer == TLS && !is_of(part, CONNECTION));
    let dialling = of(edge.tier).filter(|share| share.low > 0.0)?;
    let view = ctx.obs.netns.get(&upstream.netns)?;
    let bytes = ["IpExt.InOctets", "IpExt.OutOctets"].into_iter().map(|name| ctx.netstat_growth(view, name)).sum::<Option<u64>>()?;
    let explained = sealing_s(bytes as f64, ctx.account()?.rate_rps()? * ctx.seconds());
    Some(less(dialling.plus(of(upstream)?), explained / limiting.time_s(ctx.seconds())))
}

/// The part of the dialling tier's opened and accepted connections that belongs to this edge, of which it has so many ends, and not to its clients.
fn dialled_share(ctx: &Context<'_>, edge: &Edge<'_>, ends: f64) -> f64 {
    let opened = ends * edge.opened.unwrap_or(1.0);
    opened / (opened + taken(ctx, edge))
}

/// The part of its handshakes that belongs to this edge at least: each connection of a client may take one, and whether those to the upstream do is not known.
fn surely_dialled_share(ctx: &Context<'_>, edge: &Edge<'_>, ends: f64) -> f64 {
    let opened = ends * edge.opened.unwrap_or(1.0);
    (1.0 - taken(ctx, edge) / opened.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
}

/// Connections of clients for each request. Behind another tier, and in watched traffic, each may arrive on its own.
fn taken(ctx: &Context<'_>, edge: &Edge<'_>) -> f64 {
    let load = ctx.obs.load.as_ref().filter(|_| ctx.path.is_first(edge.tier));
    load.map_or(1.0, |load| load.connections as f64 / load.requests.max(1) as f64)
}

/// Without a profile: a connection for each request, with pages so cheap that the connection is a part of their cost beyond noise.
fn estimated(ctx: &Context<'_>, stations: &[StationReading], load: &LoadResult, edge: &Edge<'_>) -> Option<(Finding, bool)> {
    // An upstream on another host spends its own CPU, which is not read here.
    let upstream = edge.upstream.filter(|_| is_busy(stations, edge.tier))?;
    let pids = || edge.tier.pids.iter().chain(&upstream.pids);
    let ticks_per_s = ctx.obs.kernel.last().map_or(100, |kernel| kernel.ticks_per_s).max(1) as f64;
    let used = |ticks: fn(&CpuUse) -> u64| -> f64 {
        let grown = |pid: &u32| {
            let (first, last, _) = ctx.inside(&ctx.obs.processes.get(pid)?.cpu)?;
            Some(ticks(last).saturating_sub(ticks(first)) as f64)
        };
        pids().filter_map(grown).sum::<f64>() / ticks_per_s
    };
    // The readings inside the window may start later and end earlier than the load.
    let span_us = pids().find_map(|pid| ctx.inside(&ctx.obs.processes.get(pid)?.cpu).map(|(_, _, elapsed_us)| elapsed_us))?;
    let requests = load.goodput_rps() * span_us as f64 / 1e6;
    let (all_us, system_us) =
        (1e6 * used(|cpu| cpu.user_ticks + cpu.system_ticks) / requests, 1e6 * used(|cpu| cpu.system_ticks) / requests);
    if !all_us.is_finite() || all_us <= 0.0 {
        return None;
    }
    // All of it is kernel work, so it cannot cost more than the kernel's time.
    let share = CONNECTION_CPU_US.min(system_us) / all_us;
    (share >= NOISE_SHARE).then(|| {
        let mut proofs = edge.proofs(ctx);
        let text = edge.args("evidence-churn-cpu").with("us", all_us).with("connection", CONNECTION_CPU_US.min(system_us));
        let text = text.with("share", share * 100.0);
        proofs.push(Evidence::new(text, "/proc/PID/stat", Some(all_us)));
        (edge.finding(proofs, "finding-upstream-connection-churn-explanation"), false)
    })
}

/// True if a tier's cores are its limit.
fn is_busy(stations: &[StationReading], tier: &Tier) -> bool {
    stations
        .iter()
        .any(|reading| reading.station == StationId::CPU && reading.state == StationState::Saturated && reading.owner.has(tier.id))
}
