//! A transfer as sentences and charts for the terminal, and as plots for a page.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;

use super::transfer::{LIMITS, LimitTimes, Transfer, TransferSample};
use crate::report::plot::{Plot, Series, Shape};
use crate::report::text::page::TextPage;
use crate::report::view::{Ink, Phrases, span};
use crate::terminal::output::{Painted, Style};

/// Lines of a chart on the terminal.
const ROWS: usize = 5;
/// Columns before a chart.
const LEFT_COLUMNS: usize = 12;
/// The widest chart, columns.
const COLUMNS_MAX: usize = 100;
/// Letters of the four limits in the chart.
const LETTERS: [&str; 4] = [".", "c", "r", "s"];

/// The report, ending in a newline.
pub(super) fn render(transfer: &Transfer, style: &Style, words: &Catalogue) -> Painted {
    let mut page = TextPage::new(style, words);
    let (title, lines) = sentences(transfer, words);
    page.flow(&[], &[], &[span(Ink::Strong, title)]);
    for line in lines {
        page.flow(&[], &[], &[span(Ink::Plain, line)]);
    }
    let columns = page.width().saturating_sub(LEFT_COLUMNS + 2).min(COLUMNS_MAX);
    let Some((first, last)) = transfer.trace.samples.first().zip(transfer.trace.samples.get(1..).and_then(<[TransferSample]>::last)) else {
        return page.finish();
    };
    let (from, to) = (first.at_s, last.at_s);
    for (label, points) in charts(transfer) {
        let bins = bin_max(points, from, to, columns);
        if bins.iter().any(|value| *value > 0.0) {
            write_chart(&mut page, label, &bins);
        }
    }
    let letters = limit_letters(transfer, from, to, columns);
    page.heading("tcp-watch-limited");
    page.line(&[span(Ink::Plain, format!("{}{letters}", " ".repeat(LEFT_COLUMNS)))]);
    page.flow(&[], &[], &[span(Ink::Faint, page.word("tcp-watch-letters"))]);
    page.finish()
}

/// The charts in their order: label id, and points of time and value.
fn charts(transfer: &Transfer) -> Vec<(&'static str, Vec<(f64, f64)>)> {
    let of = |value: &dyn Fn(&TransferSample) -> Option<u64>| {
        transfer.trace.samples.iter().filter_map(|sample| Some((sample.at_s, value(sample)? as f64))).collect::<Vec<_>>()
    };
    if transfer.peer_netns.is_none() && transfer.bytes > 0 {
        return vec![
            ("tcp-watch-receiving", transfer.receive_rates().collect()),
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

/// The column in which a time is drawn.
fn column_of(at: f64, from: f64, to: f64, columns: usize) -> usize {
    let share = if to > from { (at - from) / (to - from) } else { 0.0 };
    ((share * columns as f64) as usize).min(columns.saturating_sub(1))
}

/// The largest value of each column. A column without values repeats the one before it.
fn bin_max(points: Vec<(f64, f64)>, from: f64, to: f64, columns: usize) -> Vec<f64> {
    let mut bins = vec![None::<f64>; columns];
    for (at, value) in points {
        let bin = &mut bins[column_of(at, from, to, columns)];
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
        page.line(&[span(Ink::Faint, format!("{number:>width$} ", width = LEFT_COLUMNS - 1)), span(Ink::Plain, line)]);
    }
}

/// The letter of what limited the transfer most in each column.
fn limit_letters(transfer: &Transfer, from: f64, to: f64, columns: usize) -> String {
    let mut sums = vec![[0.0; 4]; columns];
    for pair in transfer.trace.samples.windows(2) {
        let times = LimitTimes::between(&pair[0], &pair[1]).all();
        let (first, last) = (column_of(pair[0].at_s, from, to, columns), column_of(pair[1].at_s, from, to, columns));
        // Samples further apart than a column is wide fill the columns between them.
        for sums in &mut sums[if first < last { first + 1 } else { last }..=last] {
            for (sum, time) in sums.iter_mut().zip(times) {
                *sum += time;
            }
        }
    }
    let letter = |[application, network, rwnd, sndbuf]: [f64; 4]| {
        LimitTimes { application, network, rwnd, sndbuf }.largest().map_or(" ", |place| LETTERS[place])
    };
    sums.into_iter().map(letter).collect()
}

/// The title, and what the transfer was and what limited it, in sentences.
pub(super) fn sentences(transfer: &Transfer, words: &Catalogue) -> (String, Vec<String>) {
    let phrases = Phrases(words);
    let title = Message::new("tcp-connection")
        .with("local", transfer.local.to_string())
        .with("peer", transfer.peer.to_string())
        .with("control", transfer.control.as_str());
    let came = Message::new(if transfer.ended { "tcp-watch-ended" } else { "tcp-watch-open" })
        .with("bytes", transfer.bytes)
        .with("time", phrases.duration_us(transfer.seconds * 1e6));
    let end = match &transfer.peer_netns {
        Some(netns) => Message::new("tcp-watch-peer").with("netns", netns.as_str()),
        None => Message::new("tcp-watch-here"),
    };
    let mut lines = vec![phrases.say(&came), phrases.say(&end)];
    let samples = &transfer.trace.samples;
    let whole: Option<f64> = transfer.limit_times().map(|times| times.all().iter().sum());
    if let (Some(times), Some(whole)) = (transfer.limit_times(), whole.filter(|whole| *whole > 0.0)) {
        let parts = LIMITS.iter().zip(times.all()).map(|(id, time)| format!("{} {}", phrases.word(id), phrases.percent(time / whole)));
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

/// The plots of the page: windows, round-trip times, rates, and what limited the transfer.
pub(super) fn plots(transfer: &Transfer, words: &Catalogue) -> Vec<Plot> {
    let phrases = Phrases(words);
    let series = |id: &'static str, color, value: &dyn Fn(&TransferSample) -> Option<f64>| Series {
        name: phrases.word(id),
        color,
        shape: Shape::Steps,
        points: transfer.trace.samples.iter().filter_map(|sample| Some((sample.at_s, value(sample)?))).collect(),
    };
    let plot = |title: &'static str, y: &'static str, series: Vec<Series>| Plot {
        title: phrases.word(title),
        x: phrases.word("tcp-watch-seconds"),
        y: phrases.word(y),
        series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
        ..Plot::default()
    };
    let whole = |value: u64| value as f64;
    let mut rates = vec![
        series("tcp-watch-pacing", 0, &|sample| sample.pacing.map(whole)),
        series("tcp-watch-delivery", 1, &|sample| sample.delivery.map(whole)),
    ];
    if transfer.peer_netns.is_none() {
        let points = transfer.receive_rates().collect();
        rates.push(Series { name: phrases.word("tcp-watch-receiving"), color: 2, shape: Shape::Steps, points });
    }
    let windows = vec![
        series("tcp-watch-flight", 1, &|sample| Some(whole(sample.sender.bytes_in_flight()))),
        series("tcp-watch-cwnd", 0, &|sample| Some(whole(sample.cwnd_bytes()))),
        series("tcp-watch-ssthresh", 2, &|sample| sample.ssthresh.map(|segments| whole(segments.saturating_mul(sample.sender.mss)))),
    ];
    let rtt = vec![series("tcp-watch-rtt", 0, &|sample| Some(whole(sample.sender.rtt_us) / 1e3))];
    let bars = LIMITS.iter().enumerate().map(|(place, id)| {
        let pairs = transfer.trace.samples.windows(2).filter(|pair| LimitTimes::between(&pair[0], &pair[1]).largest() == Some(place));
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
