//! What the threads of one load share: the prepared request, the end of the offering, the requests left to start, the guards.

use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::engine::control::Control;
use crate::limits::guard::Watch;
use crate::plan::{Plan, Protocol};
use crate::protocol::fastcgi;
use crate::protocol::request;
use crate::protocol::tls::Client;

/// At most this many requests are claimed at once.
const CLAIM_MAX: u64 = 64;

/// Nanoseconds since the start of the load, by CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Clock {
    start_ns: u64,
}

impl Clock {
    /// One whose start lies this far ahead.
    pub(crate) fn starting_in(time: Duration) -> Self {
        Clock { start_ns: Clock::default().now_ns() + time.as_nanos() as u64 }
    }

    /// Zero before the start.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        (now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64).saturating_sub(self.start_ns)
    }

    /// When it starts, or has started.
    pub(crate) fn start(&self) -> Instant {
        let now_ns = Clock::default().now_ns();
        let (ahead, ago) = (self.start_ns.saturating_sub(now_ns), now_ns.saturating_sub(self.start_ns));
        Instant::now() + Duration::from_nanos(ahead) - Duration::from_nanos(ago)
    }

    /// Sleeps until the start.
    pub(crate) fn wait_for_start(&self) {
        std::thread::sleep(Duration::from_nanos(self.start_ns.saturating_sub(Clock::default().now_ns())));
    }
}

/// A prepared request.
pub(crate) struct Prepared {
    pub(crate) bytes: Vec<u8>,
    /// The last one of a connection that carries a number of requests; empty where it is like the others.
    pub(crate) last: Vec<u8>,
    /// Its answer has no body.
    pub(crate) is_head: bool,
}

/// One load's common state.
pub(crate) struct Shared<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) control: &'a Control,
    /// The prepared requests: one for each target.
    pub(crate) requests: Vec<Prepared>,
    /// Requests that a connection carries.
    pub(crate) requests_per_connection: u32,
    /// What was to start before this is in no figure.
    pub(crate) warm_ns: u64,
    pub(crate) threads: u32,
    /// No request starts at or after this; only ever lowered.
    end_ns: AtomicU64,
    /// Requests of a closed loop that no thread has claimed yet.
    unclaimed: Option<AtomicU64>,
    pub(crate) watch: Option<Mutex<Watch>>,
    pub(crate) tls: Option<Client>,
}

impl<'a> Shared<'a> {
    /// The error is that of the TLS configuration.
    pub(crate) fn new(plan: &'a Plan, control: &'a Control, threads: u32) -> Result<Self, String> {
        Ok(Shared {
            plan,
            control,
            requests: match &plan.options.targets {
                None => vec![prepare(plan)],
                Some(targets) => targets.plans(plan).map(|plan| prepare(&plan)).collect(),
            },
            requests_per_connection: plan.options.requests_per_connection.unwrap_or(u32::MAX),
            warm_ns: plan.options.warm_up.as_nanos() as u64,
            threads,
            end_ns: AtomicU64::new(planned_end_ns(plan)),
            unclaimed: plan.requests.map(AtomicU64::new),
            watch: (!plan.guards.is_empty()).then(|| Mutex::new(Watch::new(&plan.guards, threads as usize))),
            tls: plan.options.tls.as_ref().map(Client::new).transpose()?,
        })
    }

    /// End of the offering, as known now.
    pub(crate) fn end_ns(&self) -> u64 {
        self.end_ns.load(Ordering::Relaxed)
    }

    /// True where something ended the offering before the plan's time.
    pub(crate) fn is_ended_early(&self) -> bool {
        self.end_ns() < planned_end_ns(self.plan)
    }

    /// Ends the offering now, if it has not ended.
    pub(crate) fn end_at(&self, now_ns: u64) {
        self.end_ns.fetch_min(now_ns, Ordering::Relaxed);
    }

    /// Which prepared request the request with this number among those of all threads is.
    pub(crate) fn target(&self, number: u64) -> u32 {
        match &self.plan.options.targets {
            None => 0,
            Some(targets) => targets.pick(number),
        }
    }

    /// Where a thread's connection comes from, where that is not the kernel's choice: the addresses are spread evenly over all connections.
    pub(crate) fn source(&self, thread: usize, index: u32) -> Option<IpAddr> {
        let bind = &self.plan.options.bind;
        let connection = index as usize * self.threads as usize + thread;
        connection.checked_rem(bind.len()).map(|place| bind[place])
    }

    /// Claims requests to start, at most so many: few at a time near the end, so that no thread is left alone with many. Zero: all are claimed.
    pub(crate) fn claim(&self, at_most: u64) -> u64 {
        let Some(unclaimed) = &self.unclaimed else { return u64::MAX };
        let part = |left: u64| (left / (u64::from(self.threads) * 8)).clamp(1, CLAIM_MAX).min(left).min(at_most);
        unclaimed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left - part(left))).map_or(0, part)
    }
}

fn prepare(plan: &Plan) -> Prepared {
    Prepared {
        bytes: render(plan, plan.keep_alive),
        last: if plan.options.requests_per_connection.is_some() { render(plan, false) } else { Vec::new() },
        is_head: plan.method == "HEAD",
    }
}

fn render(plan: &Plan, keep_alive: bool) -> Vec<u8> {
    match &plan.protocol {
        Protocol::Http => request::render(plan, keep_alive),
        Protocol::FastCgi { params } => fastcgi::render(plan, params, keep_alive),
    }
}

/// Where only a number of requests was asked for, the time has no end.
fn planned_end_ns(plan: &Plan) -> u64 {
    plan.duration.map_or(u64::MAX, |duration| (plan.options.warm_up + duration).as_nanos() as u64)
}

/// The lock, even if another thread died with it: its data are counters, each of which is whole.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
