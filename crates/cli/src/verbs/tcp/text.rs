//! A connection as text: the initial window and the MSS in words, then every field.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_sources::TcpInfo;

use super::connection::{Connection, meaning};
use crate::report::text::page::TextPage;
use crate::report::view::{Ink, span};
use crate::terminal::output::{Painted, Style};

/// Columns of a field's name, and of its value with its unit.
const NAME_COLUMNS: usize = 22;
const VALUE_COLUMNS: usize = 29;

/// The report, ending in a newline.
pub(super) fn render(connection: &Connection, style: &Style, words: &Catalogue) -> Painted {
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
        let message =
            Message::new(if mss.by_peer { "tcp-mss-peer" } else { "tcp-mss-path" }).with("mss", mss.bytes).with("pmtu", mss.path_mtu);
        let message = if mss.by_peer { message } else { message.with("headers", mss.headers).with("options", mss.options) };
        page.flow(&[], &[], &[span(Ink::Plain, phrases.say(&message))]);
    }
    page.heading("tcp-heading-before");
    write_fields(&mut page, &connection.info, words);
    if let Some(answer) = &connection.answer {
        page.heading("tcp-heading-after");
        let end = if answer.ended { phrases.word("tcp-answered-end") } else { String::new() };
        let message = Message::new("tcp-answered")
            .with("bytes", answer.bytes)
            .with("time", phrases.duration_us(answer.time.as_secs_f64() * 1e6))
            .with("end", end);
        page.flow(&[], &[], &[span(Ink::Plain, phrases.say(&message))]);
        write_fields(&mut page, &answer.info, words);
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
            span(Ink::Strong, format!("  {:NAME_COLUMNS$}", field.name)),
            span(Ink::Plain, format!("{:<VALUE_COLUMNS$}", format!("{value} {}", field.unit))),
        ];
        page.flow(&first, &[span(Ink::Plain, " ".repeat(2 + NAME_COLUMNS + VALUE_COLUMNS))], &[span(Ink::Faint, meaning(field, words))]);
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

#[cfg(test)]
mod tests {
    use chokepoint_sources::read_tcp_info;

    use super::*;

    #[test]
    fn every_message_is_in_the_catalogue() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = listener.local_addr().unwrap();
        let stream = std::net::TcpStream::connect(peer).unwrap();
        let (local, info) = (stream.local_addr().unwrap(), read_tcp_info(&stream).unwrap());
        let connection = Connection { local, peer, control: "x".to_owned(), info, answer: None };
        let text = render(&connection, &Style { width: 100, color: false, unicode: true }, &Catalogue::english());
        assert!(text.contains("snd_cwnd") && !text.contains("[tcp-"), "{text}");
    }
}
