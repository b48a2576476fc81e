//! What threads wait for while they do not run.

pub(crate) mod peers;
pub(crate) mod sampler;
pub mod text;
pub mod waits;
