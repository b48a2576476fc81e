//! Advice without a remedy beside it: somebody else has to decide, or to look.

pub(super) mod ask_limit_owner;
pub(super) mod bound_retries;
pub(super) mod end_lingering;
pub(super) mod let_go_on;
pub(super) mod let_idle_go;
pub(super) mod look_inside;
pub(super) mod mend_connections;
pub(super) mod priority;
pub(super) mod raise_shaper_rate;
pub(super) mod read_its_log;
pub(super) mod spend_less_cpu;
