//! The report of `bench` as text.

use chokepoint_load::ThresholdResult;
use chokepoint_model::bench::Bench;
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::load::Bucket;
use chokepoint_model::message::Message;

use super::diagnosis::load::write_lines;
use super::page::TextPage;
use super::wrap::columns;
use crate::report::view::bench::{LABELS, condition, facts, times, times_heading};
use crate::report::view::{Ink, span};
use crate::terminal::output::{Painted, Style};

/// The indentation below a heading.
const MARGIN: &str = "  ";
/// Columns of the widest bar of the distribution.
const BAR_COLUMNS: usize = 40;

/// The report as text, ending in a newline. `judged`: the conditions of `--fail-if`.
pub(crate) fn bench_text(bench: &Bench, judged: &[ThresholdResult], style: &Style, words: &Catalogue) -> Painted {
    let mut page = TextPage::new(style, words);
    // Where nothing was answered, why is all that there is to say: times of what failed tell nothing.
    let is_answered = bench.load.requests == 0 || !bench.load.status.is_empty();
    // That every connection was refused is what the summary says.
    let is_refused = bench.load.errors.connect_refused == bench.load.requests;
    for failure in bench.error_samples.iter().filter(|_| !is_answered && !is_refused) {
        page.flow(&[], &[], &[span(Ink::BadStrong, failure)]);
    }
    let is_good = bench.load.failed_share() == Some(0.0) && bench.warnings.is_empty() && bench.failed.is_empty();
    page.flow(&[], &[], &[span(if is_good { Ink::GoodStrong } else { Ink::WarnStrong }, &bench.summary)]);
    write_ends(&mut page, bench, judged);
    let phrases = page.phrases();
    write_lines(&mut page, &LABELS, facts(phrases, bench).into_iter());
    if !is_answered {
        return page.finish();
    }
    if bench.load.requests > 0 {
        write_table(&mut page, bench);
        write_distribution(&mut page, bench);
    }
    write_list(&mut page, "bench-warnings", bench.warnings.iter().map(|warning| warning.text.as_str()), Ink::Plain);
    write_list(&mut page, "bench-samples", bench.error_samples.iter().map(String::as_str), Ink::Plain);
    page.finish()
}

/// Writes why the load ended early, and which conditions failed.
fn write_ends(page: &mut TextPage<'_>, bench: &Bench, judged: &[ThresholdResult]) {
    let phrases = page.phrases();
    if let Some(guard) = &bench.stopped_by {
        page.flow(&[], &[], &[span(Ink::BadStrong, phrases.say(&Message::new("bench-stopped").with("guard", guard.as_str())))]);
    }
    if bench.interrupted {
        page.flow(&[], &[], &[span(Ink::WarnStrong, phrases.word("bench-interrupted"))]);
    }
    let failed: Vec<String> = judged.iter().filter(|judged| judged.failed).map(|judged| condition(phrases, judged)).collect();
    write_list(page, "bench-failed", failed.iter().map(String::as_str), Ink::BadStrong);
}

/// Writes the percentiles of each time as a table.
fn write_table(page: &mut TextPage<'_>, bench: &Bench) {
    page.heading(times_heading(bench));
    let rows = times(page.phrases(), bench);
    let widths: Vec<usize> = (0..8).map(|column| rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0)).collect();
    for (place, row) in rows.iter().enumerate() {
        let mut line = vec![span(Ink::Plain, format!("{MARGIN}{}{}", row[0], " ".repeat(widths[0] - columns(&row[0]))))];
        let ink = if place == 0 { Ink::Faint } else { Ink::Plain };
        line.extend((1..8).map(|column| span(ink, format!("{}{}", " ".repeat(2 + widths[column] - columns(&row[column])), row[column]))));
        page.line(&line);
    }
}

/// Writes the distribution of latencies as bars.
fn write_distribution(page: &mut TextPage<'_>, bench: &Bench) {
    let phrases = page.phrases();
    let most = bench.distribution.iter().map(|bucket| bucket.count).max().unwrap_or(0).max(1);
    let all = bench.load.requests.max(1) as f64;
    page.heading("bench-distribution");
    let row = |bucket: &Bucket| (phrases.duration_us(bucket.up_to_us as f64), phrases.number(bucket.count as f64), bucket.count);
    let rows: Vec<_> = bench.distribution.iter().map(row).collect();
    let bound_columns = rows.iter().map(|(bound, ..)| columns(bound)).max().unwrap_or(0);
    let count_columns = rows.iter().map(|(_, count, _)| columns(count)).max().unwrap_or(0);
    let bar_columns = BAR_COLUMNS.min(page.width().saturating_sub(MARGIN.len() + 2 + bound_columns + 2 + count_columns + 9));
    for (bound, count, requests) in rows {
        // Any count above zero has a bar of at least one column.
        let full = (requests as f64 / most as f64 * bar_columns as f64).round() as usize;
        let full = if requests > 0 { full.max(1) } else { 0 };
        let sign = page.glyph("≤", "<=");
        page.line(&[
            span(Ink::Plain, format!("{MARGIN}{sign} {}{bound}  ", " ".repeat(bound_columns - columns(&bound)))),
            span(Ink::Strong, page.glyph("█", "#").repeat(full)),
            span(Ink::Plain, " ".repeat(bar_columns - full.min(bar_columns))),
            span(Ink::Plain, format!("  {}{count}", " ".repeat(count_columns - columns(&count)))),
            span(Ink::Faint, format!("  {:>5}", phrases.percent(requests as f64 / all))),
        ]);
    }
}

/// Writes a heading and an item for each text, if there is any.
fn write_list<'t>(page: &mut TextPage<'_>, heading: &'static str, texts: impl Iterator<Item = &'t str>, ink: Ink) {
    let mut texts = texts.peekable();
    if texts.peek().is_none() {
        return;
    }
    page.heading(heading);
    for text in texts {
        page.point(columns(MARGIN), &[span(ink, text)]);
    }
}
