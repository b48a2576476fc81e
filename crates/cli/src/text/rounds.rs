//! The rounds of `--fix` as a table: what was changed, what it gave, whether it stayed.

use chokepoint_model::report::{Diagnosis, LoadReport, Round};

use super::page::Page;
use super::wrap::columns;
use crate::sheet::rounds::{change, failed_share, fate, outcome as outcome_of, result};
use crate::sheet::{Ink, Span, span};

/// Titles of the columns.
const TITLES: [&str; 4] = ["report-column-change", "report-column-goodput", "report-column-p99", "report-column-failed"];
/// Columns before the table.
const MARGIN: &str = "  ";
/// Columns of the round's number and the space behind it.
const NUMBER_COLUMNS: usize = 4;

/// Writes what the verdict is with all changes that were kept; nothing where none was.
pub(super) fn write_result(page: &mut Page<'_>, diagnosis: &Diagnosis) {
    if let Some([before, after]) = result(diagnosis, page.phrases()) {
        page.flow(&[], &[], &[before, after]);
    }
}

/// Writes the table; nothing where nothing was tried.
pub(super) fn write(page: &mut Page<'_>, diagnosis: &Diagnosis) {
    if diagnosis.rounds.is_empty() {
        return;
    }
    page.heading("report-rounds");
    let mut rows: Vec<[String; 4]> = vec![TITLES.map(|id| page.word(id))];
    rows.push(cells(page, page.word("report-as-found"), diagnosis.load.as_ref()));
    rows.extend(diagnosis.rounds.iter().map(|round| cells(page, change(round, page.phrases()), Some(&round.load))));
    let wide = |column: usize| rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0);
    let figures: usize = (1..TITLES.len()).map(|column| wide(column) + 2).sum();
    let room = page.width().saturating_sub(MARGIN.len() + NUMBER_COLUMNS + figures);
    let widths = [wide(0).min(room.max(columns(&rows[0][0]))), wide(1), wide(2), wide(3)];
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
        for column in 1..TITLES.len() {
            let fill = " ".repeat(widths[column] - columns(&row[column]));
            line.push(span(ink, format!("  {fill}{}", row[column])));
        }
        page.line(&line);
        if let Some(round) = place.checked_sub(2).and_then(|place| diagnosis.rounds.get(place)) {
            outcome(page, round);
        }
    }
}

/// The change, goodput, p99 and share of failed requests of one measurement; dashes where there is none.
fn cells(page: &Page<'_>, change: String, load: Option<&LoadReport>) -> [String; 4] {
    let Some(load) = load else { return [change, "-".to_owned(), "-".to_owned(), "-".to_owned()] };
    let phrases = page.phrases();
    let failed = phrases.percent(failed_share(load));
    [change, phrases.number(load.goodput_rps), phrases.duration_us(load.latency_us.p99 as f64), failed]
}

/// Whether the change stayed and why, and what had been predicted.
fn outcome(page: &mut Page<'_>, round: &Round) {
    let indent = [span(Ink::Plain, " ".repeat(MARGIN.len() + NUMBER_COLUMNS))];
    let text = outcome_of(round, page.phrases());
    let colon = if text.is_empty() { "" } else { ":" };
    let fate = fate(round, page.phrases()).map(|fate| span(fate.ink, format!("{}{colon}", fate.text)));
    let words: Vec<Span> = fate.into_iter().chain([span(Ink::Plain, text)]).collect();
    page.flow(&indent, &indent, &words);
}
