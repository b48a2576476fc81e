//! The clocks of an observation: the time since it began, and the CPU time of a thread.

use std::time::{Duration, Instant};

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
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// [`thread_cpu`] in microseconds.
pub(crate) fn thread_cpu_us() -> u64 {
    u64::try_from(thread_cpu().as_micros()).unwrap_or(u64::MAX)
}
