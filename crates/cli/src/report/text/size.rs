//! The report of `size` as text: by default one screen, or everything.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_sizing::report::{Outcome, Size, TierReport};

use super::page::TextPage;
use super::wrap::columns;
use crate::report::view::size::{COLUMNS, facts, place, row};
use crate::report::view::{Ink, span};
use crate::terminal::output::{Painted, Style};

/// Lines of the short report.
const LINES_MAX: usize = 25;
/// Indentation below a heading, and of lines to configure.
const MARGIN: &str = "  ";
const CODE_MARGIN: &str = "      ";

/// The report, ending in a newline.
pub(crate) fn size_text(size: &Size, verbose: bool, style: &Style, words: &Catalogue) -> Painted {
    let mut page = TextPage::new(style, words);
    let lines = |verbose: bool, brief: usize| if verbose { usize::MAX } else { brief };
    let ink = if size.outcome == Outcome::Measured { Ink::Strong } else { Ink::WarnStrong };
    page.flow_within(lines(verbose, 2), &[], &[], &[span(ink, &size.summary)]);
    write_facts(&mut page, size, lines(verbose, 2));
    // A tier with workers is what the user came for; event loops only have to be wide enough.
    let is_main = |tier: &&TierReport| verbose || tier.workers.is_some();
    for tier in size.tiers.iter().filter(is_main) {
        write_tier(&mut page, tier, verbose);
    }
    if verbose {
        write_steps(&mut page, size);
    }
    let heading = if size.warnings.is_empty() { None } else { Some("size-warnings") };
    if let Some(heading) = heading.filter(|_| verbose) {
        page.heading(heading);
    }
    let has_room = |page: &TextPage<'_>, lines: usize| verbose || page.lines_written() + lines <= LINES_MAX;
    if !verbose && !size.steps.is_empty() && has_room(&page, 2) {
        page.gap();
    }
    for warning in &size.warnings {
        if has_room(&page, 3) {
            page.flow_within(lines(verbose, 2), &[span(Ink::Plain, MARGIN)], &[span(Ink::Plain, MARGIN)], &[span(Ink::Warn, warning)]);
        }
    }
    if !verbose && !size.steps.is_empty() && page.lines_written() < LINES_MAX {
        let next = page.word("size-next");
        page.line_within(&[span(Ink::Faint, format!("{MARGIN}{next}"))], false);
    }
    page.finish()
}

fn write_facts(page: &mut TextPage<'_>, size: &Size, lines: usize) {
    let facts = facts(size, page.phrases());
    let labels: Vec<String> = facts.iter().map(|(label, _)| page.word(label)).collect();
    let width = labels.iter().map(|label| columns(label)).max().unwrap_or(0);
    if !facts.is_empty() {
        page.gap();
    }
    for (label, (_, text)) in labels.iter().zip(&facts) {
        let first = format!("{MARGIN}{label}{}  ", " ".repeat(width - columns(label)));
        let rest = " ".repeat(columns(&first));
        page.flow_within(lines, &[span(Ink::Plain, first)], &[span(Ink::Plain, rest)], &[span(Ink::Plain, text)]);
    }
}

fn write_tier(page: &mut TextPage<'_>, tier: &TierReport, verbose: bool) {
    // The short report has room for one tier with its lines, and for the sentence of each other as far as they fit.
    let has_room = verbose || page.lines_written() + 10 <= LINES_MAX;
    if !verbose && page.lines_written() + 2 > LINES_MAX {
        return;
    }
    page.gap();
    page.flow_within(if verbose { usize::MAX } else { 1 }, &[], &[], &[span(Ink::Strong, &tier.text)]);
    if !has_room {
        return;
    }
    let margin = [span(Ink::Plain, MARGIN)];
    let notes = tier.notes.iter().take(if verbose { usize::MAX } else { 1 });
    for note in notes.chain(tier.memory.iter().map(|memory| &memory.text)) {
        page.flow_within(if verbose { usize::MAX } else { 2 }, &margin, &margin, &[span(Ink::Plain, note)]);
    }
    if let Some(place) = place(tier, page.phrases()) {
        page.line_within(&[span(Ink::Plain, format!("{MARGIN}{place}"))], false);
    }
    let width = tier.config.iter().map(|line| columns(&line.text)).max().unwrap_or(0);
    for line in &tier.config {
        match verbose {
            true => page.line(&[
                span(Ink::Plain, format!("{CODE_MARGIN}{}{}", line.text, " ".repeat(width - columns(&line.text)))),
                span(Ink::Faint, format!("  {}", line.why)),
            ]),
            false => page.verbatim(&[span(Ink::Plain, CODE_MARGIN)], &line.text),
        }
    }
    if let Some(source) = tier.source.as_ref().filter(|_| verbose) {
        page.line(&[span(Ink::Faint, format!("{MARGIN}{source}"))]);
    }
}

fn write_steps(page: &mut TextPage<'_>, size: &Size) {
    if size.steps.is_empty() {
        return;
    }
    page.heading("size-steps");
    let mut rows: Vec<[String; COLUMNS.len()]> = vec![COLUMNS.map(|title| page.word(title))];
    rows.extend(size.steps.iter().map(|step| row(step, page.phrases())));
    let width = |column: usize| rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    for (place, row) in rows.iter().enumerate() {
        let last = COLUMNS.len() - 1;
        let cells = (0..last).map(|column| format!("{}{}", " ".repeat(widths[column] - columns(&row[column])), row[column]));
        let text = format!("{MARGIN}{}  {}", cells.collect::<Vec<_>>().join("  "), row[last]);
        page.line_within(&[span(if place == 0 { Ink::Faint } else { Ink::Plain }, text.trim_end().to_owned())], false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run before php-fpm with four workers, whose page waits 20 ms, behind nginx.
    const POOL: &str = include_str!("../../../tests/data/size/php-fpm.json");

    fn text(size: &Size, verbose: bool) -> String {
        let style = Style { width: 80, color: false, unicode: true };
        size_text(size, verbose, &style, &Catalogue::english()).to_string()
    }

    #[test]
    fn the_short_report_is_one_screen_and_the_long_one_has_the_steps() {
        let mut size: Size = serde_json::from_str(POOL).unwrap();
        let brief = text(&size, false);
        for part in ["capacity", "safe rate", "knee", "limits first", "100 workers instead of 4", "pm.max_children = 100"] {
            assert!(brief.contains(part), "{part} is missing:\n{brief}");
        }
        let long = text(&size, true);
        for part in ["What was measured", "worker-pool-exhausted", "worker_connections", "php.net", "cores were at most"] {
            assert!(long.contains(part), "{part} is missing:\n{long}");
        }
        // The most that can be said: long sentences, many tiers and many warnings.
        size.tiers.extend(size.tiers.clone());
        size.tiers.extend(size.tiers.clone());
        size.limits_first.iter_mut().for_each(|limit| limit.text = "a long sentence ".repeat(30));
        size.knee_text = "a long sentence ".repeat(30);
        size.warnings = vec!["a long sentence ".repeat(30); 9];
        for text in [brief, text(&size, false)] {
            assert!(text.lines().count() <= LINES_MAX && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
    }
}
