//! Workers that each hold a connection on which nothing is asked: its client has the response, or has not asked yet, and keeps the connection open.

use std::collections::BTreeSet;

use super::looks::{self, Peer};
use super::{MOST, Pool, PoolKind, SAMPLES_MIN, exhausted};
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::queue::accepting;
use crate::observation::{RequestSocket, TcpState};

/// A full pool whose workers are kept by idle connections.
pub(crate) struct IdleHeld {
    /// What the workers are.
    pub(crate) kind: PoolKind,
    /// Their number.
    pub(crate) workers: usize,
    /// Mean number of connections that they held.
    pub(crate) taken: f64,
    /// The part of them on which nothing was asked.
    pub(crate) idle: f64,
    /// Mean number of connections that waited to be accepted.
    pub(crate) waiting: f64,
    /// What busy workers were seen to wait for. `None` if too few system calls were read, or where they show another thread.
    pub(crate) looks: Option<Looks>,
    /// Number of connections that were held in the window, and how long one was held (Little's law), milliseconds. `None` if they are shorter than the time between
    /// two samples, of which some are not met.
    pub(crate) turnover: Option<(usize, f64)>,
    /// Median time since anything was sent on the idle ones, milliseconds.
    pub(crate) since_ms: Option<u64>,
}

impl IdleHeld {
    /// `None` if the pool has free workers, if they are stopped, if nothing waits for one, if most connections have a request, or if the workers were seen to wait for something else: after
    /// the response they may still work.
    pub(crate) fn of(ctx: &Context<'_>, tier: &Tier) -> Option<Self> {
        let (pool, _) = exhausted(ctx, tier).filter(|(pool, _)| !pool.unread)?;
        let are_stopped = |placed| matches!(accepting::idle(ctx, tier, placed), Some(accepting::Idle::Stopped(_)));
        if tier.listeners.iter().any(are_stopped) {
            return None;
        }
        let counted = ctx.account()?.idle(tier);
        if counted.len() < SAMPLES_MIN {
            return None;
        }
        let taken = pool.busy_mean();
        let idle = (counted.iter().sum::<f64>() / counted.len() as f64).min(taken);
        let looks = Looks::of(ctx, tier, &pool);
        let wait_elsewhere = looks.is_some_and(|looks| looks::are_most(looks.elsewhere, looks.all));
        let wait_for_locks = pool.kind == PoolKind::Threads && looks::locked_share(ctx, &tier.pids).is_some_and(|share| share >= MOST);
        (idle >= MOST * taken && !wait_elsewhere && !wait_for_locks).then(|| Self {
            kind: pool.kind,
            workers: pool.workers,
            taken,
            idle,
            waiting: pool.waiting,
            looks,
            turnover: turnover(ctx, tier, taken),
            since_ms: since_ms(ctx, tier),
        })
    }

    /// The mean number of workers that have a request.
    pub(crate) fn asked(&self) -> f64 {
        self.taken - self.idle
    }
}

/// Looks at busy workers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Looks {
    /// Those that waited for their client.
    pub(crate) clients: usize,
    /// Those that waited for something else, or ran. The others waited for a connection that no sample met.
    elsewhere: usize,
    pub(crate) all: usize,
}

impl Looks {
    /// `None` with too few looks, and where the main thread of a process says nothing of the others.
    fn of(ctx: &Context<'_>, tier: &Tier, pool: &Pool) -> Option<Self> {
        let threads = |pid: &u32| ctx.obs.processes.get(pid).and_then(|process| process.cpu.last()).map_or(1, |used| used.threads);
        if pool.kind == PoolKind::Loops || tier.pids.iter().any(|pid| threads(pid) > 1) {
            return None;
        }
        let busy = looks::at_busy(ctx, tier);
        let number = |is_such: fn(&Peer) -> bool| busy.iter().flatten().filter(|peer| is_such(peer)).count();
        let elsewhere = number(|peer| matches!(peer, Peer::Nobody | Peer::Upstream(..)));
        looks::are_enough(busy.len()).then(|| Self { clients: number(|peer| *peer == Peer::Client), elsewhere, all: busy.len() })
    }

    /// True if most of them waited for their client.
    pub(crate) fn are_at_clients(&self) -> bool {
        looks::are_most(self.clients, self.all)
    }
}

/// The tier's held connections in each complete sample of the window.
fn held<'a>(ctx: &Context<'a>, tier: &Tier) -> Vec<(u64, Vec<&'a RequestSocket>)> {
    let Some(view) = ctx.obs.netns.get(&tier.netns) else { return Vec::new() };
    let whole = ctx.in_window(&view.request_samples).filter(|(_, sample)| sample.share >= 1.0);
    let is_held = |socket: &&RequestSocket| socket.state == TcpState::Established && socket.inode != 0 && tier.accepts(&socket.address);
    whole.map(|(at_us, sample)| (*at_us, sample.sockets.iter().filter(is_held).collect())).collect()
}

/// How many connections were held, and for how long each, milliseconds.
fn turnover(ctx: &Context<'_>, tier: &Tier, taken: f64) -> Option<(usize, f64)> {
    let samples = held(ctx, tier);
    let (first, last) = (samples.first()?.0, samples.last()?.0);
    let apart_ms = last.saturating_sub(first) as f64 / 1e3 / (samples.len() as f64 - 1.0).max(1.0);
    let seen: BTreeSet<u64> = samples.iter().flat_map(|(_, sockets)| sockets.iter().map(|socket| socket.cookie)).collect();
    let each_ms = taken * last.saturating_sub(first) as f64 / 1e3 / seen.len().max(1) as f64;
    (!seen.contains(&0) && samples.len() >= SAMPLES_MIN && each_ms > apart_ms).then_some((seen.len(), each_ms))
}

/// Median time since anything was sent on the connections that wait for their client, milliseconds.
fn since_ms(ctx: &Context<'_>, tier: &Tier) -> Option<u64> {
    let sockets = held(ctx, tier).into_iter().flat_map(|(_, sockets)| sockets);
    let quiet = sockets.filter(|socket| socket.receive_queue == 0 && socket.send_queue == 0).filter_map(|socket| socket.times);
    let answered = quiet.filter(|times| times.received_last() != Some(true));
    let mut ages: Vec<u64> = answered.map(|times| times.last_data_recv_ms.min(times.last_data_sent_ms)).collect();
    ages.sort_unstable();
    ages.get(ages.len() / 2).copied()
}
