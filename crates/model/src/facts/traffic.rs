//! Requests and answers: as the load counted them, or, for watched traffic, from the access logs of the first tier.

pub(crate) mod errors;
pub(crate) mod on_wire;
pub(crate) mod out_of_service;
mod seen;

use std::collections::BTreeMap;

use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::spread::Spread;
use crate::observation::load::{Errors, LoadResult};
use crate::observation::{AccessLog, NginxConfig};
use crate::output::report::LoadReport;

use on_wire::Answered;
pub(crate) use seen::{brought_requests, was_seen};

/// Traffic of the load, else the watched traffic. `None` if neither is known.
pub(crate) fn of(ctx: &Context<'_>) -> Option<LoadReport> {
    ctx.obs.load.as_ref().map(load_report).or_else(|| watched(ctx))
}

/// The load for the report.
pub fn load_report(load: &LoadResult) -> LoadReport {
    LoadReport {
        requests: load.requests,
        duration_s: load.duration_us as f64 / 1e6,
        throughput_rps: load.throughput_rps(),
        goodput_rps: load.goodput_rps(),
        status: load.status.iter().map(|(status, count)| (status.to_string(), *count)).collect(),
        errors: load.errors,
        latency_us: Some(load.latency_us).filter(|_| load.requests > 0),
        lost_share: load.lost_share(),
        tls: load.tls,
        spread: Spread::of(load),
    }
}

/// True if requests for other sites or locations are known to end in the same logs: their failures are not this URL's, and no log tells them apart.
fn serves_others(ctx: &Context<'_>, tier: &Tier) -> bool {
    let configs = tier.pids.iter().filter_map(|pid| ctx.obs.servers.get(pid)?.nginx());
    let is_other = |nginx: &NginxConfig| {
        let asked = nginx.leads_to.as_ref();
        asked.is_some_and(|asked| nginx.passes.iter().flat_map(|pass| &pass.servers).any(|server| !asked.contains(server)))
    };
    configs.into_iter().any(is_other)
}

/// True if the requests asked for have a listener to themselves: what leaves there answers them.
fn has_own_listener(ctx: &Context<'_>, tier: &Tier) -> bool {
    let mut configs = tier.pids.iter().filter_map(|pid| ctx.obs.servers.get(pid)?.nginx());
    configs.all(|nginx| nginx.shares_no_listener)
}

/// Requests, statuses and times from the access logs of the path's first tier. `None` if no log has statuses, if others' requests are in it, or if one was truncated: half a count would look
/// like a drop in throughput. A log too large to be read whole is extrapolated from its end.
fn watched(ctx: &Context<'_>) -> Option<LoadReport> {
    let tier = ctx.path.tiers.first().filter(|tier| !serves_others(ctx, tier))?;
    let logs: Vec<&AccessLog> = ctx.access_logs(tier).filter(|log| log.lines > 0).collect();
    let seconds = ctx.seconds();
    if logs.is_empty() || seconds <= 0.0 {
        return None;
    }
    let mut status: BTreeMap<u16, u64> = BTreeMap::new();
    for log in &logs {
        let scale = log.extent.scale().filter(|_| log.has_status)?;
        for (code, count) in &log.status {
            *status.entry(*code).or_default() += (*count as f64 * scale).round() as u64;
        }
    }
    let requests: u64 = status.values().sum();
    let good: u64 = status.iter().filter(|(code, _)| is_expected(ctx, **code)).map(|(_, count)| count).sum();
    // Percentiles of several logs cannot be merged: the largest log's are used.
    let largest = logs.iter().max_by_key(|log| log.lines)?;
    Some(LoadReport {
        requests,
        duration_s: seconds,
        throughput_rps: requests as f64 / seconds,
        goodput_rps: good as f64 / seconds,
        status: status.iter().map(|(code, count)| (code.to_string(), *count)).collect(),
        errors: Errors::default(),
        latency_us: largest.request_time_us.or(largest.duration_us),
        lost_share: None,
        tls: None,
        spread: None,
    })
}

/// Statuses of the first tier's responses, all or a sample of them.
pub(crate) struct Statuses {
    /// Responses by status.
    pub(crate) by_status: BTreeMap<u16, u64>,
    /// Requests that they answer; with a load, those without an answer too.
    pub(crate) requests: u64,
    /// The time in which these were counted, seconds.
    pub(crate) seconds: f64,
    /// Where they were counted: "load", "access log" or "packets".
    pub(crate) source: &'static str,
}

impl Statuses {
    /// Those of the load, else of the access log, else on the wire. `None` if none of them tells.
    pub(crate) fn of(ctx: &Context<'_>) -> Option<Self> {
        if let Some(load) = &ctx.obs.load {
            let seconds = load.duration_us as f64 / 1e6;
            return Some(Self { by_status: load.status.clone(), requests: load.requests, seconds, source: "load" });
        }
        if let Some(logged) = watched(ctx) {
            let by_status = logged.status.iter().filter_map(|(status, count)| Some((status.parse().ok()?, *count))).collect();
            return Some(Self { by_status, requests: logged.requests, seconds: logged.duration_s, source: "access log" });
        }
        let first = ctx.path.tiers.first().filter(|first| !serves_others(ctx, first) || has_own_listener(ctx, first))?;
        let seen = Answered::of(ctx, first)?;
        Some(Self { requests: seen.all(), seconds: seen.seconds, by_status: seen.by_status, source: "packets" })
    }

    /// Statuses of watched responses on connections older than the observation, where nothing else tells: they look like responses, and may be pieces of one that quotes them.
    pub(crate) fn perhaps(ctx: &Context<'_>) -> Option<Self> {
        let first = ctx.path.tiers.first().filter(|_| Self::of(ctx).is_none())?;
        let seen = Answered::perhaps(ctx, first)?;
        Some(Self { requests: seen.all(), seconds: seen.seconds, by_status: seen.by_status, source: "packets" })
    }

    /// Answers with a server error. Client errors, such as a missing page, are no failure of the server.
    pub(crate) fn errors(&self) -> u64 {
        errors_among(&self.by_status)
    }

    /// The same, and the requests that were refused as too many.
    pub(crate) fn failed(&self) -> u64 {
        failures_among(&self.by_status)
    }
}

/// The status of a request that is one too many (RFC 6585, section 4).
pub(crate) const TOO_MANY: u16 = 429;

/// True for a server error (RFC 9110, section 15.6).
pub(crate) fn is_server_error(status: u16) -> bool {
    (500..600).contains(&status)
}

/// True for an answer that gives no client what it asked for, through no fault of its own: a server error, or one too many.
pub fn is_failure(status: u16) -> bool {
    is_server_error(status) || status == TOO_MANY
}

/// The number of failures among responses by status.
fn failures_among(by_status: &BTreeMap<u16, u64>) -> u64 {
    by_status.iter().filter(|(status, _)| is_failure(**status)).map(|(_, count)| count).sum()
}

/// The number of server errors among responses by status.
fn errors_among(by_status: &BTreeMap<u16, u64>) -> u64 {
    by_status.iter().filter(|(status, _)| is_server_error(**status)).map(|(_, count)| count).sum()
}

/// The most frequent status among the server errors.
fn main_error(by_status: &BTreeMap<u16, u64>) -> Option<u16> {
    let errors = by_status.iter().filter(|(status, _)| is_server_error(**status));
    errors.max_by_key(|(_, count)| **count).map(|(status, _)| *status)
}

/// For watched traffic: answers with a server error, and all answers.
pub(crate) fn server_errors(ctx: &Context<'_>) -> Option<Statuses> {
    Statuses::of(ctx).filter(|_| ctx.obs.load.is_none())
}

/// True for a status that counts as good.
pub(crate) fn is_expected(ctx: &Context<'_>, code: u16) -> bool {
    let expect = &ctx.obs.request.expect;
    if expect.is_empty() { (200..400).contains(&code) } else { expect.iter().any(|(from, to)| (*from..=*to).contains(&code)) }
}
