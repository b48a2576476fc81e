//! Files of one process.

pub(crate) mod cpu;
pub(crate) mod fd_count;
pub(crate) mod files;
pub(crate) mod identity;
pub(crate) mod limits;
pub(crate) mod mappings;
pub(crate) mod memory;
mod sessions;
pub(crate) mod stat;
pub(crate) mod syscall;
pub(crate) mod thread_names;
pub(crate) mod threads;
pub(crate) mod tracing;
mod udp;
mod waits;
pub(crate) mod workers;
