//! The part of the report about what packets showed. It does not affect the verdict.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::tools::edge::ConnectionReuse;

/// A capture of the run, or an earlier one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WireReport {
    /// Where the packets come from.
    pub from: String,
    /// Packets.
    pub packets: u64,
    /// Packets that the kernel had no room for.
    pub dropped: u64,
    /// TCP streams.
    pub streams: u64,
    /// The same in one sentence.
    pub quality: String,
    /// The edges of the path, and others that show something.
    pub edges: Vec<WireEdgeReport>,
}

/// An edge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WireEdgeReport {
    /// The side that sends requests; null for all together.
    pub client: Option<IpAddr>,
    /// The side that answers.
    pub server: Option<SocketAddr>,
    /// Whether connections are kept.
    pub kept: ConnectionReuse,
    /// The same in one sentence, with the gain of keeping them if that is known.
    pub summary: String,
    /// What was seen, the costliest first.
    pub evidence: Vec<WireEvidence>,
}

/// One thing that was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WireEvidence {
    /// A sentence.
    pub text: String,
    /// Numbers of the streams that show it, as Wireshark counts them (`tcp.stream`); empty if all do.
    pub streams: Vec<u64>,
}
