//! What the kernel knows of a connection, for the terminal: the window and the MSS in words, then every field.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_sources::TcpInfo;

use super::Style;
use super::page::TextPage;
use crate::report::view::{Ink, span};
use crate::verbs::tcp::{Connection, meaning};

/// Columns of a field's name, and of its value with the unit.
const NAME: usize = 22;
const VALUE: usize = 26;

/// The connection as text, ending in a newline.
pub(crate) fn tcp_text(connection: &Connection, style: &Style, words: &Catalogue) -> crate::terminal::output::Painted {
    let mut page = TextPage::new(style, words);
    let phrases = page.phrases();
    let message = Message::new("tcp-connection")
        .with("local", connection.local.to_string())
        .with("peer", connection.peer.to_string())
        .with("control", connection.control.as_str());
    page.flow(&[], &[], &[span(Ink::Strong, phrases.say(&message))]);
    if let (Some((segments, bytes)), Some(mss)) = (connection.initial_window(), connection.mss()) {
        let message = Message::new("tcp-initial-window").with("segments", segments).with("mss", mss.bytes).with("bytes", bytes);
        page.flow(&[], &[], &[span(Ink::Plain, phrases.say(&message))]);
        let message = Message::new(if mss.by_peer { "tcp-mss-peer" } else { "tcp-mss-path" }).with("mss", mss.bytes).with("pmtu", mss.path);
        let message = if mss.by_peer { message } else { message.with("headers", mss.headers).with("options", mss.options) };
        page.flow(&[], &[], &[span(Ink::Plain, phrases.say(&message))]);
    }
    page.heading("tcp-heading-before");
    write_fields(&mut page, &connection.info, words);
    if let Some(answered) = &connection.answered {
        page.heading("tcp-heading-after");
        let end = if answered.ended { phrases.word("tcp-answered-end") } else { String::new() };
        let message = Message::new("tcp-answered")
            .with("bytes", answered.bytes)
            .with("time", phrases.duration_us(answered.time.as_secs_f64() * 1e6))
            .with("end", end);
        page.flow(&[], &[], &[span(Ink::Plain, phrases.say(&message))]);
        write_fields(&mut page, &answered.info, words);
    }
    page.finish()
}

fn write_fields(page: &mut TextPage<'_>, info: &TcpInfo, words: &Catalogue) {
    let phrases = page.phrases();
    let mut missing = Vec::new();
    for (field, value) in info.values() {
        let Some(value) = value else {
            missing.push(field.name);
            continue;
        };
        let first = [
            span(Ink::Strong, format!("  {:NAME$}", field.name)),
            span(Ink::Plain, format!("{:<VALUE$}", format!("{value} {}", field.unit))),
        ];
        page.flow(&first, &[span(Ink::Plain, " ".repeat(2 + NAME + VALUE))], &[span(Ink::Faint, meaning(field, words))]);
    }
    if !missing.is_empty() {
        let message = Message::new("tcp-missing").with("fields", missing.join(", "));
        page.flow(&[], &[], &[span(Ink::Faint, phrases.say(&message))]);
    }
    if info.unknown_bytes() > 0 {
        let message = Message::new("tcp-unknown-bytes").with("count", info.unknown_bytes() as u64);
        page.flow(&[], &[], &[span(Ink::Faint, phrases.say(&message))]);
    }
}
