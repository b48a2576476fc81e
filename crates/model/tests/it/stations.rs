//! The stations: each reports a finding if its limit does harm, and none in cases that only look similar.
//!
//! Deterministic: observations made up by the tests.

mod accept_queue;
mod accept_queue_unix;
mod conntrack_table;
mod cores;
mod cpu_quota;
mod ephemeral_ports;
mod forged_log;
mod idle_close;
mod sending;
mod server_limits;
mod setting_not_in_force;
mod shaper;
mod syn_queue;
mod transport;
mod unix_socket;
mod upstream_connect;
mod waiting;
mod waits_for_clients;
mod worker_demand;
mod worker_pool;
mod workers_blocked;

pub(crate) use sending::stalls;
