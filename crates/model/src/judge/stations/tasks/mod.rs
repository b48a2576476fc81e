//! Station `tasks`: the processes and threads that a cgroup, a user, the kernel or a process's mappings of memory allow. At the limit fork(2) and clone(2) fail, and a server that starts one for a connection or
//! a request has nobody to serve it.

use crate::facts::Context;
use crate::facts::harm::Cost;
use crate::facts::limit::tasks::{TaskScope, Tasks};
use crate::facts::path::Tier;
use crate::facts::suffered::turned_away;
use crate::judge::finding::{Evidence, Finding};
use crate::judge::graph::{CouplingDef, Relation};
use crate::judge::id::{FindingId, StationId};
use crate::judge::location::Location;
use crate::judge::station::{StationDef, StationReading};
use crate::ledger::tenths;
use crate::output::message::Message;
use crate::output::report::{Confidence, StationKind, StationState};

pub(super) const STATION: StationDef = StationDef {
    remedies: &["allow-more-tasks"],
    graph: &[
        CouplingDef::found(FindingId::TASKS_EXHAUSTED, FindingId::POOL_EXHAUSTED, Relation::Tier, "coupling-tasks"),
        CouplingDef::found(FindingId::TASKS_EXHAUSTED, FindingId::ACCEPTS_SLOWLY, Relation::Tier, "coupling-tasks"),
        CouplingDef::found(FindingId::TASKS_EXHAUSTED, FindingId::ACCEPT_QUEUE_FULL, Relation::Tier, "coupling-tasks"),
        CouplingDef::found(FindingId::TASKS_EXHAUSTED, FindingId::WAITS_INSIDE, Relation::Behind, "coupling-tasks"),
        CouplingDef::found(FindingId::TASKS_EXHAUSTED, FindingId::ANSWERS_NONE, Relation::Behind, "coupling-tasks"),
        CouplingDef::found(FindingId::TASKS_EXHAUSTED, FindingId::ANSWERS_ERRORS, Relation::Behind, "coupling-tasks"),
    ],
    ..StationDef::new(StationId::TASKS, StationKind::Cliff, &[FindingId::TASKS_EXHAUSTED], read, judge)
};

/// Samples at the limit that are needed where nobody counts what was refused.
const SAMPLES_MIN: usize = 2;
/// Share from which the headroom is reported as small.
const NEAR_SHARE: f64 = 0.8;

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    ctx.path.tiers.iter().filter_map(|tier| Some(reading(ctx, tier, &Tasks::of(ctx, tier)?))).collect()
}

fn reading(ctx: &Context<'_>, tier: &Tier, tasks: &Tasks<'_>) -> StationReading {
    let cgroup = match &tasks.scope {
        TaskScope::Cgroup(_, tasks) => Some(tasks.dir.clone()),
        _ => None,
    };
    let unit = if matches!(tasks.scope, TaskScope::Mappings(_)) { "mappings" } else { "tasks" };
    let mut station = STATION.reading(tier, Location { cgroup, ..Location::in_netns(tier.netns) }, unit);
    station.limit = Some(tasks.limit as f64);
    station.used = Some(tasks.peak as f64);
    station.utilization = Some(tasks.share());
    station.refused_per_s = tasks.refused.map(|refused| refused as f64 / ctx.seconds().max(1e-6));
    let refused = tasks.refused.unwrap_or(0);
    let state = match (is_exhausted(ctx, tier, tasks), refused > 0) {
        (true, _) => (StationState::Refusing, "state-tasks-refused"),
        (false, true) => (StationState::Near, "state-tasks-harmless"),
        (false, false) if tasks.share() >= NEAR_SHARE => (StationState::Near, "state-tasks-near"),
        (false, false) => (StationState::Ok, "state-tasks-ok"),
    };
    station.in_state(state.0, args(tier, tasks, state.1))
}

fn args(tier: &Tier, tasks: &Tasks<'_>, id: &'static str) -> Message {
    let message = Message::new(id).with("tier", tier.name.as_str()).with("limit", tasks.limit).with("peak", tasks.peak);
    let message =
        message.with("refused", tasks.refused.unwrap_or(0)).with("is_counted", if tasks.refused.is_some() { "yes" } else { "no" });
    let message = message.with("full", tasks.full as f64).with("samples", tasks.samples as f64);
    let message = message.with("scope", tasks.scope.name());
    match &tasks.scope {
        TaskScope::Cgroup(id, _) => message.with("whose", id.path.as_str()),
        TaskScope::User(user) => message.with("whose", user.to_string()),
        TaskScope::Mappings(pid) => message.with("whose", pid.to_string()),
        TaskScope::Host | TaskScope::Ids => message.with("whose", ""),
    }
}

/// Requests that fail or are lost at a tier, or stand there, as the cost of what could not be started.
fn costs(ctx: &Context<'_>, tier: &Tier, refused: u64) -> Cost {
    let lost = match &ctx.obs.load {
        Some(load) => Cost::of_requests(load.requests.saturating_sub(load.good), load.requests),
        None => turned_away(ctx, Some(tier.netns), refused),
    };
    lost.or(Cost::of_time(standing(ctx, tier)))
}

/// Share of the requests under way that stand at the tier without being worked on.
fn standing(ctx: &Context<'_>, tier: &Tier) -> f64 {
    let Some(account) = ctx.account() else { return 0.0 };
    (account.standing(tier.id.0) / account.under_way().max(f64::MIN_POSITIVE)).min(1.0)
}

/// True if something could not be started, or where that is not counted the limit was always reached, and clients suffer.
fn is_exhausted(ctx: &Context<'_>, tier: &Tier, tasks: &Tasks<'_>) -> bool {
    let is_refused = match tasks.refused {
        Some(refused) => refused > 0,
        None => tasks.full >= SAMPLES_MIN && tasks.full == tasks.samples,
    };
    is_refused && tasks.are_started(ctx, tier) && costs(ctx, tier, tasks.refused.unwrap_or(0)).hurts()
}

fn judge(ctx: &Context<'_>, read: &[StationReading]) -> Vec<Finding> {
    let refusing = read.iter().filter(|reading| reading.state == StationState::Refusing);
    refusing
        .filter_map(|reading| {
            let tier = ctx.only_tier(&reading.owner)?;
            Some(finding(ctx, reading, tier, &Tasks::of(ctx, tier)?))
        })
        .collect()
}

fn finding(ctx: &Context<'_>, reading: &StationReading, tier: &Tier, tasks: &Tasks<'_>) -> Finding {
    let source = match &tasks.scope {
        TaskScope::Cgroup(_, group) => format!("{}/pids.events, pids.current", group.dir),
        TaskScope::User(_) => "/proc/PID/limits, /proc/PID/status".to_owned(),
        TaskScope::Host => "/proc/loadavg, kernel.threads-max".to_owned(),
        TaskScope::Ids => "/proc/loadavg, /proc/PID/status, kernel.pid_max".to_owned(),
        TaskScope::Mappings(pid) => format!("/proc/{pid}/maps, vm.max_map_count"),
    };
    let mut proofs = vec![Evidence::new(args(tier, tasks, "evidence-tasks"), source, Some(tasks.peak as f64))];
    if let Some(load) = &ctx.obs.load {
        let lost = load.requests.saturating_sub(load.good);
        let text = Message::new("evidence-tasks-lost").with("lost", lost).with("requests", load.requests);
        proofs.push(Evidence::new(text, "load", Some(lost as f64)));
    }
    let stand = standing(ctx, tier) * ctx.account().map_or(0.0, |account| account.under_way());
    if stand > 0.0 {
        let text = Message::new("evidence-tasks-standing").with("tier", tier.name.as_str()).with("standing", tenths(stand));
        proofs.push(Evidence::new(text, "sock_diag", Some(tenths(stand))));
    }
    // A single refusal may be that of a thread which nobody needs; as many as those that suffer are for them.
    let of_load = ctx.obs.load.as_ref().map_or(0, |load| load.requests);
    let is_sure = tasks.refused.is_some_and(|refused| Cost::of_requests(refused, of_load.max(refused)).hurts());
    Finding {
        confidence: if is_sure { Confidence::High } else { Confidence::Medium },
        title: args(tier, tasks, "finding-tasks-exhausted-title"),
        evidence: proofs,
        explanation: vec![args(tier, tasks, "finding-tasks-exhausted-explanation")],
        ..reading.finding(FindingId::TASKS_EXHAUSTED)
    }
}
