//! A transfer that was followed: as charts for the terminal, and what is drawn of it on a page.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;

use super::Style;
use super::page::TextPage;
use crate::report::plot::{Plot, Series, Shape};
use crate::report::view::{Ink, Phrases, span};
use crate::verbs::tcp::watch::{SHARES, Sample, Shares, Watched};

/// Lines of a chart on the terminal.
const ROWS: usize = 5;
/// Columns before a chart.
const LEFT: usize = 12;
/// The widest chart, columns.
const COLUMNS_MAX: usize = 100;
/// Letters that stand for the four shares on the terminal.
const LETTERS: [&str; 4] = [".", "c", "r", "s"];

/// The transfer as text, ending in a newline.
pub(crate) fn tcp_watch_text(watched: &Watched, style: &Style, words: &Catalogue) -> crate::terminal::output::Painted {
    let mut page = TextPage::new(style, words);
    let (title, lines) = tcp_watch_lines(watched, words);
    page.flow(&[], &[], &[span(Ink::Strong, title)]);
    for line in lines {
        page.flow(&[], &[], &[span(Ink::Plain, line)]);
    }
    let columns = page.width().saturating_sub(LEFT + 2).min(COLUMNS_MAX);
    let Some((first, last)) = watched.trace.samples.first().zip(watched.trace.samples.get(1..).and_then(<[Sample]>::last)) else {
        return page.finish();
    };
    let (from, to) = (first.at_s, last.at_s);
    for (label, points) in charts(watched) {
        let binned = binned(points, from, to, columns);
        if binned.iter().any(|value| *value > 0.0) {
            write_chart(&mut page, label, &binned);
        }
    }
    let letters = letters(watched, from, to, columns);
    page.heading("tcp-watch-limited");
    page.line(&[span(Ink::Plain, format!("{}{letters}", " ".repeat(LEFT)))]);
    page.flow(&[], &[], &[span(Ink::Faint, page.word("tcp-watch-letters"))]);
    page.finish()
}

/// The charts in their order: label, and points of time and value.
fn charts(watched: &Watched) -> Vec<(&'static str, Vec<(f64, f64)>)> {
    let of = |value: &dyn Fn(&Sample) -> Option<u64>| {
        watched.trace.samples.iter().filter_map(|sample| Some((sample.at_s, value(sample)? as f64))).collect::<Vec<_>>()
    };
    if watched.peers_end.is_none() && watched.bytes > 0 {
        return vec![
            ("tcp-watch-receiving", watched.receiving().collect()),
            ("tcp-watch-rtt-us", of(&|sample| Some(sample.sender.rtt_us))),
        ];
    }
    vec![
        ("tcp-watch-cwnd", of(&|sample| Some(sample.cwnd_bytes()))),
        ("tcp-watch-flight", of(&|sample| Some(sample.sender.bytes_in_flight()))),
        ("tcp-watch-rtt-us", of(&|sample| Some(sample.sender.rtt_us))),
        ("tcp-watch-pacing", of(&|sample| sample.pacing)),
        ("tcp-watch-delivery", of(&|sample| sample.delivery)),
    ]
}

/// The column of a time.
fn column(at: f64, from: f64, to: f64, columns: usize) -> usize {
    let share = if to > from { (at - from) / (to - from) } else { 0.0 };
    ((share * columns as f64) as usize).min(columns.saturating_sub(1))
}

/// The largest value of each column; one without any has that of the column before.
fn binned(points: Vec<(f64, f64)>, from: f64, to: f64, columns: usize) -> Vec<f64> {
    let mut bins = vec![None::<f64>; columns];
    for (at, value) in points {
        let bin = &mut bins[column(at, from, to, columns)];
        *bin = Some(bin.map_or(value, |most| most.max(value)));
    }
    let carry = |last: &mut f64, bin: Option<f64>| {
        *last = bin.unwrap_or(*last);
        Some(*last)
    };
    bins.into_iter().scan(0.0, carry).collect()
}

fn write_chart(page: &mut TextPage<'_>, label: &'static str, values: &[f64]) {
    const BLOCKS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
    const PLAIN: [&str; 9] = [" ", " ", ".", ".", ":", ":", "|", "|", "#"];
    let most = values.iter().copied().fold(0.0, f64::max);
    page.heading(label);
    for row in (0..ROWS).rev() {
        let mut line = String::new();
        for value in values {
            let eighths = (value / most * (ROWS * 8) as f64).ceil() as usize;
            let part = eighths.saturating_sub(row * 8).min(8);
            line.push_str(page.glyph(BLOCKS[part], PLAIN[part]));
        }
        let number = if row + 1 == ROWS { page.phrases().number(most) } else { String::new() };
        page.line(&[span(Ink::Faint, format!("{number:>width$} ", width = LEFT - 1)), span(Ink::Plain, line)]);
    }
}

/// Whose time each column was.
fn letters(watched: &Watched, from: f64, to: f64, columns: usize) -> String {
    let mut sums = vec![[0.0; 4]; columns];
    for pair in watched.trace.samples.windows(2) {
        let shares = Shares::between(&pair[0], &pair[1]).all();
        let (first, last) = (column(pair[0].at_s, from, to, columns), column(pair[1].at_s, from, to, columns));
        // Readings that lie further apart than columns are wide fill those between.
        for sums in &mut sums[if first < last { first + 1 } else { last }..=last] {
            for (sum, share) in sums.iter_mut().zip(shares) {
                *sum += share;
            }
        }
    }
    let letter = |[application, network, rwnd, sndbuf]: [f64; 4]| {
        Shares { application, network, rwnd, sndbuf }.largest().map_or(" ", |place| LETTERS[place])
    };
    sums.into_iter().map(letter).collect()
}

/// A title, and the transfer in sentences.
pub(crate) fn tcp_watch_lines(watched: &Watched, words: &Catalogue) -> (String, Vec<String>) {
    let phrases = Phrases(words);
    let title = Message::new("tcp-connection")
        .with("local", watched.local.to_string())
        .with("peer", watched.peer.to_string())
        .with("control", watched.control.as_str());
    let came = Message::new(if watched.ended { "tcp-watch-ended" } else { "tcp-watch-open" })
        .with("bytes", watched.bytes)
        .with("time", phrases.duration_us(watched.seconds * 1e6));
    let end = match &watched.peers_end {
        Some(netns) => Message::new("tcp-watch-peer").with("netns", netns.as_str()),
        None => Message::new("tcp-watch-here"),
    };
    let mut lines = vec![phrases.say(&came), phrases.say(&end)];
    let samples = &watched.trace.samples;
    let whole: Option<f64> = watched.shares().map(|shares| shares.all().iter().sum());
    if let (Some(shares), Some(whole)) = (watched.shares(), whole.filter(|whole| *whole > 0.0)) {
        let parts = SHARES.iter().zip(shares.all()).map(|(id, share)| format!("{} {}", phrases.word(id), phrases.percent(share / whole)));
        let parts = parts.collect::<Vec<_>>().join(", ");
        lines.push(phrases.say(&Message::new("tcp-watch-shares").with("time", phrases.duration_us(whole * 1e6)).with("parts", parts)));
    }
    if let (Some(first), Some(last)) = (samples.iter().find(|sample| sample.ssthresh.is_some()), samples.last()) {
        let message = Message::new("tcp-watch-threshold")
            .with("at", phrases.duration_us(first.at_s * 1e6))
            .with("first", first.ssthresh.unwrap_or(0))
            .with("last", last.ssthresh.or(first.ssthresh).unwrap_or(0))
            .with("again", last.sender.total_retrans);
        lines.push(phrases.say(&message));
    }
    (phrases.say(&title), lines)
}

/// What is drawn on the page: windows, round trips, rates, and whose time it was.
pub(crate) fn tcp_watch_plots(watched: &Watched, words: &Catalogue) -> Vec<Plot> {
    let phrases = Phrases(words);
    let series = |id: &'static str, color, value: &dyn Fn(&Sample) -> Option<f64>| Series {
        name: phrases.word(id),
        color,
        shape: Shape::Steps,
        points: watched.trace.samples.iter().filter_map(|sample| Some((sample.at_s, value(sample)?))).collect(),
    };
    let plot = |title: &'static str, y: &'static str, series: Vec<Series>| Plot {
        title: phrases.word(title),
        x: phrases.word("tcp-watch-seconds"),
        y: phrases.word(y),
        series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
        rows: Vec::new(),
    };
    let whole = |value: u64| value as f64;
    let mut rates = vec![
        series("tcp-watch-pacing", 0, &|sample| sample.pacing.map(whole)),
        series("tcp-watch-delivery", 1, &|sample| sample.delivery.map(whole)),
    ];
    if watched.peers_end.is_none() {
        let points = watched.receiving().collect();
        rates.push(Series { name: phrases.word("tcp-watch-receiving"), color: 2, shape: Shape::Steps, points });
    }
    let windows = vec![
        series("tcp-watch-flight", 1, &|sample| Some(whole(sample.sender.bytes_in_flight()))),
        series("tcp-watch-cwnd", 0, &|sample| Some(whole(sample.cwnd_bytes()))),
        series("tcp-watch-ssthresh", 2, &|sample| sample.ssthresh.map(|segments| whole(segments.saturating_mul(sample.sender.mss)))),
    ];
    let rtt = vec![series("tcp-watch-rtt", 0, &|sample| Some(whole(sample.sender.rtt_us) / 1e3))];
    let bars = SHARES.iter().enumerate().map(|(place, id)| {
        let pairs = watched.trace.samples.windows(2).filter(|pair| Shares::between(&pair[0], &pair[1]).largest() == Some(place));
        let points = pairs.flat_map(|pair| [(pair[0].at_s, place as f64), (pair[1].at_s, place as f64)]).collect();
        Series { name: phrases.word(id), color: place, shape: Shape::Bars, points }
    });
    let rows = ["a", "c", "r", "s"].map(str::to_owned).to_vec();
    let limited = Plot { rows, ..plot("tcp-watch-limited", "tcp-watch-nothing", bars.collect()) };
    vec![
        plot("tcp-watch-windows", "tcp-watch-bytes", windows),
        plot("tcp-watch-rtt", "tcp-watch-ms", rtt),
        plot("tcp-watch-rates", "tcp-watch-bytes-s", rates),
        limited,
    ]
}
