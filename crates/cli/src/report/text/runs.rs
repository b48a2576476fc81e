//! Kept runs as text: the list, one run, and two runs compared. Texts of runs are escaped like every other text of the page.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_model::surroundings::is_default;
use chokepoint_runs::comparison::{Comparison, Difference};
use chokepoint_runs::{Run, Summary};

use super::experiment::table;
use super::page::TextPage;
use super::wrap::columns;
use crate::report::view::experiment::Table;
use crate::report::view::runs as view;
use crate::report::view::{Ink, printable, span};
use crate::terminal::output::{Painted, Style};

/// The indentation below a heading.
const MARGIN: &str = "  ";
/// The widest cell of the list, columns.
const CELL_MAX: usize = 40;

/// The list: a line for each run and one for its result.
pub(crate) fn list(runs: &[Summary], is_filtered: bool, style: &Style, words: &Catalogue) -> Painted {
    let mut page = TextPage::new(style, words);
    let phrases = page.phrases();
    if runs.is_empty() {
        let text = phrases.say(&Message::new("runs-none").with("filtered", if is_filtered { "yes" } else { "no" }));
        page.line(&[span(Ink::Plain, text)]);
        return page.finish();
    }
    let ellipsis = page.glyph("…", "~");
    let rows: Vec<[String; 6]> = view::rows(phrases, runs).into_iter().map(|row| row.map(|cell| cut(&cell, ellipsis))).collect();
    let width = |column: usize| rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    for (place, row) in rows.iter().enumerate() {
        let cell = |(column, text): (usize, &String)| {
            let blank = " ".repeat(widths[column] - columns(text));
            if column == 0 { format!("{blank}{text}") } else { format!("  {text}{blank}") }
        };
        let shown = row.iter().enumerate().filter(|(column, _)| widths[*column] > 0).map(cell).collect::<String>();
        page.line(&[span(if place == 0 { Ink::Faint } else { Ink::Plain }, shown.trim_end())]);
        if let Some(run) = place.checked_sub(1).and_then(|place| runs.get(place)) {
            let indent = " ".repeat(widths[0] + MARGIN.len());
            let state = view::state(phrases, run.state);
            let result = [state.as_str(), run.headline.as_str()].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(": ");
            page.flow_within(2, &[span(Ink::Plain, &indent)], &[span(Ink::Plain, &indent)], &[span(Ink::Faint, result)]);
        }
    }
    page.finish()
}

/// A text as a cell: escaped, and cut after [`CELL_MAX`] columns.
fn cut(text: &str, ellipsis: &str) -> String {
    let text = printable(text);
    if columns(&text) <= CELL_MAX {
        return text.into_owned();
    }
    let mut shown = String::new();
    for character in text.chars() {
        shown.push(character);
        if columns(&shown) >= CELL_MAX {
            shown.pop();
            break;
        }
    }
    shown + ellipsis
}

/// One run. `trials`: how many are kept with it.
pub(crate) fn show(run: &Run, trials: u64, style: &Style, words: &Catalogue) -> Painted {
    let mut page = TextPage::new(style, words);
    let phrases = page.phrases();
    let title = Message::new("runs-title").with("id", run.id.to_string()).with("kind", run.run.kind.as_str());
    page.flow(&[], &[], &[span(Ink::Strong, phrases.say(&title.with("target", run.run.target.as_str())))]);
    for fact in view::facts(phrases, run) {
        page.flow(&[], &[span(Ink::Plain, MARGIN)], &[span(Ink::Faint, fact)]);
    }
    page.flow(&[], &[span(Ink::Plain, MARGIN)], &[span(Ink::Plain, &run.run.headline)]);
    if trials > 0 {
        page.flow(&[], &[], &[span(Ink::Plain, phrases.say(&Message::new("runs-trials").with("n", trials)))]);
    }
    let pairs = |values: &std::collections::BTreeMap<String, String>| -> Vec<(String, String)> {
        values.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    named(&mut page, &phrases.word("runs-figures"), &view::figures(phrases, run));
    let load = pairs(&run.run.load).into_iter().filter(|(name, value)| !view::is_default_load(name, value));
    named(&mut page, &phrases.word("runs-load"), &load.collect::<Vec<_>>());
    for (group, values) in &run.run.surroundings {
        let set: Vec<_> = pairs(values).into_iter().filter(|(name, value)| !is_default(name, value)).collect();
        named(&mut page, group, &set);
    }
    page.finish()
}

/// Two runs compared.
pub(crate) fn compare(comparison: &Comparison, style: &Style, words: &Catalogue) -> Painted {
    let mut page = TextPage::new(style, words);
    let phrases = page.phrases();
    let title = Message::new("runs-compare-title").with("later", comparison.later.id.to_string());
    let title = phrases.say(&title.with("earlier", comparison.earlier.id.to_string()));
    page.flow(&[], &[], &[span(Ink::Strong, title)]);
    for line in view::both(phrases, comparison) {
        page.flow(&[span(Ink::Plain, MARGIN)], &[span(Ink::Plain, MARGIN.repeat(2))], &[span(Ink::Plain, line)]);
    }
    page.gap();
    page.flow(&[], &[], &[span(Ink::Plain, view::chosen(phrases, comparison))]);
    for caution in view::cautions(phrases, comparison) {
        page.flow(&[], &[], &[span(Ink::WarnStrong, caution)]);
    }
    if !comparison.load.is_empty() {
        page.gap();
        page.flow(&[], &[], &[span(Ink::WarnStrong, phrases.word("runs-loads-differ"))]);
        let load: Vec<&Difference> = comparison.load.iter().collect();
        changes(&mut page, &load);
    }
    table(&mut page, &escaped(view::figure_table(phrases, comparison)));
    let differences = view::differences(comparison);
    if !differences.is_empty() {
        page.heading("runs-differences");
        for (group, members) in differences {
            page.flow(&[span(Ink::Plain, MARGIN)], &[], &[span(Ink::Faint, group)]);
            changes(&mut page, &members);
        }
    }
    for (heading, values) in view::one_sided(phrases, comparison) {
        named(&mut page, &heading, &values);
    }
    page.gap();
    page.flow(&[], &[], &[span(Ink::Plain, view::same(phrases, comparison))]);
    page.flow(&[], &[], &[span(Ink::Faint, phrases.word("runs-no-proof"))]);
    page.finish()
}

/// A table that keeps its columns whatever is in it.
fn escaped(table: Table) -> Table {
    let rows = table.rows.into_iter().map(|row| row.iter().map(|cell| printable(cell).into_owned()).collect()).collect();
    Table { rows, ..table }
}

/// Values before and after.
fn changes(page: &mut TextPage<'_>, differences: &[&Difference]) {
    let absent = page.word("runs-not-read");
    let arrow = page.glyph("→", "->");
    let side = |value: &Option<String>| value.clone().unwrap_or_else(|| absent.clone());
    let lines: Vec<(String, String)> = differences
        .iter()
        .map(|difference| (difference.name.clone(), format!("{} {arrow} {}", side(&difference.earlier), side(&difference.later))))
        .collect();
    pairs(page, &MARGIN.repeat(2), &lines);
}

fn named(page: &mut TextPage<'_>, heading: &str, lines: &[(String, String)]) {
    if lines.is_empty() {
        return;
    }
    page.gap();
    page.line(&[span(Ink::Strong, heading)]);
    pairs(page, MARGIN, lines);
}

/// Names and values in two columns.
fn pairs(page: &mut TextPage<'_>, margin: &str, lines: &[(String, String)]) {
    let names: Vec<String> = lines.iter().map(|(name, _)| printable(name).into_owned()).collect();
    let width = names.iter().map(|name| columns(name)).max().unwrap_or(0).min(page.width() / 2);
    for (name, (_, value)) in names.iter().zip(lines) {
        let first = format!("{margin}{name}{}  ", " ".repeat(width.saturating_sub(columns(name))));
        let rest = " ".repeat(margin.len() + width + 2);
        page.flow(&[span(Ink::Plain, first)], &[span(Ink::Plain, rest)], &[span(Ink::Plain, value)]);
    }
}
