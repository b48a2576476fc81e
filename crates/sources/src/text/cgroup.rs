//! Files of control groups: which one a process is in, and its CPU bandwidth.

pub(crate) mod cpu;
pub(crate) mod mounts;
pub(crate) mod process;
