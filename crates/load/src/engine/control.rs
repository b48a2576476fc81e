//! What other threads may do with a running load: stop it, and watch its counters.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use chokepoint_model::load::InFlight;

use crate::engine::shared::{Clock, lock};
use crate::results::live::Shown;

/// Shared between the caller of [`crate::engine::run`] and others, such as a signal handler's thread and a progress bar.
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
    /// What the threads tell a viewer, where one asked for it.
    told: Option<Mutex<Shown>>,
}

/// What one thread has under way, at this very moment. Each thread writes its own, which has a cache line to itself.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct OwnCount {
    all: AtomicU32,
    begun: AtomicU32,
    /// When their number changed last, and the time that all were under way until then, nanoseconds.
    changed_ns: AtomicU64,
    time_ns: AtomicU64,
}

impl OwnCount {
    #[inline(always)]
    pub(crate) fn set(&self, number: u32, changed_ns: u64, time_ns: u64) {
        self.changed_ns.store(changed_ns, Ordering::Relaxed);
        self.time_ns.store(time_ns, Ordering::Relaxed);
        self.all.store(number, Ordering::Release);
    }

    /// Adds what is under way at a moment. Where the thread changes it meanwhile, the time is off by that of one change.
    fn add_to(&self, sum: &mut InFlight) {
        let all = u64::from(self.all.load(Ordering::Acquire));
        sum.all += all;
        sum.begun += u64::from(self.begun.load(Ordering::Relaxed));
        let since_ns = sum.at_ns.saturating_sub(self.changed_ns.load(Ordering::Relaxed));
        sum.time_ns += self.time_ns.load(Ordering::Relaxed) + all * since_ns;
    }

    /// Requests of whose answer a part came.
    pub(crate) fn set_begun(&self, number: u32) {
        self.begun.store(number, Ordering::Relaxed);
    }
}

/// Counters of a load under way, brought up to date every 100 ms; not an instant's exact state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Requests begun.
    pub started: u64,
    /// Requests that ended, whatever their end.
    pub ended: u64,
    /// Expected answers.
    pub good: u64,
    /// Requests that ended without an answer.
    pub failed: u64,
    /// Requests under way.
    pub in_flight: u64,
}

impl Control {
    /// A control for one or more loads after one another.
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`Control::new`], for a load that a [`crate::Viewer`] is to look at: each thread then tells ten times a second what it has counted, which
    /// takes about a thousandth of its time.
    pub fn watched() -> Self {
        Control { told: Some(Mutex::default()), ..Self::default() }
    }

    pub(crate) fn told(&self) -> Option<&Mutex<Shown>> {
        self.told.as_ref()
    }

    /// Ends the load early: no request starts any more, those under way are waited for at most one timeout. It stays stopped: a later
    /// [`crate::engine::run`] with this control ends at once.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Ends the load at once: requests under way are given up and not counted. For a second Ctrl-C.
    pub fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
        self.stop();
    }

    /// True once [`Control::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// The counters of the load under way, or of the last one.
    pub fn progress(&self) -> Progress {
        Progress {
            started: self.started.load(Ordering::Relaxed),
            ended: self.ended.load(Ordering::Relaxed),
            good: self.good.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            in_flight: self.in_flight.load(Ordering::Relaxed).max(0) as u64,
        }
    }

    /// When the load begins whose requests are counted, after the threads were made and the warm-up is over; nothing before it is known.
    pub fn began(&self) -> Option<Instant> {
        lock(&self.began).map(|(_, began)| began)
    }

    pub(crate) fn begin_at(&self, clock: Clock, began: Instant) {
        *lock(&self.began) = Some((clock, began));
    }

    /// Requests under way at this very moment, unlike those of [`Control::progress`]; zero before a load and after it.
    pub fn under_way(&self) -> InFlight {
        let Some((clock, _)) = *lock(&self.began) else { return InFlight::default() };
        let mut sum = InFlight { is_loading: true, at_ns: clock.now_ns(), ..InFlight::default() };
        lock(&self.under_way).iter().for_each(|thread| thread.add_to(&mut sum));
        sum
    }

    /// Where one more thread tells what it has under way.
    pub(crate) fn thread(&self) -> Arc<OwnCount> {
        let thread = Arc::new(OwnCount::default());
        lock(&self.under_way).push(Arc::clone(&thread));
        thread
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed)
    }

    /// Sets the counters to zero for the next load.
    pub(crate) fn begin(&self) {
        for counter in [&self.started, &self.ended, &self.good, &self.failed] {
            counter.store(0, Ordering::Relaxed);
        }
        self.in_flight.store(0, Ordering::Relaxed);
        lock(&self.under_way).clear();
        *lock(&self.began) = None;
        if let Some(told) = &self.told {
            *lock(told) = Shown::default();
        }
    }

    /// Adds what a thread has counted since it last did.
    pub(crate) fn add(&self, since: &Progress, in_flight_change: i64) {
        self.started.fetch_add(since.started, Ordering::Relaxed);
        self.ended.fetch_add(since.ended, Ordering::Relaxed);
        self.good.fetch_add(since.good, Ordering::Relaxed);
        self.failed.fetch_add(since.failed, Ordering::Relaxed);
        self.in_flight.fetch_add(in_flight_change, Ordering::Relaxed);
    }
}
