//! Sockets of a network namespace, from sock_diag(7).

pub(crate) mod crowd;
mod dump;
pub(crate) mod inet;
pub(crate) mod listeners;
mod message;
mod namesakes;
pub(crate) mod ports;
pub(crate) mod protocol;
pub(crate) mod requests;
pub(crate) mod sample;
pub(crate) mod socket_files;
pub(crate) mod sockets;
pub(crate) mod tcp;
pub(crate) mod tcp_ends;
pub(crate) mod tcp_peer;
pub(crate) mod time_wait;
mod unix;
