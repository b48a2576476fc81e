//! What the captured packets show, in a few lines.

use chokepoint_model::report::Diagnosis;

use crate::report::text::page::TextPage;
use crate::report::view::wire::lines;
use crate::report::view::{Ink, span};

/// Writes the lines, if packets were captured.
pub(in crate::report::text) fn write(page: &mut TextPage<'_>, diagnosis: &Diagnosis) {
    let lines = lines(diagnosis, page.phrases());
    if lines.is_empty() {
        return;
    }
    page.heading("report-wire");
    lines.iter().for_each(|line| page.point(2, &[span(Ink::Plain, line)]));
}
