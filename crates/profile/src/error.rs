//! Why no profile could be taken.

use std::io;

/// An error of the sampler. Its text says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel does not let this user sample what was requested.
    #[error("{what} needs {needs}: {hint}")]
    Privilege {
        /// What was requested.
        what: String,
        /// The capability or setting that allows it.
        needs: &'static str,
        /// What the user can do.
        hint: String,
    },
    /// `perf_event_open` does not exist (a kernel without `CONFIG_PERF_EVENTS`, or a container's seccomp filter).
    #[error("perf_event_open is missing: this kernel does not have it, or the container's seccomp filter blocks it ({0})")]
    Unsupported(io::Error),
    /// This kernel lacks something that is needed.
    #[error("{0}")]
    Missing(String),
    /// None of the given processes exists.
    #[error("there is no process {0}")]
    NoProcess(String),
    /// The given cgroup does not exist.
    #[error("there is no cgroup {0}: no hierarchy below /sys/fs/cgroup has it, and no process is in it")]
    NoCgroup(String),
    /// More threads than file descriptors: each thread needs one for each core.
    #[error(
        "sampling {threads} threads on {cores} cores one by one needs {needed} file descriptors and the limit is {limit}: \
         raise it (ulimit -n), or give CAP_PERFMON, with which one descriptor for each core is enough"
    )]
    TooManyThreads {
        /// Threads to sample.
        threads: usize,
        /// Cores to sample.
        cores: usize,
        /// File descriptors needed.
        needed: usize,
        /// The hard limit of this process.
        limit: u64,
    },
    /// A given core is not online.
    #[error("core {0} is not online")]
    NoCore(u32),
    /// Another error of a system call.
    #[error("{0}: {1}")]
    Io(String, io::Error),
}
