//! The integration tests of this crate, a file for each subject; each file says whether it is live or deterministic.

mod counting;
mod layers;
mod live;
mod peers;
mod sockets;
