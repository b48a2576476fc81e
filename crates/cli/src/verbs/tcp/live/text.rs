//! The host's connections as text: what limits each edge, then the sockets that lost most time.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_model::tcp::Limiter;
use chokepoint_sources::TcpSocketsRead;

use super::edges::{EdgeKey, LiveEdge, LiveSockets, WorstSocket};
use super::table;
use crate::report::edge::{times, write_keepalive};
use crate::report::text::page::TextPage;
use crate::report::view::{Ink, Phrases, span};
use crate::terminal::output::{Painted, Style};
use crate::verbs::tcp::cycles::Cycles;
use crate::verbs::tcp::local_end::LocalEnd;

/// Edges that are printed; the JSON has all.
const EDGES_MAX: usize = 20;
/// Columns of a label.
const LABEL_COLUMNS: usize = 24;

/// The report, ending in a newline. `is_whole`: of the whole host, and not of the edges that were asked for.
pub(super) fn render(
    (live, read): &(LiveSockets, TcpSocketsRead),
    is_whole: bool,
    cycles: Option<&Cycles>,
    style: &Style,
    words: &Catalogue,
) -> Painted {
    let mut page = TextPage::new(style, words);
    let phrases = page.phrases();
    page.flow(&[], &[], &[span(Ink::Plain, totals(live, read, phrases))]);
    if let Some(cycles) = cycles {
        write_cycles(&mut page, cycles);
    }
    let edges = live.sorted();
    // Whoever asks for some edges gets all of them; of a whole host each is a line.
    if is_whole && !edges.is_empty() {
        page.blank();
        let lines = table::lines(live, EDGES_MAX, |_, all| Some(all), phrases);
        lines.iter().for_each(|line| page.line(&[span(Ink::Plain, line)]));
    }
    for (key, edge) in edges.iter().take(EDGES_MAX).filter(|_| !is_whole) {
        write_edge(&mut page, live, key, edge);
    }
    if edges.len() > EDGES_MAX {
        page.blank();
        let message = Message::new("streams-more-edges").with("count", (edges.len() - EDGES_MAX) as u64);
        page.flow(&[], &[], &[span(Ink::Faint, phrases.say(&message))]);
    }
    if !live.worst.is_empty() {
        page.heading("tcp-live-heading-worst");
        for worst in &live.worst {
            page.point(2, &[span(Ink::Plain, worst_text(worst, phrases))]);
        }
    }
    let lost = cycles
        .filter(|cycles| cycles.ends.lost > 0)
        .map(|cycles| phrases.say(&Message::new("tcp-cycles-lost").with("count", cycles.ends.lost)));
    let gaps: Vec<String> = not_read(live, read, phrases).into_iter().chain(lost).collect();
    if !gaps.is_empty() {
        page.heading("streams-heading-not-read");
        for gap in gaps {
            page.point(2, &[span(Ink::Plain, gap)]);
        }
    }
    page.finish()
}

/// How many sockets, namespaces and edges there are.
pub(super) fn totals(live: &LiveSockets, read: &TcpSocketsRead, phrases: Phrases<'_>) -> String {
    let message = Message::new("tcp-live-totals").with("sockets", live.sockets).with("namespaces", read.namespaces);
    phrases.say(&message.with("edges", live.edges.len() as u64))
}

/// What could not be read, in sentences.
pub(super) fn not_read(live: &LiveSockets, read: &TcpSocketsRead, phrases: Phrases<'_>) -> Vec<String> {
    let without = (live.without_info > 0).then(|| phrases.say(&Message::new("tcp-live-without-info").with("count", live.without_info)));
    let failed = read.failed.iter().map(|(why, needs)| match needs {
        Some(needs) => phrases.say(&Message::new("tcp-live-failed-needs").with("why", why.as_str()).with("needs", *needs)),
        None => why.clone(),
    });
    without.into_iter().chain(failed).collect()
}

/// Writes whether each edge keeps its connections.
fn write_cycles(page: &mut TextPage<'_>, cycles: &Cycles) {
    let phrases = page.phrases();
    page.heading("tcp-cycles-heading");
    if cycles.edges.is_empty() {
        let message = Message::new("tcp-cycles-none").with("seconds", cycles.seconds);
        page.flow(&[], &[], &[span(Ink::Plain, phrases.say(&message))]);
    }
    for edge in cycles.edges.iter().take(EDGES_MAX) {
        let title = Message::new("streams-edge").with("client", edge.client.to_string()).with("server", edge.server.to_string());
        page.line(&[span(Ink::Strong, phrases.say(&title))]);
        write_keepalive(page, &edge.verdict);
    }
}

fn write_edge(page: &mut TextPage<'_>, live: &LiveSockets, key: &EdgeKey, edge: &LiveEdge) {
    let phrases = page.phrases();
    let (client, server) = match key.ends {
        Some((client, server)) => (client.to_string(), server.to_string()),
        None => (phrases.word("streams-any"), phrases.word("streams-others")),
    };
    let end = phrases.word(if key.end == LocalEnd::Client { "streams-end-client" } else { "streams-end-server" });
    let title = Message::new("tcp-live-edge").with("client", client).with("server", server).with("end", end).with("netns", live.netns(key));
    page.blank();
    page.line(&[span(Ink::Strong, phrases.say(&title.with("sockets", edge.sockets)))]);
    for (label, text) in rows(edge, phrases) {
        let label = [span(Ink::Faint, format!("  {:LABEL_COLUMNS$}", phrases.word(label)))];
        page.flow(&label, &[span(Ink::Plain, " ".repeat(LABEL_COLUMNS + 2))], &[span(Ink::Plain, text)]);
    }
}

fn rows(edge: &LiveEdge, phrases: Phrases<'_>) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    let mut put = |label, text: Option<String>| rows.extend(text.map(|text| (label, text)));
    put("tcp-live-rtt", times(&edge.rtt, 1.0, phrases));
    put(
        "tcp-live-cwnd",
        edge.cwnd.quantiles(1.0).map(|cwnd| {
            let message = Message::new("tcp-live-segments").with("p50", cwnd.p50).with("p95", cwnd.p95);
            phrases.say(&message.with("p99", cwnd.p99).with("max", cwnd.max))
        }),
    );
    let retransmits = edge.retransmits.sum() as u64;
    let resent = match edge.segments_out.filter(|out| *out > 0) {
        Some(out) => {
            Message::new("tcp-live-resent").with("out", out).with("share", phrases.percent((retransmits as f64 / out as f64).min(1.0)))
        }
        None => Message::new("tcp-live-resent-alone"),
    };
    put("streams-resent", Some(phrases.say(&resent.with("again", retransmits).with("sockets", edge.retransmitting))));
    put("tcp-live-idle", times(&edge.idle, 1000.0, phrases));
    let limited = edge.limited.iter().map(|(limiter, count)| {
        phrases.say(&Message::new("tcp-live-limited-by").with("count", *count).with("who", limiter_text(*limiter, phrases)))
    });
    put("tcp-live-limited", Some(limited.collect::<Vec<_>>().join(", ")));
    let busy = edge.busy_us.zip(edge.rwnd_us.zip(edge.sndbuf_us)).map(|(busy_us, (rwnd_us, sndbuf_us))| {
        let part = |us: u64| phrases.percent(if busy_us > 0 { (us as f64 / busy_us as f64).min(1.0) } else { 0.0 });
        let network = busy_us.saturating_sub(rwnd_us).saturating_sub(sndbuf_us);
        let message = Message::new("tcp-live-busy").with("busy", phrases.duration_us(busy_us as f64));
        phrases.say(&message.with("network", part(network)).with("rwnd", part(rwnd_us)).with("sndbuf", part(sndbuf_us)))
    });
    put("tcp-live-time", busy);
    rows
}

/// What limits a sender, in words.
fn limiter_text(limiter: Limiter, phrases: Phrases<'_>) -> String {
    phrases.word(match limiter {
        Limiter::Application => "tcp-limiter-application",
        Limiter::Cwnd => "tcp-limiter-cwnd",
        Limiter::Rwnd => "tcp-limiter-rwnd",
        Limiter::Sndbuf => "tcp-limiter-sndbuf",
        Limiter::Pacing => "tcp-limiter-pacing",
    })
}

fn worst_text(worst: &WorstSocket, phrases: Phrases<'_>) -> String {
    let us = |us: Option<u64>| phrases.duration_us(us.unwrap_or(0) as f64);
    let message = Message::new("tcp-live-worst")
        .with("local", worst.local.to_string())
        .with("remote", worst.remote.to_string())
        .with("lost", phrases.duration_us(worst.lost_us as f64))
        .with("again", worst.sender.total_retrans)
        .with("timeouts", worst.sender.retransmits)
        .with("rwnd", us(worst.sender.rwnd_limited_us))
        .with("sndbuf", us(worst.sender.sndbuf_limited_us))
        .with("rtt", phrases.duration_us(worst.sender.rtt_us as f64))
        .with("cwnd", worst.sender.cwnd)
        .with("flight", worst.sender.bytes_in_flight())
        .with("queue", worst.send_queue)
        .with("who", limiter_text(worst.limiter, phrases));
    phrases.say(&message)
}
