//! What else there is to know, shortened: the tiers alone, what could be faster, warnings, and what could not be read if the verdict depends on it.

use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, NotApplied, Verdict};

use super::{Detail, label, no_label};
use crate::report::text::page::TextPage;
use crate::report::view::readings::gaps;
use crate::report::view::{Ink, span};

/// Writes the notes, if there are any. Why something could not be applied is never cut: it asks for something.
pub(super) fn write(page: &mut TextPage<'_>, diagnosis: &Diagnosis, detail: Detail) {
    let told = |one: &NotApplied| {
        page.phrases().say(&Message::new("warning-not-applied").with("remedy", one.remedy.as_str()).with("why", one.why.as_str()))
    };
    let whole: Vec<String> = diagnosis.not_applied.iter().map(told).collect();
    let notes: Vec<String> = notes(page, diagnosis).into_iter().filter(|note| !whole.contains(note)).collect();
    let listed = detail.notes.min(notes.len());
    let mut before = label(page, "brief-notes");
    for note in &whole {
        page.flow(&[std::mem::replace(&mut before, no_label())], &[no_label()], &[span(Ink::Plain, note)]);
    }
    for note in &notes[..listed] {
        page.flow_within(detail.note_lines, &[std::mem::replace(&mut before, no_label())], &[no_label()], &[span(Ink::Plain, note)]);
    }
    if notes.len() > listed {
        let text = page.phrases().say(&Message::new("brief-more-notes").with("n", (notes.len() - listed) as f64));
        page.line_within(&[before, span(Ink::Faint, text)], false);
    }
}

/// The notes, the most important first.
fn notes(page: &TextPage<'_>, diagnosis: &Diagnosis) -> Vec<String> {
    let phrases = page.phrases();
    // A verdict that was reached does not depend on what could not be read.
    let is_unknown = diagnosis.verdict == Verdict::Unknown;
    let gaps = gaps(diagnosis).into_iter().filter(|gap| is_unknown && (gap.failed || gap.needs.is_some()));
    let gaps = gaps.map(|gap| match gap.needs(phrases) {
        Some(needs) => format!("{}: {}; {needs}", gap.names(phrases), gap.why),
        None => format!("{}: {}", gap.names(phrases), gap.why),
    });
    let faster = diagnosis.improvements.iter().map(|finding| {
        phrases.say(&Message::new("brief-faster").with("title", finding.title.trim_end_matches('.')).with("id", finding.id.as_str()))
    });
    gaps.chain(diagnosis.warnings.iter().cloned()).chain(faster).collect()
}
