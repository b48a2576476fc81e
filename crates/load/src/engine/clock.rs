//! The clock of a load.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the start of the load, by CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Clock {
    start_ns: u64,
}

impl Clock {
    /// A clock that starts after this time.
    pub(crate) fn starting_in(time: Duration) -> Self {
        Clock { start_ns: Clock::default().now_ns() + time.as_nanos() as u64 }
    }

    /// Zero before the start.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        (now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64).saturating_sub(self.start_ns)
    }

    /// The time at which it starts or has started.
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
