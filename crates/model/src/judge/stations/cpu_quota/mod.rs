//! Station `cpu-quota`: the CPU time that a cgroup allows the path's servers. When it is used up they are stopped until the next period, even if cores are
//! idle.

use crate::facts::Context;
use crate::facts::cores;
use crate::facts::pool::{stop_hurts, waiting_at};
use crate::facts::quota::{NOTED_SHARE, Quota, file};
use crate::facts::traffic;
use crate::judge::finding::{Evidence, Finding};
use crate::judge::graph::{CouplingDef, Relation};
use crate::judge::id::FindingId;
use crate::judge::id::StationId;
use crate::judge::location::Location;
use crate::judge::station::{StationDef, StationReading};
use crate::output::message::Message;
use crate::output::report::{Confidence, StationKind, StationState};

pub(super) const STATION: StationDef = StationDef {
    remedies: &["raise-cpu-quota", "keep-cpu-quota"],
    graph: &[CouplingDef::found(FindingId::TIME_WAIT_SEARCH, FindingId::THROTTLED, Relation::Tier, "coupling-quota-search")],
    ..StationDef::new(StationId("cpu-quota"), StationKind::Rate, &[FindingId::THROTTLED], read, judge)
};

/// Share of the window's periods with a stop from which a cgroup lacks CPU time, and is not just cut short in bursts or at a start.
const THROTTLED_SHARE: f64 = 0.5;
/// Share of the quota from which a cgroup counts as at its limit. It is below one, because what a core was given and did not use is lost at the period's end,
/// the more so on kernels before 5.4 and with more cores (Documentation/scheduler/sched-bwc.rst).
const USED_SHARE: f64 = 0.75;
/// Share of the cores used by others that a larger quota may give to the servers: half, as between two groups of the same weight (sched(7)).
const CONTESTED_SHARE: f64 = 0.5;
/// Share of the cgroup's CPU time that the path's servers must use for the shortage to be theirs.
const OWN_SHARE: f64 = 0.5;
/// Share of the time that a cgroup must be stopped for the slowest hundredth of the requests to be waiting for it.
const TAIL_SHARE: f64 = 0.01;
/// How many times as long as alone half of the requests must take for a quota to be making them wait: longer than everything else that they do.
const WAIT_TIMES: f64 = 2.0;

/// How a quota harms the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Harm {
    /// It limits how many pass.
    Rate,
    /// They pass, but most wait for the next period longer than their own work takes.
    Wait,
    /// They pass, but the slowest take longer than the objective allows.
    Tail,
}

/// How a quota harms this traffic; `None` if nobody suffers from it or a larger one would change nothing.
pub(crate) fn harm(ctx: &Context<'_>, quota: &Quota<'_>) -> Option<Harm> {
    let throttled = quota.throttled?;
    let cores = cores::cores_of(ctx, &quota.tiers)?;
    // Cores that are busy with the servers themselves have nothing to give, and are then the limit. A larger quota gives no more than what the servers were
    // kept from.
    let gain = (cores.idle + CONTESTED_SHARE * cores.others).min(throttled.stopped_most());
    if throttled.periods == 0 || !is_room(&cores, gain) {
        return None;
    }
    let is_short = throttled.share >= THROTTLED_SHARE && quota.utilization()? >= USED_SHARE && is_theirs(ctx, quota);
    let Some(load) = &ctx.obs.load else {
        let harm = if is_short {
            Some(Harm::Rate)
        } else {
            let waiting = quota.tiers.iter().map(|tier| waiting_at(ctx, tier)).sum();
            (stop_hurts(ctx, waiting, throttled.stopped_share(cores.count)) && is_theirs(ctx, quota)).then_some(Harm::Wait)
        };
        return harm.filter(|_| traffic::was_seen(ctx));
    };
    if is_short && load.wants_more() {
        return Some(Harm::Rate);
    }
    // All requests pass, because the quota has just enough CPU time for them. Those that come after it is used up wait about as long as a stop takes.
    let (p50, p99) = (load.latency_us.p50, load.latency_us.p99);
    let half_stop_us = throttled.stop_us(cores.count) / 2.0;
    let wait_long = |alone_us: f64| p50 as f64 >= WAIT_TIMES * alone_us && p99 as f64 - alone_us >= half_stop_us;
    if is_short && half_stop_us > 0.0 && ctx.alone_us().is_some_and(wait_long) {
        return Some(Harm::Wait);
    }
    // Half of the requests meet the objective, and the rest is late by about the length of a stop.
    let slo_us = ctx.obs.request.slo_p99_us?;
    let is_late = p99 > slo_us && p50 <= slo_us && (p99 - p50) as f64 >= half_stop_us;
    (is_late && throttled.stopped_share(cores.count) >= TAIL_SHARE && is_theirs(ctx, quota)).then_some(Harm::Tail)
}

/// True if this many of the cores are more than what full cores leave idle.
fn is_room(cores: &cores::Cores, number: f64) -> bool {
    number > (1.0 - cores::SATURATED_UTILIZATION) * cores.count
}

/// The number of cores that the tiers of a quota may use.
pub(crate) fn cores_held(ctx: &Context<'_>, quota: &Quota<'_>) -> Option<f64> {
    cores::cores_of(ctx, &quota.tiers).map(|cores| cores.count)
}

/// True if the path's servers use most of the cgroup's CPU time, or wait for as long as they run. Others may share the cgroup.
fn is_theirs(ctx: &Context<'_>, quota: &Quota<'_>) -> bool {
    match (quota.used, quota.own) {
        (Some(used), Some(own)) => {
            own >= OWN_SHARE * used || cores::waiting(ctx, &quota.tiers).is_some_and(|waiting| own > 0.0 && waiting >= own)
        }
        _ => true,
    }
}

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    ctx.quotas().iter().map(|quota| reading(ctx, quota)).collect()
}

/// A message with everything known about a quota.
fn args(ctx: &Context<'_>, id: &'static str, quota: &Quota<'_>) -> Message {
    let message = Message::new(id)
        .with("tier", ctx.owner_name(&quota.tiers.as_slice().into()))
        .with("cgroup", quota.id.path.as_str())
        .with("limit", quota.limit)
        .with("quota", quota.now.quota_us.unwrap_or(0) as f64 / 1e3)
        .with("period", quota.now.period_us as f64 / 1e3)
        .with("used", quota.used.unwrap_or(0.0));
    let (periods, of, share) = quota.throttled.map_or((0, 0, 0.0), |throttled| (throttled.periods, throttled.of, throttled.share));
    let is_over = quota.used.is_some_and(|used| used > quota.limit);
    message.with("periods", periods).with("of", of).with("share", share * 100.0).with("is_over", if is_over { "yes" } else { "no" })
}

fn at(quota: &Quota<'_>) -> Location {
    Location { cgroup: Some(quota.now.dir.clone()), ..Location::default() }
}

fn reading(ctx: &Context<'_>, quota: &Quota<'_>) -> StationReading {
    let mut station = STATION.reading(quota.tiers.as_slice(), at(quota), "cores");
    station.limit = Some(quota.limit);
    station.used = quota.used;
    station.utilization = quota.utilization();
    station.waiting = cores::waiting(ctx, &quota.tiers);
    station.ceiling_rps = quota.used.and_then(|busy| {
        let others = quota.others();
        let clocked = if quota.now.used_ns.is_some() { (busy - others).max(0.0) } else { 0.0 };
        // Time is handed out in slices to each core, and a group may use more than its quota by what it has of them.
        cores::ceiling_of(ctx, &cores::CoreUse { limit: quota.limit.max(busy), busy, others, clocked })
    });
    let args = |id: &'static str| args(ctx, id, quota);
    let (state, why) = match (quota.throttled, quota.utilization()) {
        (None, _) | (_, None) => (StationState::Unknown, args("state-cpu-quota-unknown")),
        _ if harm(ctx, quota).is_some() => (StationState::Saturated, args("state-cpu-quota-throttled")),
        (Some(throttled), _) if throttled.share >= NOTED_SHARE => (StationState::Near, args("state-cpu-quota-harmless")),
        (_, Some(share)) if share >= cores::NEAR_UTILIZATION => (StationState::Near, args("state-cpu-quota-near")),
        _ => (StationState::Ok, args("state-cpu-quota-ok")),
    };
    station.in_state(state, why)
}

fn judge(ctx: &Context<'_>, _: &[StationReading]) -> Vec<Finding> {
    ctx.quotas().iter().filter_map(|quota| Some(finding(ctx, quota, harm(ctx, quota)?))).collect()
}

fn finding(ctx: &Context<'_>, quota: &Quota<'_>, harm: Harm) -> Finding {
    let explanation = match harm {
        Harm::Rate => "finding-cgroup-cpu-throttled-explanation",
        Harm::Wait => "finding-cgroup-cpu-throttled-explanation-wait",
        Harm::Tail => "finding-cgroup-cpu-throttled-explanation-tail",
    };
    let are_idle = cores::cores_of(ctx, &quota.tiers).is_none_or(|cores| is_room(&cores, cores.idle));
    let title = if are_idle { "finding-cgroup-cpu-throttled-title" } else { "finding-cgroup-cpu-throttled-title-shared" };
    Finding {
        confidence: if ctx.obs.load.is_some() { Confidence::High } else { Confidence::Medium },
        title: args(ctx, title, quota),
        evidence: proofs(ctx, quota, harm),
        explanation: vec![args(ctx, explanation, quota)],
        ..STATION.finding(FindingId::THROTTLED, quota.tiers.as_slice(), at(quota))
    }
}

fn proofs(ctx: &Context<'_>, quota: &Quota<'_>, harm: Harm) -> Vec<Evidence> {
    let place = |name: &str| format!("{}/{name}", quota.now.dir);
    let throttled = quota.throttled.map(|throttled| throttled.periods as f64);
    let mut proofs = vec![
        Evidence::new(args(ctx, "evidence-cpu-quota-throttled", quota), place("cpu.stat"), throttled),
        Evidence::new(args(ctx, "evidence-cpu-quota-limit", quota), place(file(quota.id)), Some(quota.limit)),
    ];
    if let Some(cores) = cores::cores_of(ctx, &quota.tiers) {
        let text = Message::new("evidence-cpu-quota-idle").with("idle", cores.idle).with("others", cores.others).with("count", cores.count);
        proofs.push(Evidence::new(text, "/proc/stat", Some(cores.idle)));
    }
    if let Some(waiting) = cores::waiting(ctx, &quota.tiers) {
        let text = Message::new("evidence-cpu-quota-waiting").with("waiting", waiting);
        proofs.push(Evidence::new(text, "/proc/PID/schedstat", Some(waiting)));
    }
    if let Some(load) = &ctx.obs.load {
        let id = match harm {
            Harm::Rate => "evidence-cpu-quota-harm",
            Harm::Wait => "evidence-cpu-quota-wait",
            Harm::Tail => "evidence-cpu-quota-tail",
        };
        let text = Message::new(id).with("goodput", load.goodput_rps()).with("p50", load.latency_us.p50 as f64 / 1e3);
        let text = text.with("p99", load.latency_us.p99 as f64 / 1e3);
        let text = text.with("alone", ctx.alone_us().unwrap_or(0.0) / 1e3);
        let text = text.with("slo", ctx.obs.request.slo_p99_us.unwrap_or(0) as f64 / 1e3);
        proofs.push(Evidence::new(text, "load", Some(load.goodput_rps())));
    }
    proofs
}
