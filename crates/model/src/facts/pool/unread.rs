//! Threads behind a selector (Tomcat's connector, Jetty): the server accepts and keeps every connection, and a request waits unread until a thread is free.

use super::{BUSY_SHARE, Pool, PoolKind, waited_share};
use crate::facts::Context;
use crate::facts::path::Tier;
use crate::facts::sum::mean;

/// Fewest threads of such a pool. With one at a time it may as well be an event loop, which serves many connections in turns.
const WORKERS_MIN: usize = 2;

/// The pool, if as many requests were read and not answered in nearly every sample while more were there unread. `threads`: those of its processes. An event
/// loop reads whatever has come before it waits again, so it leaves requests unread only while it computes.
pub(super) fn pool(ctx: &Context<'_>, tier: &Tier, threads: usize) -> Option<Pool> {
    let samples = ctx.account()?.served_and_unread(tier);
    let busy: Vec<usize> = samples.iter().map(|(served, _)| served.round() as usize).collect();
    let unread: Vec<u64> = samples.iter().map(|(_, unread)| unread.round() as u64).collect();
    let workers = busy.iter().max().copied().filter(|most| (WORKERS_MIN..=threads).contains(most))?;
    let waiting = mean(unread.iter().copied());
    let waited_share = waited_share(&unread);
    let pool = Pool {
        kind: PoolKind::Threads,
        workers,
        busy,
        ended: Vec::new(),
        waiting,
        waited_share,
        unread: true,
        grows: false,
        reached: None,
    };
    (pool.is_full() && pool.is_steady(BUSY_SHARE)).then_some(pool)
}
