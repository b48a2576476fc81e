//! The measurements of each tier alone, below the explanation of the whole.

use chokepoint_model::report::Diagnosis;

use crate::report::text::page::TextPage;
use crate::report::view::bisect::rows;
use crate::report::view::{Ink, Span, span};

/// Writes the parts of `--bisect`.
pub(in crate::report::text) fn write(page: &mut TextPage<'_>, diagnosis: &Diagnosis) {
    let Some((summary, rows)) = rows(diagnosis, page.phrases()) else { return };
    let indent = |columns: usize| [span(Ink::Plain, " ".repeat(columns))];
    page.heading("report-bisect");
    page.flow(&indent(2), &indent(2), &[span(Ink::Plain, summary)]);
    for row in rows {
        page.blank();
        let mark = if row.explains { page.glyph("▶ ", "> ") } else { "  " };
        let name = if row.explains { Ink::BadStrong } else { Ink::Strong };
        page.flow(&[span(name, mark)], &indent(4), &[span(name, row.tier), span(Ink::Plain, row.how)]);
        if !row.url.is_empty() {
            page.flow(&indent(4), &indent(6), &[span(Ink::Faint, row.url)]);
        }
        if !row.notes.is_empty() {
            page.flow(&indent(4), &indent(6), &with_commas(row.notes));
        }
        page.flow(&indent(4), &indent(4), &[row.summary]);
    }
}

/// Notes with a comma after each but the last.
fn with_commas(notes: Vec<Span>) -> Vec<Span> {
    let last = notes.len().saturating_sub(1);
    notes
        .into_iter()
        .enumerate()
        .map(|(place, note)| span(note.ink, if place < last { format!("{},", note.text) } else { note.text }))
        .collect()
}
