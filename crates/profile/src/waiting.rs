//! What threads wait for while they do not run.

pub(crate) mod peers;
pub(crate) mod sampler;
pub(crate) mod sockets;
pub mod text;
pub mod waits;
