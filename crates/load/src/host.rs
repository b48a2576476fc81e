//! What the generator uses of its own host: a network namespace, cores, file descriptors, its CPU time.

pub(crate) mod address;
pub(crate) mod bind;
pub(crate) mod cores;
pub(crate) mod files;
pub(crate) mod tcp_info;
pub mod warmth;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, LinkNameSpaceType, move_into_link_name_space, sched_getaffinity, sched_setaffinity, set_current_timer_slack};
use rustix::time::{ClockId, clock_gettime};

/// File descriptors besides connections: epoll, standard streams, those of the rest of the program.
pub(crate) const FILES_BESIDE: u64 = 64;

/// Moves only this thread into a network namespace: setns(2), needs CAP_SYS_ADMIN.
pub(crate) fn enter_netns(namespace: &File) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// Restricts this thread to these cores: sched_setaffinity(2).
pub(crate) fn pin(cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu as usize);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// Removes the 50 us by which the kernel may delay this thread's timers (PR_SET_TIMERSLACK), for exact intended starts.
pub(crate) fn use_exact_timers() {
    // Without it the load is slightly less exact, and its lateness is measured anyway.
    let _ = set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Cores on which this thread may run, ascending; empty if they could not be read (over 1024 cores).
pub(crate) fn own_cpus() -> Vec<u32> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU as u32).filter(|&cpu| set.is_set(cpu as usize)).collect()
}

/// Time of this thread since it started, nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OwnTime {
    /// On a core (CLOCK_THREAD_CPUTIME_ID).
    pub(crate) cpu_ns: u64,
    /// Ready to run but without a core: `/proc/thread-self/schedstat`, second number (Documentation/scheduler/sched-stats.rst). None if the kernel was built
    /// without it.
    pub(crate) wait_ns: Option<u64>,
}

impl OwnTime {
    pub(crate) fn now() -> Self {
        let stat = chokepoint_foreign::read_kernel("/proc/thread-self/schedstat", 1 << 10).ok();
        let wait_ns = stat.and_then(|stat| stat.split_whitespace().nth(1)?.parse().ok());
        Self { cpu_ns: cpu_ns(), wait_ns }
    }
}

/// Time that this thread has spent on a core, nanoseconds (CLOCK_THREAD_CPUTIME_ID).
pub(crate) fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Raises the soft RLIMIT_NOFILE to the hard limit if it is too small; it stays raised. The error is the hard limit if that is too small.
pub(crate) fn allow_files(files: u64) -> Result<(), u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= files) {
        return Ok(());
    }
    if let Some(hard) = limit.maximum
        && hard < files
    {
        return Err(hard);
    }
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).map_err(|_| limit.current.unwrap_or(0))
}
