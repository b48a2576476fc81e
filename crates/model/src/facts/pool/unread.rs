//! Threads behind a selector (Tomcat's connector, Jetty): the server accepts and keeps every connection, and a request waits unread until a thread is free.

use std::collections::BTreeMap;

use super::idle::READY_SHARE_MAX;
use super::{BUSY_SHARE, Held, Pool, PoolKind, STEADY_SHARE, waited_share};
use crate::facts::Context;
use crate::facts::cores::delayed;
use crate::facts::path::{Endpoint, Tier};
use crate::facts::sum::mean;
use crate::observation::{NetnsView, RequestSample, RequestSocket, SocketAddress, TcpState};

/// Fewest threads of such a pool. With one at a time it may as well be an event loop, which serves many connections in turns.
pub(crate) const WORKERS_MIN: usize = 2;

/// Share of the samples in which no more requests are in service than there are threads. The sockets are not all read at the same moment, so a request that ends and its
/// successor may both be counted.
pub(crate) const AT_MOST_SHARE: f64 = 0.9;

/// How far the number in service may be below the number of threads, as a share of it, while others wait: those that have just answered and have not read the next request.
const CHURN_SHARE: f64 = 0.1;

/// Share of the connections that are held and not read from which those that are read are few.
const UNREAD_SHARE_MIN: f64 = 0.5;

/// True if most of the connections that are held are not read.
pub(super) fn are_unread(samples: &[Held]) -> bool {
    let sum = |of: fn(&Held) -> usize| samples.iter().map(of).sum::<usize>() as f64;
    sum(|held| held.unread) > UNREAD_SHARE_MIN * sum(|held| held.in_service)
}

/// The pool by its sockets alone, where the server holds as many connections as it can: those of clients that gave up count as well, since its threads serve them.
pub(super) fn pool_of_sockets(ctx: &Context<'_>, tier: &Tier, threads: usize, samples: &[Held]) -> Option<Pool> {
    let read = samples.iter().map(|held| held.in_service - held.unread).collect();
    of_counts(ctx, tier, threads, (read, samples.iter().map(|held| held.unread as u64).collect()))
}

/// The pool, if about as many requests were read and not answered in nearly every sample while more were there unread. `threads`: those of its processes that do more than
/// accept. An event loop reads whatever has come before it waits again, so it leaves requests unread only while it computes.
pub(super) fn pool(ctx: &Context<'_>, tier: &Tier, threads: usize) -> Option<Pool> {
    let account = ctx.account()?;
    let samples = account.served_and_unread(tier);
    let given_up = given_up(ctx, tier);
    let served = |(at_us, served, _): &(u64, f64, f64)| (served + given_up.get(at_us).copied().unwrap_or(0.0)).round() as usize;
    let served = samples.iter().map(served).collect();
    let pool = of_counts(ctx, tier, threads, (served, samples.iter().map(|(.., unread)| unread.round() as u64).collect()))?;
    // A request would not wait for a thread that is free: those that are not at a request are at a response that does not end.
    let streaming = account.streaming(tier).round() as usize;
    Some(Pool { streaming: if pool.workers + streaming <= threads { streaming } else { 0 }, ..pool })
}

/// The pool of so many requests that were read and not answered, and so many unread ones, in each sample.
fn of_counts(ctx: &Context<'_>, tier: &Tier, threads: usize, (served, unread): (Vec<usize>, Vec<u64>)) -> Option<Pool> {
    let mut sorted = served.clone();
    sorted.sort_unstable();
    let at_most = |share: f64| sorted.get(((share * sorted.len() as f64).round() as usize).saturating_sub(1)).copied();
    // Whatever varies has a tenth of its samples above some number. Threads that are all there is are taken as long as somebody waits for one.
    let in_waiting: Vec<usize> = served.iter().zip(&unread).filter(|(_, unread)| **unread > 0).map(|(served, _)| *served).collect();
    let are_all_taken = |workers: usize| {
        in_waiting.iter().filter(|served| **served >= least_taken(workers)).count() as f64 >= AT_MOST_SHARE * in_waiting.len() as f64
    };
    // The shorter the requests, the more often two are counted for one. Threads that compute are as many as have cores, whatever their number.
    let ready: f64 = tier.pids.iter().filter_map(|pid| Some(ctx.clocked(*pid, |used| used.run_ns)? + delayed(ctx, *pid)?)).sum();
    let usual = at_most(STEADY_SHARE).filter(|usual| ready <= READY_SHARE_MAX * *usual as f64);
    let mut most = at_most(AT_MOST_SHARE).into_iter().chain(usual);
    most.find_map(|workers| {
        let waiting = mean(unread.iter().copied());
        let pool = Pool {
            kind: PoolKind::Threads,
            workers,
            streaming: 0,
            busy: served.iter().map(|served| *served.min(&workers)).collect(),
            ended: Vec::new(),
            waiting,
            waited_share: waited_share(&unread),
            queued: unread.clone(),
            unaccepted: ctx.queued(tier),
            unread: true,
            grows: false,
            reached: None,
        };
        let is_pool = (WORKERS_MIN..=threads).contains(&workers) && pool.is_full() && pool.is_steady(BUSY_SHARE);
        (is_pool && are_all_taken(workers)).then_some(pool)
    })
}

/// Fewest in service at which all of so many threads are taken: a few have just answered.
pub(crate) fn least_taken(workers: usize) -> usize {
    workers - (CHURN_SHARE * workers as f64).ceil() as usize
}

/// By sample: the requests that were read and whose client has given up. A thread goes on with them: their data came last, and no answer has gone out since. What is left
/// unread on such a connection is its end, which counts as a byte.
fn given_up(ctx: &Context<'_>, tier: &Tier) -> BTreeMap<u64, f64> {
    let view = ctx.obs.netns.get(&tier.netns);
    let samples = view.into_iter().flat_map(|view| ctx.in_window(&view.request_samples));
    let is_asked = |socket: &&RequestSocket| socket.times.and_then(|times| times.received_last()) == Some(true);
    let is_kept = |socket: &&RequestSocket| socket.state == TcpState::CloseWait && socket.inode != 0 && socket.receive_queue <= 1;
    // One that stands there all the time is nothing that a thread gets on with: the server forgot it, or has no such thread any more.
    let came = |at_us: u64, socket: &RequestSocket| {
        let age_us = 1_000 * socket.times.map_or(0, |times| times.last_data_recv_ms);
        at_us.saturating_sub(age_us) >= ctx.window_us.0
    };
    let of = |at_us: u64, sample: &RequestSample| -> f64 {
        let own = sample.sockets.iter().filter(is_kept).filter(is_asked).filter(|socket| tier.accepts(&socket.address));
        own.filter(|socket| came(at_us, socket)).map(|socket| sample.weight(socket)).sum()
    };
    samples.map(|(at_us, sample)| (*at_us, of(*at_us, sample))).collect()
}

/// Connections that were answered, whose client has closed, and that the server did not close: it forgot to, and nobody works on them.
pub(super) struct LeftOpen {
    /// By local and remote end: when it was first seen so, microseconds. Nothing can come on it any more.
    since_us: BTreeMap<(Endpoint, Endpoint), u64>,
}

impl LeftOpen {
    pub(super) fn of(ctx: &Context<'_>, tier: &Tier, view: &NetnsView) -> Self {
        let mut since_us = BTreeMap::new();
        for (at_us, sample) in ctx.in_window(&view.request_samples) {
            let answered = |socket: &&RequestSocket| socket.times.and_then(|times| times.received_last()) == Some(false);
            let closed = sample.sockets.iter().filter(|socket| socket.state == TcpState::CloseWait && tier.accepts(&socket.address));
            for socket in closed.filter(|socket| socket.receive_queue <= 1).filter(answered) {
                if let SocketAddress::Tcp { local, remote } = socket.address {
                    since_us.entry((local, remote)).or_insert(*at_us);
                }
            }
        }
        Self { since_us }
    }

    /// True if a socket in this state was one of them at this time.
    pub(super) fn has(&self, at_us: u64, address: &SocketAddress, state: TcpState) -> bool {
        let SocketAddress::Tcp { local, remote } = address else { return false };
        state == TcpState::CloseWait && self.since_us.get(&(*local, *remote)).is_some_and(|since_us| *since_us <= at_us)
    }
}
