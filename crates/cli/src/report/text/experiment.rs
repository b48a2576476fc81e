//! The result of an experiment as text.

use chokepoint_experiment::report::Experiment;
use chokepoint_model::catalogue::Catalogue;

use super::page::TextPage;
use super::wrap::columns;
use crate::report::view::experiment::{self as view, Table};
use crate::report::view::{Ink, span};
use crate::terminal::output::{Painted, Style};

/// The indentation below a heading.
const MARGIN: &str = "  ";
/// From this many variants on, the tables of single figures are left out: they are in the JSON, Markdown and HTML results.
const VARIANTS_SHOWN: usize = 12;

/// The result, ending in a newline.
pub(crate) fn experiment(report: &Experiment, style: &Style, words: &Catalogue) -> Painted {
    let mut page = TextPage::new(style, words);
    let phrases = page.phrases();
    page.flow(&[], &[], &[span(Ink::Strong, &report.title)]);
    page.gap();
    for (ink, sentence) in view::sentences(report) {
        page.flow(&[], &[span(Ink::Plain, MARGIN)], &[span(ink, sentence)]);
    }
    page.gap();
    for remark in view::remarks(report, phrases) {
        page.flow(&[], &[span(Ink::Plain, MARGIN)], &[span(Ink::Faint, remark)]);
    }
    if let Some(matrix) = view::matrix(report, phrases) {
        table(&mut page, &matrix);
    }
    if report.variants.len() <= VARIANTS_SHOWN {
        table(&mut page, &view::summary(report, phrases));
        table(&mut page, &view::cores(report, phrases));
    }
    let standing = std::iter::once(("experiment-where", view::standing(report, phrases)));
    for (heading, lines) in standing.chain(view::looks(report)) {
        named_lines(&mut page, heading, &lines);
    }
    list(&mut page, "experiment-verified", &view::verified(report));
    list(&mut page, "experiment-warnings", &report.warnings);
    page.finish()
}

/// Draws a table within the page: columns that do not fit are left out from the right.
pub(super) fn table(page: &mut TextPage<'_>, table: &Table) {
    page.gap();
    if !table.title.is_empty() {
        page.flow(&[], &[], &[span(Ink::Strong, &table.title)]);
    }
    let count = table.rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> =
        (0..count).map(|column| table.rows.iter().filter_map(|row| row.get(column)).map(|cell| columns(cell)).max().unwrap_or(0)).collect();
    let mut shown = 0;
    let mut used = MARGIN.len();
    for width in &widths {
        used += width + 2;
        if used > page.width() + 2 {
            break;
        }
        shown += 1;
    }
    for (place, row) in table.rows.iter().enumerate() {
        let ink = if place == 0 { Ink::Faint } else { Ink::Plain };
        let cell = |(column, text): (usize, &String)| {
            let blank = " ".repeat(widths[column] - columns(text));
            if column == 0 { format!("{MARGIN}{text}{blank}") } else { format!("  {blank}{text}") }
        };
        let line: String = row.iter().take(shown.max(1)).enumerate().map(cell).collect();
        page.line(&[span(ink, line.trim_end())]);
    }
}

/// Draws lines that begin with the name of a variant.
fn named_lines(page: &mut TextPage<'_>, heading: &'static str, lines: &[(String, String)]) {
    if lines.is_empty() {
        return;
    }
    page.heading(heading);
    let width = lines.iter().map(|(name, _)| columns(name)).max().unwrap_or(0);
    for (name, text) in lines {
        let first = format!("{MARGIN}{name}{}  ", " ".repeat(width - columns(name)));
        let rest = " ".repeat(columns(&first));
        page.flow(&[span(Ink::Plain, first)], &[span(Ink::Plain, rest)], &[span(Ink::Plain, text)]);
    }
}

fn list(page: &mut TextPage<'_>, heading: &'static str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    page.heading(heading);
    for line in lines {
        page.flow(&[span(Ink::Plain, MARGIN)], &[span(Ink::Plain, MARGIN.repeat(2))], &[span(Ink::Plain, line)]);
    }
}
