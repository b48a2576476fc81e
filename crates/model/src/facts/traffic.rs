//! What was asked and answered: as the load counted it, or, in passive mode, as the access logs of the first tier tell it.

use std::collections::BTreeMap;

use crate::facts::Context;
use crate::facts::spread::Spread;
use crate::observation::AccessLog;
use crate::observation::load::{Errors, LoadResult};
use crate::output::report::LoadReport;

/// Of the load, else of the traffic that was watched; nothing where neither can be told.
pub(crate) fn of(ctx: &Context<'_>) -> Option<LoadReport> {
    ctx.obs.load.as_ref().map(load_report).or_else(|| watched(ctx))
}

/// The load as the report tells it.
pub fn load_report(load: &LoadResult) -> LoadReport {
    LoadReport {
        requests: load.requests,
        duration_s: load.duration_us as f64 / 1e6,
        throughput_rps: load.throughput_rps(),
        goodput_rps: load.goodput_rps(),
        status: load.status.iter().map(|(status, count)| (status.to_string(), *count)).collect(),
        errors: load.errors,
        latency_us: load.latency_us,
        lost_share: load.lost_share(),
        spread: Spread::of(load),
    }
}

/// Requests, statuses and times out of the access logs of the path's first tier; nothing where no log has statuses, or where one was cut: half a count
/// would pass for a fall of the throughput. One that is too large to be read whole is taken to go on as its end does.
fn watched(ctx: &Context<'_>) -> Option<LoadReport> {
    let tier = ctx.path.tiers.first()?;
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
    // Percentiles of several logs cannot be joined: those of the largest are given.
    let largest = logs.iter().max_by_key(|log| log.lines)?;
    Some(LoadReport {
        requests,
        duration_s: seconds,
        throughput_rps: requests as f64 / seconds,
        goodput_rps: good as f64 / seconds,
        status: status.iter().map(|(code, count)| (code.to_string(), *count)).collect(),
        errors: Errors::default(),
        latency_us: largest.request_time_us.or(largest.duration_us).unwrap_or_default(),
        lost_share: None,
        spread: None,
    })
}

/// Of traffic that is merely watched: answers that say that the server failed (RFC 9110, section 15.6), and all answers. What clients did wrong, such as asking for what
/// is not there, is no failure of the server.
pub(crate) fn server_errors(ctx: &Context<'_>) -> Option<(u64, u64)> {
    let traffic = watched(ctx).filter(|_| ctx.obs.load.is_none())?;
    let failed = traffic.status.iter().filter(|(status, _)| status.starts_with('5')).map(|(_, count)| count).sum();
    Some((failed, traffic.requests))
}

fn is_expected(ctx: &Context<'_>, code: u16) -> bool {
    let expect = &ctx.obs.request.expect;
    if expect.is_empty() { (200..400).contains(&code) } else { expect.iter().any(|(from, to)| (*from..=*to).contains(&code)) }
}
