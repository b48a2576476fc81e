//! Configurations in the model's words that hold for any kind of server, a file for each kind.

pub(super) mod haproxy;
pub(super) mod postgresql;
