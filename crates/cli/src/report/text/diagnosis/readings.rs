//! Warnings, and readings that are missing with the privilege that would give them.

use chokepoint_model::report::Diagnosis;

use crate::report::text::page::TextPage;
use crate::report::view::readings::{Gap, gaps};
use crate::report::view::{Ink, span};

/// Writes warnings and gaps, if any.
pub(super) fn write(page: &mut TextPage<'_>, diagnosis: &Diagnosis) {
    if !diagnosis.warnings.is_empty() {
        page.heading("report-warnings");
        for warning in &diagnosis.warnings {
            page.flow(&[span(Ink::Warn, "  ! ")], &[span(Ink::Plain, "    ")], &[span(Ink::Plain, warning)]);
        }
    }
    let gaps = gaps(diagnosis);
    if !gaps.is_empty() {
        page.heading("report-unread");
        gaps.iter().for_each(|gap| write_gap(page, gap));
    }
}

fn write_gap(page: &mut TextPage<'_>, gap: &Gap<'_>) {
    let names = gap.names(page.phrases());
    let mut text = vec![span(Ink::Plain, format!("{names}:"))];
    if gap.failed {
        text.push(span(Ink::Bad, format!("{}:", page.word("report-failed"))));
    }
    let semicolon = if gap.needs.is_some() { ";" } else { "" };
    text.push(span(Ink::Plain, format!("{}{semicolon}", gap.why)));
    text.extend(gap.needs(page.phrases()).map(|needs| span(Ink::Strong, needs)));
    page.point(2, &text);
}
