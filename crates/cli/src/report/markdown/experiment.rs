//! The result of an experiment in GitHub-flavoured Markdown. This module draws and never judges.

use chokepoint_experiment::report::Experiment;
use chokepoint_model::catalogue::Catalogue;

use super::escape::prose;
use super::page::MarkdownPage;
use crate::report::view::Phrases;
use crate::report::view::experiment::{self as view, Table};

/// From this many variants on, single figures are a row for each variant, not a column.
const COLUMNS_MAX: usize = 6;

/// The result, ending in a newline.
pub(crate) fn render(report: &Experiment, words: &Catalogue) -> String {
    let phrases = Phrases(words);
    let mut page = MarkdownPage { phrases, out: String::new() };
    page.block(&format!("# {}", prose(&report.title)));
    page.list(view::sentences(report).into_iter().map(|(_, sentence)| format!("**{}**", prose(&sentence))));
    page.list(view::setting(report).into_iter().chain(view::remarks(report, phrases)).map(|remark| prose(&remark)));
    page.list(report.warnings.iter().map(|warning| prose(warning)));
    if let Some(matrix) = view::matrix(report, phrases) {
        table(&mut page, &matrix);
    }
    table(&mut page, &view::summary(report, phrases));
    let wide = report.variants.len() > COLUMNS_MAX;
    table(&mut page, &if wide { view::cores(report, phrases) } else { view::figures(report, phrases) });
    let standing = std::iter::once(("experiment-where", view::standing(report, phrases)));
    for (heading, lines) in standing.chain(view::looks(report)) {
        if !lines.is_empty() {
            page.block(&format!("{}:", prose(&phrases.word(heading))));
            page.list(lines.into_iter().map(|(name, text)| format!("{}: {}", prose(&name), prose(&text))));
        }
    }
    let verified: Vec<String> = view::verified(report);
    if !verified.is_empty() {
        page.block(&format!("{}:", prose(&phrases.word("experiment-verified"))));
        page.list(verified.into_iter().map(|line| prose(&line)));
    }
    page.out
}

pub(super) fn table(page: &mut MarkdownPage<'_>, table: &Table) {
    let Some((head, rows)) = table.rows.split_first() else { return };
    if !table.title.is_empty() {
        page.block(&format!("**{}**", prose(&table.title)));
    }
    let cells = |row: &[String]| row.iter().map(|cell| prose(cell)).collect::<Vec<_>>();
    page.block(&format!("| {} |", cells(head).join(" | ")));
    page.line(&format!("|---|{}", "--:|".repeat(head.len().saturating_sub(1))));
    for row in rows {
        page.row(&cells(row));
    }
}
