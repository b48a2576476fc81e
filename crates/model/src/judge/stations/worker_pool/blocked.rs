//! Finding `workers-blocked-on-upstream`: the workers of a full pool wait for another server, so additional workers would wait too.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::path::{Tier, answers};
use crate::facts::pool::looks::{self, Peer};
use crate::facts::pool::{Pool, computes};
use crate::facts::sum::mean;
use crate::facts::{Context, TierId};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::graph::Standing;
use crate::judge::id::FindingId;
use crate::judge::location::{EdgeId, Location};
use crate::judge::station::{StationDef, StationReading};
use crate::observation::{ListenerAddress, NetnsId, ThreadCalls};
use crate::output::message::Message;
use crate::output::report::Confidence;

/// Share of the waiting looks from which one of several servers counts.
const PART_MIN: f64 = 0.25;
/// How many times as long as a single answer a request may hold its worker if the server behind is not slowed by the load. It allows for chance and is less
/// than two requests taking turns.
const ALONE_TIMES: f64 = 1.3;
/// Share of its workers below which a pool has workers to spare.
const SPARE_SHARE: f64 = 0.8;

/// A server that workers wait for.
struct Wait {
    /// Its address.
    address: ListenerAddress,
    /// Its tier, if it is on this host.
    tier: Option<usize>,
    /// Looks at which a worker was waiting for it.
    looks: usize,
}

/// The servers that a pool's workers wait for.
pub(super) struct Blocked {
    /// Looks at busy workers.
    looks: usize,
    /// The servers with a considerable part of the waits, the most frequent first.
    waits: Vec<Wait>,
}

impl Blocked {
    /// The servers that most of the busy workers wait for, if they are what holds the pool back.
    pub(super) fn of(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        let blocked = Self::seen(ctx, tier)?;
        let own = tier.id.0;
        // A pool that calls itself, even indirectly, waits for its own workers.
        let circles = blocked.tiers(ctx).contains(&own);
        // A server with spare workers takes its time for each request, however many there are.
        let spare = blocked.waits.iter().all(|wait| wait.tier.is_some_and(|index| has_spare(ctx, &ctx.path.tiers[index])));
        (!circles && !spare && !is_as_quick_as_alone(ctx, tier)).then_some(blocked)
    }

    fn seen(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        let mut counts: BTreeMap<(NetnsId, ListenerAddress), usize> = BTreeMap::new();
        let busy = looks::at_busy(ctx, tier);
        let looks = busy.len();
        for peer in busy {
            if let Some(Peer::Upstream(netns, address)) = peer {
                *counts.entry((netns, address)).or_insert(0) += 1;
            }
        }
        let waiting: usize = counts.values().sum();
        if !looks::are_most(waiting, looks) {
            return None;
        }
        let part = |((netns, address), looks): ((NetnsId, ListenerAddress), usize)| {
            let wait = Wait { tier: tier_at(ctx, netns, &address), address, looks };
            (looks as f64 >= PART_MIN * waiting as f64).then_some(wait)
        };
        let mut waits: Vec<Wait> = counts.into_iter().filter_map(part).collect();
        waits.sort_by_key(|wait| std::cmp::Reverse(wait.looks));
        (!waits.is_empty()).then_some(Self { looks, waits })
    }

    /// The tiers that the pool waits for, with all the tiers that those call.
    pub(super) fn tiers(&self, ctx: &Context<'_>) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut next: Vec<usize> = self.waits.iter().filter_map(|wait| wait.tier).collect();
        while let Some(index) = next.pop() {
            if reached.insert(index) {
                next.extend(&ctx.path.tiers[index].upstreams);
            }
        }
        reached
    }

    pub(super) fn finding(&self, station: &StationDef, ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> Finding {
        let upstream = self.first(ctx);
        let args = |id: &'static str| {
            let message = Message::new(id).with("tier", tier.name.as_str()).with("upstream", upstream.as_str());
            message.with("workers", pool.workers as f64)
        };
        let door = self.door(ctx);
        let first = &self.waits[0];
        let edge = match first.tier {
            Some(index) => EdgeId::Tiers(tier.id, TierId(index)),
            None => EdgeId::Elsewhere(tier.id, first.address.clone()),
        };
        let at = Location { edge: Some(edge), ..Location::in_netns(tier.netns) };
        Finding {
            confidence: if door.is_some() { Confidence::High } else { Confidence::Medium },
            title: args("finding-workers-blocked-on-upstream-title"),
            evidence: self.looked(ctx, pool).into_iter().chain(door).collect(),
            explanation: vec![args("finding-workers-blocked-on-upstream-explanation")],
            ..station.finding(FindingId::POOL_BLOCKED, tier, at)
        }
    }

    /// The name of the server that most of them wait for.
    fn first(&self, ctx: &Context<'_>) -> String {
        let first = &self.waits[0];
        first.tier.map_or_else(|| first.address.to_string(), |index| ctx.path.tiers[index].name.clone())
    }

    fn looked(&self, ctx: &Context<'_>, pool: &Pool) -> Vec<Evidence> {
        let mut proofs = Vec::new();
        for wait in &self.waits {
            let text = Message::new("evidence-workers-blocked").with("count", wait.looks as f64).with("looks", self.looks as f64);
            let text = text.with("upstream", wait.address.to_string());
            proofs.push(Evidence::new(text, "/proc/PID/syscall, sock_diag", Some(wait.looks as f64)));
        }
        if let Some(answers_rps) = ctx.answers_rps().filter(|rate| *rate > 0.0) {
            let share = self.waits.iter().map(|wait| wait.looks).sum::<usize>() as f64 / self.looks as f64;
            let ms = 1e3 * pool.workers as f64 / answers_rps;
            let text = Message::new("evidence-workers-blocked-time").with("ms", ms).with("wait", ms * share);
            proofs.push(Evidence::new(text, "load", Some(ms * share)));
        }
        proofs
    }

    /// Evidence of requests that queue at the upstream: it is not just slow, it gets more requests than it accepts.
    fn door(&self, ctx: &Context<'_>) -> Option<Evidence> {
        let upstream = &ctx.path.tiers[self.waits[0].tier?];
        let mean = mean(ctx.queued(upstream));
        let text = Message::new("evidence-workers-blocked-door").with("waiting", mean).with("upstream", upstream.name.as_str());
        (mean >= 1.0).then(|| Evidence::new(text, "sock_diag", Some(mean)))
    }
}

/// If workers wait for a server that computes, the cores are the limit. Those are no fault and so no cause, and the verdict names them as the limit.
pub(super) fn standing(ctx: &Context<'_>, finding: &Finding, _: Option<&StationReading>) -> Standing {
    let tier = ctx.only_tier(&finding.owner).filter(|_| finding.id == FindingId::POOL_BLOCKED);
    let seen = tier.and_then(|tier| Some((Blocked::of(ctx, tier)?, Pool::of(ctx, tier)?)));
    match seen.filter(|(blocked, _)| blocked.tiers(ctx).into_iter().any(|index| computes(ctx, &ctx.path.tiers[index]))) {
        Some((blocked, pool)) => {
            let why = Message::new("finding-workers-blocked-on-upstream-symptom").with("tier", ctx.owner_name(&finding.owner));
            Standing::Behind(why.with("upstream", blocked.first(ctx)).with("workers", pool.workers as f64))
        }
        None => Standing::Alone,
    }
}

/// The tier of the path that answers at an address called from a namespace.
fn tier_at(ctx: &Context<'_>, from: NetnsId, address: &ListenerAddress) -> Option<usize> {
    let here = |tier: &Tier| {
        tier.listeners.iter().any(|placed| match address {
            ListenerAddress::Tcp(ip, port) => {
                ctx.obs.netns.get(&placed.netns).is_some_and(|view| answers(view, placed.netns == from, &placed.listener, *ip, *port))
            }
            ListenerAddress::Unix(_) => placed.listener.address == *address,
        })
    };
    ctx.path.tiers.iter().position(here)
}

/// True if a request holds a worker no longer than a whole answer takes with no other request under way. Then the server that it waits for takes its time for
/// each request and has room for more.
fn is_as_quick_as_alone(ctx: &Context<'_>, tier: &Tier) -> bool {
    let Some(answers_rps) = ctx.answers_rps().filter(|rate| ctx.can_divide_by_good() && *rate > 0.0) else { return false };
    let held_us = |pool: Pool| 1e6 * pool.busy_mean() / answers_rps;
    Pool::of(ctx, tier).zip(ctx.alone_us()).is_some_and(|(pool, alone_us)| held_us(pool) <= ALONE_TIMES * alone_us)
}

/// True if a tier is a pool that calls nobody, with free workers and nobody waiting for one.
fn has_spare(ctx: &Context<'_>, tier: &Tier) -> bool {
    let spare = |pool: Pool| pool.waiting < 1.0 && pool.busy_mean() < SPARE_SHARE * pool.workers as f64;
    tier.upstreams.is_empty() && (Pool::of(ctx, tier).is_some_and(spare) || has_spare_threads(ctx, tier))
}

/// True if several threads of a tier wait for connections at every look while others serve, and most of those that serve wait for no lock and so not for each
/// other. Several such threads show a pool whose threads accept connections themselves; with one thread per connection a single thread accepts.
fn has_spare_threads(ctx: &Context<'_>, tier: &Tier) -> bool {
    let processes = tier.pids.iter().filter_map(|pid| ctx.obs.processes.get(pid));
    let looks: Vec<ThreadCalls> = processes.flat_map(|process| ctx.in_window(&process.syscall).map(|(_, call)| call.threads)).collect();
    let are_spare = |threads: &ThreadCalls| {
        let free_of_locks = threads.looked.saturating_sub(threads.accepting).saturating_sub(threads.locked);
        threads.accepting >= 2 && threads.locked < free_of_locks
    };
    !looks.is_empty() && looks.iter().all(are_spare) && mean(ctx.queued(tier)) < 1.0
}

/// The tiers that a pool's workers wait for, with all the tiers that those call. If one of them has a cause of its own, it is the pool's cause too.
pub(crate) fn waited_for(ctx: &Context<'_>, tier: &Tier) -> BTreeSet<usize> {
    Blocked::of(ctx, tier).map(|blocked| blocked.tiers(ctx)).unwrap_or_default()
}
