//! What packets showed of connections meanwhile: facts by edge, small enough for a recording, with the numbers of the streams that show them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::tools::edge::EdgeFacts;

/// What a capture held.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WireView {
    /// Where the packets come from: an interface with its namespace, or a file.
    pub from: String,
    /// Packets.
    pub packets: u64,
    /// Packets that the kernel had no room for.
    pub dropped: u64,
    /// TCP streams.
    pub streams: u64,
    /// Edges, the one with most requests first.
    pub edges: Vec<WireEdge>,
    /// Edges that were left out because there are too many.
    pub edges_left_out: u64,
}

/// All connections from one address to one listening address.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WireEdge {
    /// The side that asks; nothing for all of them together.
    pub client: Option<IpAddr>,
    /// The side that answers.
    pub server: Option<SocketAddr>,
    /// What the verdict about keepalive follows from.
    pub facts: EdgeFacts,
    /// Share of the requests' time that went into setting connections up.
    pub setup_share: Option<f64>,
    /// Segments with data that both sides sent.
    pub data_segments: u64,
    /// Of each sign, how often it was seen.
    pub signs: BTreeMap<WireSign, WireCount>,
}

/// What can be wrong with a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WireSign {
    /// Segments that were sent again.
    Retransmission,
    /// Those of them that a timeout called for.
    Timeout,
    /// A side offered no room.
    ZeroWindow,
    /// A sender waited for a delayed acknowledgement.
    DelayedAck,
    /// The client closed first, right after an answer.
    ClientClosed,
    /// The server closed first, right after an answer.
    ServerClosed,
    /// A side closed by RST.
    Reset,
    /// A request met a server which had just closed.
    Race,
}

/// How often a sign was seen, and where.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireCount {
    /// Times.
    pub count: u64,
    /// What they took, ns; 0 where that makes no sense.
    pub time_ns: u64,
    /// Streams that show it.
    pub streams: u64,
    /// The numbers of those that show it most, in Wireshark's count (`tcp.stream`).
    pub examples: Vec<u64>,
}
