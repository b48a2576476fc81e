//! Remedies that change the kernel's limits: sysctls, send buffers and routes.

pub(super) mod mend_sending;
pub(super) mod raise_conntrack_max;
pub(super) mod raise_syn_backlog;
pub(super) mod reuse_time_wait;
pub(super) mod send_syn_cookies;
pub(super) mod shorten_conntrack_time_wait;
pub(super) mod widen_port_range;
