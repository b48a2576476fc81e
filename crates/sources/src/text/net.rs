//! Files of a network namespace: protocol counters, sockets in use and settings.

pub(crate) mod netstat;
pub(crate) mod sockstat;
pub(crate) mod sysctls;
