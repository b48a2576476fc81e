//! Keepalive on one edge between two servers: whether connections are kept, why not, and what to change. Facts come in, messages go out.

mod packets;
mod sockets;
#[cfg(test)]
mod tests;
mod verdict;

pub use packets::keepalive;
pub use sockets::{ClientKeeps, ServerKeeps, SocketFacts, keepalive_of_sockets};
pub use verdict::{ConnectionReuse, Gain, Keepalive, Reason};
