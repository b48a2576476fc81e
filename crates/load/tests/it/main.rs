//! The integration tests of this crate, a file for each subject; each file says whether it is live or deterministic.

mod closed;
mod fastcgi;
mod host;
mod misbehaving;
mod open;
mod phases;
mod server;
mod stall;
mod tls;
mod unix;
mod variety;
