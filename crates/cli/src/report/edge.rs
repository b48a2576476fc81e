//! What the verbs `streams` and `tcp` report alike of an edge: the verdict about keepalive, and distributions of times.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::edge::{ConnectionReuse, Keepalive};
use chokepoint_model::message::Message;
use chokepoint_packets::Histogram;
use serde_json::{Value, json};

use crate::report::text::page::TextPage;
use crate::report::view::{Ink, Phrases, span};

/// Writes the verdict about keepalive, its reasons, and the configuration lines to change.
pub(crate) fn write_keepalive(page: &mut TextPage<'_>, verdict: &Keepalive) {
    let phrases = page.phrases();
    let ink = match verdict.kept {
        ConnectionReuse::InForce => Ink::GoodStrong,
        ConnectionReuse::Partly | ConnectionReuse::Unknown => Ink::WarnStrong,
        ConnectionReuse::Not => Ink::BadStrong,
    };
    let indent = [span(Ink::Plain, "  ")];
    page.flow(&indent, &indent, &[span(ink, phrases.say(&verdict.summary))]);
    for message in verdict.why.iter().chain(verdict.gain.as_ref().map(|gain| &gain.text)) {
        page.point(4, &[span(Ink::Plain, phrases.say(message))]);
    }
    let hanging = [span(Ink::Plain, "      ")];
    let arrow = [span(Ink::Plain, format!("    {} ", page.glyph("→", ">")))];
    for message in &verdict.lines {
        page.flow(&arrow, &hanging, &[span(Ink::Strong, phrases.say(message))]);
    }
}

/// The verdict about keepalive with its sentences, as JSON.
pub(crate) fn keepalive_json(verdict: &Keepalive, words: &Catalogue) -> Value {
    let texts = |messages: &[Message]| messages.iter().map(|message| words.text(message)).collect::<Vec<_>>();
    json!({
        "kept": verdict.kept,
        "reasons": verdict.reasons,
        "summary": words.text(&verdict.summary),
        "why": texts(&verdict.why),
        "lines": texts(&verdict.lines),
        "gain": verdict.gain.as_ref().map(|gain| json!({ "factor": gain.factor, "text": words.text(&gain.text) })),
    })
}

/// Percentiles of a distribution of times; nothing if it is empty. `unit_us`: the unit of the times, microseconds.
pub(crate) fn times(times: &Histogram, unit_us: f64, phrases: Phrases<'_>) -> Option<String> {
    let times = times.quantiles(unit_us)?;
    let message = Message::new("streams-times")
        .with("p50", phrases.duration_us(times.p50))
        .with("p95", phrases.duration_us(times.p95))
        .with("p99", phrases.duration_us(times.p99))
        .with("max", phrases.duration_us(times.max));
    Some(phrases.say(&message))
}
