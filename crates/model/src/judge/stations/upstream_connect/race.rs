//! Requests that meet a kept connection which the upstream is just closing, because it keeps idle connections for less time than the dialling tier.

use super::{Edge, STATION, edges};
use crate::facts::harm::Cost;
use crate::facts::path::Tier;
use crate::facts::traffic;
use crate::facts::{Context, Logged};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::id::FindingId;
use crate::observation::{ListenerAddress, LogEvent, ProcessView};
use crate::output::message::Message;
use crate::output::report::Confidence;

/// The upstream closed, or reset, a connection on which a request had been sent and no answer begun.
const ENDED: &[LogEvent] = &[LogEvent::UpstreamClosed, LogEvent::UpstreamReset];
const RESET: &[LogEvent] = &[LogEvent::UpstreamReset];
/// What shows that the upstream ends connections for another reason: it is down, or has no connection left.
const DOWN: &[LogEvent] = &[LogEvent::ConnectFailed(Some(111)), LogEvent::NoLiveUpstreams];
const PRESSED: &[LogEvent] = &[LogEvent::ConnectionsExhausted, LogEvent::ConnectionsReused, LogEvent::WorkerDied];
/// Share of such lines that the upstream's host must have answered with a reset, as it does for a request that reaches a closed socket. A program that dies
/// during a request has read it, and its connection ends normally.
const ANSWERED_SHARE_MIN: f64 = 0.5;
/// Share of such lines from which overflows of accept queues explain them.
const OVERFLOWN_SHARE_MIN: f64 = 0.1;

/// An edge where requests lose the race.
pub(super) struct Race {
    /// Requests that met a connection that was just closed, by the log.
    pub(super) met: u64,
    failed: u64,
    logged: Vec<Logged>,
    /// Resets that the upstream's namespace sent; `None` if it is on another host.
    resets: Option<f64>,
    upstream_netns: Option<String>,
}

/// Whether requests on this edge fail because they meet connections that are just being closed.
pub(super) fn of(ctx: &Context<'_>, edge: &Edge<'_>) -> Option<Race> {
    // On a unix socket the end of a connection is known at once, so what breaks there has another reason.
    let is_tcp = matches!(edge.address, ListenerAddress::Tcp(..));
    if !is_tcp || !edge.passes.iter().any(|pass| pass.reuses && pass.keepalive.is_some_and(|kept| kept > 0)) {
        return None;
    }
    let any = |tier: &Tier, events: &[LogEvent]| events.iter().any(|event| ctx.logged(tier, event).is_some());
    if any(edge.tier, DOWN) || edge.upstream.is_some_and(|upstream| any(upstream, PRESSED) || came_or_went(ctx, upstream)) {
        return None;
    }
    // An upstream that cannot be observed may have died, so only its resets count.
    let events = if edge.upstream.is_some() { ENDED } else { RESET };
    let own = |logged: &Logged| is_about(&logged.line, edge);
    let logged: Vec<Logged> = events.iter().filter_map(|event| ctx.logged(edge.tier, event)).filter(own).collect();
    let met: u64 = logged.iter().map(|logged| logged.count).sum();
    let answered = traffic::of(ctx)?;
    let failed = answered.status.get("502").copied().unwrap_or(0).min(met);
    if !Cost::of_requests(failed, answered.requests).hurts() {
        return None;
    }
    let view = edge.upstream.and_then(|upstream| Some((upstream, ctx.obs.netns.get(&upstream.netns)?)));
    let resets = view.and_then(|(_, view)| ctx.netstat_growth(view, "Tcp.OutRsts").map(|count| count as f64));
    let overflown = view.and_then(|(_, view)| ctx.netstat_growth(view, "TcpExt.ListenOverflows")).unwrap_or(0) as f64;
    let is_answered = edge.upstream.is_none() || resets.is_some_and(|resets| resets >= ANSWERED_SHARE_MIN * met as f64);
    if !is_answered || overflown >= OVERFLOWN_SHARE_MIN * met as f64 {
        return None;
    }
    let upstream_netns = view.map(|(upstream, _)| ctx.netns_name(upstream.netns));
    Some(Race { met, failed, logged, resets, upstream_netns })
}

/// True if a line of the log is about this edge, or was cut before it names the upstream.
fn is_about(line: &str, edge: &Edge<'_>) -> bool {
    let named = line.split_once("upstream: \"").and_then(|(_, rest)| rest.split_once('"'));
    named.is_none_or(|(url, _)| url.contains(&edge.address.to_string()))
}

/// True if a process of the tier started or ended in the window, as far as its readings show. That ends connections as well. A tier may be found late, but
/// then all of its processes are.
fn came_or_went(ctx: &Context<'_>, tier: &Tier) -> bool {
    let processes = || tier.pids.iter().filter_map(|pid| ctx.obs.processes.get(pid));
    let first = |process: &ProcessView| process.cpu.points().first().map(|(at, _)| *at);
    let Some(found) = processes().filter_map(first).min() else { return false };
    processes().any(|process| {
        let came = first(process).is_some_and(|at| at > found.max(ctx.window_us.0));
        came || process.cpu.points().last().is_some_and(|(at, _)| *at < ctx.window_us.1)
    })
}

pub(super) fn findings(ctx: &Context<'_>) -> Vec<Finding> {
    edges(ctx).iter().filter_map(|edge| Some(finding(edge, &of(ctx, edge)?))).collect()
}

fn finding(edge: &Edge<'_>, race: &Race) -> Finding {
    let args = |id: &'static str| edge.args(id).with("met", race.met).with("failed", race.failed);
    let mut proofs: Vec<Evidence> = race.logged.iter().map(|logged| logged.proof()).collect();
    proofs.push(Evidence::new(args("evidence-race-failed"), "load", Some(race.failed as f64)));
    if let (Some(resets), Some(netns)) = (race.resets, &race.upstream_netns) {
        let text = args("evidence-race-resets").with("resets", resets).with("netns", netns.as_str());
        proofs.push(Evidence::new(text, format!("/proc/net/snmp Tcp.OutRsts ({netns})"), Some(resets)));
    }
    let keeps = edge.passes.iter().filter(|pass| pass.reuses).map(|pass| {
        let text = args("evidence-race-kept").with("kept", f64::from(pass.keepalive.unwrap_or(0)));
        Evidence::new(text, pass.origin.to_string(), None)
    });
    proofs.extend(keeps);
    Finding {
        confidence: if race.resets.is_some() { Confidence::High } else { Confidence::Medium },
        title: args("finding-idle-close-race-title"),
        evidence: proofs,
        explanation: vec![args("finding-idle-close-race-explanation")],
        ..STATION.finding(FindingId::CLOSE_RACE, edge.tier, edge.at())
    }
}

/// What the reading of the edge says about the race.
pub(super) fn state(edge: &Edge<'_>, race: &Race) -> Message {
    edge.args("state-upstream-connect-race").with("met", race.met).with("failed", race.failed)
}
