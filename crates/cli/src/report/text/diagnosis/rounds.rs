//! The rounds of `--fix` as a table: the change, its effect, and whether it was kept.

use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, LoadReport, Prediction, Round, RoundKind};

use crate::report::text::page::TextPage;
use crate::report::text::wrap::columns;
use crate::report::view::load::p99;
use crate::report::view::rounds::{change, failed_share, fate, predicted, result};
use crate::report::view::{Ink, Span, span};

/// Titles of the columns.
const TITLES: [&str; 5] =
    ["report-column-change", "report-column-before", "report-column-goodput", "report-column-p99", "report-column-failed"];
/// Columns before the table.
const MARGIN: &str = "  ";
/// Columns of the number of a round and the space after it.
const NUMBER_COLUMNS: usize = 4;

/// Writes the verdict with all changes that were kept, if any.
pub(super) fn write_result(page: &mut TextPage<'_>, diagnosis: &Diagnosis) {
    if let Some([before, after]) = result(diagnosis, page.phrases()) {
        page.flow(&[], &[], &[before, after]);
    }
}

/// Writes the table, if anything was tried.
pub(super) fn write(page: &mut TextPage<'_>, diagnosis: &Diagnosis) {
    if diagnosis.rounds.is_empty() {
        return;
    }
    page.heading("report-rounds");
    let mut rows: Vec<[String; 5]> = vec![TITLES.map(|id| page.word(id))];
    rows.push(cells(page, page.word("report-as-found"), None, diagnosis.load.as_ref()));
    rows.extend(diagnosis.rounds.iter().map(|round| cells(page, change(round, page.phrases()), round.before_rps, Some(&round.load))));
    let wide = |column: usize| rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0);
    let taken = |from: usize| (from..TITLES.len()).map(|column| wide(column) + 2).sum::<usize>();
    // A narrow page has no column for the goodput before the change.
    let fits = MARGIN.len() + NUMBER_COLUMNS + columns(&rows[0][0]) + taken(1) <= page.width();
    let first = if fits { 1 } else { 2 };
    let figures = taken(first);
    let room = page.width().saturating_sub(MARGIN.len() + NUMBER_COLUMNS + figures);
    let widths = [wide(0).min(room.max(columns(&rows[0][0]))), wide(1), wide(2), wide(3), wide(4)];
    for (place, row) in rows.iter().enumerate() {
        let number = match place {
            0 => String::new(),
            1 => "0".to_owned(),
            _ => diagnosis.rounds[place - 2].n.to_string(),
        };
        let (name_ink, ink) = match place {
            0 => (Ink::Faint, Ink::Faint),
            1 => (Ink::Plain, Ink::Plain),
            _ => (Ink::Strong, Ink::Strong),
        };
        let mut line = vec![span(Ink::Faint, format!("{MARGIN}{number:>2}  "))];
        match widths[0].checked_sub(columns(&row[0])) {
            Some(fill) => line.push(span(name_ink, format!("{}{}", row[0], " ".repeat(fill)))),
            None => {
                line.push(span(name_ink, &row[0]));
                page.line(&line);
                line = vec![span(Ink::Plain, " ".repeat(MARGIN.len() + NUMBER_COLUMNS + widths[0]))];
            }
        }
        for column in first..TITLES.len() {
            let fill = " ".repeat(widths[column] - columns(&row[column]));
            line.push(span(ink, format!("  {fill}{}", row[column])));
        }
        page.line(&line);
        if let Some(round) = place.checked_sub(2).and_then(|place| diagnosis.rounds.get(place)) {
            write_outcome(page, round);
        }
    }
}

/// Change, goodput before and after it, p99 and failed share of a measurement; dashes for missing figures.
fn cells(page: &TextPage<'_>, change: String, before_rps: Option<f64>, load: Option<&LoadReport>) -> [String; 5] {
    let phrases = page.phrases();
    let dash = || "-".to_owned();
    let before = before_rps.map_or_else(dash, |rate| phrases.number(rate));
    let Some(load) = load else { return [change, before, dash(), dash(), dash()] };
    let failed = phrases.percent(failed_share(load));
    [change, before, phrases.number(load.goodput_rps), p99(phrases, load), failed]
}

/// Writes the finding and the prediction, and whether and why the change was kept.
fn write_outcome(page: &mut TextPage<'_>, round: &Round) {
    let indent = [span(Ink::Plain, " ".repeat(MARGIN.len() + NUMBER_COLUMNS))];
    let found = page.phrases().say(&Message::new("report-round-found").with("finding", round.finding.as_str()));
    let predicted = predicted(round, page.phrases());
    let predicted = match round.prediction {
        Prediction::Goodput { .. } => page.phrases().say(&Message::new("report-round-predicted").with("what", predicted)),
        Prediction::Refused { .. } => predicted,
    };
    if round.kind == RoundKind::Apply {
        page.flow(&indent, &indent, &[span(Ink::Plain, found)]);
        page.flow(&indent, &indent, &[span(Ink::Plain, predicted)]);
    }
    let text = &round.why;
    let colon = if text.is_empty() { "" } else { ":" };
    let fate = fate(round, page.phrases()).map(|fate| span(fate.ink, format!("{}{colon}", fate.text)));
    let words: Vec<Span> = fate.into_iter().chain([span(Ink::Plain, text.as_str())]).collect();
    page.flow(&indent, &indent, &words);
}
