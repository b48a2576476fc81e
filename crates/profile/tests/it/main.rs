//! The integration tests of this crate, one file for each subject. Each file says whether it is live or deterministic.

mod counting;
mod layers;
mod live;
mod peers;
mod sockets;
