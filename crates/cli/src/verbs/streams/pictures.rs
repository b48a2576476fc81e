//! Plots of a capture: bytes in flight and sequence numbers of a stream over time (Stevens' plot), and the connections of its edge.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_packets::{Mark, StreamSummary, Trace, TracePoint};

use super::windows::Windows;
use crate::report::plot::{self, Plot, Series, Shape};
use crate::report::view::Phrases;

/// Edges whose connections are kept, and connections of each: together 2 MB.
const EDGES_MAX: usize = 256;
const CONNECTIONS_MAX: usize = 60;
/// A receive window more than this many times the bytes in flight is left out: it would flatten the other curves.
const WINDOW_TIMES_MAX: u64 = 4;

/// A connection of the timeline. Times are ns since 1970-01-01 UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Connection {
    index: u64,
    begin_ns: i64,
    /// End of the handshake.
    ready_ns: i64,
    end_ns: i64,
    requests: u64,
}

/// What is kept of ended streams.
#[derive(Debug, Default)]
pub(super) struct Gallery {
    edges: BTreeMap<(IpAddr, SocketAddr), Vec<Connection>>,
    /// The edge of the stream that is drawn.
    followed: Option<(IpAddr, SocketAddr)>,
    /// A watched congestion window, and the number of its stream.
    windows: Option<Windows>,
    watched: Option<u64>,
    /// The server and the client of the stream that is drawn.
    sides: Option<[SocketAddr; 2]>,
    /// Number and bytes of the largest stream.
    largest: Option<(u64, u64)>,
}

impl Gallery {
    /// A gallery. If a congestion window is given, its plots show it.
    pub(super) fn new(windows: Option<Windows>) -> Self {
        Self { windows, ..Self::default() }
    }

    /// Adds a stream. `follow`: the number of the stream that is drawn.
    pub(super) fn add(&mut self, stream: &StreamSummary, follow: Option<u64>) {
        let bytes = stream.client_sent.bytes + stream.server_sent.bytes;
        if self.largest.is_none_or(|(index, most)| bytes > most || bytes == most && stream.index < index) {
            self.largest = Some((stream.index, bytes));
        }
        let edge = (stream.client.ip(), stream.server);
        let connection = Connection {
            index: stream.index,
            begin_ns: stream.begin_ns,
            ready_ns: stream.begin_ns.saturating_add(i64::try_from(stream.setup_ns.unwrap_or(0)).unwrap_or(0)),
            end_ns: stream.end_ns,
            requests: stream.requests,
        };
        if follow == Some(stream.index) {
            self.followed = Some(edge);
            self.sides = Some([stream.server, stream.client]);
        }
        if self.windows.as_ref().is_some_and(|windows| windows.is_of(stream)) {
            self.watched = Some(stream.index);
        }
        if self.edges.len() >= EDGES_MAX && !self.edges.contains_key(&edge) {
            return;
        }
        let connections = self.edges.entry(edge).or_default();
        // The first by number, which is the order of their beginnings.
        let place = connections.partition_point(|other| other.index < stream.index);
        connections.insert(place, connection);
        connections.truncate(CONNECTIONS_MAX);
    }

    /// The stream with the most bytes.
    pub(super) fn largest(&self) -> Option<u64> {
        self.largest.map(|(index, _)| index)
    }

    /// The stream whose congestion window was watched.
    pub(super) fn watched(&self) -> Option<u64> {
        self.watched
    }

    /// The congestion window of one side.
    fn window_of(&self, client: bool, begin_ns: i64) -> Vec<(f64, f64)> {
        let (Some(windows), Some(sides)) = (&self.windows, self.sides) else { return Vec::new() };
        windows.of_side(sides[usize::from(client)], begin_ns)
    }

    /// The page of a stream.
    pub(super) fn page(&self, trace: &Trace, words: &Catalogue) -> String {
        let phrases = Phrases(words);
        let mut plots = stream_plots(trace, &|client, begin_ns| self.window_of(client, begin_ns), phrases);
        let mut lines = vec![phrases.say(&Message::new("streams-picture-stream").with("index", trace.index.to_string()))];
        if trace.one_in > 1 {
            lines.push(phrases.say(&Message::new("streams-picture-thinned").with("count", trace.one_in)));
        }
        if let Some((edge, connections)) = self.followed.and_then(|edge| self.edges.get_key_value(&edge)) {
            let edge = Message::new("streams-edge").with("client", edge.0.to_string()).with("server", edge.1.to_string());
            plots.push(timeline(connections, phrases.say(&edge), phrases));
            lines.push(phrases.say(&edge));
        }
        plot::page(&phrases.word("streams-picture-title"), &lines, &plots)
    }
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// The plots of a stream. `cwnd` returns the congestion window of a side (true: the client) in seconds since a time.
fn stream_plots(trace: &Trace, cwnd: &dyn Fn(bool, i64) -> Vec<(f64, f64)>, phrases: Phrases<'_>) -> Vec<Plot> {
    let begin_ns = trace.points.first().map_or(0, |point| point.at_ns);
    let sent =
        |client: bool| trace.points.iter().filter(|point| point.from_client == client).map(|point| u64::from(point.bytes)).sum::<u64>();
    // Draw the side that sends more.
    let client = sent(true) > sent(false);
    let at = |point: &TracePoint| seconds(point.at_ns.saturating_sub(begin_ns));
    let who = phrases.word(if client { "streams-end-client" } else { "streams-end-server" });
    let plot = |title: &'static str, y: &'static str, series: Vec<Series>| Plot {
        title: phrases.say(&Message::new(title).with("who", who.as_str())),
        x: phrases.word("tcp-watch-seconds"),
        y: phrases.word(y),
        series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
        ..Plot::default()
    };
    let named = |name: &'static str, color, shape, points| Series { name: phrases.word(name), color, shape, points };
    let (mut high, mut flight, mut window) = (0_i64, Vec::new(), Vec::new());
    for point in &trace.points {
        if point.from_client == client {
            high = high.max(point.start.saturating_add(i64::from(point.bytes)));
            flight.push((at(point), point.in_flight as f64));
        } else {
            flight.push((at(point), high.saturating_sub(point.acked).max(0) as f64));
            window.push((at(point), u64::from(point.window)));
        }
    }
    let most = flight.iter().map(|(_, bytes)| *bytes).fold(0.0, f64::max);
    let fits = window.iter().all(|(_, bytes)| *bytes as f64 <= most * WINDOW_TIMES_MAX as f64);
    let window: Vec<(f64, f64)> = window.into_iter().filter(|_| fits).map(|(at, bytes)| (at, bytes as f64)).collect();
    let bar =
        |point: &TracePoint| [(at(point), point.start as f64), (at(point), point.start.saturating_add(i64::from(point.bytes)) as f64)];
    let data = trace.points.iter().filter(|point| point.from_client == client && point.bytes > 0).flat_map(bar).collect();
    let crosses = |wanted: &dyn Fn(Mark) -> bool| {
        let mine = trace.points.iter().filter(|point| point.from_client == client && wanted(point.mark));
        mine.map(|point| (at(point), point.start as f64)).collect::<Vec<_>>()
    };
    let others = || trace.points.iter().filter(|point| point.from_client != client && point.acked > 0);
    let acked = others().map(|point| (at(point), point.acked as f64)).collect();
    vec![
        plot(
            "streams-picture-flight",
            "tcp-watch-bytes",
            vec![
                named("streams-picture-in-flight", 1, Shape::Steps, flight),
                named("streams-picture-window", 5, Shape::Steps, window),
                named("streams-picture-cwnd", 2, Shape::Steps, cwnd(client, begin_ns)),
            ],
        ),
        plot(
            "streams-picture-sequence",
            "streams-picture-position",
            vec![
                named("streams-picture-data", 0, Shape::Bars, data),
                named("streams-picture-acked", 2, Shape::Steps, acked),
                named("streams-picture-again", 1, Shape::Crosses, crosses(&|mark| matches!(mark, Mark::Again(_)))),
                named("streams-picture-reordered", 3, Shape::Crosses, crosses(&|mark| mark == Mark::Reordered)),
            ],
        ),
    ]
}

fn timeline(connections: &[Connection], edge: String, phrases: Phrases<'_>) -> Plot {
    let begin_ns = connections.iter().map(|connection| connection.begin_ns).min().unwrap_or(0);
    let at = |ns: i64| seconds(ns.saturating_sub(begin_ns));
    let bars = |from: fn(&Connection) -> i64, to: fn(&Connection) -> i64, wanted: fn(&Connection) -> bool| {
        let rows = connections.iter().enumerate().filter(|(_, connection)| wanted(connection) && to(connection) > from(connection));
        rows.flat_map(|(row, connection)| [(at(from(connection)), row as f64), (at(to(connection)), row as f64)]).collect()
    };
    let named = |name: &'static str, color, points| Series { name: phrases.word(name), color, shape: Shape::Bars, points };
    Plot {
        title: phrases.say(&Message::new("streams-picture-timeline").with("edge", edge)),
        x: phrases.word("tcp-watch-seconds"),
        y: phrases.word("streams-picture-rows"),
        series: vec![
            named("streams-picture-setup", 1, bars(|one| one.begin_ns, |one| one.ready_ns, |_| true)),
            named("streams-picture-once", 0, bars(|one| one.ready_ns, |one| one.end_ns, |one| one.requests < 2)),
            named("streams-picture-kept", 2, bars(|one| one.ready_ns, |one| one.end_ns, |one| one.requests >= 2)),
        ],
        rows: connections.iter().map(|connection| connection.index.to_string()).collect(),
        ..Plot::default()
    }
}
