//! What the verbs beside `diagnose` tell: a load, a server's tiers one by one, captures, and the kernel's account of connections.

pub mod bench;
pub mod bisect;
pub mod edge;
pub mod tcp;
