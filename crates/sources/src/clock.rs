//! The clocks of an observation: the time since it began, the CPU time of a thread, and the kernel's tick.

use std::ops::RangeInclusive;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_getres, clock_gettime};

/// Ticks that are watched to learn when they come.
const TICKS: usize = 8;
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

/// CPU time of the calling thread (CLOCK_THREAD_CPUTIME_ID): what work costs, whatever else the host does.
pub(crate) fn thread_cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// [`thread_cpu`] in microseconds.
pub(crate) fn thread_cpu_us() -> u64 {
    u64::try_from(thread_cpu().as_micros()).unwrap_or(u64::MAX)
}

/// The kernel's clock tick. Times of sockets are whole ticks (jiffies), and ticks come at equal distances on the monotonic clock: whoever knows when one came
/// knows the time since the last one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tick {
    length_ns: u64,
    /// When ticks come, in the length of one.
    phase_ns: u64,
}

impl Tick {
    /// The tick of this kernel. The first call watches some ticks go by. `None` if they are not told.
    pub(crate) fn of_kernel() -> Option<Self> {
        static TICK: OnceLock<Option<Tick>> = OnceLock::new();
        *TICK.get_or_init(Self::watch)
    }

    /// The coarse clock is set where the kernel counts a tick (tick_do_update_jiffies64 calls update_wall_time). That may be late, and is never early.
    fn watch() -> Option<Self> {
        let length_ns = nanoseconds(Duration::try_from(clock_getres(ClockId::MonotonicCoarse)).ok()?);
        if !TICK_NS.contains(&length_ns) {
            return None;
        }
        let until_ns = monotonic_ns() + (TICKS as u64 + 2) * length_ns;
        let (mut came, mut coarse) = (Vec::new(), clock_gettime(ClockId::MonotonicCoarse));
        while came.len() < TICKS && came.last().is_none_or(|last| *last < until_ns) {
            let (now, now_ns) = (clock_gettime(ClockId::MonotonicCoarse), monotonic_ns());
            if now != coarse {
                coarse = now;
                came.push(now_ns);
            } else if now_ns >= until_ns {
                break;
            }
        }
        Some(Self { length_ns, phase_ns: earliest(&came, length_ns)? })
    }

    /// The length of a tick, microseconds.
    pub(crate) fn length_us(self) -> u64 {
        self.length_ns / 1_000
    }

    /// Time since the last tick, microseconds.
    pub(crate) fn since_us(self) -> u64 {
        (monotonic_ns() % self.length_ns + self.length_ns - self.phase_ns) % self.length_ns / 1_000
    }
}

/// The earliest of these times within the length of a tick, at most half a tick before the first.
fn earliest(came_ns: &[u64], length_ns: u64) -> Option<u64> {
    let first = came_ns.first()? % length_ns;
    let before = came_ns.iter().map(|came_ns| (first + length_ns - came_ns % length_ns) % length_ns);
    let most = before.filter(|before| *before < length_ns / 2).max().unwrap_or(0);
    Some((first + length_ns - most) % length_ns)
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
    fn a_late_tick_does_not_move_the_others() {
        assert_eq!(earliest(&[4_100, 8_030, 12_900, 16_010], 4_000), Some(10));
        assert_eq!(
            earliest(&[4_010, 7_990, 12_500], 4_000),
            Some(3_990),
            "the first one was late, and the next begins before the boundary"
        );
        assert_eq!(earliest(&[], 4_000), None);
    }

    #[test]
    fn the_time_since_a_tick_is_less_than_one() {
        let Some(tick) = Tick::of_kernel() else { return println!("skipped: this kernel does not tell its tick") };
        assert!(TICK_NS.contains(&(1_000 * tick.length_us())));
        assert!((0..1_000).all(|_| tick.since_us() < tick.length_us()));
    }
}
