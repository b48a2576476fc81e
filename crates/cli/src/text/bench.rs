//! The report of a load by itself, for the terminal.

use chokepoint_load::Unit;
use chokepoint_model::bench::{Bench, ThresholdFailed};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::load::{Bucket, Percentiles};
use chokepoint_model::message::Message;

use super::Style;
use super::page::Page;
use super::wrap::columns;
use crate::sheet::load::{Line, answers, ended, failures};
use crate::sheet::{Ink, Phrases, Span, span};

/// Columns before what stands below a heading.
const MARGIN: &str = "  ";
/// Columns of the widest bar of the distribution.
const BAR_COLUMNS: usize = 40;

/// The report as text, ending in a newline. `units`: of the conditions that failed.
pub(crate) fn bench_text(bench: &Bench, units: &[Unit], style: &Style, words: &Catalogue) -> String {
    let mut page = Page::new(style, words);
    let is_good = bench.load.failed_share() == Some(0.0) && bench.warnings.is_empty() && bench.failed.is_empty();
    page.flow(&[], &[], &[span(if is_good { Ink::GoodStrong } else { Ink::WarnStrong }, &bench.summary)]);
    ends(&mut page, bench, units);
    facts(&mut page, bench);
    if bench.load.requests > 0 {
        times(&mut page, bench);
        distribution(&mut page, bench);
    }
    list(&mut page, "bench-warnings", bench.warnings.iter().map(|warning| warning.text.as_str()), Ink::Plain);
    list(&mut page, "bench-samples", bench.error_samples.iter().map(String::as_str), Ink::Plain);
    page.finish()
}

/// Why it ended early, and what it was not to come to.
fn ends(page: &mut Page<'_>, bench: &Bench, units: &[Unit]) {
    let phrases = page.phrases();
    if let Some(guard) = &bench.stopped_by {
        page.flow(&[], &[], &[span(Ink::BadStrong, phrases.say(&Message::new("bench-stopped").with("guard", guard.as_str())))]);
    }
    if bench.interrupted {
        page.flow(&[], &[], &[span(Ink::WarnStrong, phrases.word("bench-interrupted"))]);
    }
    let word = |(failed, unit): (&ThresholdFailed, &Unit)| {
        let message = |id| Message::new(id).with("condition", failed.condition.as_str());
        let message = match unit {
            Unit::Us => message("bench-failed-us").with("measured", phrases.duration_us(failed.measured)),
            Unit::Share => message("bench-failed-share").with("measured", failed.measured * 100.0),
            Unit::PerSecond => message("bench-failed-rate").with("measured", failed.measured),
        };
        phrases.say(&message)
    };
    let failed: Vec<String> = bench.failed.iter().zip(units).map(word).collect();
    list(page, "bench-failed", failed.iter().map(String::as_str), Ink::BadStrong);
}

/// What was offered and what became of it, one labelled line each.
fn facts(page: &mut Page<'_>, bench: &Bench) {
    let phrases = page.phrases();
    let load = &bench.load;
    let target = vec![span(Ink::Plain, &bench.target.url), span(Ink::Faint, format!("({})", bench.target.address))];
    let mut done = ended(phrases, load);
    if bench.sending.drained > 0 {
        done.push(span(Ink::Faint, phrases.say(&Message::new("bench-drained").with("n", bench.sending.drained))));
    }
    let sending = &bench.sending;
    let mut connections = vec![Message::new("bench-connections").with("n", sending.connections)];
    let tls = bench.tls_handshakes.map(|tls| Message::new("bench-handshakes").with("full", tls.full).with("resumed", tls.resumed));
    connections.extend(tls);
    connections.push(Message::new("bench-sent").with("size", size(phrases, sending.sent_bytes)));
    connections.push(Message::new("bench-received").with("size", size(phrases, sending.received_bytes)));
    let lines = [
        ("report-label-target", target),
        ("bench-label-offered", offered(phrases, bench)),
        ("bench-label-done", done),
        ("report-label-answers", answers(phrases, load)),
        ("report-label-unanswered", failures(phrases, &load.errors)),
        ("bench-label-connections", connections.iter().map(|message| span(Ink::Plain, phrases.say(message))).collect()),
    ];
    let labels = lines.each_ref().map(|(label, _)| *label);
    let told = lines.into_iter().filter(|(_, notes)| !notes.is_empty());
    super::load::write_lines(page, &labels, told.map(|(label, notes)| Line { label, notes }));
}

fn offered(phrases: Phrases<'_>, bench: &Bench) -> Vec<Span> {
    let offered = &bench.offered;
    let seconds = |seconds: f64| phrases.duration_us(seconds * 1e6);
    let mut all = vec![match offered.rate_per_s {
        Some(rate) => Message::new("bench-offered-open").with("rate", rate).with("connections", offered.connections),
        None => Message::new("bench-offered-closed").with("connections", offered.connections),
    }];
    all.extend(offered.duration_s.map(|duration| Message::new("bench-offered-duration").with("duration", seconds(duration))));
    all.extend(offered.requests.map(|requests| Message::new("bench-offered-requests").with("requests", requests)));
    if offered.warm_up_s > 0.0 {
        all.push(Message::new("bench-offered-warm-up").with("duration", seconds(offered.warm_up_s)));
    }
    if !offered.keep_alive {
        all.push(Message::new("bench-offered-single"));
    }
    all.extend(offered.requests_per_connection.map(|n| Message::new("bench-offered-carried").with("n", n)));
    all.iter().map(|message| span(Ink::Plain, phrases.say(message))).collect()
}

fn size(phrases: Phrases<'_>, bytes: u64) -> String {
    let (id, n) = match bytes as f64 {
        n if n >= 1e9 => ("bench-gigabytes", n / 1e9),
        n if n >= 1e6 => ("bench-megabytes", n / 1e6),
        n if n >= 1e3 => ("bench-kilobytes", n / 1e3),
        n => ("bench-bytes", n),
    };
    phrases.say(&Message::new(id).with("n", n))
}

/// The percentiles of each time as a table.
fn times(page: &mut Page<'_>, bench: &Bench) {
    let phrases = page.phrases();
    let heading = if bench.offered.rate_per_s.is_some() { "bench-times-open" } else { "bench-times" };
    page.heading(heading);
    let told = [
        ("bench-time-total", Some(bench.load.latency_us)),
        ("bench-time-corrected", bench.corrected_latency_us.filter(|_| bench.warnings.iter().any(|warning| warning.id == "omitted"))),
        ("bench-time-good", Some(bench.good_latency_us).filter(|good| *good != bench.load.latency_us)),
        ("bench-time-first-byte", Some(bench.first_byte_us)),
        ("bench-time-connect", Some(bench.connect_us)),
        ("bench-time-tls", Some(bench.tls_us)),
    ];
    let mut rows = vec![["", "p50", "p75", "p90", "p95", "p99", "p99.9", "max"].map(str::to_owned)];
    for (id, percentiles) in told {
        let Some(Percentiles { p50, p75, p90, p95, p99, p999, max }) = percentiles.filter(|percentiles| percentiles.max > 0) else {
            continue;
        };
        let time = |us: u64| phrases.duration_us(us as f64);
        rows.push([phrases.word(id), time(p50), time(p75), time(p90), time(p95), time(p99), time(p999), time(max)]);
    }
    let widths: Vec<usize> = (0..8).map(|column| rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0)).collect();
    for (place, row) in rows.iter().enumerate() {
        let mut line = vec![span(Ink::Plain, format!("{MARGIN}{}{}", row[0], " ".repeat(widths[0] - columns(&row[0]))))];
        let ink = if place == 0 { Ink::Faint } else { Ink::Plain };
        line.extend((1..8).map(|column| span(ink, format!("{}{}", " ".repeat(2 + widths[column] - columns(&row[column])), row[column]))));
        page.line(&line);
    }
}

/// How many latencies lie where, as bars.
fn distribution(page: &mut Page<'_>, bench: &Bench) {
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
        // What is there is seen, however little it is.
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

/// A heading and a point for each text; nothing where there is none.
fn list<'t>(page: &mut Page<'_>, heading: &'static str, texts: impl Iterator<Item = &'t str>, ink: Ink) {
    let mut texts = texts.peekable();
    if texts.peek().is_none() {
        return;
    }
    page.heading(heading);
    for text in texts {
        page.point(columns(MARGIN), &[span(ink, text)]);
    }
}
