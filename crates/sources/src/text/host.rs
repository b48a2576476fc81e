//! Files of the whole host: cores, memory, the kernel and its log.

pub(crate) mod busy_processes;
pub(crate) mod cpu;
pub(crate) mod kernel;
pub(crate) mod kernel_log;
pub(crate) mod ksoftirqd;
pub(crate) mod memory;
pub(crate) mod softnet;
pub(crate) mod task_limits;
pub(crate) mod usage;
pub(crate) mod user_tasks;
