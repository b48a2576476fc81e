//! Requests that come many at once to workers, threads or connections of which there are fewer: all of these are taken then, and most of the requests' time passes before them.

use std::collections::BTreeMap;

use crate::facts::Context;
use crate::facts::path::{Endpoint, Tier};
use crate::facts::pool::{AT_MOST_SHARE, MOST, Pool, PoolKind, STEADY_SHARE, WORKERS_MIN, least_taken, looks};
use crate::ledger::{Account, Calls};
use crate::output::report::LedgerPlaceKind;

/// A place that is full whenever requests wait before it.
pub(super) struct FullAtTimes<'a> {
    pub(super) tier: &'a Tier,
    /// The server that it asks on so many connections; `None` if the tier itself works on no more.
    pub(super) remote: Option<Endpoint>,
    /// Requests that go on at once, at most.
    pub(super) at_once: usize,
    /// Share of the requests' time there that passes before it.
    pub(super) share: f64,
}

impl<'a> FullAtTimes<'a> {
    /// The one before which most of its requests' time passes. `None` if there is none, or less than half of their time does: as in front of any place that is used much.
    pub(super) fn of(ctx: &Context<'a>, account: &Account) -> Option<Self> {
        // What computes is as many as have cores, whatever its number.
        let tiers = ctx.path.tiers.iter().filter(|tier| !computes(account, tier));
        let workers = tiers.filter_map(|tier| Self::of_workers(ctx, tier).or_else(|| Self::of_threads(account, tier)));
        let connections = account.calls().iter().filter_map(|calls| Self::of_calls(ctx, account, calls));
        workers.chain(connections).filter(|full| full.share > MOST).max_by(|a, b| a.share.total_cmp(&b.share))
    }

    /// Processes of which each serves one connection, the others waiting in the accept queue.
    fn of_workers(ctx: &Context<'a>, tier: &'a Tier) -> Option<Self> {
        let pool = Pool::of(ctx, tier).filter(|pool| pool.kind == PoolKind::Processes && !pool.grows && pool.workers >= WORKERS_MIN)?;
        let taken = pool.busy.iter().filter(|busy| **busy >= pool.workers).count() as f64 / pool.busy.len().max(1) as f64;
        let waited = pool.queued.iter().filter(|queued| **queued > 0).count();
        // Queue and workers are not read at the same moments. Nobody waits in the queue while a worker is free.
        let is_full = looks::are_enough(waited) && taken >= MOST * pool.waited_share;
        let share = pool.waiting / (pool.waiting + pool.busy_mean());
        is_full.then_some(Self { tier, remote: None, at_once: pool.workers, share })
    }

    /// Threads behind a selector, before which the others' requests stand unread.
    fn of_threads(account: &Account, tier: &'a Tier) -> Option<Self> {
        let samples: Vec<(f64, f64)> = account.served_and_unread(tier).iter().map(|(_, served, unread)| (*served, *unread)).collect();
        let at_once = full_at(&samples)?;
        Some(Self { tier, remote: None, at_once, share: share_waiting(&samples) })
    }

    /// Connections to a server that the tier's requests need, before which the others wait inside the tier.
    fn of_calls(ctx: &Context<'a>, account: &Account, calls: &Calls) -> Option<Self> {
        let tier = &ctx.path.tiers[calls.tier];
        let ended = account.rate_rps()? * ctx.seconds();
        let inside: BTreeMap<u64, f64> = account.served_and_unread(tier).iter().map(|(at_us, served, _)| (*at_us, *served)).collect();
        let both = calls.used_at().filter_map(|(at_us, used)| Some((used, (inside.get(&at_us)? - used).max(0.0))));
        let samples: Vec<(f64, f64)> = both.collect();
        let at_once = full_at(&samples)?;
        // Of more connections some were free, and what half of the requests do without holds none of them up.
        let is_needed = at_once as f64 >= calls.usual().round() && calls.answered as f64 >= MOST * ended;
        is_needed.then_some(Self { tier, remote: Some(calls.remote), at_once, share: share_waiting(&samples) })
    }
}

/// True if most of the requests that a tier works on are on a core or wait for one.
fn computes(account: &Account, tier: &Tier) -> bool {
    let at = |is_it: fn(LedgerPlaceKind) -> bool| account.at_places(tier.id.0, is_it);
    let on_cores = at(|place| matches!(place, LedgerPlaceKind::Cpu | LedgerPlaceKind::Ready));
    on_cores > at(|place| place == LedgerPlaceKind::Waiting)
}

/// The number that goes on, by samples of it and of those that wait, if it is the same whenever somebody waits, and never more. `None` if it is not, or if too seldom somebody waited. A
/// single one may be an event loop, or carry the requests of all.
fn full_at(samples: &[(f64, f64)]) -> Option<usize> {
    let rounded = |going: &f64| going.round() as usize;
    let mut in_waiting: Vec<usize> = samples.iter().filter(|(_, waiting)| *waiting >= 1.0).map(|(going, _)| rounded(going)).collect();
    if !looks::are_enough(in_waiting.len()) {
        return None;
    }
    in_waiting.sort_unstable();
    let place = (AT_MOST_SHARE * in_waiting.len() as f64).ceil() as usize;
    let most = in_waiting.get(place.saturating_sub(1)).copied().filter(|most| *most >= WORKERS_MIN)?;
    let taken = in_waiting.iter().filter(|going| **going >= least_taken(most)).count();
    let within = samples.iter().filter(|(going, _)| rounded(going) <= most).count();
    let is_it = taken as f64 >= STEADY_SHARE * in_waiting.len() as f64 && within as f64 >= AT_MOST_SHARE * samples.len() as f64;
    is_it.then_some(most)
}

/// Share of the time that passes in waiting.
fn share_waiting(samples: &[(f64, f64)]) -> f64 {
    let (going, waiting) = samples.iter().fold((0.0, 0.0), |(going, waiting), sample| (going + sample.0, waiting + sample.1));
    waiting / (going + waiting)
}
