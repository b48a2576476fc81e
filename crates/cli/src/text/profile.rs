//! Where the CPU time went, in few lines.

use chokepoint_model::report::Diagnosis;

use super::page::Page;
use crate::sheet::profile::lines;
use crate::sheet::{Ink, span};

/// Writes the profile; nothing where none was taken.
pub(super) fn write(page: &mut Page<'_>, diagnosis: &Diagnosis) {
    let lines = lines(diagnosis, page.phrases());
    if lines.is_empty() {
        return;
    }
    page.heading("report-profile");
    lines.iter().for_each(|line| page.point(2, &[span(Ink::Plain, line)]));
}
