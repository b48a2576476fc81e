//! Finding `workers-blocked-on-upstream`: the workers of a full pool wait for another server, so additional workers would wait too.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::cores::limiting;
use crate::facts::harm::Cost;
use crate::facts::path::Tier;
use crate::facts::pool::looks::{self, Peer};
use crate::facts::pool::{Pool, PoolKind, as_quick_as_alone, computes, held_s, is_exhausted, share_at};
use crate::facts::quota::stops;
use crate::facts::sum::mean;
use crate::facts::{Context, TierId};
use crate::judge::finding::{Evidence, Finding};
use crate::judge::graph::Standing;
use crate::judge::id::FindingId;
use crate::judge::location::{EdgeId, Location};
use crate::judge::station::{StationDef, StationReading};
use crate::ledger::tenths;
use crate::observation::{ListenerAddress, NetnsId, ThreadCalls};
use crate::output::message::Message;
use crate::output::report::Confidence;

/// Share of the waiting looks from which one of several servers counts.
const PART_MIN: f64 = 0.25;
/// Share of the taken workers whose requests must stand at servers behind: as many as for everything else together.
const SHARE_MIN: f64 = 0.5;
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
    /// Mean number of requests that stand there and behind it by the account, if it can tell.
    stands: Option<f64>,
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
        let blocked = Self::perhaps(ctx, tier)?;
        let own = tier.id.0;
        // A pool that calls itself, even indirectly, waits for its own workers.
        let circles = blocked.tiers(ctx).contains(&own);
        // A server with spare workers takes its time for each request, however many there are.
        let spare = blocked.waits.iter().all(|wait| wait.tier.is_some_and(|index| has_spare(ctx, &ctx.path.tiers[index])));
        // An event loop waits for its servers without a worker. What holds its clients back is the number of connections that it accepts, unless a server behind is seen at
        // its limit.
        let is_loop = || Pool::of(ctx, tier).is_some_and(|pool| pool.kind == PoolKind::Loops);
        let quick = as_quick_as_alone(ctx, tier);
        let accepts_too_few = || quick.is_none() && is_loop() && !blocked.tiers(ctx).into_iter().any(|index| is_at_limit(ctx, index));
        (!circles && !spare && quick != Some(true) && !accepts_too_few()).then_some(blocked)
    }

    /// The servers at which most of the requests stand that hold the pool's places, whether or not these are at their limit.
    fn perhaps(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        Self::seen(ctx, tier).or_else(|| Self::stood(ctx, tier))
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
            let behind = looks::tier_at(ctx, netns, &address);
            let wait = Wait { tier: behind, address, looks, stands: behind.and_then(|behind| stands(ctx, (tier, behind), true)) };
            (looks as f64 >= PART_MIN * waiting as f64).then_some(wait)
        };
        let mut waits: Vec<Wait> = counts.into_iter().filter_map(part).collect();
        waits.sort_by_key(|wait| std::cmp::Reverse(wait.looks));
        (!waits.is_empty()).then_some(Self { looks, waits })
    }

    /// The same by the account, where no look told it: most of the requests that hold a worker stand at servers that the pool calls.
    fn stood(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        let pool = Pool::of(ctx, tier)?;
        let mut waits = upstreams(ctx, tier, &pool)?;
        let number = |wait: &Wait| wait.stands.unwrap_or(0.0);
        let all: f64 = waits.iter().map(number).sum();
        waits.retain(|wait| number(wait) >= PART_MIN * all);
        waits.sort_by(|a, b| number(b).total_cmp(&number(a)));
        (all >= SHARE_MIN * pool.busy_mean().max(1.0) && !waits.is_empty()).then_some(Self { looks: 0, waits })
    }

    /// True if looks at the workers show what they wait for, or the server behind refuses. The account alone shows where requests stand, and not whether more could stand there.
    pub(super) fn is_sure(&self, ctx: &Context<'_>) -> bool {
        self.looks > 0 || self.door(ctx).is_some()
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
            message.with("workers", pool.workers as f64).with("unit", pool.unit())
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
            evidence: self.looked(ctx, tier, pool).into_iter().chain(door).collect(),
            explanation: vec![args("finding-workers-blocked-on-upstream-explanation")],
            ..station.finding(FindingId::POOL_BLOCKED, tier, at)
        }
    }

    /// The name of the server that most of them wait for.
    fn first(&self, ctx: &Context<'_>) -> String {
        let first = &self.waits[0];
        first.tier.map_or_else(|| first.address.to_string(), |index| ctx.path.tiers[index].name.clone())
    }

    fn looked(&self, ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> Vec<Evidence> {
        let mut proofs = Vec::new();
        for wait in self.waits.iter().filter(|wait| wait.looks > 0) {
            let text = Message::new("evidence-workers-blocked").with("count", wait.looks as f64).with("looks", self.looks as f64);
            let text = text.with("upstream", wait.address.to_string());
            proofs.push(Evidence::new(text, "/proc/PID/syscall, sock_diag", Some(wait.looks as f64)));
        }
        proofs.extend(self.waits.iter().filter_map(|wait| standing_there(ctx, pool, wait)));
        let loaded_s = ctx.answers_rps().filter(|rate| *rate > 0.0).map(|rate| pool.workers as f64 / rate);
        let watched_s = || held_s(ctx, tier, pool).filter(|_| ctx.obs.load.is_none());
        if let Some(held_s) = loaded_s.or_else(watched_s).filter(|_| self.looks > 0) {
            let share = self.waits.iter().map(|wait| wait.looks).sum::<usize>() as f64 / self.looks as f64;
            let ms = 1e3 * held_s;
            let text = Message::new("evidence-workers-blocked-time").with("ms", ms).with("wait", ms * share);
            let source = if ctx.obs.load.is_some() { "load" } else { "sock_diag" };
            proofs.push(Evidence::new(text, source, Some(ms * share)));
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

/// The server at which most of the requests stand that an event loop holds at its limit, and their number, where nothing shows whether that server could do more.
pub(crate) fn untold(ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> Option<(String, f64)> {
    if pool.kind != PoolKind::Loops || as_quick_as_alone(ctx, tier).is_some() || Blocked::of(ctx, tier).is_some() {
        return None;
    }
    let blocked = Blocked::perhaps(ctx, tier)?;
    Some((blocked.first(ctx), blocked.waits[0].stands?))
}

/// True if a tier is seen at a limit of its own: connections wait to be accepted by it, its workers are all taken, its requests wait for each other, or its cores, its few
/// threads or its quota have no more time.
fn is_at_limit(ctx: &Context<'_>, index: usize) -> bool {
    let tier = &ctx.path.tiers[index];
    let waits_inside = || {
        let inside = ctx.account().and_then(|account| account.most_inside(ctx));
        inside.is_some_and(|inside| inside.tier == index && inside.evidence.is_some())
    };
    let lacks_threads =
        || limiting(ctx).iter().any(|limiting| limiting.threads.is_some() && limiting.tiers.iter().any(|one| one.id == tier.id));
    mean(ctx.queued(tier)) >= 1.0 || is_exhausted(ctx, tier) || computes(ctx, tier) || stops(ctx, tier) || waits_inside() || lacks_threads()
}

/// If workers wait for a server that computes, the cores are the limit. Those are no fault and so no cause, and the verdict names them as the limit.
pub(super) fn standing(ctx: &Context<'_>, finding: &Finding, _: Option<&StationReading>) -> Standing {
    let tier = ctx.only_tier(&finding.owner).filter(|_| finding.id == FindingId::POOL_BLOCKED);
    let seen = tier.and_then(|tier| Some((Blocked::of(ctx, tier)?, Pool::of(ctx, tier)?)));
    // Threads of a server that hardly runs wait for cores as well where other programs use these, and few of its requests with them.
    let is_at_cores = |index: usize| ctx.account().is_none_or(|account| account.is_mostly_at_cores(index));
    let computes = |index: usize| computes(ctx, &ctx.path.tiers[index]) && is_at_cores(index);
    match seen.filter(|(blocked, _)| blocked.tiers(ctx).into_iter().any(computes)) {
        Some((blocked, pool)) => {
            let why = Message::new("finding-workers-blocked-on-upstream-symptom").with("tier", ctx.owner_name(&finding.owner));
            Standing::Behind(why.with("upstream", blocked.first(ctx)).with("workers", pool.workers as f64).with("unit", pool.unit()))
        }
        None => Standing::Alone,
    }
}

/// The servers that a pool calls, with the requests that stand there. `None` if its workers were seen to wait for something else.
fn upstreams(ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> Option<Vec<Wait>> {
    // A look at a main thread says nothing of the others of its process.
    let peers = if pool.kind == PoolKind::Processes { looks::at_busy(ctx, tier) } else { Vec::new() };
    let others = peers.iter().filter(|peer| matches!(peer, Some(Peer::Nobody | Peer::Client))).count();
    if looks::are_most(others, peers.len()) {
        return None;
    }
    let by_sockets = looks::are_most(peers.len() - others, peers.len());
    let wait = |index: &usize| {
        let address = ctx.path.tiers[*index].listeners.first()?.listener.address.clone();
        Some(Wait { tier: Some(*index), address, looks: 0, stands: Some(stands(ctx, (tier, *index), by_sockets)?) })
    };
    Some(tier.upstreams.iter().filter_map(wait).collect())
}

/// Mean number of a pool's requests that stand at a server that it calls, or behind that: those of other callers are none of its own. A unix socket does not show whether a request is under way on it, and neither does a TCP socket that was
/// asked in the tick of its last answer: those count where the caller's workers were seen to wait on sockets (`by_sockets`).
fn stands(ctx: &Context<'_>, (pool, tier): (&Tier, usize), by_sockets: bool) -> Option<f64> {
    let account = ctx.account()?;
    let placed = &ctx.path.tiers[tier];
    let is_tcp = placed.listeners.iter().all(|placed| matches!(placed.listener.address, ListenerAddress::Tcp(..)));
    let behind = ctx.behind(placed).into_iter().map(|behind| behind.id.0).filter(|behind| *behind != tier);
    let all = std::iter::once(tier).chain(behind);
    (is_tcp || by_sockets).then(|| share_at(ctx, pool, placed) * all.map(|tier| account.at_tier(tier, by_sockets)).sum::<f64>())
}

/// How many requests stand at a server that workers wait for, and how long each.
fn standing_there(ctx: &Context<'_>, pool: &Pool, wait: &Wait) -> Option<Evidence> {
    let number = wait.stands.filter(|number| tenths(*number) > 0.0)?;
    let upstream = ctx.path.tiers[wait.tier?].name.as_str();
    let args = |id: &'static str| {
        let text = Message::new(id).with("upstream", upstream).with("number", tenths(number));
        text.with("busy", tenths(pool.busy_mean())).with("unit", pool.unit())
    };
    let rate_rps = ctx.account().and_then(|account| account.rate_rps()).filter(|rate| *rate > 0.0);
    let text = match rate_rps {
        Some(rate_rps) => args("evidence-workers-blocked-stand").with("ms", 1e3 * number / rate_rps).with("rate", rate_rps),
        None => args("evidence-workers-blocked-stand-unrated"),
    };
    Some(Evidence::new(text, "sock_diag struct tcp_info", Some(tenths(number))))
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

/// A server that requests which hold a pool's workers wait for, and the part of the workers, if it is not known whether it has room for more. A part that is none of
/// goodput's concern is left out.
pub(crate) fn room_unknown(ctx: &Context<'_>, tier: &Tier) -> Option<(String, f64)> {
    let pool = Pool::of(ctx, tier)?;
    let by_looks = Blocked::seen(ctx, tier).map(|blocked| {
        let looks = blocked.waits.iter().map(|wait| wait.looks).sum::<usize>() as f64 / blocked.looks.max(1) as f64;
        (blocked.waits[0].tier, blocked.first(ctx), looks)
    });
    let by_account = || {
        let behind = upstreams(ctx, tier, &pool)?.into_iter().filter_map(|wait| wait.tier.zip(wait.stands));
        let (index, number) = behind.max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((Some(index), ctx.path.tiers[index].name.clone(), (number / pool.busy_mean().max(1.0)).min(1.0)))
    };
    let (index, name, share) = by_looks.or_else(by_account)?;
    let is_free = index.is_some_and(|index| has_spare(ctx, &ctx.path.tiers[index]));
    (!is_free && Cost::of_time(share).hurts()).then_some((name, share))
}

/// The server at which most of the requests stand that hold a pool's places, whether or not it is at a limit.
pub(super) fn held_at(ctx: &Context<'_>, tier: &Tier) -> Option<String> {
    Some(Blocked::perhaps(ctx, tier)?.first(ctx))
}

/// The tier of the path that most of a pool's blocked workers wait for.
pub(crate) fn waits_at<'a>(ctx: &Context<'a>, tier: &Tier) -> Option<&'a Tier> {
    Blocked::of(ctx, tier).and_then(|blocked| Some(&ctx.path.tiers[blocked.waits[0].tier?]))
}
