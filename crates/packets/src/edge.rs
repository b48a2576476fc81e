//! One edge: all connections from one client address to one listening address, added up as they end.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use chokepoint_model::observation::{Closes, EdgeFacts, EdgeProtocol};
use serde::{Serialize, Serializer};

use crate::application::{Sample, Spoken};
use crate::histogram::{Histogram, Quantiles};
use crate::summary::{ConnectionEnd, Direction, FirstFlight, Manner, Moment, Protocol, StreamSummary};

/// Different first flights counted separately. Of further ones only the total is kept.
const FLIGHTS_MAX: usize = 64;
/// Different request counts at the server's close that are counted separately.
const LIMITS_MAX: usize = 64;
/// Streams named as examples.
const EXAMPLES_MAX: usize = 8;

/// Client and server; `None` where there are too many edges to keep apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct EdgeAddress {
    /// The side that sends requests.
    pub client: Option<IpAddr>,
    /// The side that answers.
    pub server: Option<SocketAddr>,
}

/// First flights of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FlightCount {
    /// The flight.
    #[serde(flatten)]
    pub flight: FirstFlight,
    /// Connections with this first flight.
    pub connections: u64,
}

/// Which side closed first, how, when, and how the other side closed.
type Pattern = (ConnectionEnd, Manner, Moment, Option<Manner>);

/// The connections of an edge.
#[derive(Debug, Clone)]
pub struct Edge {
    /// Client and server.
    pub address: EdgeAddress,
    /// Connections with at least one packet.
    pub connections: u64,
    /// Connections whose handshake was seen from its first SYN.
    pub from_begin: u64,
    /// Refused connections: the SYN was answered by RST.
    pub refused: u64,
    /// Connections whose SYN got no answer at all.
    pub unanswered: u64,
    /// Connections that were dropped to make room for others.
    pub dropped_for_room: u64,
    /// Connections with a request.
    pub used: u64,
    /// Requests.
    pub requests: u64,
    /// Complete answers.
    pub answers: u64,
    /// Connections by protocol.
    pub protocols: BTreeMap<Protocol, u64>,
    /// Time of the first packet, nanoseconds since 1970-01-01 UTC.
    pub begin_ns: i64,
    /// Time of the last packet.
    pub end_ns: i64,
    /// Requests per connection, of connections with any.
    pub requests_per_connection: Histogram,
    /// Connection set-up times, nanoseconds.
    pub setup_ns: Histogram,
    /// Times of the TLS handshakes that follow, nanoseconds.
    pub tls_setup_ns: Histogram,
    /// Times from the end of a request to the first byte of its answer, nanoseconds.
    pub first_byte_ns: Histogram,
    /// The same without the round trip from the capturing host to the server: the server's think time, nanoseconds.
    pub think_ns: Histogram,
    /// Times from the first byte of a request to the last byte of its answer, nanoseconds.
    pub whole_ns: Histogram,
    /// First flights of the server.
    pub first_flights: BTreeMap<FirstFlight, u64>,
    /// How the connections ended.
    pub closes: BTreeMap<Pattern, u64>,
    /// Idle times after which the server closed, nanoseconds.
    pub server_idle_ns: Histogram,
    /// Idle times after which the client closed, nanoseconds.
    pub client_idle_ns: Histogram,
    /// What the clients sent.
    pub client_sent: Direction,
    /// What the servers sent.
    pub server_sent: Direction,
    /// Requests that reached the server just after it had closed the idle connection.
    pub races: u64,
    /// The first few streams in which that happened.
    pub race_streams: Vec<u64>,
    spoken: Spoken,
    limits: BTreeMap<u64, u64>,
    single_open: u64,
}

impl Edge {
    pub(crate) fn new(address: EdgeAddress) -> Self {
        Self {
            address,
            connections: 0,
            from_begin: 0,
            refused: 0,
            unanswered: 0,
            dropped_for_room: 0,
            used: 0,
            requests: 0,
            answers: 0,
            protocols: BTreeMap::new(),
            begin_ns: i64::MAX,
            end_ns: i64::MIN,
            requests_per_connection: Histogram::default(),
            setup_ns: Histogram::default(),
            tls_setup_ns: Histogram::default(),
            first_byte_ns: Histogram::default(),
            think_ns: Histogram::default(),
            whole_ns: Histogram::default(),
            first_flights: BTreeMap::new(),
            closes: BTreeMap::new(),
            server_idle_ns: Histogram::default(),
            client_idle_ns: Histogram::default(),
            client_sent: Direction::default(),
            server_sent: Direction::default(),
            races: 0,
            race_streams: Vec::new(),
            spoken: Spoken::default(),
            limits: BTreeMap::new(),
            single_open: 0,
        }
    }

    /// Adds a request with its answer.
    pub(crate) fn sample(&mut self, sample: Sample, server_rtt_ns: Option<u64>) {
        self.first_byte_ns.add(sample.first_byte_ns);
        self.whole_ns.add(sample.whole_ns);
        if let Some(rtt_ns) = server_rtt_ns {
            self.think_ns.add(sample.first_byte_ns.saturating_sub(rtt_ns));
        }
    }

    /// Adds a finished stream.
    pub(crate) fn add(&mut self, stream: &StreamSummary, spoken: &Spoken) {
        self.connections += 1;
        self.begin_ns = self.begin_ns.min(stream.begin_ns);
        self.end_ns = self.end_ns.max(stream.end_ns);
        *self.protocols.entry(stream.protocol).or_default() += 1;
        self.dropped_for_room += u64::from(stream.dropped_for_room);
        if stream.from_begin {
            self.from_begin += 1;
            self.setup(stream);
            if let Some(ns) = stream.tls_setup_ns {
                self.tls_setup_ns.add(ns);
            }
        }
        if stream.requests > 0 {
            self.used += 1;
            self.requests += stream.requests;
            self.answers += stream.answers;
            self.requests_per_connection.add(stream.requests);
        }
        for (sum, one) in [(&mut self.client_sent, &stream.client_sent), (&mut self.server_sent, &stream.server_sent)] {
            add_direction(sum, one);
        }
        if let Some(flight) = stream.server_sent.first_flight
            && (self.first_flights.len() < FLIGHTS_MAX || self.first_flights.contains_key(&flight))
        {
            *self.first_flights.entry(flight).or_default() += 1;
        }
        self.speak(spoken);
        self.close(stream, spoken);
    }

    fn setup(&mut self, stream: &StreamSummary) {
        match (stream.setup_ns, stream.server_rtt_ns, stream.close) {
            (Some(setup_ns), ..) => self.setup_ns.add(setup_ns),
            (None, None, Some(close)) if close.by == ConnectionEnd::Server && close.manner == Manner::Rst => self.refused += 1,
            (None, None, _) if stream.server_sent.packets == 0 => self.unanswered += 1,
            _ => {}
        }
    }

    fn speak(&mut self, spoken: &Spoken) {
        let sum = &mut self.spoken;
        sum.requests_close += spoken.requests_close;
        sum.requests_http10 += spoken.requests_http10;
        sum.requests_unkept += spoken.requests_unkept;
        sum.answers_close += spoken.answers_close;
        sum.answers_until_close += spoken.answers_until_close;
        sum.timeout_s = spoken.timeout_s.or(sum.timeout_s);
        for (sum, one) in sum.statuses.iter_mut().zip(spoken.statuses) {
            *sum += one;
        }
    }

    fn close(&mut self, stream: &StreamSummary, spoken: &Spoken) {
        let Some(close) = stream.close else {
            self.single_open += u64::from(stream.requests == 1);
            return;
        };
        *self.closes.entry((close.by, close.manner, close.moment, close.other)).or_default() += 1;
        let idle_ns = close.after_last_answer_ns.unwrap_or(0);
        match (close.moment, close.by) {
            (Moment::Idle, ConnectionEnd::Server) => self.server_idle_ns.add(idle_ns),
            (Moment::Idle, ConnectionEnd::Client) => self.client_idle_ns.add(idle_ns),
            // Only the last answer announces the end of the connection: the server counts requests.
            (Moment::AfterAnswer, _)
                if stream.from_begin
                    && stream.requests > 1
                    && spoken.answers_close == 1
                    && spoken.requests_close == 0
                    && (self.limits.len() < LIMITS_MAX || self.limits.contains_key(&stream.answers)) =>
            {
                *self.limits.entry(stream.answers).or_default() += 1;
            }
            _ => {}
        }
        if close.race {
            self.races += 1;
            if self.race_streams.len() < EXAMPLES_MAX {
                self.race_streams.push(stream.index);
            }
        }
    }

    /// Seconds between the first and the last packet.
    pub fn seconds(&self) -> f64 {
        self.end_ns.saturating_sub(self.begin_ns).max(0) as f64 / 1e9
    }

    /// Share of the requests' time spent on connection set-up; `None` if either was not seen.
    pub fn setup_share(&self) -> Option<f64> {
        let (setup, whole) = ((self.setup_ns.sum() + self.tls_setup_ns.sum()) as f64, self.whole_ns.sum() as f64);
        (setup > 0.0 && whole > 0.0).then(|| setup / (setup + whole))
    }

    /// The first flights, the most frequent first.
    pub fn flights(&self) -> Vec<FlightCount> {
        let mut flights: Vec<FlightCount> =
            self.first_flights.iter().map(|(flight, connections)| FlightCount { flight: *flight, connections: *connections }).collect();
        flights.sort_by_key(|flight| std::cmp::Reverse((flight.connections, flight.flight)));
        flights
    }

    fn closed(&self, by: ConnectionEnd, moment: Moment) -> Closes {
        let mut closes = Closes::default();
        for ((who, manner, when, _), count) in &self.closes {
            if *who == by && *when == moment {
                *(if *manner == Manner::Fin { &mut closes.fin } else { &mut closes.rst }) += count;
            }
        }
        closes
    }

    /// The basis of the verdict about keep-alive.
    pub fn facts(&self) -> EdgeFacts {
        let most = self.protocols.iter().filter(|(protocol, _)| **protocol != Protocol::None).max_by_key(|(_, count)| **count);
        let limit = self.limits.iter().max_by_key(|(_, count)| **count);
        EdgeFacts {
            protocol: match most.map(|(protocol, _)| protocol) {
                Some(Protocol::Http) => EdgeProtocol::Http,
                Some(Protocol::Fastcgi) => EdgeProtocol::Fastcgi,
                _ => EdgeProtocol::Turns,
            },
            connections: self.used,
            requests: self.requests,
            answers: self.answers,
            single_open: self.single_open,
            requests_close: self.spoken.requests_close,
            requests_http10: self.spoken.requests_http10,
            requests_unkept: self.spoken.requests_unkept,
            answers_close: self.spoken.answers_close,
            answers_until_close: self.spoken.answers_until_close,
            client_after_answer: self.closed(ConnectionEnd::Client, Moment::AfterAnswer),
            server_after_answer: self.closed(ConnectionEnd::Server, Moment::AfterAnswer),
            client_idle: self.closed(ConnectionEnd::Client, Moment::Idle),
            server_idle: self.closed(ConnectionEnd::Server, Moment::Idle),
            server_idle_s: self.server_idle_ns.quantile(0.5).map(|ns| ns as f64 / 1e9),
            request_limit: limit.map(|(requests, connections)| (*requests, *connections)),
            races: self.races,
            setup_ms: self.setup_ns.mean().map(|ns| (ns + self.tls_setup_ns.mean().unwrap_or(0.0)) / 1e6),
            request_ms: self.whole_ns.mean().map(|ns| ns / 1e6),
        }
    }
}

fn add_direction(sum: &mut Direction, one: &Direction) {
    sum.packets += one.packets;
    sum.data_packets += one.data_packets;
    sum.bytes += one.bytes;
    sum.bytes_delivered += one.bytes_delivered;
    sum.retransmissions += one.retransmissions;
    sum.fast_retransmissions += one.fast_retransmissions;
    sum.timeout_retransmissions += one.timeout_retransmissions;
    sum.tail_retransmissions += one.tail_retransmissions;
    sum.spurious_retransmissions += one.spurious_retransmissions;
    sum.retransmitted_bytes += one.retransmitted_bytes;
    sum.out_of_order += one.out_of_order;
    sum.lost_segments += one.lost_segments;
    sum.ack_lost_segments += one.ack_lost_segments;
    sum.duplicate_acks += one.duplicate_acks;
    sum.duplicate_sacks += one.duplicate_sacks;
    sum.zero_windows += one.zero_windows;
    sum.zero_window_ns += one.zero_window_ns;
    sum.window_full += one.window_full;
    sum.window_probes += one.window_probes;
    sum.keepalives += one.keepalives;
    sum.delayed_ack_stalls += one.delayed_ack_stalls;
    sum.delayed_ack_stall_ns += one.delayed_ack_stall_ns;
    sum.bytes_in_flight_max = sum.bytes_in_flight_max.max(one.bytes_in_flight_max);
    // The options may differ between connections. The smallest segment size counts.
    sum.mss = match (sum.mss, one.mss) {
        (Some(sum), Some(one)) => Some(sum.min(one)),
        (sum, one) => sum.or(one),
    };
}

/// The text of a pattern of closes.
#[derive(Serialize)]
struct CloseCount {
    by: ConnectionEnd,
    manner: Manner,
    moment: Moment,
    other: Option<Manner>,
    connections: u64,
}

/// The text of an edge.
#[derive(Serialize)]
struct Shape<'a> {
    client: Option<IpAddr>,
    server: Option<SocketAddr>,
    connections: u64,
    from_begin: u64,
    refused: u64,
    unanswered: u64,
    dropped_for_room: u64,
    used: u64,
    requests: u64,
    answers: u64,
    protocols: &'a BTreeMap<Protocol, u64>,
    seconds: f64,
    connections_per_s: Option<f64>,
    setup_share: Option<f64>,
    requests_per_connection: Option<Quantiles>,
    setup_ms: Option<Quantiles>,
    tls_setup_ms: Option<Quantiles>,
    first_byte_ms: Option<Quantiles>,
    think_ms: Option<Quantiles>,
    request_ms: Option<Quantiles>,
    first_flights: Vec<FlightCount>,
    closes: Vec<CloseCount>,
    client_sent: &'a Direction,
    server_sent: &'a Direction,
    races: u64,
    race_streams: &'a [u64],
}

impl Serialize for Edge {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let closes = self.closes.iter().map(|((by, manner, moment, other), connections)| CloseCount {
            by: *by,
            manner: *manner,
            moment: *moment,
            other: *other,
            connections: *connections,
        });
        let seconds = self.seconds();
        Shape {
            client: self.address.client,
            server: self.address.server,
            connections: self.connections,
            from_begin: self.from_begin,
            refused: self.refused,
            unanswered: self.unanswered,
            dropped_for_room: self.dropped_for_room,
            used: self.used,
            requests: self.requests,
            answers: self.answers,
            protocols: &self.protocols,
            seconds,
            connections_per_s: (seconds > 0.0).then(|| self.from_begin as f64 / seconds),
            setup_share: self.setup_share(),
            requests_per_connection: self.requests_per_connection.quantiles(1.0),
            setup_ms: self.setup_ns.quantiles(1e-6),
            tls_setup_ms: self.tls_setup_ns.quantiles(1e-6),
            first_byte_ms: self.first_byte_ns.quantiles(1e-6),
            think_ms: self.think_ns.quantiles(1e-6),
            request_ms: self.whole_ns.quantiles(1e-6),
            first_flights: self.flights(),
            closes: closes.collect(),
            client_sent: &self.client_sent,
            server_sent: &self.server_sent,
            races: self.races,
            race_streams: &self.race_streams,
        }
        .serialize(serializer)
    }
}
