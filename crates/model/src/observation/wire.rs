//! What packets showed: a capture by edge, small enough for a recording, with the numbers of the streams as examples; and the statuses of responses.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::EdgeFacts;

/// Summary of a capture.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WireView {
    /// Source of the packets: an interface with its namespace, or a file.
    pub from: String,
    /// Packets.
    pub packets: u64,
    /// Packets that did not fit into the kernel's buffer.
    pub dropped: u64,
    /// TCP streams.
    pub streams: u64,
    /// Edges, the one with most requests first.
    pub edges: Vec<WireEdge>,
    /// Number of edges left out because there were too many.
    pub edges_left_out: u64,
}

/// All connections from one address to one listening address.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WireEdge {
    /// The client. `None` for all clients together.
    pub client: Option<IpAddr>,
    /// The server.
    pub server: Option<SocketAddr>,
    /// The facts for the keepalive verdict.
    pub facts: EdgeFacts,
    /// Share of the requests' time spent on connection set-up.
    pub setup_share: Option<f64>,
    /// Segments with data from both sides.
    pub data_segments: u64,
    /// Occurrences of each sign.
    pub signs: BTreeMap<WireSign, WireCount>,
}

/// A sign of trouble in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WireSign {
    /// Retransmitted segments.
    Retransmission,
    /// Retransmissions after a timeout.
    Timeout,
    /// A side announced a zero window.
    ZeroWindow,
    /// A sender waited for a delayed acknowledgement.
    DelayedAck,
    /// The client closed first, right after an answer.
    ClientClosed,
    /// The server closed first, right after an answer.
    ServerClosed,
    /// A side closed by RST.
    Reset,
    /// A request was sent to a server that had just closed the connection.
    Race,
}

/// Occurrences of a sign.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireCount {
    /// Number of occurrences.
    pub count: u64,
    /// Time they took, ns; 0 if that makes no sense.
    pub time_ns: u64,
    /// Streams with the sign.
    pub streams: u64,
    /// Numbers of the streams with most occurrences, as Wireshark counts them (`tcp.stream`).
    pub examples: Vec<u64>,
}

/// Responses counted since the reading before, or since the socket was opened. A server without a count was not read: it may speak TLS or HTTP/2, or on a unix socket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WireAnswers {
    /// Time in which they were counted, microseconds.
    pub open_us: u64,
    /// Responses that left by the address that sent them and by status, 200 to 599. The kernel lets nothing leave with an address of this namespace but what is its own.
    pub servers: BTreeMap<SocketAddr, BTreeMap<u16, u64>>,
    /// The same on connections that were there before anything was counted. A client that asks for a file that quotes responses, and sends its next requests meanwhile, can make such
    /// a connection look as it likes.
    pub kept: BTreeMap<SocketAddr, BTreeMap<u16, u64>>,
    /// The same of those that came. Whose they are is what they say themselves: anybody on the network may send such packets.
    pub came: BTreeMap<SocketAddr, BTreeMap<u16, u64>>,
    /// Responses that found no room in the kernel's queue: whose they are is not known.
    pub lost: u64,
    /// Responses of servers beyond the largest number of servers.
    pub left_out: u64,
}
