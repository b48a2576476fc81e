//! Packets that the kernel dropped, with its reasons. Where BPF may be used (cargo feature `bpf`), a BPF program in the kernel counts them with their
//! sockets; elsewhere they are sampled with the tracepoint skb:kfree_skb.

mod dropped;
mod dropping;
mod ends;
mod named;
mod reasons;
#[cfg(feature = "bpf")]
mod record;
mod samples;
#[cfg(feature = "bpf")]
mod sockets;
pub mod text;

pub use dropped::{DROPS_SCHEMA, Drop, Drops, Holder, Means, SocketDrops};
pub use dropping::Dropping;
pub(crate) use dropping::lacking;
