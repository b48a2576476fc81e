//! The stations of the request's path, in the order in which a request passes them.
//!
//! A station is one folder (code, messages, page, lines of the cause graph, ids of its remedies, tests) and one line in [`STATIONS`]. It reads its instances
//! from the observation and judges its own findings; `verdict` decides what they mean together.

pub(crate) mod accept_queue;
mod clients;
pub(crate) mod conntrack_table;
mod cpu;
pub(crate) mod cpu_quota;
pub(crate) mod disk_limit;
pub(crate) mod ephemeral_ports;
pub(crate) mod file_descriptors;
mod link;
pub(crate) mod load_generator;
pub(crate) mod rate_limit;
pub(crate) mod sending;
pub(crate) mod server_limit;
mod shaper;
pub(crate) mod syn_queue;
pub(crate) mod tasks;
pub(crate) mod transport;
pub(crate) mod upstream_connect;
pub(crate) mod waiting;
pub(crate) mod worker_connections;
mod worker_pool;

pub use super::station::{StationDef, StationReading};
pub use crate::facts::Context;

pub(crate) use load_generator::waited as generator_waited;
pub(crate) use worker_pool::{room_unknown, room_untold, waited_for, waits_at};

/// All stations, in the order of the path.
pub const STATIONS: &[&StationDef] = &[
    &load_generator::STATION,
    &clients::STATION,
    &link::STATION,
    &shaper::STATION,
    &transport::STATION,
    &sending::STATION,
    &conntrack_table::STATION,
    &syn_queue::STATION,
    &accept_queue::STATION,
    &worker_connections::STATION,
    &file_descriptors::STATION,
    &tasks::STATION,
    &disk_limit::STATION,
    &rate_limit::STATION,
    &server_limit::STATION,
    &ephemeral_ports::STATION,
    &upstream_connect::STATION,
    &worker_pool::STATION,
    &waiting::STATION,
    &cpu_quota::STATION,
    &cpu::STATION,
];
