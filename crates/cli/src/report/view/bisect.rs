//! The measurements of each tier alone.

use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, LoadReport, PartKind, PartReport};

use super::load::p99;
use super::rounds::failed_share;
use super::{Ink, Phrases, Shown, Span, span};

/// One tier alone.
pub(crate) struct PartRow<'a> {
    pub(crate) tier: &'a str,
    /// How the tier was loaded: with a static file, directly, or not at all.
    pub(crate) how: String,
    /// Empty if it was not loaded.
    pub(crate) url: &'a str,
    /// Goodput, p99, failed share and CPU time; empty if it was not loaded.
    pub(crate) notes: Vec<Span>,
    /// Its verdict, or why it was not loaded.
    pub(crate) summary: Span,
    /// True if it explains the whole.
    pub(crate) explains: bool,
}

/// The explanation and a row for each tier; nothing without `--bisect`.
pub(crate) fn rows<'a>(diagnosis: &'a Diagnosis, phrases: Phrases<'_>) -> Option<(&'a str, Vec<PartRow<'a>>)> {
    let bisect = diagnosis.bisect.as_ref()?;
    Some((&bisect.summary, bisect.parts.iter().map(|part| row(part, phrases)).collect()))
}

fn row<'a>(part: &'a PartReport, phrases: Phrases<'_>) -> PartRow<'a> {
    let shown = |verdict| Shown::of(verdict, part.load.as_ref().and_then(LoadReport::failed_share));
    PartRow {
        tier: &part.tier,
        how: phrases.word(match (part.kind, &part.load) {
            (_, None) => "report-part-left",
            (PartKind::Own, _) => "report-part-own",
            (PartKind::Direct, _) => "report-part-direct",
        }),
        url: part.url.as_deref().unwrap_or_default(),
        notes: notes(part, phrases),
        summary: span(part.verdict.map_or(Ink::Faint, |verdict| shown(verdict).ink()), part.summary.as_str()),
        explains: part.explains,
    }
}

fn notes(part: &PartReport, phrases: Phrases<'_>) -> Vec<Span> {
    let Some(load) = &part.load else { return Vec::new() };
    let rate = phrases.say(&Message::new("html-per-second").with("rate", load.goodput_rps));
    let p99 = Message::new("report-percentile").with("name", "p99").with("duration", p99(phrases, load));
    let mut notes = vec![span(if part.explains { Ink::BadStrong } else { Ink::Strong }, rate), span(Ink::Plain, phrases.say(&p99))];
    let failed = failed_share(load);
    if failed > 0.0 {
        notes.push(span(Ink::Bad, phrases.say(&Message::new("report-part-failed").with("share", phrases.percent(failed)))));
    }
    let cpu = |us: f64| phrases.say(&Message::new("report-part-cpu").with("duration", phrases.duration_us(us)));
    notes.extend(part.cpu_us_per_good.map(|us| span(Ink::Plain, cpu(us))));
    notes
}
