//! The load and its result, as labelled lines.

use chokepoint_model::report::Diagnosis;

use crate::report::text::page::TextPage;
use crate::report::text::wrap::columns;
use crate::report::view::load::{LABELS, LoadLine, lines};
use crate::report::view::{Ink, span};

/// Writes the lines that have content.
pub(super) fn write(page: &mut TextPage<'_>, diagnosis: &Diagnosis) {
    let lines = lines(diagnosis, page.phrases());
    write_lines(page, &LABELS, lines.into_iter());
}

/// Writes lines after their labels. All labels are as wide as the widest of `labels`.
pub(in crate::report::text) fn write_lines(page: &mut TextPage<'_>, labels: &[&'static str], lines: impl Iterator<Item = LoadLine>) {
    page.blank();
    let width = labels.iter().map(|id| columns(&page.word(id))).max().unwrap_or(0);
    for line in lines {
        let text = page.word(line.label);
        let fill = " ".repeat(width - columns(&text).min(width));
        let first = [span(Ink::Faint, format!("  {text}{fill}  "))];
        let rest = [span(Ink::Plain, " ".repeat(width + 4))];
        if line.label == "report-label-target" {
            page.flow(&first, &rest, &line.notes);
        } else {
            page.notes(&first, &rest, &line.notes);
        }
    }
}
