//! The integration tests of this crate, one file for each subject. Each file says whether it is live or deterministic.

mod closed;
mod endings;
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
