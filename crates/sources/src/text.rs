//! Text files of the kernel: files under /proc and /sys, the kernel log and the files of a process. Each has a thin reader and a pure parser.

pub(crate) mod cgroup;
pub(crate) mod conntrack;
pub(crate) mod error;
mod facts;
pub(crate) mod host;
pub(crate) mod net;
pub(crate) mod plain;
pub(crate) mod process;
#[cfg(test)]
mod tests;

use crate::table::Source;

/// All text sources, in the order in which a report names them: the host, then a namespace, then a process.
pub(crate) const ALL: &[&Source] = &[
    &host::kernel::KERNEL,
    &host::cpu::CPU,
    &host::busy_processes::BUSY_PROCESSES,
    &host::memory::MEMORY,
    &host::softnet::SOFTNET,
    &host::ksoftirqd::KSOFTIRQD,
    &host::kernel_log::KERNEL_LOG,
    &cgroup::cpu::CGROUP_CPU,
    &cgroup::tasks::CGROUP_TASKS,
    &cgroup::io::CGROUP_IO,
    &cgroup::freezer::CGROUP_FREEZER,
    &host::user_tasks::USER_TASKS,
    &host::task_limits::TASK_LIMITS,
    &net::sysctls::SYSCTLS,
    &net::netstat::NETSTAT,
    &net::sockstat::SOCKSTAT,
    &conntrack::table::CONNTRACK_COUNT,
    &conntrack::table::CONNTRACK_CPUS,
    &conntrack::states::CONNTRACK_STATES,
    &conntrack::translations::CONNTRACK_TRANSLATIONS,
    &process::identity::PROCESS_IDENTITY,
    &process::cpu::PROCESS_CPU,
    &process::files::PROCESS_FILES,
    &process::fd_count::PROCESS_FD_COUNT,
    &process::syscall::PROCESS_SYSCALL,
    &process::threads::PROCESS_THREADS,
    &process::tracing::PROCESS_TRACING,
    &process::thread_names::PROCESS_THREAD_NAMES,
    &process::memory::PROCESS_MEMORY,
    &process::limits::PROCESS_LIMITS,
    &process::mappings::PROCESS_MAPPINGS,
    &cgroup::process::PROCESS_CGROUPS,
];
