//! Files of control groups: which one a process is in, its CPU bandwidth, whether it is frozen, and how many processes it may have.

pub(crate) mod cpu;
pub(crate) mod freezer;
pub(crate) mod mounts;
pub(crate) mod process;
pub(crate) mod tasks;
