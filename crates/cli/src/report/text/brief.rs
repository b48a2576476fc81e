//! The short report of a diagnosis: what limits, how that is known, and what to do next, on one screen. `--verbose` prints the long one.

mod again;
mod cause;
mod changes;
mod head;
mod next;
mod notes;
mod places;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::report::Diagnosis;

pub(crate) use again::Again;

use super::diagnosis::{bisect, wire};
use super::page::TextPage;
use crate::report::view::{Ink, Span, span};
use crate::terminal::output::{Painted, Style};

/// Why a change was not applied that the user did not agree to.
pub(crate) const NOT_CONFIRMED: &str = "not confirmed";

/// Lines of a report in which something was tried, and of any other, at 80 columns.
pub(crate) const LINES_MAX_TRIED: usize = 45;
pub(crate) const LINES_MAX: usize = 25;
/// Columns of a usual terminal.
const COLUMNS_USUAL: usize = 80;
/// Columns of the labels at the left.
const LABEL_COLUMNS: usize = 9;

/// How much of each part is shown. The parts are named from the first to be shortened to the last.
#[derive(Debug, Clone, Copy)]
struct Detail {
    /// Lines of the reason of a change that was not kept.
    reasons: usize,
    notes: usize,
    note_lines: usize,
    /// Places where requests stood.
    places: usize,
    /// Lines of the explanation of the cause. Its first sentence is always whole.
    explanation: usize,
    /// Lines about the other findings.
    others: usize,
    /// Proofs that are shown, each of them whole: a proof without its number is none. The model lists the strongest first.
    proofs: usize,
    /// Lines of a proof: cut only where one alone is too long for the page, as a line of a log may be.
    proof: usize,
    /// Rows of the table of changes.
    changes: usize,
    /// Lines of the verdict's sentence.
    summary: usize,
    /// Tiers of the path.
    tiers: usize,
    /// True for the names of the tiers where nothing matters.
    others_named: bool,
    /// True for an empty line between the parts.
    is_airy: bool,
}

impl Detail {
    const FULL: Self = Self {
        reasons: 1,
        notes: 4,
        note_lines: 3,
        places: 4,
        explanation: 4,
        others: 3,
        proofs: 3,
        proof: usize::MAX,
        changes: 14,
        summary: 4,
        tiers: 6,
        others_named: true,
        is_airy: true,
    };

    /// Less and less, the least important part first.
    fn steps() -> impl Iterator<Item = Self> {
        let steps: [fn(&mut Self); 22] = [
            |detail| detail.reasons = 0,
            |detail| detail.notes = 3,
            |detail| detail.note_lines = 2,
            |detail| detail.explanation = 3,
            |detail| detail.places = 3,
            |detail| detail.others = 2,
            |detail| detail.explanation = 2,
            |detail| detail.proofs = 2,
            |detail| detail.notes = 2,
            |detail| detail.note_lines = 1,
            |detail| detail.tiers = 4,
            |detail| detail.others = 1,
            |detail| detail.summary = 2,
            |detail| detail.changes = 11,
            |detail| detail.places = 2,
            |detail| detail.proofs = 1,
            |detail| detail.proof = 3,
            |detail| detail.notes = 1,
            |detail| detail.tiers = 3,
            |detail| detail.explanation = 1,
            |detail| (detail.is_airy, detail.changes) = (false, 8),
            |detail| detail.others_named = false,
        ];
        let shorten = |detail: &mut Self, step: fn(&mut Self)| {
            step(detail);
            Some(*detail)
        };
        std::iter::once(Self::FULL).chain(steps.into_iter().scan(Self::FULL, shorten))
    }
}

/// The short report, ending in a newline. At 80 columns or more it has at most [`LINES_MAX_TRIED`] lines if something was tried, else [`LINES_MAX`], or as many more as
/// the remedy needs, which is never cut; no line is wider than the page. What a flag asked for (`--bisect`, `--capture`) comes in addition.
pub(crate) fn brief(diagnosis: &Diagnosis, style: &Style, words: &Catalogue) -> Painted {
    brief_of(diagnosis, style, words, None)
}

/// [`brief`] of a run whose command line is known: what comes next can be pasted.
pub(crate) fn brief_of(diagnosis: &Diagnosis, style: &Style, words: &Catalogue, again: Option<&Again>) -> Painted {
    let most = if diagnosis.rounds.is_empty() { LINES_MAX } else { LINES_MAX_TRIED };
    // A narrow page has more lines for the same words: it is as long, and nothing is cut that the usual page has.
    let width = TextPage::new(style, words).width().min(COLUMNS_USUAL);
    let most = (most * COLUMNS_USUAL).div_ceil(width);
    let mut shortest = Painted::default();
    for detail in Detail::steps() {
        let (page, lines) = with(diagnosis, detail, again, TextPage::new(style, words));
        shortest = page;
        if lines <= most {
            break;
        }
    }
    shortest
}

/// The parts that only a flag asks for, as in the long report. How many lines they take.
fn write_asked(page: &mut TextPage<'_>, diagnosis: &Diagnosis) -> usize {
    let before = page.lines_written();
    bisect::write(page, diagnosis);
    wire::write(page, diagnosis);
    page.lines_written() - before
}

/// The report, and how many lines it has without those that a flag asked for.
fn with(diagnosis: &Diagnosis, detail: Detail, again: Option<&Again>, mut page: TextPage<'_>) -> (Painted, usize) {
    head::write(&mut page, diagnosis, detail);
    cause::write(&mut page, diagnosis, detail);
    if detail.is_airy {
        page.gap();
    }
    places::write(&mut page, diagnosis, detail);
    changes::write(&mut page, diagnosis, detail);
    let asked = write_asked(&mut page, diagnosis);
    if detail.is_airy {
        page.gap();
    }
    notes::write(&mut page, diagnosis, detail);
    next::write(&mut page, diagnosis, again);
    let lines = page.lines_written() - asked;
    (page.finish(), lines)
}

/// A label, padded to its column.
fn label(page: &TextPage<'_>, id: &'static str) -> Span {
    span(Ink::Strong, padded(&page.word(id), LABEL_COLUMNS))
}

/// Blanks as wide as the labels.
fn no_label() -> Span {
    span(Ink::Plain, " ".repeat(LABEL_COLUMNS))
}

/// The text, filled with blanks to this width, at least one.
fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(super::columns(text)).max(1)))
}

/// The text, right-aligned to this width.
fn right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(super::columns(text))))
}
