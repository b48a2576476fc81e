//! Incidents as text: the list, and one with its figures, its changes and its diagnosis.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_recorder::drop::Figures;
use chokepoint_recorder::incident::{Incident, State};

use super::page::TextPage;
use crate::report::view::{Ink, Phrases, span, time};
use crate::terminal::output::{Painted, Style};
use crate::verbs::watch::{busier_program, grown_place};

/// The indentation below a heading.
const MARGIN: &str = "  ";

/// The list, the newest first.
pub(crate) fn list(incidents: &[Incident], style: &Style, words: &Catalogue) -> Painted {
    let mut page = TextPage::new(style, words);
    let phrases = page.phrases();
    if incidents.is_empty() {
        page.line(&[span(Ink::Plain, phrases.word("watch-no-incidents"))]);
    }
    for incident in incidents {
        let first = format!("{:>4}  {}  {}", incident.id, time(incident.drop.since_s), state(phrases, incident));
        page.line(&[span(Ink::Plain, first)]);
        let indent = " ".repeat(6);
        page.flow_within(3, &[span(Ink::Plain, &indent)], &[span(Ink::Plain, &indent)], &[span(Ink::Faint, &incident.headline)]);
    }
    page.finish()
}

/// One incident.
pub(crate) fn show(incident: &Incident, style: &Style, words: &Catalogue) -> Painted {
    let mut page = TextPage::new(style, words);
    let phrases = page.phrases();
    let title = Message::new("watch-incident-title").with("number", incident.id.to_string()).with("target", incident.drop.target.as_str());
    page.flow(&[], &[], &[span(Ink::Strong, phrases.say(&title.with("state", state(phrases, incident))))]);
    let facts = [Some(("watch-began", incident.drop.since_s)), incident.ended_s.map(|at_s| ("watch-ended", at_s))];
    for (id, at_s) in facts.into_iter().flatten() {
        page.flow(&[], &[span(Ink::Plain, MARGIN)], &[span(Ink::Faint, phrases.say(&Message::new(id).with("time", time(at_s))))]);
    }
    page.flow(&[], &[span(Ink::Plain, MARGIN)], &[span(Ink::Plain, &incident.headline)]);
    page.gap();
    for row in figures(phrases, &incident.drop.before, &incident.drop.during) {
        page.line(&[span(Ink::Plain, MARGIN), span(Ink::Plain, row)]);
    }
    let leads = incident.grown.iter().map(|grown| grown_place(grown, words)).chain(incident.busier.iter().map(busier_program));
    for lead in leads {
        page.flow(&[span(Ink::Plain, MARGIN)], &[span(Ink::Plain, MARGIN.repeat(2))], &[span(Ink::Plain, phrases.say(&lead))]);
    }
    if !incident.changes.is_empty() {
        page.gap();
        page.flow(&[], &[], &[span(Ink::Strong, phrases.word("watch-changes"))]);
    }
    for change in &incident.changes {
        let side = |value: &Option<String>| value.clone().unwrap_or_default();
        let message = Message::new("watch-change").with("of", change.of.as_str()).with("name", change.name.as_str());
        let message = message.with("before", side(&change.before)).with("now", side(&change.now));
        page.flow(&[span(Ink::Plain, MARGIN)], &[span(Ink::Plain, MARGIN.repeat(2))], &[span(Ink::Plain, phrases.say(&message))]);
    }
    if !incident.report.is_empty() {
        page.gap();
    }
    for line in incident.report.lines() {
        page.line(&[span(Ink::Plain, line)]);
    }
    page.finish()
}

fn state(phrases: Phrases<'_>, incident: &Incident) -> String {
    phrases.word(match incident.state {
        State::Diagnosing => "watch-state-diagnosing",
        State::Open => "watch-state-open",
        State::Over if incident.recovered == Some(false) => "watch-state-lasts",
        State::Over if incident.recovered.is_none() => "watch-state-left",
        State::Over => "watch-state-over",
        State::Passed => "watch-state-passed",
    })
}

/// A line for each figure that is known: before, and during the drop.
fn figures(phrases: Phrases<'_>, before: &Figures, during: &Figures) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(|| phrases.word("watch-unknown"), |value| phrases.number(value));
    let percent =
        |value: Option<f64>| value.map_or_else(|| phrases.word("watch-unknown"), |value| format!("{} %", phrases.number(100.0 * value)));
    let time = |value: Option<f64>| value.map_or_else(|| phrases.word("watch-unknown"), |ms| phrases.duration_us(ms * 1e3));
    let rows = [
        ("watch-figure-rate", number(before.rate_rps), number(during.rate_rps)),
        ("watch-figure-under-way", number(before.under_way), number(during.under_way)),
        ("watch-figure-response", time(before.response_ms), time(during.response_ms)),
        ("watch-figure-bad", percent(before.bad_share), percent(during.bad_share)),
    ];
    let row = |(id, before, now): (&'static str, String, String)| {
        phrases.say(&Message::new("watch-figure").with("name", phrases.word(id)).with("before", before).with("now", now))
    };
    rows.into_iter().map(row).collect()
}
