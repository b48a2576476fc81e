//! Station `load-generator`: the client that offers the load must not be the limit itself.

use crate::facts::Context;
use crate::facts::GOOD_MIN;
use crate::facts::ceiling::ceiling_between;
use crate::facts::cores::limiting;
use crate::facts::owner::Owner;
use crate::judge::finding::{Evidence, Finding};
use crate::judge::graph::{CouplingDef, Relation, Standing};
use crate::judge::id::FindingId;
use crate::judge::id::StationId;
use crate::judge::location::Location;
use crate::judge::station::{StationDef, StationReading};
use crate::ledger::tenths;
use crate::observation::load::{GENERATOR_LIMITED, GeneratorThread, LoadResult, Loop};
use crate::output::message::Message;
use crate::output::report::{Confidence, StationKind, StationState};

/// A server that refuses requests quickly keeps a generator busy, because it asks again at once.
const fn asked_again(cause: FindingId) -> CouplingDef {
    CouplingDef::judged(cause, FindingId::GENERATOR_LIMITED, Relation::Path, "coupling-generator-asks-again")
}

pub(super) const STATION: StationDef = StationDef {
    graph: &[
        asked_again(FindingId::CONNECTIONS_EXHAUSTED),
        asked_again(FindingId::ACCEPT_QUEUE_FULL),
        asked_again(FindingId::PORTS_EXHAUSTED),
        asked_again(FindingId::LIMITED_BY_CONFIG),
        asked_again(FindingId::CLOSE_RACE),
    ],
    standing: |ctx, _, _| {
        let asks =
            ctx.obs.load.as_ref().is_some_and(|load| matches!(limit(utilization(ctx, load), load), Some(Limit::Cpu)) && asks_again(load));
        // Who refuses is not known then, and why.
        let unread = ctx.path.tiers.iter().find(|tier| asks && !tier.is_known());
        match unread {
            Some(tier) => Standing::Behind(Message::new("finding-load-generator-limited-unread").with("tier", tier.name.as_str())),
            None if asks && most_fail_at_once(ctx) => Standing::Behind(Message::new("finding-load-generator-limited-refused")),
            None if asks => Standing::Perhaps,
            None => at_full_server(ctx).map_or(Standing::Alone, Standing::Behind),
        }
    },
    ..StationDef::new(StationId("load-generator"), StationKind::Rate, &[FindingId::GENERATOR_LIMITED], read, judge)
};

/// Share from which the headroom is reported as small.
const NEAR_UTILIZATION: f64 = 0.75;
/// Share of an open loop's sends that may be late before its rate counts as not offered.
const LATE_SHARE: f64 = 0.05;

/// Why the generator was the limit.
enum Limit {
    Cpu,
    Late(u64),
    Local(u64),
}

fn read(ctx: &Context<'_>) -> Vec<StationReading> {
    let Some(load) = &ctx.obs.load else { return Vec::new() };
    let busy = utilization(ctx, load);
    let cores = load.threads.len() as f64;
    let cpus: Vec<u32> = load.threads.iter().flat_map(|thread| thread.cpus.iter().copied()).collect();
    let at = Location { cores: Some(cpus), ..Location::in_netns(ctx.obs.request.client_netns) };
    let mut station = STATION.reading(Owner::Client, at, "cores");
    station.limit = Some(cores);
    station.used = Some(busy * cores);
    station.utilization = Some(busy);
    // What the generator itself could send, counted as answers: once nothing fails, all of its requests get good answers.
    let most = load.throughput_rps() / busy;
    station.ceiling_rps = if load.good >= GOOD_MIN { ceiling_between(most, most, most) } else { None };
    station.refused_per_s = Some(load.errors.local() as f64 / (load.duration_us.max(1) as f64 / 1e6));
    let (state, why) = match limit(busy, load) {
        Some(Limit::Local(count)) => (StationState::Refusing, Message::new("state-generator-local").with("count", count)),
        Some(Limit::Cpu) => (StationState::Saturated, Message::new("state-generator-cpu").with("share", busy * 100.0)),
        Some(Limit::Late(count)) => (StationState::Saturated, Message::new("state-generator-late").with("count", count)),
        None if busy >= NEAR_UTILIZATION => (StationState::Near, Message::new("state-generator-near").with("share", busy * 100.0)),
        None => (StationState::Ok, Message::new("state-generator-ok").with("share", busy * 100.0)),
    };
    vec![station.in_state(state, why)]
}

fn judge(ctx: &Context<'_>, read: &[StationReading]) -> Vec<Finding> {
    let (Some(placed), Some(load)) = (read.first(), &ctx.obs.load) else { return Vec::new() };
    let busy = placed.utilization.unwrap_or(0.0);
    let Some(limit) = limit(busy, load) else { return Vec::new() };
    let proof = match limit {
        Limit::Cpu => {
            let text = Message::new("evidence-generator-cpu").with("share", busy * 100.0).with("threads", load.threads.len() as u64);
            Evidence::new(text, "CLOCK_THREAD_CPUTIME_ID, /proc/stat", Some(busy))
        }
        Limit::Late(count) => {
            let text = Message::new("evidence-generator-late").with("count", count).with("of", load.requests);
            Evidence::new(text, "load", Some(count as f64))
        }
        Limit::Local(count) => {
            let errors = load.errors;
            let text = Message::new("evidence-generator-local")
                .with("ports", errors.local_ports)
                .with("files", errors.local_files)
                .with("memory", errors.local_memory);
            Evidence::new(text, "load", Some(count as f64))
        }
    };
    vec![Finding {
        confidence: Confidence::High,
        title: Message::new("finding-load-generator-limited-title"),
        evidence: vec![proof],
        explanation: vec![Message::new("finding-load-generator-limited-explanation")],
        ..placed.finding(FindingId::GENERATOR_LIMITED)
    }]
}

/// Why a busy generator is not the limit: most requests wait at servers whose cores or threads have no more time either. Those that the generator held back would stand at the client.
fn at_full_server(ctx: &Context<'_>) -> Option<Message> {
    let load = ctx.obs.load.as_ref().filter(|load| matches!(limit(utilization(ctx, load), load), Some(Limit::Cpu)))?;
    let full: Vec<usize> = limiting(ctx).iter().flat_map(|limiting| limiting.tiers.iter().map(|tier| tier.id.0)).collect();
    let account = ctx.account()?;
    let (waiting, under_way) = (account.before_cores(|tier| full.contains(&tier)), account.under_way());
    let told = Message::new("finding-load-generator-limited-server").with("waiting", tenths(waiting)).with("under_way", tenths(under_way));
    let told = told.with("share", utilization(ctx, load) * 100.0);
    (2.0 * waiting > under_way).then_some(told)
}

/// True if failures kept a closed loop's cores busy: a refusal comes back at once, and the next request goes out at once.
fn asks_again(load: &LoadResult) -> bool {
    matches!(load.shape, Loop::Closed { .. }) && load.good * 2 < load.requests
}

/// True if most requests failed without a wait: what times out is not asked again at once.
fn most_fail_at_once(ctx: &Context<'_>) -> bool {
    ctx.obs.load.as_ref().is_some_and(|load| {
        let waited = load.errors.connect_timeout + load.errors.response_timeout + load.errors.never_sent + load.errors.local();
        load.requests.saturating_sub(load.good).saturating_sub(waited) * 2 > load.requests
    })
}

fn limit(busy: f64, load: &LoadResult) -> Option<Limit> {
    let sent = load.requests.saturating_sub(load.errors.never_sent);
    let late = load.late + load.errors.never_sent;
    let open = matches!(load.shape, Loop::Open { .. });
    if load.errors.local() * 100 > load.requests {
        Some(Limit::Local(load.errors.local()))
    } else if busy >= GENERATOR_LIMITED {
        Some(Limit::Cpu)
    } else if open && late as f64 > LATE_SHARE * load.requests as f64 && busy >= NEAR_UTILIZATION && sent > 0 {
        // Late sends alone may come from a server that holds every connection. If the generator is busy, they are its own fault.
        Some(Limit::Late(late))
    } else {
        None
    }
}

/// Share of its time that the longest-waiting thread was ready to run but had no core; `None` if that could not be read.
pub(crate) fn waited(ctx: &Context<'_>) -> Option<f64> {
    let share = |thread: &GeneratorThread| Some(thread.wait_us? as f64 / thread.wall_us.max(1) as f64);
    ctx.obs.load.iter().flat_map(|load| &load.threads).filter_map(share).reduce(f64::max)
}

/// The busiest thread's utilization of its CPUs, including softirq time of those cores that was not already charged to it.
///
/// Without exact accounting the kernel charges softirqs to whatever was running, so the thread's own clock has most of them. The time of `ksoftirqd` on a
/// core of the thread's own is added.
fn utilization(ctx: &Context<'_>, load: &LoadResult) -> f64 {
    let share = |thread: &GeneratorThread| {
        let own = thread.cpu_us as f64 / thread.wall_us.max(1) as f64;
        let softirq: f64 = if thread.cpus.len() == 1 { thread.cpus.iter().map(|&cpu| ksoftirqd_share(ctx, cpu)).sum() } else { 0.0 };
        (own + softirq).min(1.0)
    };
    load.threads.iter().map(share).fold(0.0, f64::max)
}

/// Share of the window in which a core ran its `ksoftirqd`.
fn ksoftirqd_share(ctx: &Context<'_>, cpu: u32) -> f64 {
    let Some((first, last, elapsed_us)) = ctx.obs.ksoftirqd.get(&cpu).and_then(|series| ctx.inside(series)) else { return 0.0 };
    match (first.run_ns, last.run_ns) {
        (Some(before), Some(after)) => after.saturating_sub(before) as f64 / 1e3 / elapsed_us as f64,
        _ => {
            let ticks_per_s = ctx.obs.kernel.last().map_or(100, |kernel| kernel.ticks_per_s).max(1);
            let ticks = (last.user_ticks + last.system_ticks).saturating_sub(first.user_ticks + first.system_ticks);
            ticks as f64 / ticks_per_s as f64 / (elapsed_us as f64 / 1e6)
        }
    }
}
