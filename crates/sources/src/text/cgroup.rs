//! Files of control groups: which one a process is in, its CPU bandwidth, and how many processes it may have.

pub(crate) mod cpu;
pub(crate) mod mounts;
pub(crate) mod process;
pub(crate) mod tasks;
