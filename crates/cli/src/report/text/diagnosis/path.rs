//! The request's path as a pipe: a row for each station, grouped by tier, with the pipe narrowed at the choke point.

use chokepoint_model::report::Diagnosis;

use crate::report::text::page::TextPage;
use crate::report::text::wrap::columns;
use crate::report::view::path::{Flow, Mark, StationRow, tiers};
use crate::report::view::{Ink, Span, span};

/// Columns of the utilization bar.
const BAR_COLUMNS: usize = 10;
/// Columns of the percentage: "100 %".
const PERCENT_COLUMNS: usize = 5;
/// Columns before a station's name: margin, pipe, margin.
const MARGIN_COLUMNS: usize = 7;
/// Notes with less room than this go below their row, columns.
const NOTES_COLUMNS_MIN: usize = 30;

/// Draws the path, if any station was read.
pub(super) fn write(page: &mut TextPage<'_>, diagnosis: &Diagnosis) {
    if diagnosis.path.is_empty() {
        return;
    }
    page.heading("report-path");
    let tiers = tiers(diagnosis, page.phrases());
    let label_columns_max = (page.width() * 2 / 5).saturating_sub(MARGIN_COLUMNS).max(18);
    let label_columns_max = label_columns_max.min(page.width() - MARGIN_COLUMNS - 4 - BAR_COLUMNS - 1 - PERCENT_COLUMNS);
    let labels = tiers.iter().flat_map(|tier| &tier.rows).map(|row| columns(&row.label));
    let label_columns = labels.filter(|wide| *wide <= label_columns_max).max().unwrap_or(label_columns_max);
    for tier in &tiers {
        let prefix = [pipe(page, tier.flow)];
        let facts = if tier.facts.is_empty() { String::new() } else { format!("({})", tier.facts.join(", ")) };
        page.flow(&prefix, &prefix, &[span(Ink::Strong, tier.name), span(Ink::Faint, facts)]);
        tier.rows.iter().for_each(|row| write_row(page, row, label_columns));
    }
}

fn pipe(page: &TextPage<'_>, flow: Flow) -> Span {
    let (ink, glyph) = match flow {
        Flow::Before => (Ink::Faint, page.glyph("│ │", "| |")),
        Flow::Choked => (Ink::BadStrong, page.glyph("▶│◀", ">|<")),
        Flow::Behind => (Ink::Faint, page.glyph("┆ ┆", ": :")),
    };
    span(ink, format!("  {glyph}  "))
}

fn write_row(page: &mut TextPage<'_>, row: &StationRow<'_>, label_columns: usize) {
    let StationRow { label, mark, flow, .. } = row;
    let name_ink = if *mark == Mark::Choke { Ink::BadStrong } else { Ink::Plain };
    let mut first = vec![pipe(page, *flow)];
    // The second line of the choke point is drawn behind it.
    let below = pipe(page, if *flow == Flow::Choked { Flow::Behind } else { *flow });
    if columns(label) > label_columns {
        page.flow(&[first[0].clone(), span(Ink::Plain, "  ")], &[below.clone(), span(Ink::Plain, "    ")], &[span(name_ink, label)]);
        first = vec![below.clone(), span(Ink::Plain, " ".repeat(label_columns + 2))];
    } else {
        first.push(span(name_ink, format!("  {label}{}", " ".repeat(label_columns - columns(label)))));
    }
    first.push(span(Ink::Plain, "  "));
    first.extend(bar(page, row));
    let mut notes: Vec<Span> = row.badge.iter().map(|badge| badge_with_arrow(page, badge, *mark)).collect();
    notes.extend(row.notes.iter().cloned());
    let column = MARGIN_COLUMNS + label_columns + 4 + BAR_COLUMNS + 1 + PERCENT_COLUMNS + 2;
    if notes.is_empty() {
        page.line(&first);
    } else if column + NOTES_COLUMNS_MIN <= page.width() {
        first.push(span(Ink::Plain, "  "));
        let rest = [below, span(Ink::Plain, " ".repeat(column - MARGIN_COLUMNS))];
        page.notes(&first, &rest, &notes);
    } else {
        page.line(&first);
        let rest = [below, span(Ink::Plain, "    ")];
        page.notes(&rest, &rest, &notes);
    }
}

/// The badge of a row; the badge of the choke point has an arrow.
fn badge_with_arrow(page: &TextPage<'_>, badge: &Span, mark: Mark) -> Span {
    match mark {
        Mark::Choke => span(badge.ink, format!("{} {}:", page.glyph("◀━", "<--"), badge.text)),
        _ => badge.clone(),
    }
}

/// The utilization as bar and percentage; blank if use or limit is unknown.
fn bar(page: &TextPage<'_>, row: &StationRow<'_>) -> [Span; 2] {
    let Some(share) = row.share else {
        return [span(Ink::Plain, " ".repeat(BAR_COLUMNS)), span(Ink::Plain, " ".repeat(PERCENT_COLUMNS + 1))];
    };
    // The bar is full only at the limit, and never empty above zero.
    let cells = (share.clamp(0.0, 1.0) * BAR_COLUMNS as f64).floor() as usize;
    let cells = if share > 0.0 { cells.max(1) } else { 0 };
    let bar = page.glyph("█", "#").repeat(cells) + &page.glyph("░", ".").repeat(BAR_COLUMNS - cells);
    let percent = page.phrases().percent(share);
    let fill = " ".repeat((PERCENT_COLUMNS + 1).saturating_sub(columns(&percent)));
    [span(row.ink, bar), span(row.ink, fill + &percent)]
}
