//! The page of a capture: what it carried over time (I/O graphs), bytes in flight and sequence numbers of a stream (Stevens' plot), and the connections of edges.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::edge::Keepalive;
use chokepoint_model::message::Message;
use chokepoint_packets::{Edge, Mark, Report, Step, StreamSummary, Trace, TracePoint, Traffic};

use super::result::StreamsResult;
use super::text::edge_name;
use super::windows::Windows;
use crate::report::page::{Block, ReportPage, Section, columns, text};
use crate::report::plot::{Plot, Series, Shape};
use crate::report::view::{Ink, Phrases, Span, span};

/// Edges whose connections are kept, and connections of each: together 2 MB.
const EDGES_MAX: usize = 256;
const CONNECTIONS_MAX: usize = 60;
/// Edges that the page lists, and whose connections it draws.
const EDGES_DRAWN_MAX: usize = 12;
const TIMELINES_MAX: usize = 4;
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

    /// The page of a capture: what it carried over time, the connections of its busiest edges, and one stream if it was followed.
    pub(super) fn page(&self, result: &StreamsResult, words: &Catalogue) -> ReportPage {
        let phrases = Phrases(words);
        let report = &result.report;
        let section = |id: &'static str, blocks: Vec<Block>| Section::of(id, phrases.word(id), blocks);
        let sections = [
            section("streams-heading-edges", self.edges(result, phrases)),
            section("streams-page-traffic", traffic_plots(&report.traffic, phrases).into_iter().map(Block::Plot).collect()),
            report.trace.as_ref().and_then(|trace| section("streams-page-stream", self.stream(trace, phrases))),
            section("streams-page-connections", self.timelines(report, phrases)),
        ];
        ReportPage {
            title: phrases.word("streams-picture-title"),
            brand: phrases.word("streams-page-brand"),
            subject: result.source.clone(),
            sections: sections.into_iter().flatten().collect(),
            footer: vec![result.summary(phrases)],
            ..ReportPage::default()
        }
    }

    /// The busiest edges with their verdicts.
    fn edges(&self, result: &StreamsResult, phrases: Phrases<'_>) -> Vec<Block> {
        let row = |(edge, verdict): (&Edge, &Keepalive)| {
            let figures = [edge.connections, edge.requests].map(|count| span(Ink::Plain, phrases.number(count as f64)));
            let [connections, requests] = figures;
            vec![span(Ink::Strong, edge_name(edge, phrases)), connections, requests, span(Ink::Plain, phrases.say(&verdict.summary))]
        };
        let rows: Vec<Vec<Span>> = result.report.edges.iter().zip(&result.verdicts).take(EDGES_DRAWN_MAX).map(row).collect();
        let heads = ["streams-page-edge", "streams-connections", "streams-requests", "streams-page-keepalive"];
        if rows.is_empty() { Vec::new() } else { vec![Block::Table { head: columns(&heads, &[1, 2], phrases), rows }] }
    }

    /// One stream.
    fn stream(&self, trace: &Trace, phrases: Phrases<'_>) -> Vec<Block> {
        let title = Message::new("streams-picture-stream").with("index", trace.index.to_string());
        let thinned = (trace.one_in > 1).then(|| Message::new("streams-picture-thinned").with("count", trace.one_in));
        let plots = stream_plots(trace, &|client, begin_ns| self.window_of(client, begin_ns), phrases);
        let told = [Some(title), thinned].into_iter().flatten().map(|message| text(phrases.say(&message)));
        told.chain(plots.into_iter().map(Block::Plot)).collect()
    }

    /// The connections of the stream's edge, and of the busiest others.
    fn timelines(&self, report: &Report, phrases: Phrases<'_>) -> Vec<Block> {
        let busiest = report.edges.iter().filter_map(|edge| Some((edge.address.client?, edge.address.server?)));
        let mut drawn: Vec<(IpAddr, SocketAddr)> = self.followed.into_iter().collect();
        drawn.extend(busiest.filter(|edge| Some(*edge) != self.followed));
        let plot = |edge: &(IpAddr, SocketAddr)| {
            let name = Message::new("streams-edge").with("client", edge.0.to_string()).with("server", edge.1.to_string());
            Some(Block::Plot(timeline(self.edges.get(edge)?, phrases.say(&name), phrases)))
        };
        drawn.iter().filter_map(plot).take(TIMELINES_MAX).collect()
    }
}

/// Bytes, segments, and what is seldom, a second each.
fn traffic_plots(traffic: &Traffic, phrases: Phrases<'_>) -> Vec<Plot> {
    let step_s = traffic.step_ns as f64 / 1e9;
    let series = |name: &'static str, color, of: &dyn Fn(&Step) -> u64| {
        let points = traffic.steps.iter().enumerate().map(|(at, step)| (at as f64 * step_s, of(step) as f64 / step_s));
        // The last step has an end as well.
        let end = traffic.steps.last().map(|step| (traffic.steps.len() as f64 * step_s, of(step) as f64 / step_s));
        Series { name: phrases.word(name), color, shape: Shape::Steps, points: points.chain(end).collect() }
    };
    let plot = |title: &'static str, y: &'static str, series: Vec<Series>| Plot {
        title: phrases.say(&Message::new(title).with("step", phrases.duration_us(traffic.step_ns as f64 / 1e3))),
        x: phrases.word("tcp-watch-seconds"),
        y: phrases.word(y),
        series: series.into_iter().filter(|series| series.points.iter().any(|point| point.1 > 0.0)).collect(),
        ..Plot::default()
    };
    let plots = [
        plot(
            "streams-traffic-bytes",
            "tcp-watch-bytes-s",
            vec![
                series("streams-traffic-servers", 0, &|step| step.server_bytes),
                series("streams-traffic-clients", 2, &|step| step.client_bytes),
            ],
        ),
        plot("streams-traffic-segments", "streams-traffic-y", vec![series("streams-traffic-all", 0, &|step| step.segments)]),
        plot(
            "streams-traffic-events",
            "streams-traffic-y",
            vec![
                series("streams-traffic-opened", 2, &|step| step.opened),
                series("streams-traffic-again", 1, &|step| step.retransmissions),
                series("streams-traffic-resets", 3, &|step| step.resets),
            ],
        ),
    ];
    plots.into_iter().filter(|plot| !plot.series.is_empty()).collect()
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
