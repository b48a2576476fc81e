//! Where requests stood: a bar for each place.

use chokepoint_model::report::Diagnosis;

use crate::report::text::page::TextPage;
use crate::report::text::wrap::columns;
use crate::report::view::ledger::{LedgerView, PlaceRow, tenths, view};
use crate::report::view::{Ink, span};

/// Columns of the bar, and of the number and the share before it.
const BAR_COLUMNS: usize = 30;
const NUMBER_COLUMNS: usize = 9;
const SHARE_COLUMNS: usize = 6;

/// Draws the ledger, if requests were sampled.
pub(super) fn write(page: &mut TextPage<'_>, diagnosis: &Diagnosis) {
    let Some(view) = view(diagnosis, page.phrases()) else { return };
    page.heading("report-ledger");
    write_ledger(page, &view);
}

/// Writes the sentence, the bars and the losses.
pub(in crate::report::text) fn write_ledger(page: &mut TextPage<'_>, view: &LedgerView) {
    page.flow(&[span(Ink::Plain, "  ")], &[span(Ink::Plain, "  ")], &[span(Ink::Plain, &view.head)]);
    let room = page.width().saturating_sub(2 + NUMBER_COLUMNS + SHARE_COLUMNS + 3 + BAR_COLUMNS).max(12);
    let wide = view.rows.iter().map(|row| columns(&row.label)).filter(|wide| *wide <= room).max().unwrap_or(room);
    view.rows.iter().for_each(|row| write_row(page, row, wide));
    view.losses.iter().for_each(|loss| page.point(2, &[span(Ink::Plain, loss)]));
}

fn write_row(page: &mut TextPage<'_>, row: &PlaceRow, wide: usize) {
    let label = span(row.ink, &row.label);
    let mut line = vec![span(Ink::Plain, "  ")];
    if columns(&row.label) > wide {
        page.flow(&line, &[span(Ink::Plain, "    ")], &[label]);
        line.push(span(Ink::Plain, " ".repeat(wide)));
    } else {
        line.extend([label, span(Ink::Plain, " ".repeat(wide - columns(&row.label)))]);
    }
    let percent = page.phrases().percent(row.share.abs());
    let percent = if row.share < 0.0 { format!("-{percent}") } else { percent };
    let cells = (row.share.clamp(0.0, 1.0) * BAR_COLUMNS as f64).round() as usize;
    let fill = " ".repeat(SHARE_COLUMNS.saturating_sub(columns(&percent)));
    line.push(span(row.ink, format!("{:>NUMBER_COLUMNS$}{fill}{percent}", tenths(row.mean))));
    if cells > 0 {
        line.push(span(row.ink, format!("  {}", page.glyph("█", "#").repeat(cells))));
    }
    page.line(&line);
}
