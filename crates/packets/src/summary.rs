//! What is kept of a stream once it is over. Names follow Wireshark's fields where they mean the same.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use serde::Serialize;

/// Why something was sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resent {
    /// Duplicate or selective acknowledgements called for it (RFC 5681, RFC 6675).
    Fast,
    /// Nothing came back for the time of a retransmission timeout (RFC 6298).
    Timeout,
    /// The end of what was under way, sooner than a timeout or with earlier data still unacknowledged (tail loss probe, RFC 8985).
    Tail,
    /// All of it had been acknowledged already.
    Spurious,
}

/// What one side sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Direction {
    /// Segments of any kind.
    pub packets: u64,
    /// Segments with payload.
    pub data_packets: u64,
    /// Payload, what was sent again included: the sum of `tcp.len`.
    pub bytes: u64,
    /// Payload, each byte once; what the capture lacks included where it was acknowledged.
    pub bytes_delivered: u64,
    /// Segments that were sent again, of every kind.
    #[serde(rename = "tcp.analysis.retransmission")]
    pub retransmissions: u64,
    /// Those that duplicate acknowledgements called for.
    #[serde(rename = "tcp.analysis.fast_retransmission")]
    pub fast_retransmissions: u64,
    /// Those that a timeout called for.
    pub timeout_retransmissions: u64,
    /// Tail loss probes.
    pub tail_retransmissions: u64,
    /// Those of what had been acknowledged already.
    #[serde(rename = "tcp.analysis.spurious_retransmission")]
    pub spurious_retransmissions: u64,
    /// Payload that was sent again, bytes.
    pub retransmitted_bytes: u64,
    /// Segments that others had overtaken.
    #[serde(rename = "tcp.analysis.out_of_order")]
    pub out_of_order: u64,
    /// Times at which something before a segment was missing from the capture.
    #[serde(rename = "tcp.analysis.lost_segment")]
    pub lost_segments: u64,
    /// Times at which the other side acknowledged what the capture lacks.
    #[serde(rename = "tcp.analysis.ack_lost_segment")]
    pub ack_lost_segments: u64,
    /// Duplicate acknowledgements that this side sent.
    #[serde(rename = "tcp.analysis.duplicate_ack")]
    pub duplicate_acks: u64,
    /// Reports of this side that it got something twice (RFC 2883).
    pub duplicate_sacks: u64,
    /// Segments in which this side offered no room.
    #[serde(rename = "tcp.analysis.zero_window")]
    pub zero_windows: u64,
    /// Time for which this side offered no room, ns.
    pub zero_window_ns: u64,
    /// Segments that filled the other side's window.
    #[serde(rename = "tcp.analysis.window_full")]
    pub window_full: u64,
    /// Segments that only ask whether there is room again.
    #[serde(rename = "tcp.analysis.zero_window_probe")]
    pub window_probes: u64,
    /// Segments that only ask whether the other side is still there.
    #[serde(rename = "tcp.analysis.keep_alive")]
    pub keepalives: u64,
    /// Times at which this side waited for a delayed acknowledgement before it sent on.
    pub delayed_ack_stalls: u64,
    /// Time of those waits, ns.
    pub delayed_ack_stall_ns: u64,
    /// Most bytes sent and not acknowledged.
    #[serde(rename = "tcp.analysis.bytes_in_flight")]
    pub bytes_in_flight_max: u64,
    /// Largest segment that this side offered to take, bytes.
    #[serde(rename = "tcp.options.mss_val")]
    pub mss: Option<u16>,
    /// Shift of its window.
    #[serde(rename = "tcp.options.wscale.shift")]
    pub window_scale: Option<u8>,
    /// It takes selective acknowledgements.
    #[serde(rename = "tcp.options.sack_perm")]
    pub sack_permitted: bool,
    /// It sends timestamps.
    #[serde(rename = "tcp.options.timestamp")]
    pub timestamps: bool,
    /// What it sent before anything of it was acknowledged.
    pub first_flight: Option<FirstFlight>,
}

impl Direction {
    pub(crate) fn again(&mut self, kind: Resent, bytes: u32) {
        self.retransmissions += 1;
        self.retransmitted_bytes += u64::from(bytes);
        *match kind {
            Resent::Fast => &mut self.fast_retransmissions,
            Resent::Timeout => &mut self.timeout_retransmissions,
            Resent::Tail => &mut self.tail_retransmissions,
            Resent::Spurious => &mut self.spurious_retransmissions,
        } += 1;
    }
}

/// The first flight of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FirstFlight {
    /// Segments: where offload joined several into one packet, as many as it was cut into.
    pub segments: u32,
    /// Payload.
    pub bytes: u64,
    /// It went on with more data after the acknowledgement, before the other side sent any: the congestion window was the limit.
    pub limited: bool,
}

/// What the stream carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// No payload.
    None,
    /// HTTP/1.0 or HTTP/1.1.
    Http,
    /// FastCGI.
    Fastcgi,
    /// TLS: what is in it is not seen; exchanges are counted by turns.
    Tls,
    /// Anything else; exchanges are counted by turns.
    Other,
}

/// One of the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectionEnd {
    /// The side that asked.
    Client,
    /// The side that answered.
    Server,
}

/// How a side closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Manner {
    /// FIN: no more to send.
    Fin,
    /// RST: gone.
    Rst,
}

/// When the first side closed, seen from what the stream carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// Before anything was asked.
    BeforeRequest,
    /// With a request that was not answered at all.
    WithinRequest,
    /// Within an answer.
    WithinAnswer,
    /// Right after the last answer: within 50 ms of its end, or the answer's end was the close.
    AfterAnswer,
    /// After a time without work.
    Idle,
}

/// The end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Close {
    /// Who closed first.
    pub by: ConnectionEnd,
    /// How.
    pub manner: Manner,
    /// When, seen from the requests.
    pub moment: Moment,
    /// Time since the end of the last answer, ns.
    pub after_last_answer_ns: Option<u64>,
    /// How the other side closed, where it did.
    pub other: Option<Manner>,
    /// A request that was sent when the server had closed the idle connection, and that nobody answered.
    pub race: bool,
}

/// A stream that is over, or of which no more is seen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamSummary {
    /// Its number: streams are numbered by their first packet, from 0, as Wireshark numbers them.
    #[serde(rename = "tcp.stream")]
    pub index: u64,
    /// The side that asks.
    pub client: SocketAddr,
    /// The side that answers.
    pub server: SocketAddr,
    /// How it is known which is which: the handshake, what they said, or only the port numbers.
    pub roles_by: RolesBy,
    /// First packet, ns since 1970-01-01 UTC.
    pub begin_ns: i64,
    /// Last packet.
    pub end_ns: i64,
    /// The handshake was seen from its first SYN.
    pub from_begin: bool,
    /// Time from the first SYN to the acknowledgement that completed the handshake, ns.
    #[serde(rename = "tcp.analysis.initial_rtt_ns")]
    pub setup_ns: Option<u64>,
    /// From there to the client's first application data, ns: what the handshake of TLS takes. Nothing where it is not TLS.
    pub tls_setup_ns: Option<u64>,
    /// Time from the SYN to the answer to it, ns: from where the capture was made to the server and back.
    pub server_rtt_ns: Option<u64>,
    /// What it carried.
    pub protocol: Protocol,
    /// Requests, or turns of the client where the protocol does not tell.
    pub requests: u64,
    /// Answers that were whole.
    pub answers: u64,
    /// Records of TLS, both ways.
    pub tls_records: u64,
    /// Mean time from the end of a request to the first byte of its answer, ns.
    pub first_byte_ns_mean: Option<u64>,
    /// The longest of those.
    pub first_byte_ns_max: Option<u64>,
    /// Longest time without any packet, ns.
    pub idle_ns_max: u64,
    /// Times of more than a second without any packet.
    pub idle_gaps: u64,
    /// What the client sent.
    pub client_sent: Direction,
    /// What the server sent.
    pub server_sent: Direction,
    /// How it ended; `None` if that was not seen.
    pub close: Option<Close>,
    /// It was dropped to make room for others: what came later is not in it.
    pub dropped_for_room: bool,
}

/// How client and server are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RolesBy {
    /// The client sent the SYN.
    Handshake,
    /// What they said is a request or an answer.
    Content,
    /// The server has the lower port.
    Ports,
}

impl StreamSummary {
    /// A rough sum of the time that it lost, ns: timeouts and tail probes at 200 ms (TCP_RTO_MIN of Linux), fast retransmissions at a
    /// round-trip time, waits for a window or a delayed acknowledgement as long as they were, and a race at a second.
    pub fn lost_ns(&self) -> u64 {
        let rtt_ns = self.setup_ns.unwrap_or(1_000_000);
        let of = |direction: &Direction| {
            let probes = direction.timeout_retransmissions + direction.tail_retransmissions;
            (probes.saturating_mul(200_000_000))
                .saturating_add(direction.fast_retransmissions.saturating_mul(rtt_ns))
                .saturating_add(direction.zero_window_ns)
                .saturating_add(direction.delayed_ack_stall_ns)
        };
        let race = if self.close.is_some_and(|close| close.race) { 1_000_000_000 } else { 0 };
        of(&self.client_sent).saturating_add(of(&self.server_sent)).saturating_add(race)
    }

    /// Segments that were sent again, both ways.
    pub fn retransmissions(&self) -> u64 {
        self.client_sent.retransmissions + self.server_sent.retransmissions
    }
}

/// An address as it is written: IPv4 where it was mapped.
pub(crate) fn address(address: u128) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from(address)).to_canonical()
}

pub(crate) fn socket((at, port): (u128, u16)) -> SocketAddr {
    SocketAddr::new(address(at), port)
}
