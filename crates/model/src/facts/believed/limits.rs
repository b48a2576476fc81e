//! "limiting requests", "delaying request", "limiting connections": the limits that the configuration has, and the responses.

use super::Belief;
use crate::facts::Context;
use crate::facts::limit::{applies, is_exceeded, passes_all_it_may};
use crate::facts::path::Tier;
use crate::observation::{AccessLog, LogEvent, NginxLimit};
use crate::output::message::Message;

pub(super) fn of(ctx: &Context<'_>, tier: &Tier, event: &LogEvent, zone: Option<&str>) -> Belief {
    // Without a configuration that was read nothing is judged by its limits.
    if ctx.nginx_of(tier).is_none() {
        return Belief::Alone;
    }
    let kind = if matches!(event, LogEvent::ConnectionsLimited(_)) { "limit_conn" } else { "limit_req" };
    let all = tier.pids.iter().filter_map(|pid| ctx.obs.servers.get(pid)?.nginx()).flat_map(|nginx| &nginx.limits);
    let limits: Vec<&NginxLimit> = all.filter(|limit| limit.kind == kind && zone.is_none_or(|zone| limit.zone == zone)).collect();
    if limits.is_empty() {
        return Belief::Against(Message::new("log-but-no-limit").with("directive", kind));
    }
    if matches!(event, LogEvent::RateDelayed(_)) { delayed(ctx, tier, &limits) } else { refused(ctx, tier, &limits) }
}

/// A request that is refused gets the limit's status (`limit_req_status`, `limit_conn_status`).
fn refused(ctx: &Context<'_>, tier: &Tier, limits: &[&NginxLimit]) -> Belief {
    let answered = |count: &dyn Fn(u16) -> u64| limits.iter().any(|limit| count(limit.status) > 0);
    let logs: Vec<&AccessLog> = ctx.access_logs(tier).collect();
    let by_logs = |status: u16| logs.iter().filter_map(|log| log.status.get(&status)).sum::<u64>();
    let by_load = |status: u16| ctx.obs.load.as_ref().and_then(|load| load.status.get(&status)).copied().unwrap_or(0);
    if answered(&by_logs) || answered(&by_load) {
        return Belief::Shown;
    }
    let is_told = |log: &&AccessLog| log.has_status && log.extent.is_whole() && log.status.values().sum::<u64>() >= log.lines;
    let are_told = logs.iter().any(|log| log.lines > 0) && logs.iter().all(is_told);
    // Where the limit is not for this request, its lines are about other traffic, which the load does not see.
    let is_asked = ctx.obs.load.is_some() && limits.iter().any(|limit| applies(ctx, tier, limit) != Some(false));
    let status = limits.first().map_or(0, |limit| limit.status);
    let why = |id: &'static str| Belief::Against(Message::new(id).with("status", status.to_string()));
    match (are_told, is_asked) {
        (true, _) => why("log-but-no-status"),
        (false, true) => why("log-but-no-status-load"),
        (false, false) => Belief::Alone,
    }
}

/// Requests that are delayed pass at the limit's rate, never faster.
fn delayed(ctx: &Context<'_>, tier: &Tier, limits: &[&NginxLimit]) -> Belief {
    if limits.iter().all(|limit| limit.burst <= limit.burst_at_once) {
        return Belief::Against(Message::new("log-but-never-delays"));
    }
    let Some(load) = &ctx.obs.load else { return Belief::Alone };
    let of_request: Vec<&&NginxLimit> = limits.iter().filter(|limit| applies(ctx, tier, limit) != Some(false)).collect();
    if of_request.iter().any(|limit| passes_all_it_may(limit, load)) {
        return Belief::Shown;
    }
    match of_request.iter().all(|limit| is_exceeded(limit, load)) && !of_request.is_empty() {
        true => Belief::Against(Message::new("log-but-faster")),
        false => Belief::Alone,
    }
}
