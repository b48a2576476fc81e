//! The verdict in one line; below it what changed from before to after, or how the server serves now.

use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, LoadReport, Served};

use super::{Detail, padded};
use crate::report::text::page::{TextPage, columns_of};
use crate::report::text::wrap::columns;
use crate::report::view::load::{in_time, response_time, threads};
use crate::report::view::rounds::failed_share;
use crate::report::view::{Ink, Phrases, Shown, span, told};

/// Columns of the rows' names, and of the figures before.
const NAME_COLUMNS: usize = 10;
const BEFORE_COLUMNS: usize = 26;

/// Writes the verdict and the figures.
pub(super) fn write(page: &mut TextPage<'_>, diagnosis: &Diagnosis, detail: Detail) {
    let found = Shown::of_first(diagnosis);
    let (ink, word) = match &diagnosis.after {
        Some(after) if Shown::of(after.verdict, after.failed_share) == Shown::Healthy => (Ink::GoodStrong, "brief-fixed"),
        Some(_) => (Ink::WarnStrong, "brief-improved"),
        None => (found.ink(), verdict_id(found)),
    };
    let word = page.word(word);
    let first = [span(ink, word), span(Ink::Plain, "  ")];
    if columns_of(&first) + columns(&diagnosis.target.url) <= page.width() {
        page.line(&[&first[..], &[span(Ink::Strong, &diagnosis.target.url)]].concat());
    } else {
        page.line(&first);
        page.flow_within(usize::MAX, &[span(Ink::Plain, "  ")], &[span(Ink::Plain, "  ")], &[span(Ink::Strong, &diagnosis.target.url)]);
    }
    match (&diagnosis.before, &diagnosis.after) {
        (Some(before), Some(after)) => write_table(page, before, after),
        _ => write_now(page, diagnosis, detail),
    }
}

fn verdict_id(shown: Shown) -> &'static str {
    match shown {
        Shown::Choked => "brief-choked",
        Shown::Healthy => "brief-healthy",
        Shown::Overloaded => "brief-overloaded",
        Shown::ClientLimited => "brief-client-limited",
        Shown::Unknown => "brief-unknown",
    }
}

fn write_table(page: &mut TextPage<'_>, before: &Served, after: &Served) {
    let phrases = page.phrases();
    let titles = [page.word("brief-before"), page.word("brief-after")];
    let failed = |served: &Served| {
        served.failed_share.map_or_else(|| "-".to_owned(), |share| phrases.percent(if share < 1e-6 { 0.0 } else { share }))
    };
    let p99 = |served: &Served| served.p99_us.map_or_else(|| "-".to_owned(), |us| phrases.duration_us(us as f64));
    let rows = [
        ("brief-row-good", good(phrases, before.goodput_rps), good(phrases, after.goodput_rps)),
        ("brief-row-failed", failed(before), failed(after)),
        ("brief-row-p99", p99(before), p99(after)),
        ("brief-row-limit", before.limit.clone(), after.limit.clone()),
    ];
    let heads = columns(&titles[1]);
    let most = rows.iter().map(|(_, _, after)| columns(after)).fold(heads, usize::max);
    if 2 + NAME_COLUMNS + BEFORE_COLUMNS + most > page.width() {
        return write_rows(page, &rows);
    }
    page.line(&[span(Ink::Faint, format!("  {}{}{}", padded("", NAME_COLUMNS), padded(&titles[0], BEFORE_COLUMNS), titles[1]))]);
    for (id, before, after) in rows {
        let name = padded(&page.word(id), NAME_COLUMNS);
        let spans = [span(Ink::Faint, format!("  {name}")), span(Ink::Plain, padded(&before, BEFORE_COLUMNS)), span(Ink::Strong, after)];
        page.line_within(&spans, false);
    }
}

/// The table on a page that is too narrow for its columns: "23.4/s → 11,900/s".
fn write_rows(page: &mut TextPage<'_>, rows: &[(&'static str, String, String)]) {
    let rest = [span(Ink::Plain, padded("", 2 + NAME_COLUMNS))];
    for (id, before, after) in rows {
        let first = [span(Ink::Faint, padded(&format!("  {}", page.word(id)), 2 + NAME_COLUMNS))];
        let arrow = page.glyph("\u{2192}", "->");
        page.flow_within(usize::MAX, &first, &rest, &[span(Ink::Plain, format!("{before} {arrow}")), span(Ink::Strong, after.as_str())]);
    }
}

fn good(phrases: Phrases<'_>, rate: f64) -> String {
    phrases.say(&Message::new("brief-rate").with("rate", phrases.rounded(rate)))
}

/// How the server serves, and the verdict's sentence unless the cause says it.
fn write_now(page: &mut TextPage<'_>, diagnosis: &Diagnosis, detail: Detail) {
    let indent = [span(Ink::Plain, "  ")];
    let figures = diagnosis.load.as_ref().map_or_else(|| page.word("brief-watched"), |load| figures(page.phrases(), diagnosis, load));
    page.flow_within(2, &indent, &indent, &[span(Ink::Plain, figures)]);
    if crate::report::view::path::choke(diagnosis).is_none() {
        page.flow_within(
            detail.summary,
            &indent,
            &indent,
            &[span(Ink::Plain, told(&Shown::of_first(diagnosis).word(page.phrases()), &diagnosis.summary))],
        );
    }
}

fn figures(phrases: Phrases<'_>, diagnosis: &Diagnosis, load: &LoadReport) -> String {
    let message = Message::new("brief-figures")
        .with("rate", phrases.rounded(load.goodput_rps))
        .with("failed", phrases.percent(failed_share(load)))
        .with("time", response_time(phrases, diagnosis, load))
        .with("requests", in_time(load))
        .with("duration", phrases.duration_us(load.duration_s * 1e6));
    phrases.say(&message.with("threads", threads(diagnosis).unwrap_or(0.0)))
}
