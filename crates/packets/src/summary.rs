//! The summary of a finished stream. Names follow Wireshark's fields where the meaning is the same.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use serde::Serialize;

/// Why a segment was retransmitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resent {
    /// Duplicate or selective acknowledgements called for it (RFC 5681, RFC 6675).
    Fast,
    /// No acknowledgement came within a retransmission timeout (RFC 6298).
    Timeout,
    /// The end of the data in flight, sooner than a timeout or with earlier data unacknowledged (tail loss probe, RFC 8985).
    Tail,
    /// All of it was acknowledged already.
    Spurious,
}

/// The counts of one side's segments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Direction {
    /// Segments of any kind.
    pub packets: u64,
    /// Segments with payload.
    pub data_packets: u64,
    /// Payload bytes with retransmissions: the sum of `tcp.len`.
    pub bytes: u64,
    /// Payload bytes without retransmissions. Includes acknowledged bytes that the capture lacks.
    pub bytes_delivered: u64,
    /// Retransmitted segments of every kind.
    #[serde(rename = "tcp.analysis.retransmission")]
    pub retransmissions: u64,
    /// Retransmissions because of duplicate acknowledgements.
    #[serde(rename = "tcp.analysis.fast_retransmission")]
    pub fast_retransmissions: u64,
    /// Retransmissions because of a timeout.
    pub timeout_retransmissions: u64,
    /// Tail loss probes.
    pub tail_retransmissions: u64,
    /// Retransmissions of acknowledged data.
    #[serde(rename = "tcp.analysis.spurious_retransmission")]
    pub spurious_retransmissions: u64,
    /// Retransmitted payload, bytes.
    pub retransmitted_bytes: u64,
    /// Segments that later ones overtook.
    #[serde(rename = "tcp.analysis.out_of_order")]
    pub out_of_order: u64,
    /// Number of times that data before a segment was missing from the capture.
    #[serde(rename = "tcp.analysis.lost_segment")]
    pub lost_segments: u64,
    /// Number of times that the other side acknowledged data that the capture lacks.
    #[serde(rename = "tcp.analysis.ack_lost_segment")]
    pub ack_lost_segments: u64,
    /// Duplicate acknowledgements that this side sent.
    #[serde(rename = "tcp.analysis.duplicate_ack")]
    pub duplicate_acks: u64,
    /// This side's reports of data that it received twice (RFC 2883).
    pub duplicate_sacks: u64,
    /// Segments with which this side advertised a zero window.
    #[serde(rename = "tcp.analysis.zero_window")]
    pub zero_windows: u64,
    /// Time for which this side advertised a zero window, nanoseconds.
    pub zero_window_ns: u64,
    /// Segments that filled the other side's window.
    #[serde(rename = "tcp.analysis.window_full")]
    pub window_full: u64,
    /// Zero window probes.
    #[serde(rename = "tcp.analysis.zero_window_probe")]
    pub window_probes: u64,
    /// Keep-alive segments.
    #[serde(rename = "tcp.analysis.keep_alive")]
    pub keepalives: u64,
    /// Number of times that this side waited for a delayed acknowledgement before it sent more.
    pub delayed_ack_stalls: u64,
    /// Time of those waits, nanoseconds.
    pub delayed_ack_stall_ns: u64,
    /// Most bytes in flight: sent and not acknowledged.
    #[serde(rename = "tcp.analysis.bytes_in_flight")]
    pub bytes_in_flight_max: u64,
    /// Largest segment that this side accepts (MSS), bytes.
    #[serde(rename = "tcp.options.mss_val")]
    pub mss: Option<u16>,
    /// Shift of its window scale.
    #[serde(rename = "tcp.options.wscale.shift")]
    pub window_scale: Option<u8>,
    /// Whether it permits selective acknowledgements.
    #[serde(rename = "tcp.options.sack_perm")]
    pub sack_permitted: bool,
    /// Whether it sends timestamps.
    #[serde(rename = "tcp.options.timestamp")]
    pub timestamps: bool,
    /// What it sent before any of it was acknowledged.
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
    /// Segments. A packet that offload joined counts as the segments that it was cut into.
    pub segments: u32,
    /// Payload.
    pub bytes: u64,
    /// After the acknowledgement it sent more data before the other side sent any: the congestion window was the limit.
    pub limited: bool,
}

/// The protocol of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// No payload.
    None,
    /// HTTP/1.0 or HTTP/1.1.
    Http,
    /// FastCGI.
    Fastcgi,
    /// TLS: its contents are not visible, and exchanges are counted by turns.
    Tls,
    /// Any other protocol; exchanges are counted by turns.
    Other,
}

/// One of the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectionEnd {
    /// The side that sends requests.
    Client,
    /// The side that answers.
    Server,
}

/// How a side closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Manner {
    /// FIN: no more data to send.
    Fin,
    /// RST: the connection is aborted.
    Rst,
}

/// When the first side closed, relative to the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// Before any request.
    BeforeRequest,
    /// With a request that had no part of an answer.
    WithinRequest,
    /// Within an answer.
    WithinAnswer,
    /// Right after the last answer: within 50 ms of its end, or the close ended the answer.
    AfterAnswer,
    /// After an idle time.
    Idle,
}

/// The end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Close {
    /// The side that closed first.
    pub by: ConnectionEnd,
    /// How it closed.
    pub manner: Manner,
    /// When it closed, relative to the requests.
    pub moment: Moment,
    /// Time since the end of the last answer, nanoseconds.
    pub after_last_answer_ns: Option<u64>,
    /// How the other side closed, if it did.
    pub other: Option<Manner>,
    /// A request was sent after the server had closed the idle connection, and got no answer.
    pub race: bool,
}

/// A stream that ended, or of which the capture shows no more.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamSummary {
    /// Its number. Streams are numbered from 0 by their first packet, as in Wireshark.
    #[serde(rename = "tcp.stream")]
    pub index: u64,
    /// The side that sends requests.
    pub client: SocketAddr,
    /// The side that answers.
    pub server: SocketAddr,
    /// How client and server were told apart: by the handshake, the payload, or only the port numbers.
    pub roles_by: RolesBy,
    /// Time of the first packet, nanoseconds since 1970-01-01 UTC.
    pub begin_ns: i64,
    /// Time of the last packet.
    pub end_ns: i64,
    /// Whether the capture has the handshake from its first SYN.
    pub from_begin: bool,
    /// Time from the first SYN to the acknowledgement that completed the handshake, nanoseconds.
    #[serde(rename = "tcp.analysis.initial_rtt_ns")]
    pub setup_ns: Option<u64>,
    /// Time from there to the client's first application data, nanoseconds: the TLS handshake. `None` without TLS.
    pub tls_setup_ns: Option<u64>,
    /// Time from the SYN to its answer, nanoseconds: the round trip from the capturing host to the server.
    pub server_rtt_ns: Option<u64>,
    /// Its protocol.
    pub protocol: Protocol,
    /// Requests, or turns of the client if the protocol does not show requests.
    pub requests: u64,
    /// Complete answers.
    pub answers: u64,
    /// TLS records in both directions.
    pub tls_records: u64,
    /// Mean time from the end of a request to the first byte of its answer, nanoseconds.
    pub first_byte_ns_mean: Option<u64>,
    /// The longest of these times.
    pub first_byte_ns_max: Option<u64>,
    /// Longest time without any packet, nanoseconds.
    pub idle_ns_max: u64,
    /// Number of times of more than a second without any packet.
    pub idle_gaps: u64,
    /// What the client sent.
    pub client_sent: Direction,
    /// What the server sent.
    pub server_sent: Direction,
    /// How it ended; `None` if the capture does not show it.
    pub close: Option<Close>,
    /// It was dropped to make room for others, and later packets are not included.
    pub dropped_for_room: bool,
}

/// How client and server are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RolesBy {
    /// The client sent the SYN.
    Handshake,
    /// The payload is a request or an answer.
    Content,
    /// The server has the lower port.
    Ports,
}

impl StreamSummary {
    /// A rough sum of the lost time, nanoseconds. Timeouts and tail loss probes count 200 ms (Linux's TCP_RTO_MIN), fast retransmissions a
    /// round-trip time, waits for a window or a delayed acknowledgement their length, and a race a second.
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

    /// Retransmitted segments in both directions.
    pub fn retransmissions(&self) -> u64 {
        self.client_sent.retransmissions + self.server_sent.retransmissions
    }
}

/// An address as it is usually written: IPv4 if it was mapped.
pub(crate) fn address(address: u128) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from(address)).to_canonical()
}

pub(crate) fn socket((at, port): (u128, u16)) -> SocketAddr {
    SocketAddr::new(address(at), port)
}
