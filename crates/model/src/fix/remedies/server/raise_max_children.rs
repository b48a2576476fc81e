//! Remedy `raise-max-children`: as many workers as the load asks for at once, as far as cores and memory allow.

use super::demand::Demand;
use super::servers::{self, is_bound_to};
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::pool::{CONNECTIONS, Pool, PoolKind, PoolMemory, PoolSetting, process_max};
use crate::fix::change::{Activation, ServerSetting};
use crate::fix::remedies::definition::{Proposal, RemedyDef};
use crate::fix::remedy::Signal;
use crate::judge::id::FindingId;
use crate::judge::station::StationReading;
use crate::judge::stations::room_untold;
use crate::observation::PhpFpmPool;
use crate::output::message::Message;
use crate::predict::Lift;

pub(in crate::fix::remedies) const REMEDY: RemedyDef =
    RemedyDef { id: "raise-max-children", finding: FindingId::POOL_EXHAUSTED, activation: Activation::Reload, propose };

/// Share of the available memory that the new workers may take. The rest is for their growth and for other processes.
const MEMORY_SHARE: f64 = 0.5;
/// Largest number of workers proposed. Each is a process, and beyond a few thousand their scheduling is a cost of its own.
const WORKERS_MAX: f64 = 2_000.0;

fn propose(ctx: &Context<'_>, placed: &StationReading) -> Option<Proposal> {
    let tier = ctx.only_tier(&placed.owner)?;
    let workers = placed.limit?;
    // How many connections an event loop needs per request is not known, so as many as came are taken.
    let is_loops = placed.unit == CONNECTIONS;
    let size = match is_loops {
        true => Size { demand: Demand::loops(ctx, tier, placed, workers), memory: None },
        false => size(ctx, tier, placed, workers),
    };
    let to = size.demand.workers as u32;
    let common = process_max(ctx, tier);
    let (change, from, risk) = match pool_of(ctx, tier) {
        // Its own limit is not the one that it is at.
        Some(_) if common.is_some() => (Vec::new(), workers as u32, "remedy-raise-max-children-risk-other"),
        Some((server, pool)) => {
            let from = pool.max_children.value;
            let setting = ServerSetting::PhpFpmMaxChildren { pool: pool.name.clone() };
            let change = server.change(setting, &from.to_string(), &to.to_string(), Activation::Reload);
            (vec![change], from, "remedy-raise-max-children-risk")
        }
        // A pool of another kind of server: only its owner knows how to set its size.
        None if is_loops => (Vec::new(), workers as u32, "remedy-raise-max-children-risk-loops"),
        None if has_threads(ctx, tier) => (Vec::new(), workers as u32, "remedy-raise-max-children-risk-threads"),
        None => (Vec::new(), workers as u32, "remedy-raise-max-children-risk-other"),
    };
    if to <= from {
        return None;
    }
    let behind = Pool::of(ctx, tier).and_then(|pool| room_untold(ctx, tier, &pool)).map(|(upstream, _)| upstream);
    let text = match change.is_empty() {
        true if common.is_some() => "remedy-raise-max-children-text-common",
        true if behind.is_some() => "remedy-raise-max-children-text-loops-behind",
        true if is_loops => "remedy-raise-max-children-text-loops",
        true => "remedy-raise-max-children-text-other",
        false => "remedy-raise-max-children-text",
    };
    let streaming = Pool::of(ctx, tier).map_or(0, |pool| pool.streaming) as u32;
    let sum = ctx.text(size.demand.sum);
    let sum = match streaming {
        0 => sum,
        _ => ctx.text(Message::new("sum-workers-streaming").with("sum", sum).with("streaming", streaming)),
    };
    let text = Message::new(text)
        .with("from", from + streaming)
        .with("to", to + streaming)
        .with("tier", tier.name.as_str())
        .with("unit", placed.unit);
    let text = text.with("sum", sum).with("setting", setting(ctx, tier, to + streaming));
    let text = text.with("upstream", behind.unwrap_or_default()).with("more", to.saturating_sub(from));
    let text = common.iter().fold(text, |text, most| text.with("common", most.value).with("where", most.origin.to_string()));
    Some(Proposal {
        reload: None,
        change,
        text,
        risk: cost(risk, size.memory, to - from),
        signal: Signal::Goodput,
        lifts: Lift::Limit(f64::from(to)),
    })
}

/// What to write where only the command line is known: the setting's name with its value; else where to look for it.
fn setting(ctx: &Context<'_>, tier: &Tier, to: u32) -> Message {
    let known = Pool::of(ctx, tier).and_then(|pool| PoolSetting::of(ctx, tier, &pool));
    let Some(PoolSetting { name, processes }) = known else { return Message::new("remedy-raise-max-children-setting-unknown") };
    let each = (f64::from(to) / processes as f64).ceil();
    Message::new("remedy-raise-max-children-setting").with("name", name).with("value", each).with("processes", processes as f64)
}

/// The pool behind the tier's listeners, if exactly one pool fits.
fn pool_of<'a>(ctx: &Context<'a>, tier: &Tier) -> Option<(servers::Server<'a>, &'a PhpFpmPool)> {
    let mut found = Vec::new();
    for server in servers::of(ctx, tier) {
        let Some(php_fpm) = server.view().php_fpm() else { continue };
        let here = |pool: &&PhpFpmPool| tier.listeners.iter().any(|placed| is_bound_to(&pool.listen, &placed.listener.address));
        let pools: Vec<&PhpFpmPool> = php_fpm.pools.iter().filter(here).collect();
        if let [pool] = pools[..] {
            found.push((server, pool));
        }
    }
    let only = found.pop()?;
    found.is_empty().then_some(only)
}

/// A pool's size and its cost.
struct Size {
    demand: Demand,
    /// What one worker takes; nothing if that is not known, or if it has no memory of its own.
    memory: Option<PoolMemory>,
}

/// As many workers as are needed, but not more than keep the cores busy or fit into memory.
fn size(ctx: &Context<'_>, tier: &Tier, placed: &StationReading, workers: f64) -> Size {
    let demand = Demand::of(ctx, tier, placed, workers).at_most(WORKERS_MAX, "sum-workers-most");
    // Threads share the memory of their process.
    if has_threads(ctx, tier) {
        return Size { demand, memory: None };
    }
    Size { demand: demand.at_most(by_memory(ctx, tier, workers), "sum-workers-memory"), memory: PoolMemory::of(ctx, tier) }
}

fn has_threads(ctx: &Context<'_>, tier: &Tier) -> bool {
    Pool::of(ctx, tier).is_some_and(|pool| pool.kind == PoolKind::Threads)
}

/// The risk, with the memory that so many more workers take.
pub(super) fn cost(risk: &'static str, memory: Option<PoolMemory>, more: u32) -> Message {
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    let each = memory.map_or(0.0, |memory| memory.worker_bytes as f64);
    let measure = memory.map_or("unread", |memory| memory.measure.name());
    Message::new(risk).with("mib", mib(f64::from(more) * each)).with("each", mib(each)).with("measure", measure)
}

/// The number of workers that the host has memory for, in a tier that has `workers` now.
pub(super) fn by_memory(ctx: &Context<'_>, tier: &Tier, workers: f64) -> f64 {
    match ctx.obs.memory.last().zip(PoolMemory::of(ctx, tier)) {
        Some((host, pool)) => workers + MEMORY_SHARE * host.available as f64 / pool.worker_bytes as f64,
        None => f64::MAX,
    }
}
