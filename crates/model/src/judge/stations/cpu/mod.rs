//! Station `cpu`: the cores that the path's servers may use.

use crate::facts::Context;
use crate::facts::CoreGroup;
use crate::facts::ceiling::ceiling_between;
use crate::facts::cores::limiting::{are_limiting, left_to_others, perhaps_for_cores, polled, saturated_threads};
use crate::facts::cores::{
    AnswerCost, NEAR_UTILIZATION, QUICK_TIMES, SATURATED_UTILIZATION, TENANTS_SHARE_MAX, Threads, busy, others_share, waiting,
};
use crate::judge::id::{CPU_FINDINGS, StationId};
use crate::judge::location::Location;
use crate::judge::station::{StationDef, StationReading};
use crate::ledger::tenths;
use crate::output::message::Message;
use crate::output::report::{Ceiling, StationKind, StationState};

pub(super) const STATION: StationDef = StationDef {
    remedies: &[
        "log-errors-alone",
        "store-tls-sessions",
        "compress-less",
        "resume-tls-sessions",
        "keep-scripts-compiled",
        "switch-steps-off",
        "keep-processes",
        "try-another-allocator",
        "split-lock",
        "raise-worker-processes",
        "use-more-cores",
        "spread-received-packets",
        "raise-priority",
        "give-cores-back",
        "look-at-answers",
    ],
    ..StationDef::new(StationId("cpu"), StationKind::Rate, CPU_FINDINGS, read, |_, _| Vec::new())
};

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    ctx.core_groups().iter().map(|group| reading(ctx, group)).collect()
}

fn reading(ctx: &Context<'_>, group: &CoreGroup<'_>) -> StationReading {
    let at = Location { cores: Some(group.cores.iter().copied().collect()), ..Location::default() };
    let mut station = STATION.reading(group.tiers.as_slice(), at, "cores");
    let Some(busy) = busy(ctx, &group.cores) else {
        return station.in_state(StationState::Unknown, Message::new("state-cpu-unknown"));
    };
    let limit = group.count();
    let utilization = if limit > 0.0 { busy / limit } else { 0.0 };
    station.limit = Some(limit);
    station.used = Some(busy);
    station.utilization = Some(utilization);
    station.waiting = waiting(ctx, &group.tiers);
    station.ceiling_rps = AnswerCost::of(ctx, group, busy).and_then(|cost| cost.ceiling());
    let args = |id: &'static str| Message::new(id).with("count", limit).with("cores", group.list()).with("share", utilization * 100.0);
    let left = left_to_others(ctx, group).filter(|_| utilization >= SATURATED_UTILIZATION);
    if !group.is_known() && utilization >= NEAR_UTILIZATION {
        station.ceiling_rps = None;
        return station.in_state(StationState::Unknown, args("state-cpu-whose"));
    }
    let mut is_of_threads = false;
    let (state, why) = if are_limiting(ctx, group, utilization) {
        let full = utilization >= SATURATED_UTILIZATION;
        let told = args(if full { "state-cpu-saturated" } else { "state-cpu-crowded" });
        (StationState::Saturated, told.with("waiting", station.waiting.unwrap_or(0.0)))
    } else if let Some((tier, threads)) = saturated_threads(ctx, group) {
        let id = if threads.turns.is_some() { "state-cpu-turns" } else { "state-cpu-threads" };
        let told = args(id).with("tier", tier.name.as_str()).with("threads", threads.serving as f64);
        let told = threads.turns.iter().fold(told, |told, turns| told.with("turns", turns.threads).with("by", turns.by()));
        // These threads are the limit: the rate if they ran all the time is the most that they can give.
        station.ceiling_rps = now_at(ctx, &threads);
        station.utilization = Some(threads.running / threads.serving as f64);
        is_of_threads = true;
        (StationState::Saturated, told)
    } else if let Some(polls) = polled(ctx, group) {
        // Polling hides what an answer costs.
        station.ceiling_rps = None;
        let is_quick = ctx.answer_us().is_some_and(|(alone, loaded)| loaded < QUICK_TIMES * alone);
        let told = args("state-cpu-polling").with("tier", polls.tier.name.as_str()).with("ran", polls.cores);
        (if is_quick { StationState::Ok } else { StationState::Unknown }, told)
    } else if let Some(inside) = perhaps_for_cores(ctx, group) {
        station.ceiling_rps = None;
        (StationState::Unknown, args("state-cpu-delays-unread").with("inside", tenths(inside)))
    } else if let Some(others) = left {
        (StationState::Near, args("state-cpu-others").with("others", others * 100.0))
    } else if utilization >= NEAR_UTILIZATION {
        (StationState::Near, args("state-cpu-near"))
    } else {
        (StationState::Ok, args("state-cpu-ok"))
    };
    // Cores that others keep busy are not used by these servers: with their own share, the ceiling gives the rate of today. The threads' share is their own.
    if let Some(others) = others_share(ctx, group).filter(|others| *others > TENANTS_SHARE_MAX) {
        let own = (busy - others * limit).max(0.0);
        station.used = Some(own);
        if !is_of_threads {
            station.utilization = Some(own / limit.max(1.0));
        }
    }
    station.in_state(state, why)
}

/// Goodput if these threads ran all the time.
fn now_at(ctx: &Context<'_>, threads: &Threads) -> Option<Ceiling> {
    let answers_rps = ctx.answers_rps().filter(|_| ctx.can_divide_by_good())?;
    let rate = answers_rps * threads.serving as f64 / threads.running;
    ceiling_between(rate, rate, rate)
}
