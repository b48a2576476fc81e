//! The readings that are missing, grouped by reason.

use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, SourceReport, SourceStatus};

use super::Phrases;

/// Up to this many sources of a reason are named; more are only counted.
const SOURCES_MAX: usize = 6;

/// Sources without a reading for the same reason.
pub(crate) struct Gap<'a> {
    /// True if the source exists but could not be parsed.
    pub(crate) failed: bool,
    /// The privilege that would give it.
    pub(crate) needs: Option<&'a str>,
    /// The reason; may be empty.
    pub(crate) why: &'a str,
    sources: Vec<&'a str>,
}

impl Gap<'_> {
    /// The names of the sources, up to [`SOURCES_MAX`], and the number of further ones.
    pub(crate) fn names(&self, phrases: Phrases<'_>) -> String {
        let names = self.sources.iter().take(SOURCES_MAX).copied().collect::<Vec<_>>().join(", ");
        match self.sources.len().checked_sub(SOURCES_MAX).filter(|more| *more > 0) {
            Some(more) => format!("{names}, {}", phrases.say(&Message::new("report-unread-more").with("count", more as f64))),
            None => names,
        }
    }

    /// The privilege that would give it, as a phrase.
    pub(crate) fn needs(&self, phrases: Phrases<'_>) -> Option<String> {
        self.needs.map(|needs| phrases.say(&Message::new("report-needs").with("needs", needs)))
    }
}

/// The gaps of a diagnosis: failures first, then what a privilege would give, then what this host does not have.
pub(crate) fn gaps(diagnosis: &Diagnosis) -> Vec<Gap<'_>> {
    gaps_of(&diagnosis.readings)
}

/// The gaps of these readings, in the same order.
pub(crate) fn gaps_of(readings: &[SourceReport]) -> Vec<Gap<'_>> {
    let mut gaps: Vec<Gap<'_>> = Vec::new();
    for reading in readings.iter().filter(|reading| reading.status != SourceStatus::Ok) {
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
