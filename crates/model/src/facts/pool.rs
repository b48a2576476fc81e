//! Pools of workers that each serve one connection at a time: how many were busy, and who waited for them.

pub(crate) mod awaited;
mod callers;
mod ended;
mod idle;
mod kept;
pub(crate) mod limits;
mod locked;
pub(crate) mod looks;
pub(crate) mod loops;
mod memory;
mod naming;
mod queued;
mod service;
mod serving;
mod staffing;
mod stopped;
mod taking_turns;
mod traced;
mod unread;
pub(crate) mod workers;

pub(crate) use callers::share_at;
pub(crate) use ended::EndsAwaited;
pub(crate) use idle::{IdleEvidence, computes, is_seen_computing};
pub(crate) use kept::IdleHeld;
pub(crate) use locked::LockAwaited;
pub use memory::{MemoryMeasure, PoolMemory};
pub(crate) use naming::{PoolSetting, keeping};
pub(crate) use queued::Queued;
pub(crate) use service::{Service, held_s, supposes_no_waits};
pub use staffing::Staffing;
pub(crate) use stopped::StoppedProcesses;
pub(crate) use taking_turns::{TakingTurns, as_quick_as_alone};
pub(crate) use traced::{TracedProcesses, stop_hurts, waiting_at};

use unread::LeftOpen;
pub(crate) use unread::{AT_MOST_SHARE, WORKERS_MIN, least_taken};
pub(in crate::facts) use workers::serving as serving_pids;
pub(crate) use workers::{Hung, identities, worker_pids};

use super::cores::limiting::are_crowded;
use super::cores::{are_spent, may_be_its_children};
use super::sum::mean;
use super::{Context, Logged, setting};
use crate::facts::harm::Cost;
use crate::facts::path::Tier;
use crate::facts::queue::accepting::waited_at_each;
use crate::observation::{
    Identity, ListenerAddress, LogEvent, NetnsView, PhpFpmConfig, PhpFpmPool, RequestSocket, Setting, Socket, SocketAddress, TcpState,
};

/// The unit of event loops, whose limit is a number of connections and not of workers.
pub(crate) const CONNECTIONS: &str = "connections";
/// The unit of pools whose workers are threads.
pub(crate) const THREADS: &str = "threads";
/// The kind of server whose processes are event loops with a station of their own for their limit.
const NGINX: &str = "nginx";
/// Share of the samples in which connections must wait for a worker. A pool at its limit always has some waiting; one that only touches it does not.
pub(crate) const WAITED_SHARE: f64 = 0.9;
/// The same for a pool without a free worker: with hardly more clients than workers, the last one is now and then on its way to the queue.
pub(crate) const WAITED_SHARE_TAKEN: f64 = 0.5;
/// Share of a pool's taken workers or threads, or of the looks at them, from which one thing is what holds them: as many as everything else together.
pub(crate) const MOST: f64 = 0.5;
/// Mean busy share of the workers from which none is free.
pub(crate) const TAKEN_SHARE: f64 = 0.95;
/// Least mean busy share of the workers. Between two requests a worker is free until it has a core, so all are rarely busy at once, and less so if other
/// programs take the cores.
pub(crate) const BUSY_SHARE: f64 = 0.75;
/// Share of the samples in which as many threads must be taken for their number to be the limit: between two connections a thread is seen free.
pub(crate) const STEADY_SHARE: f64 = 0.75;
/// Largest mean number of connections in service per worker. The sockets are not all read at the same moment, so a closing connection and its successor may
/// both be counted. Above this number threads or event loops serve them.
pub(crate) const BUSY_TIMES_MAX: f64 = 1.1;
/// Fewest samples for a statement.
pub(crate) const SAMPLES_MIN: usize = 3;

/// What serves one connection at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PoolKind {
    /// Processes.
    Processes,
    /// Threads of one or several processes. The number of threads is no limit by itself, as some are helpers or only accept. The limit is the number of connections in
    /// service at once, if it stayed the same while others waited.
    Threads,
    /// Event loops that accept no more connections than configured, even while idle.
    Loops,
}

/// A pool in the window.
pub(crate) struct Pool {
    pub(crate) kind: PoolKind,
    /// Number of workers: those that exist, or the configured maximum of a pool that grows.
    pub(crate) workers: usize,
    /// Further threads that responses without an end hold, one each: they serve nothing else.
    pub(crate) streaming: usize,
    /// Connections in service in each sample.
    pub(crate) busy: Vec<usize>,
    /// The part of them that is answered and ended: their worker waits for the client's end.
    pub(crate) ended: Vec<usize>,
    /// Mean number of connections that waited to be accepted, or with `unread` for their request to be read.
    pub(crate) waiting: f64,
    /// Share of the samples with at least one waiting connection.
    pub(crate) waited_share: f64,
    /// The number that waited in each sample.
    pub(crate) queued: Vec<u64>,
    /// With `unread`, the number that waited to be accepted in each sample of the queue.
    pub(crate) unaccepted: Vec<u64>,
    /// True if the server accepts every connection and leaves the requests unread until a worker is free.
    pub(crate) unread: bool,
    /// True if workers were still being started late in the window, so that the pool may grow further.
    pub(crate) grows: bool,
    /// The server's log line that the limit was reached.
    pub(crate) reached: Option<Logged>,
}

/// The php-fpm pools that listen at this tier's addresses.
pub fn configured<'a>(ctx: &Context<'a>, tier: &Tier) -> Vec<&'a PhpFpmPool> {
    let servers = tier.pids.iter().filter_map(|pid| ctx.obs.servers.get(pid)?.php_fpm());
    let here = |pool: &&PhpFpmPool| {
        tier.listeners.iter().any(|placed| match (&pool.listen, &placed.listener.address) {
            (ListenerAddress::Tcp(ip, port), ListenerAddress::Tcp(bound, bound_port)) => {
                port == bound_port && (ip.to_canonical() == bound.to_canonical() || (ip.is_unspecified() && bound.is_unspecified()))
            }
            (pool, bound) => pool == bound,
        })
    };
    servers.flat_map(|php_fpm| &php_fpm.pools).filter(here).collect()
}

/// `process.max` of the php-fpm behind these listeners, if its pools may have more workers than that: they have it together.
pub(crate) fn process_max<'a>(ctx: &Context<'a>, tier: &Tier) -> Option<&'a Setting<u32>> {
    common(ctx, tier).map(|(_, most)| most)
}

fn common<'a>(ctx: &Context<'a>, tier: &Tier) -> Option<(&'a PhpFpmConfig, &'a Setting<u32>)> {
    let servers = tier.pids.iter().filter_map(|pid| ctx.obs.servers.get(pid)?.php_fpm());
    let mut common = servers.filter_map(|php_fpm| Some((php_fpm, php_fpm.process_max.as_ref()?)));
    let is_less = |(php_fpm, most): &(&PhpFpmConfig, &Setting<u32>)| {
        u64::from(most.value) < php_fpm.pools.iter().map(|pool| u64::from(pool.max_children.value)).sum()
    };
    common.find(is_less)
}

/// True if so many workers and the fewest that the other pools have are all that `process.max` allows.
fn are_all_in_common(ctx: &Context<'_>, tier: &Tier, workers: usize) -> bool {
    let Some((php_fpm, most)) = common(ctx, tier) else { return false };
    let own: Vec<&str> = configured(ctx, tier).iter().map(|pool| pool.name.as_str()).collect();
    let others = php_fpm.pools.iter().filter(|pool| !own.contains(&pool.name.as_str()));
    let least = |pool: &PhpFpmPool| match pool.pm.value.as_str() {
        "static" => pool.max_children.value as usize,
        "ondemand" => 0,
        _ => 1,
    };
    workers + others.map(least).sum::<usize>() >= most.value as usize
}

/// The most workers of a pool that starts them on demand. `None` for a static pool, whose workers all exist, and if the file was changed after it was read:
/// then only the existing workers show the limit.
pub(crate) fn allowed(ctx: &Context<'_>, tier: &Tier) -> Option<usize> {
    let pools = configured(ctx, tier);
    if setting::unforced_pool(ctx, tier, 0.0).is_some() {
        return None;
    }
    // What other pools use of a common limit is not seen, so the workers that there are show what is left.
    if process_max(ctx, tier).is_some() {
        return None;
    }
    let grows = pools.iter().any(|pool| pool.pm.value != "static");
    grows.then(|| pools.iter().map(|pool| pool.max_children.value as usize).sum())
}

pub(crate) fn reached(ctx: &Context<'_>, tier: &Tier) -> Option<Logged> {
    configured(ctx, tier).iter().find_map(|pool| ctx.logged(tier, &LogEvent::WorkersExhausted(Some(pool.name.clone()))))
}

impl Pool {
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        let workers: Vec<&Identity> = identities(ctx, tier);
        let view = ctx.obs.netns.get(&tier.netns)?;
        let samples = held(ctx, tier, view);
        let is_replaced = workers::ended(ctx, tier) > 0;
        let (before, after) = workers::in_halves(ctx, &workers);
        let replaced = if is_replaced { workers::replaced_at_once(ctx, tier, &samples) } else { 0 };
        let at_once = before.max(after).max(replaced);
        let of_all = held_mean(&samples);
        if of_all == 0.0 {
            return None;
        }
        // An event loop holds the connections on which nothing is asked as well: it is no worker that one of them takes.
        if ctx.words_for(tier) == NGINX || ctx.nginx_of(tier).is_some() {
            return None;
        }
        let are_more = of_all > BUSY_TIMES_MAX * at_once as f64;
        if !are_more && looks::are_loops(ctx, &workers, of_all / at_once.max(1) as f64) {
            return None;
        }
        // A single process may be anything. If its configuration calls it a pool, it is a pool of one worker.
        let is_pool = at_once >= 2 || (at_once == 1 && !configured(ctx, tier).is_empty());
        if !is_pool || are_more {
            return Self::of_threads(ctx, tier, &workers, &samples);
        }
        let oldest = workers.iter().map(|identity| identity.start_ticks).min()?;
        let newest = workers.iter().map(|identity| identity.start_ticks).max()?;
        let ticks_per_s = ctx.obs.kernel.last().map_or(100, |kernel| kernel.ticks_per_s).max(1);
        let allowed = allowed(ctx, tier);
        let queued = ctx.queued(tier);
        let is_young = newest - oldest > ticks_per_s && ctx.in_window(&view.sockets).count() > 0;
        // Servers check about once a second whether they need more. Those that take the places of others make it no larger.
        let grew = is_young && !is_replaced && after > before;
        let most = allowed.unwrap_or(0).max(at_once);
        Some(Self {
            kind: PoolKind::Processes,
            workers: most,
            streaming: 0,
            busy: samples.iter().map(|held| held.all().min(most)).collect(),
            ended: samples.iter().map(|held| held.ended).collect(),
            waiting: mean(queued.iter().copied()),
            waited_share: waited_share(&queued),
            queued,
            unaccepted: Vec::new(),
            unread: false,
            // If the configuration shows the limit, a pool that has reached it grows no further.
            grows: allowed.is_none_or(|allowed| at_once < allowed) && !are_all_in_common(ctx, tier, at_once) && grew,
            reached: reached(ctx, tier),
        })
    }

    /// A pool of threads or event loops: one process, or more connections than processes. Threads that accept connections leave the rest in the accept queue
    /// once each has one. An event loop keeps accepting, up to its own limit if it has one. Their number is known only while all are taken.
    fn of_threads(ctx: &Context<'_>, tier: &Tier, workers: &[&Identity], samples: &[Held]) -> Option<Self> {
        let threads = |identity: &&Identity| Some(ctx.obs.processes.get(&identity.pid)?.cpu.last()?.threads as usize);
        let threads: usize = workers.iter().map(threads).sum::<Option<usize>>()?;
        // An event loop waits for the ends of its clients besides, which takes no place from others.
        let are_threads = samples.iter().all(|held| held.all() <= threads);
        let busy: Vec<usize> = samples.iter().map(|held| if are_threads { held.all() } else { held.in_service }).collect();
        let ended = samples.iter().map(|held| if are_threads { held.ended } else { 0 }).collect();
        let most = busy.iter().max().copied().filter(|most| *most > 0)?;
        let ran = serving::that_ran(ctx, workers, threads);
        // All others are idle beside an event loop.
        if threads > workers.len() && ran.is_some_and(|ran| ran <= workers.len()) {
            return None;
        }
        let serving = threads.saturating_sub(serving::acceptors(ctx, tier, workers)).min(ran.unwrap_or(threads));
        let workers = if most <= threads { serving::level(&busy)?.min(serving.max(1)) } else { most };
        let queued = ctx.queued(tier);
        let pool = Self {
            kind: PoolKind::Threads,
            workers,
            streaming: 0,
            busy: busy.iter().map(|busy| *busy.min(&workers)).collect(),
            ended,
            waiting: mean(queued.iter().copied()),
            waited_share: waited_share(&queued).min(waited_at_each(ctx, tier)),
            queued,
            unaccepted: Vec::new(),
            unread: false,
            grows: false,
            reached: None,
        };
        // What holds many connections that it does not read waits for its threads, whatever number of connections it has to stop at.
        // Of an answer that is still leaving no thread may be left, so the requests count first.
        let by_any = || unread::pool(ctx, tier, serving).or_else(|| unread::pool_of_sockets(ctx, tier, serving, samples));
        if let Some(unread) = (most > threads && unread::are_unread(samples)).then(by_any).flatten() {
            return Some(unread);
        }
        if !pool.is_full() {
            return unread::pool(ctx, tier, serving);
        }
        if most <= threads {
            // Who accepts for all threads and pauses holds a single connection that it has not given to one of them, and that nobody reads.
            let is_on_the_way = pool.workers == 1 && unread::are_unread(samples);
            return (pool.is_steady(BUSY_SHARE) && !is_on_the_way).then_some(pool);
        }
        (pool.is_steady(TAKEN_SHARE) && loops::are_capped(ctx, tier, &pool)).then_some(Self { kind: PoolKind::Loops, ..pool })
    }

    /// True if hardly a sample had fewer in service than this share of the maximum.
    pub(crate) fn is_steady(&self, share: f64) -> bool {
        let taken = self.busy.iter().filter(|busy| **busy as f64 >= share * self.workers as f64).count();
        taken as f64 >= STEADY_SHARE * self.busy.len() as f64
    }

    /// The unit of `workers`.
    pub(crate) fn unit(&self) -> &'static str {
        match self.kind {
            PoolKind::Processes => "workers",
            PoolKind::Threads => THREADS,
            PoolKind::Loops => CONNECTIONS,
        }
    }

    /// Mean number of workers that wait for the end of a client whose answer they have sent.
    pub(crate) fn ended_mean(&self) -> f64 {
        self.ended.iter().sum::<usize>() as f64 / self.ended.len().max(1) as f64
    }

    pub(crate) fn busy_mean(&self) -> f64 {
        self.busy.iter().sum::<usize>() as f64 / self.busy.len().max(1) as f64
    }

    /// The definition of a full pool: nearly all workers are busy and connections always wait, or no worker is ever free and connections wait most of the
    /// time.
    pub(crate) fn is_full(&self) -> bool {
        let busy = self.busy_mean() / self.workers as f64;
        let waited = busy >= BUSY_SHARE && self.waited_share >= WAITED_SHARE && self.waiting >= 1.0;
        let taken = busy >= TAKEN_SHARE && self.waited_share >= WAITED_SHARE_TAKEN;
        // With a worker for each connection nothing would wait: the queue's share of the total time is the cost.
        let queued = Cost::of_time(self.waiting / (self.waiting + self.workers as f64));
        self.busy.len() >= SAMPLES_MIN && (waited || taken) && queued.hurts()
    }
}

/// Share of the samples with a waiting connection.
pub(crate) fn waited_share(queued: &[u64]) -> f64 {
    queued.iter().filter(|queued| **queued > 0).count() as f64 / queued.len().max(1) as f64
}

/// Connections of a tier at one moment.
#[derive(Debug, Clone, Copy)]
struct Held {
    /// Accepted and not closed. A worker continues with a request after its client has given up (CLOSE_WAIT), but not with one that is answered ([`LeftOpen`]).
    in_service: usize,
    /// The part of them with a request that is not read: bytes in the receive queue, of which an end of the client is one.
    unread: usize,
    /// Answered, and ended by a process that still holds the socket: it waits for the client's end (FIN_WAIT2). A socket that was closed has no process.
    ended: usize,
}

impl Held {
    fn of<'s>(tier: &Tier, sockets: impl Iterator<Item = (&'s SocketAddress, (TcpState, u64, u32))>) -> Self {
        let mut held = Self { in_service: 0, unread: 0, ended: 0 };
        for (address, (state, _, unread)) in sockets.filter(|(address, (_, inode, _))| *inode != 0 && tier.accepts(address)) {
            match (address, state) {
                (SocketAddress::Unix { .. }, _) | (_, TcpState::Established | TcpState::CloseWait) => {
                    held.in_service += 1;
                    held.unread += usize::from(unread > u32::from(state == TcpState::CloseWait));
                }
                (_, TcpState::FinWait2) if unread == 0 => held.ended += 1,
                _ => {}
            }
        }
        held
    }

    fn all(self) -> usize {
        self.in_service + self.ended
    }
}

/// The connections in each reading of all sockets and in each complete sample of request sockets, in the order of time.
fn held(ctx: &Context<'_>, tier: &Tier, view: &NetnsView) -> Vec<Held> {
    let left = LeftOpen::of(ctx, tier, view);
    let read = ctx.in_window(&view.sockets).map(|(at_us, sockets)| {
        let of_socket = |socket: &'_ Socket| (socket.state, socket.inode, socket.receive_queue);
        let served = sockets.iter().filter(|socket| !left.has(*at_us, &socket.address, socket.state));
        (*at_us, Held::of(tier, served.map(|socket| (&socket.address, of_socket(socket)))))
    });
    let whole = ctx.in_window(&view.request_samples).filter(|(_, sample)| sample.share >= 1.0);
    let sampled = whole.map(|(at_us, sample)| {
        let of_socket = |socket: &'_ RequestSocket| (socket.state, socket.inode, socket.receive_queue);
        let served = sample.sockets.iter().filter(|socket| !left.has(*at_us, &socket.address, socket.state));
        (*at_us, Held::of(tier, served.map(|socket| (&socket.address, of_socket(socket)))))
    });
    in_order(read.chain(sampled).collect())
}

/// Both kinds of readings, the earliest first.
fn in_order<T>(mut all: Vec<(u64, T)>) -> Vec<T> {
    all.sort_by_key(|(at_us, _)| *at_us);
    all.into_iter().map(|(_, held)| held).collect()
}

fn held_mean(samples: &[Held]) -> f64 {
    samples.iter().map(|held| held.all()).sum::<usize>() as f64 / samples.len().max(1) as f64
}

/// The longest time that a request holds a worker of one of the path's pools, seconds. `None` if no pool's time is known.
pub(crate) fn held_s_most(ctx: &Context<'_>) -> Option<f64> {
    let pools = ctx.path.tiers.iter().filter_map(|tier| Some((tier, Pool::of(ctx, tier)?)));
    pools.filter_map(|(tier, pool)| Some(Service::of(ctx, tier, &pool)?.held_s)).reduce(f64::max)
}

/// The pool of a tier whose workers are all taken and wait for something other than a core, with the evidence. On cores that are full of good answers such a
/// pool costs nothing: the workers wait for servers that have no core either, as for a web server that closes its connections late.
pub(crate) fn exhausted(ctx: &Context<'_>, tier: &Tier) -> Option<(Pool, IdleEvidence)> {
    let pool = Pool::of(ctx, tier).filter(|pool| pool.is_full() && !pool.grows)?;
    // Clients that are never served suffer, whatever the others get.
    if pool.kind == PoolKind::Loops && loops::leave_out(ctx, tier, &pool) {
        return Some((pool, IdleEvidence::Left));
    }
    if are_spent(ctx) || are_crowded(ctx, tier) || may_be_its_children(ctx, tier) {
        return None;
    }
    let idle = IdleEvidence::of(ctx, tier, &pool)?;
    (!looks::callers_lack_cores(ctx, tier)).then_some((pool, idle))
}

/// True if a tier's workers are all taken and wait.
pub(crate) fn is_exhausted(ctx: &Context<'_>, tier: &Tier) -> bool {
    exhausted(ctx, tier).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_of_two_kinds_are_in_the_order_of_time() {
        assert_eq!(in_order(vec![(1_000, 'a'), (3_000, 'c'), (2_000, 'b'), (4_000, 'd')]), ['a', 'b', 'c', 'd']);
    }
}
