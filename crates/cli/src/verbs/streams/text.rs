//! Captures as text: edges with their verdicts, then the streams that lost most time.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::edge::Keepalive;
use chokepoint_model::message::Message;
use chokepoint_packets::summary::{ConnectionEnd, Direction, Manner, Moment, Protocol};
use chokepoint_packets::{Edge, Limits, StreamSummary};

use super::result::StreamsResult;
use crate::report::edge::{times, write_keepalive};
use crate::report::text::page::TextPage;
use crate::report::view::{Ink, Phrases, span};
use crate::terminal::output::{Painted, Style};

/// Edges that are printed; the JSON has all.
const EDGES_MAX: usize = 12;
/// First flights and closes that are printed of each edge.
const ROWS_MAX: usize = 4;
/// Columns of a label.
const LABEL_COLUMNS: usize = 24;

/// The report, ending in a newline.
pub(super) fn render(result: &StreamsResult, style: &Style, words: &Catalogue) -> Painted {
    let mut page = TextPage::new(style, words);
    let phrases = page.phrases();
    let totals = &result.report.totals;
    page.flow(&[], &[], &[span(Ink::Plain, result.summary(phrases))]);
    if let Some(caught) = result.caught {
        let message = Message::new("streams-caught").with("packets", caught.packets).with("dropped", caught.dropped);
        page.flow(&[], &[], &[span(if caught.dropped > 0 { Ink::Warn } else { Ink::Plain }, phrases.say(&message))]);
    }
    if totals.streams == 0 {
        page.flow(&[], &[], &[span(Ink::Warn, phrases.word("streams-none"))]);
    }
    for (edge, verdict) in result.report.edges.iter().zip(&result.verdicts).take(EDGES_MAX) {
        write_edge(&mut page, edge, verdict);
    }
    if let Some(more) = result.report.edges.len().checked_sub(EDGES_MAX + 1) {
        page.blank();
        let message = Message::new("streams-more-edges").with("count", more as u64 + 1);
        page.flow(&[], &[], &[span(Ink::Faint, phrases.say(&message))]);
    }
    write_notable(&mut page, &result.report.notable);
    write_not_read(&mut page, result);
    page.finish()
}

/// "10.0.0.1 to 10.0.0.2:80".
pub(super) fn edge_name(edge: &Edge, phrases: Phrases<'_>) -> String {
    let client = edge.address.client.map_or_else(|| phrases.word("streams-any"), |client| client.to_string());
    let server = edge.address.server.map_or_else(|| phrases.word("streams-others"), |server| server.to_string());
    phrases.say(&Message::new("streams-edge").with("client", client).with("server", server))
}

fn write_edge(page: &mut TextPage<'_>, edge: &Edge, verdict: &Keepalive) {
    let phrases = page.phrases();
    page.blank();
    page.line(&[span(Ink::Strong, edge_name(edge, phrases))]);
    if edge.requests > 0 {
        write_keepalive(page, verdict);
    }
    for (label, text) in rows(edge, phrases) {
        let label = [span(Ink::Faint, format!("  {:LABEL_COLUMNS$}", phrases.word(label)))];
        page.flow(&label, &[span(Ink::Plain, " ".repeat(LABEL_COLUMNS + 2))], &[span(Ink::Plain, text)]);
    }
}

/// The figures of an edge: label id and text.
fn rows(edge: &Edge, phrases: Phrases<'_>) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    let seconds = edge.seconds();
    let rate = if seconds > 0.0 { phrases.number(edge.from_begin as f64 / seconds) } else { "?".to_owned() };
    let connections = Message::new("streams-connections-value")
        .with("connections", edge.connections)
        .with("rate", rate)
        .with("used", edge.used)
        .with("mid", edge.connections - edge.from_begin);
    rows.push(("streams-connections", phrases.say(&connections)));
    if edge.refused + edge.unanswered > 0 {
        let message = Message::new("streams-refused").with("refused", edge.refused).with("unanswered", edge.unanswered);
        rows.push(("streams-connections", phrases.say(&message)));
    }
    if let Some(each) = edge.requests_per_connection.quantiles(1.0) {
        let most = edge.protocols.iter().filter(|(protocol, _)| **protocol != Protocol::None).max_by_key(|(_, count)| **count);
        let message = Message::new("streams-requests-value")
            .with("requests", edge.requests)
            .with("protocol", most.map_or("?", |(protocol, _)| protocol_name(*protocol)))
            .with("answers", edge.answers)
            .with("p50", each.p50)
            .with("p95", each.p95)
            .with("max", each.max);
        rows.push(("streams-requests", phrases.say(&message)));
    }
    let durations = [
        ("streams-setup", &edge.setup_ns),
        ("streams-tls-setup", &edge.tls_setup_ns),
        ("streams-first-byte", &edge.first_byte_ns),
        ("streams-think", &edge.think_ns),
        ("streams-request-time", &edge.whole_ns),
    ];
    rows.extend(durations.iter().filter_map(|(label, durations)| Some((*label, times(durations, 1e-3, phrases)?))));
    if let Some(share) = edge.setup_share() {
        let message = Message::new("streams-setup-share").with("share", share * 100.0);
        rows.push(("streams-setup", phrases.say(&message)));
    }
    for count in edge.flights().iter().take(ROWS_MAX) {
        let id = if count.flight.limited { "streams-flight-limited" } else { "streams-flight-value" };
        let message = Message::new(id)
            .with("segments", count.flight.segments)
            .with("bytes", count.flight.bytes)
            .with("connections", count.connections);
        rows.push(("streams-flight", phrases.say(&message)));
    }
    rows.extend(closes(edge, phrases));
    rows.extend(losses_and_stalls(edge, phrases));
    rows
}

fn closes(edge: &Edge, phrases: Phrases<'_>) -> Vec<(&'static str, String)> {
    let mut closes: Vec<_> = edge.closes.iter().collect();
    closes.sort_by_key(|(pattern, count)| (std::cmp::Reverse(**count), **pattern));
    let row = |((by, manner, moment, other), count): &(&(ConnectionEnd, Manner, Moment, Option<Manner>), &u64)| {
        let other = other.map(|other| phrases.say(&Message::new("streams-close-other").with("manner", manner_name(other))));
        let message = Message::new("streams-close-value")
            .with("connections", **count)
            .with("by", phrases.word(if *by == ConnectionEnd::Client { "streams-end-client" } else { "streams-end-server" }))
            .with("manner", manner_name(*manner))
            .with("moment", phrases.word(moment_id(*moment)))
            .with("other", other.unwrap_or_default());
        ("streams-closes", phrases.say(&message))
    };
    closes.iter().take(ROWS_MAX).map(row).collect()
}

fn losses_and_stalls(edge: &Edge, phrases: Phrases<'_>) -> Vec<(&'static str, String)> {
    let sum = |of: fn(&Direction) -> u64| of(&edge.client_sent) + of(&edge.server_sent);
    let mut rows = Vec::new();
    if sum(|sent| sent.retransmissions) > 0 {
        let message = Message::new("streams-resent-value")
            .with("all", sum(|sent| sent.retransmissions))
            .with("data", sum(|sent| sent.data_packets))
            .with("fast", sum(|sent| sent.fast_retransmissions))
            .with("timeout", sum(|sent| sent.timeout_retransmissions))
            .with("tail", sum(|sent| sent.tail_retransmissions))
            .with("spurious", sum(|sent| sent.spurious_retransmissions));
        rows.push(("streams-resent", phrases.say(&message)));
    }
    let figures = [
        sum(|sent| sent.out_of_order),
        sum(|sent| sent.duplicate_acks),
        sum(|sent| sent.zero_windows),
        sum(|sent| sent.delayed_ack_stalls),
        sum(|sent| sent.lost_segments + sent.ack_lost_segments),
    ];
    if figures.iter().any(|figure| *figure > 0) {
        let message = Message::new("streams-trouble-value")
            .with("reordered", figures[0])
            .with("duplicates", figures[1])
            .with("zero", figures[2])
            .with("zerotime", phrases.duration_us(sum(|sent| sent.zero_window_ns) as f64 / 1e3))
            .with("stalls", figures[3])
            .with("stalltime", phrases.duration_us(sum(|sent| sent.delayed_ack_stall_ns) as f64 / 1e3))
            .with("lost", figures[4]);
        rows.push(("streams-other-trouble", phrases.say(&message)));
    }
    if edge.races > 0 {
        let examples = edge.race_streams.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
        let message = Message::new("streams-races").with("races", edge.races).with("examples", examples);
        rows.push(("streams-other-trouble", phrases.say(&message)));
    }
    rows
}

fn write_notable(page: &mut TextPage<'_>, notable: &[StreamSummary]) {
    if notable.is_empty() {
        return;
    }
    page.heading("streams-heading-notable");
    let phrases = page.phrases();
    for stream in notable {
        let sum = |of: fn(&Direction) -> u64| of(&stream.client_sent) + of(&stream.server_sent);
        let race = stream.close.is_some_and(|close| close.race).then(|| phrases.word("streams-stream-race"));
        let message = Message::new("streams-stream")
            .with("index", stream.index.to_string())
            .with("client", stream.client.to_string())
            .with("server", stream.server.to_string())
            .with("requests", stream.requests)
            .with("lost", phrases.duration_us(stream.lost_ns() as f64 / 1e3))
            .with("resent", stream.retransmissions())
            .with("timeout", sum(|sent| sent.timeout_retransmissions))
            .with("zero", sum(|sent| sent.zero_windows))
            .with("stalls", sum(|sent| sent.delayed_ack_stalls))
            .with("race", race.unwrap_or_default());
        page.point(2, &[span(Ink::Plain, phrases.say(&message))]);
    }
}

fn write_not_read(page: &mut TextPage<'_>, result: &StreamsResult) {
    let phrases = page.phrases();
    let totals = &result.report.totals;
    let counts = [
        ("streams-other", totals.other),
        ("streams-snapped", totals.snapped),
        ("streams-unreadable", totals.unreadable),
        ("streams-unknown-link", totals.unknown_link),
        ("streams-fragments", totals.fragments),
        ("streams-late", totals.late),
        ("streams-given-up", totals.given_up_for_room),
        ("streams-dropped", totals.dropped_for_room),
    ];
    let counted = counts.iter().filter(|(_, count)| *count > 0).map(|(id, count)| {
        let message = Message::new(id).with("count", *count);
        phrases.say(&match *id {
            "streams-dropped" => message.with("limit", result.open_max),
            "streams-given-up" => message.with("limit", (Limits::default().held_bytes >> 20) as u64),
            _ => message,
        })
    });
    let failed = result.failed.iter().map(|failed| {
        phrases.say(&Message::new("streams-ended-early").with("file", failed.file.display().to_string()).with("why", failed.why.as_str()))
    });
    let lines: Vec<String> = failed.chain(counted).collect();
    if lines.is_empty() {
        return;
    }
    page.heading("streams-heading-not-read");
    for line in lines {
        page.point(2, &[span(Ink::Plain, line)]);
    }
}

fn protocol_name(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::None => "",
        Protocol::Http => "HTTP/1",
        Protocol::Fastcgi => "FastCGI",
        Protocol::Tls => "TLS",
        Protocol::Other => "?",
    }
}

fn manner_name(manner: Manner) -> &'static str {
    match manner {
        Manner::Fin => "FIN",
        Manner::Rst => "RST",
    }
}

fn moment_id(moment: Moment) -> &'static str {
    match moment {
        Moment::BeforeRequest => "streams-moment-before-request",
        Moment::WithinRequest => "streams-moment-within-request",
        Moment::WithinAnswer => "streams-moment-within-answer",
        Moment::AfterAnswer => "streams-moment-after-answer",
        Moment::Idle => "streams-moment-idle",
    }
}
