//! Files of control groups: which one a process is in, its CPU bandwidth, whether it is frozen, how many processes it may have, and what it may do with disks.

pub(crate) mod cpu;
pub(crate) mod freezer;
pub(crate) mod io;
pub(crate) mod mounts;
pub(crate) mod process;
pub(crate) mod tasks;
