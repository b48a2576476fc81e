//! The present speed of the machine for this thread: a fixed computation, timed as a case is.

use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Numbers that the reference sorts: 8 MB, more than the cache of a core, as the larger cases use.
const NUMBERS: usize = 1 << 20;
/// What the reference takes at nominal speed: 26.8 to 29.1 ms were measured on a virtual core of an AMD EPYC, in a debug build.
const REFERENCE_NOMINAL: Duration = Duration::from_millis(28);

/// Time that this thread had a processor (clock_gettime(2), CLOCK_THREAD_CPUTIME_ID).
pub(crate) fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Time on the processor that the reference takes now. It sorts pseudo-random numbers: like a reader it computes, branches and moves memory.
pub(crate) fn reference() -> Duration {
    // Xorshift (Marsaglia 2003): the same numbers each time.
    let mut number = 0x9e37_79b9_7f4a_7c15_u64;
    let mut numbers: Vec<u64> = std::iter::repeat_with(|| {
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
        number
    })
    .take(NUMBERS)
    .collect();
    let begin = processor_time();
    numbers.sort_unstable();
    black_box(&numbers);
    processor_time().saturating_sub(begin)
}

/// What something would take at nominal speed that took this long while the reference took `reference`.
pub(crate) fn nominal(took: Duration, reference: Duration) -> Duration {
    took.mul_f64(REFERENCE_NOMINAL.as_secs_f64() / reference.as_secs_f64().max(f64::EPSILON))
}
