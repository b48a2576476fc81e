//! What else there is to know: warnings, and what could not be read with the privilege that would give it.

use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, SourceStatus};

use super::page::{Ink, Page, span};

/// Sources told by name for one reason; more are only counted.
const SOURCES_TOLD_MAX: usize = 6;

/// Writes warnings and gaps; nothing where there are none.
pub(super) fn write(page: &mut Page<'_>, diagnosis: &Diagnosis) {
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

fn write_gap(page: &mut Page<'_>, gap: &Gap<'_>) {
    let mut names = gap.sources.iter().take(SOURCES_TOLD_MAX).copied().collect::<Vec<_>>().join(", ");
    if let Some(more) = gap.sources.len().checked_sub(SOURCES_TOLD_MAX).filter(|more| *more > 0) {
        names = format!("{names}, {}", page.say(&Message::new("report-unread-more").with("count", more as f64)));
    }
    let mut text = vec![span(Ink::Plain, format!("{names}:"))];
    if gap.failed {
        text.push(span(Ink::Bad, format!("{}:", page.word("report-failed"))));
    }
    let semicolon = if gap.needs.is_some() { ";" } else { "" };
    text.push(span(Ink::Plain, format!("{}{semicolon}", gap.why)));
    if let Some(needs) = gap.needs {
        text.push(span(Ink::Strong, page.say(&Message::new("report-needs").with("needs", needs))));
    }
    let bullet = page.glyph("•", "-");
    page.flow(&[span(Ink::Plain, format!("  {bullet} "))], &[span(Ink::Plain, "    ")], &text);
}

/// Sources that gave nothing for the same reason.
struct Gap<'a> {
    failed: bool,
    needs: Option<&'a str>,
    why: &'a str,
    sources: Vec<&'a str>,
}

/// Failures first, then what a privilege would give, then what this host does not have.
fn gaps(diagnosis: &Diagnosis) -> Vec<Gap<'_>> {
    let mut gaps: Vec<Gap<'_>> = Vec::new();
    for reading in diagnosis.readings.iter().filter(|reading| reading.status != SourceStatus::Ok) {
        let failed = reading.status == SourceStatus::Failed;
        let (needs, why) = (reading.needs.as_deref(), reading.why.as_deref().unwrap_or_default());
        match gaps.iter_mut().find(|gap| (gap.failed, gap.needs, gap.why) == (failed, needs, why)) {
            Some(gap) => gap.sources.push(&reading.source),
            None => gaps.push(Gap { failed, needs, why, sources: vec![&reading.source] }),
        }
    }
    gaps.sort_by_key(|gap| (!gap.failed, gap.needs.is_none()));
    gaps
}
