//! The clocks of an observation: the time since it began, the CPU time of a thread, and the kernel's tick.

use std::ops::RangeInclusive;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_getres, clock_gettime};

/// Ticks that are watched at first, to learn when they come.
const TICKS: u64 = 8;
/// Lengths of a tick, nanoseconds (CONFIG_HZ is 100 to 1000).
const TICK_NS: RangeInclusive<u64> = 1_000_000..=10_000_000;

/// The observation's clock: microseconds since it began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(pub(crate) Instant);

impl Clock {
    pub(crate) fn now_us(self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// CPU time of the calling thread and of its readings of processes: what work costs, whatever else the host does.
pub(crate) fn thread_cpu() -> Duration {
    chokepoint_foreign::thread_cpu()
}

/// [`thread_cpu`] in microseconds.
pub(crate) fn thread_cpu_us() -> u64 {
    u64::try_from(thread_cpu().as_micros()).unwrap_or(u64::MAX)
}

/// The kernel's clock tick. Times of sockets are whole ticks (jiffies). Where the kernel counts a tick it also sets the coarse clock
/// (tick_do_update_jiffies64 calls update_wall_time), so the time since then is that between the two monotonic clocks, less what is always between them.
#[derive(Debug)]
pub(crate) struct Tick {
    length_ns: u64,
    /// The least time between the two clocks so far: right after a tick that was handled at once. A tick may be late, and is never early.
    least_ns: AtomicU64,
}

impl Tick {
    /// The tick of this kernel. The first call watches some ticks go by. `None` if they are not told.
    pub(crate) fn of_kernel() -> Option<&'static Self> {
        static TICK: OnceLock<Option<Tick>> = OnceLock::new();
        TICK.get_or_init(Self::watch).as_ref()
    }

    fn watch() -> Option<Self> {
        let length_ns = nanoseconds(Duration::try_from(clock_getres(ClockId::MonotonicCoarse)).ok()?);
        if !TICK_NS.contains(&length_ns) {
            return None;
        }
        let tick = Self { length_ns, least_ns: AtomicU64::new(u64::MAX) };
        let until_ns = monotonic_ns() + TICKS * length_ns;
        while monotonic_ns() < until_ns {
            tick.since_us();
        }
        Some(tick)
    }

    /// The length of a tick, microseconds.
    pub(crate) fn length_us(&self) -> u64 {
        self.length_ns / 1_000
    }

    /// Time since the last tick, microseconds.
    pub(crate) fn since_us(&self) -> u64 {
        // The coarse clock first: a tick between the two readings makes the time too long by a tick, and never too short.
        let coarse_ns = nanoseconds(Duration::try_from(clock_gettime(ClockId::MonotonicCoarse)).unwrap_or_default());
        let between_ns = monotonic_ns().saturating_sub(coarse_ns);
        let least_ns = self.least_ns.fetch_min(between_ns, Ordering::Relaxed).min(between_ns);
        ((between_ns - least_ns) % self.length_ns) / 1_000
    }
}

fn monotonic_ns() -> u64 {
    nanoseconds(Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default())
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_since_a_tick_is_less_than_one() {
        let Some(tick) = Tick::of_kernel() else { return println!("skipped: this kernel does not tell its tick") };
        assert!(TICK_NS.contains(&(1_000 * tick.length_us())));
        assert!((0..1_000).all(|_| tick.since_us() < tick.length_us()));
    }
}
