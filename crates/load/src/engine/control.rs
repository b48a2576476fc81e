//! Lets other threads stop a running load and watch its counters.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use chokepoint_model::load::{InFlight, LoadExchange};

use crate::engine::clock::Clock;
use crate::engine::exchanges::Exchanges;
use crate::results::published::Published;

/// Shared between the caller of [`crate::run`] and others, such as a signal handler's thread and a progress bar.
#[derive(Debug, Default)]
pub struct Control {
    stopped: AtomicBool,
    aborted: AtomicBool,
    started: AtomicU64,
    ended: AtomicU64,
    good: AtomicU64,
    failed: AtomicU64,
    in_flight: AtomicI64,
    under_way: Mutex<Vec<Arc<OwnCount>>>,
    began: Mutex<Option<(Clock, Instant)>>,
    /// Of a load over TLS that is observed.
    exchanges: Mutex<Option<Exchanges>>,
    is_observed: bool,
    /// What the threads publish for a viewer, if one asked for it.
    published: Option<Mutex<Published>>,
}

/// What one thread has in flight right now. Each thread writes its own value, which has its own cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct OwnCount {
    all: AtomicU32,
    begun: AtomicU32,
    /// When the number last changed, and the time that requests were in flight until then, nanoseconds summed over requests.
    changed_ns: AtomicU64,
    time_ns: AtomicU64,
    /// For how long the thread has been on a core, nanoseconds; as of the last end of a slice.
    spent_ns: AtomicU64,
}

impl OwnCount {
    #[inline(always)]
    pub(crate) fn set(&self, number: u32, changed_ns: u64, time_ns: u64) {
        self.changed_ns.store(changed_ns, Ordering::Relaxed);
        self.time_ns.store(time_ns, Ordering::Relaxed);
        self.all.store(number, Ordering::Release);
    }

    /// Adds what is in flight at a moment. If the thread changes the number meanwhile, the time is off by that one change.
    fn add_to(&self, sum: &mut InFlight) {
        let all = u64::from(self.all.load(Ordering::Acquire));
        sum.all += all;
        sum.begun += u64::from(self.begun.load(Ordering::Relaxed));
        let since_ns = sum.at_ns.saturating_sub(self.changed_ns.load(Ordering::Relaxed));
        sum.time_ns += self.time_ns.load(Ordering::Relaxed) + all * since_ns;
    }

    pub(crate) fn set_spent(&self, cpu_ns: u64) {
        self.spent_ns.store(cpu_ns, Ordering::Relaxed);
    }

    /// Sets the number of requests whose answer has begun.
    pub(crate) fn set_begun(&self, number: u32) {
        self.begun.store(number, Ordering::Relaxed);
    }
}

/// Counters of a running load, updated every 100 ms. They are not an exact state at one instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Requests started.
    pub started: u64,
    /// Requests ended, in any way.
    pub ended: u64,
    /// Expected answers.
    pub good: u64,
    /// Requests that ended without an answer.
    pub failed: u64,
    /// Requests in flight.
    pub in_flight: u64,
}

impl Control {
    /// A control for one or several loads, one after another.
    pub fn new() -> Self {
        Self::default()
    }

    /// Like [`Control::new`], for a load that a [`crate::Viewer`] watches. Each thread then publishes its counts ten times a second, which takes about a
    /// thousandth of its time.
    pub fn watched() -> Self {
        Control { published: Some(Mutex::default()), ..Self::default() }
    }

    /// Like [`Control::new`], for a load whose sockets are observed: over TLS [`Control::exchange`] tells about its connections.
    pub fn observed() -> Self {
        Control { is_observed: true, ..Self::default() }
    }

    pub(crate) fn published(&self) -> Option<&Mutex<Published>> {
        self.published.as_ref()
    }

    /// Ends the load early: no further request starts, and requests in flight are awaited for at most one timeout. The control stays stopped: a later
    /// [`crate::run`] with it ends at once.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Ends the load at once: requests in flight are abandoned and not counted. For a second Ctrl-C.
    pub fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
        self.stop();
    }

    /// Whether [`Control::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// The counters of the running load, or of the last one.
    pub fn progress(&self) -> Progress {
        Progress {
            started: self.started.load(Ordering::Relaxed),
            ended: self.ended.load(Ordering::Relaxed),
            good: self.good.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            in_flight: self.in_flight.load(Ordering::Relaxed).max(0) as u64,
        }
    }

    /// When the counted part of the load begins: after the threads were started and the warm-up. None before that is known.
    pub fn began(&self) -> Option<Instant> {
        lock(&self.began).map(|(_, began)| began)
    }

    pub(crate) fn begin_at(&self, clock: Clock, began: Instant) {
        *lock(&self.began) = Some((clock, began));
    }

    /// Requests in flight right now, unlike those of [`Control::progress`]; zero before and after a load.
    pub fn under_way(&self) -> InFlight {
        let Some((clock, _)) = *lock(&self.began) else { return InFlight::default() };
        let mut sum = InFlight { is_loading: true, at_ns: clock.now_ns(), ..InFlight::default() };
        lock(&self.under_way).iter().for_each(|thread| thread.add_to(&mut sum));
        sum
    }

    /// Whose turn it is on the connection from this local port. `None` if the load is not observed, without TLS, without such
    /// a connection, and if the load has several addresses.
    pub fn exchange(&self, port: u16) -> Option<LoadExchange> {
        lock(&self.exchanges).as_ref()?.at(port)
    }

    /// Where the connections of a load tell whose turn it is, if anybody asks. `are_known`: their local ports tell them apart.
    pub(crate) fn begin_exchanges(&self, are_known: bool) -> Option<Exchanges> {
        let exchanges = (self.is_observed && are_known).then(Exchanges::new);
        lock(&self.exchanges).clone_from(&exchanges);
        exchanges
    }

    /// Adds a thread. It writes what it has in flight into the returned value.
    pub(crate) fn add_thread(&self) -> Arc<OwnCount> {
        let thread = Arc::new(OwnCount::default());
        lock(&self.under_way).push(Arc::clone(&thread));
        thread
    }

    /// For how long each thread has been on a core, nanoseconds; as of its last end of a slice.
    pub(crate) fn spent_ns(&self) -> Vec<u64> {
        lock(&self.under_way).iter().map(|thread| thread.spent_ns.load(Ordering::Relaxed)).collect()
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed)
    }

    /// Resets the counters for the next load.
    pub(crate) fn begin(&self) {
        for counter in [&self.started, &self.ended, &self.good, &self.failed] {
            counter.store(0, Ordering::Relaxed);
        }
        self.in_flight.store(0, Ordering::Relaxed);
        lock(&self.under_way).clear();
        *lock(&self.began) = None;
        if let Some(published) = &self.published {
            *lock(published) = Published::default();
        }
    }

    /// Adds what a thread has counted since its last call.
    pub(crate) fn add(&self, since: &Progress, in_flight_change: i64) {
        self.started.fetch_add(since.started, Ordering::Relaxed);
        self.ended.fetch_add(since.ended, Ordering::Relaxed);
        self.good.fetch_add(since.good, Ordering::Relaxed);
        self.failed.fetch_add(since.failed, Ordering::Relaxed);
        self.in_flight.fetch_add(in_flight_change, Ordering::Relaxed);
    }
}

/// Locks even if another thread panicked while holding the lock: the data are counters, each of which is consistent.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
