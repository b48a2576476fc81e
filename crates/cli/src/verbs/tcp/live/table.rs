//! The host's connections with one line an edge, the worst first.

use chokepoint_model::message::Message;
use chokepoint_model::tcp::Limiter;

use super::edges::{EdgeKey, LiveEdge, LiveSockets};
use crate::report::text::columns;
use crate::report::view::Phrases;
use crate::verbs::tcp::local_end::LocalEnd;

/// The titles of the columns: the edge, the end that was read, and figures.
const TITLES: [&str; COLUMNS] = [
    "tcp-live-column-edge",
    "tcp-live-column-end",
    "tcp-live-column-sockets",
    "tcp-live-column-rtt",
    "tcp-live-column-p99",
    RESENT,
    LIMITED,
];
const RESENT: &str = "tcp-live-column-resent";
const LIMITED: &str = "tcp-live-column-limited";
const COLUMNS: usize = 7;
/// Columns at the left that are text; the numbers behind them are aligned at their ends, but for the last, which is words.
const TEXTS: usize = 2;

/// The lines of all edges, with their titles above them; of `most` edges at most. `resent`: segments that an edge sent again since the last look; nothing for all
/// since its connections opened.
pub(super) fn lines(live: &LiveSockets, most: usize, resent: impl Fn(&EdgeKey, u64) -> Option<u64>, phrases: Phrases<'_>) -> Vec<String> {
    let row = |(key, edge): (&EdgeKey, &LiveEdge)| row(live, key, edge, resent(key, edge.retransmits.sum() as u64), phrases);
    let mut rows: Vec<[String; COLUMNS]> = vec![TITLES.map(|title| phrases.word(title))];
    rows.extend(live.sorted().into_iter().take(most).map(row));
    let width = |column: usize| rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
    let cell = |(column, text): (usize, &String)| {
        let fill = " ".repeat(widths[column] - columns(text));
        if column < TEXTS || column == COLUMNS - 1 { format!("{text}{fill}") } else { format!("{fill}{text}") }
    };
    rows.iter().map(|row| row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ").trim_end().to_owned()).collect()
}

fn row(live: &LiveSockets, key: &EdgeKey, edge: &LiveEdge, resent: Option<u64>, phrases: Phrases<'_>) -> [String; COLUMNS] {
    let (client, server) = match key.ends {
        Some((client, server)) => (client.to_string(), server.to_string()),
        None => (phrases.word("streams-any"), phrases.word("streams-others")),
    };
    let ends = phrases.say(&Message::new("streams-edge").with("client", client).with("server", server));
    let named = if live.namespaces.len() > 1 { format!("{}: {ends}", live.netns(key)) } else { ends };
    let time = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), |us| phrases.duration_us(us));
    let rtt = edge.rtt.quantiles(1.0);
    [
        named,
        phrases.word(if key.end == LocalEnd::Client { "streams-end-client" } else { "streams-end-server" }),
        phrases.number(edge.sockets as f64),
        time(rtt.as_ref().map(|rtt| rtt.p50)),
        time(rtt.as_ref().map(|rtt| rtt.p99)),
        resent.map_or_else(|| "-".to_owned(), |resent| phrases.number(resent as f64)),
        limited(edge, phrases),
    ]
}

/// What limits most of its senders; the number of the others that something else limits.
fn limited(edge: &LiveEdge, phrases: Phrases<'_>) -> String {
    let Some((most, count)) = edge.limited.iter().max_by_key(|(_, count)| **count) else { return "-".to_owned() };
    let word = phrases.word(match most {
        Limiter::Application => "tcp-live-limiter-application",
        Limiter::Cwnd => "tcp-live-limiter-cwnd",
        Limiter::Rwnd => "tcp-live-limiter-rwnd",
        Limiter::Sndbuf => "tcp-live-limiter-sndbuf",
        Limiter::Pacing => "tcp-live-limiter-pacing",
    });
    let others = edge.limited.values().sum::<u64>().saturating_sub(*count);
    if others == 0 { word } else { phrases.say(&Message::new("tcp-live-limiter-others").with("most", word).with("others", others)) }
}
