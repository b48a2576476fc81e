//! The contents of the view: progress, rates, times and outcomes of the load. It fits 40 columns.

use chokepoint_load::View;
use chokepoint_model::load::Percentiles;
use chokepoint_model::message::Message;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span as Piece};

use crate::report::text::columns;
use crate::report::view::load::{answer, failures};
use crate::report::view::{Ink, Phrases, Span, printable};

/// Columns of the widest bar of the time.
const BAR_COLUMNS: usize = 30;
/// From this many columns on, all percentiles are shown.
const WIDE: usize = 64;
/// Rows of the history, on a screen of at least this height.
const HISTORY_ROWS: usize = 4;
const HISTORY_HEIGHT: u16 = 20;
/// Eighths of a character, from below.
const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Everything that the view shows.
pub(super) struct LoadState<'a> {
    pub(super) title: &'a str,
    /// Seconds since the end of the warm-up; negative within it.
    pub(super) elapsed_s: f64,
    /// Planned duration, seconds.
    pub(super) length_s: Option<f64>,
    /// Requests completed, answered as expected, and in flight.
    pub(super) ended: u64,
    pub(super) good: u64,
    pub(super) in_flight: u64,
    pub(super) figures: &'a View,
    pub(super) unicode: bool,
}

/// Draws the whole screen.
pub(super) fn draw(state: &LoadState<'_>, phrases: Phrases<'_>, buffer: &mut Buffer) {
    let area = buffer.area;
    let width = usize::from(area.width);
    let mut page = LivePage { phrases, state, width, lines: Vec::new() };
    page.head();
    page.history(if area.height >= HISTORY_HEIGHT { HISTORY_ROWS } else { 1 });
    page.times();
    page.outcomes();
    page.samples();
    let lines = page.lines;
    // The last row says how to leave. What does not fit above it is left out.
    let room = usize::from(area.height).saturating_sub(1);
    for (row, line) in (0u16..).zip(lines.iter().take(room)) {
        buffer.set_line(area.x, area.y + row, line, area.width);
    }
    if area.height > 1 {
        let how = Line::styled(phrases.word("bench-live-interrupt"), Style::new().add_modifier(Modifier::DIM));
        let last = Rect { y: area.bottom() - 1, height: 1, ..area };
        buffer.set_line(last.x, last.y, &how, last.width);
    }
}

struct LivePage<'a> {
    phrases: Phrases<'a>,
    state: &'a LoadState<'a>,
    width: usize,
    lines: Vec<Line<'static>>,
}

impl LivePage<'_> {
    fn line(&mut self, text: impl Into<String>, style: Style) {
        self.lines.push(Line::styled(text.into(), style));
    }

    fn blank(&mut self) {
        self.line("", Style::new());
    }

    fn head(&mut self) {
        let (phrases, state) = (self.phrases, self.state);
        self.line(printable(state.title), Style::new().add_modifier(Modifier::BOLD));
        let seconds = |seconds: f64| phrases.duration_us(seconds.floor() * 1e6);
        let (text, share) = match state.length_s {
            _ if state.elapsed_s < 0.0 => {
                (Message::new("bench-live-warm-up").with("elapsed", phrases.duration_us(-state.elapsed_s.floor() * 1e6)), None)
            }
            Some(length_s) => {
                let message = Message::new("bench-live-elapsed").with("elapsed", seconds(state.elapsed_s.min(length_s)));
                (message.with("length", phrases.duration_us(length_s * 1e6)), Some((state.elapsed_s / length_s).clamp(0.0, 1.0)))
            }
            None => (Message::new("bench-live-elapsed-only").with("elapsed", seconds(state.elapsed_s)), None),
        };
        let text = phrases.say(&text);
        let bar = share.map(|share| {
            let room = BAR_COLUMNS.min(self.width.saturating_sub(columns(&text) + 1));
            let full = (share * room as f64).round() as usize;
            let (done, rest) = if state.unicode { ("█", "░") } else { ("#", ".") };
            format!("{}{} ", done.repeat(full), rest.repeat(room - full.min(room)))
        });
        self.line(format!("{}{text}", bar.unwrap_or_default()), Style::new());
        let mean = state.ended as f64 / state.elapsed_s.max(0.1);
        let rate = Message::new("bench-live-rate").with("now", now_per_s(state.figures)).with("mean", mean.round());
        self.line(phrases.say(&rate), Style::new().add_modifier(Modifier::BOLD));
        let share = state.good as f64 / state.ended.max(1) as f64;
        let good = Message::new("bench-live-good").with("percent", phrases.percent(share));
        let color = if state.good == state.ended { Color::Green } else { Color::Red };
        let under_way = phrases.say(&Message::new("bench-live-in-flight").with("n", state.in_flight));
        let good = Piece::styled(phrases.say(&good), Style::new().fg(color));
        self.lines.push(Line::from(vec![good, Piece::raw(format!(", {under_way}"))]));
    }

    /// The rate over time, newest on the right.
    fn history(&mut self, rows: usize) {
        let tenths = &self.state.figures.tenths;
        // The newest tenth of a second is incomplete: some threads may not have reported it yet.
        let whole = &tenths[..tenths.len().saturating_sub(1)];
        if whole.is_empty() || self.width == 0 {
            return;
        }
        let each = whole.len().div_ceil(self.width).max(1);
        // Incomplete groups are dropped at the beginning, so that each column stands for the same time.
        let part = &whole[whole.len() % each..];
        let rates: Vec<f64> =
            part.chunks(each).map(|group| group.iter().map(|tenth| tenth.ended).sum::<u64>() as f64 * 10.0 / each as f64).collect();
        let most = rates.iter().copied().fold(0.0, f64::max);
        let message = Message::new("bench-live-history").with("seconds", part.len() as f64 / 10.0).with("most", most.round());
        self.blank();
        self.line(self.phrases.say(&message), Style::new().add_modifier(Modifier::DIM));
        for row in (0..rows).rev() {
            let glyph = |rate: &f64| {
                let eighths = (rate / most.max(1.0) * (rows * 8) as f64).round() as usize;
                // Show at least one eighth for any rate above zero.
                let eighths = if *rate > 0.0 { eighths.max(1) } else { 0 };
                let here = eighths.saturating_sub(row * 8).min(8);
                if self.state.unicode { EIGHTHS[here] } else { [" ", ".", ":", "#"][here.div_ceil(3)] }
            };
            let text: String = rates.iter().map(glyph).collect();
            self.line(text, Style::new());
        }
    }

    /// The percentiles of the last second and of the whole load so far.
    fn times(&mut self) {
        let view = self.state.figures;
        if view.latency_us.max == 0 {
            return;
        }
        let phrases = self.phrases;
        let pick: fn(&Percentiles) -> Vec<u64> = match self.width >= WIDE {
            true => |of| vec![of.p50, of.p75, of.p90, of.p99, of.p999, of.max],
            false => |of| vec![of.p50, of.p99, of.max],
        };
        let names: &[&str] = if self.width >= WIDE { &["p50", "p75", "p90", "p99", "p99.9", "max"] } else { &["p50", "p99", "max"] };
        let labels = ["bench-live-recent", "bench-live-all"].map(|id| phrases.word(id));
        let first = labels.iter().map(|label| columns(label)).max().unwrap_or(0);
        // Nine columns hold every time up to an hour.
        let row = |label: &str, cells: Vec<String>| {
            let cells = cells.iter().map(|cell| format!("{}{cell}", " ".repeat(9usize.saturating_sub(columns(cell)))));
            format!("{label}{}{}", " ".repeat(first - columns(label)), cells.collect::<String>())
        };
        let time = |of: &Percentiles| pick(of).into_iter().map(|us| phrases.duration_us(us as f64)).collect::<Vec<_>>();
        let lines = [
            row("", names.iter().map(|name| (*name).to_owned()).collect()),
            row(&labels[0], time(&view.recent_us)),
            row(&labels[1], time(&view.latency_us)),
        ];
        self.blank();
        for (place, line) in lines.into_iter().enumerate() {
            self.line(line, if place == 0 { Style::new().add_modifier(Modifier::DIM) } else { Style::new() });
        }
    }

    fn outcomes(&mut self) {
        let view = self.state.figures;
        let answers = view.status.iter().map(|(status, count)| answer(self.phrases, &status.to_string(), *count));
        let all: Vec<Span> = answers.chain(failures(self.phrases, &view.errors)).collect();
        if all.is_empty() {
            return;
        }
        self.blank();
        self.line(self.phrases.word("bench-live-outcomes"), Style::new().add_modifier(Modifier::DIM));
        for outcome in all {
            let style = if matches!(outcome.ink, Ink::Bad | Ink::BadStrong) { Style::new().fg(Color::Red) } else { Style::new() };
            self.line(outcome.text, style);
        }
    }

    fn samples(&mut self) {
        if self.state.figures.samples.is_empty() {
            return;
        }
        self.blank();
        self.line(self.phrases.word("bench-samples"), Style::new().add_modifier(Modifier::DIM));
        for sample in &self.state.figures.samples {
            self.line(printable(sample), Style::new().fg(Color::Yellow));
        }
    }
}

/// Requests completed per second, over the last complete second.
fn now_per_s(view: &View) -> f64 {
    let whole = view.tenths.len().saturating_sub(1);
    let last = &view.tenths[whole.saturating_sub(10)..whole];
    if last.is_empty() { 0.0 } else { last.iter().map(|tenth| tenth.ended).sum::<u64>() as f64 * 10.0 / last.len() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chokepoint_load::Tenth;
    use chokepoint_model::catalogue::Catalogue;
    use chokepoint_model::load::Errors;

    fn view() -> View {
        let percentiles = Percentiles { p50: 900, p75: 1_000, p90: 1_200, p95: 1_500, p99: 2_345_000, p999: 3_000_000, max: 3_599_000_000 };
        View {
            tenths: (0..95).map(|place| Tenth { ended: 100 + place, good: 100 }).collect(),
            status: [(200, 12_345), (503, 67)].into(),
            errors: Errors { response_timeout: 3, ..Errors::default() },
            latency_us: percentiles,
            recent_us: percentiles,
            samples: vec!["answered 503 Service Unavailable: and more than there is room for in forty columns".to_owned()],
        }
    }

    fn drawn(width: u16, height: u16, view: &View, unicode: bool) -> Vec<String> {
        let words = Catalogue::english();
        let title = "http://127.0.0.1:8080/a/long/path/that/does/not/fit/into/forty/columns?at=all";
        let (elapsed_s, length_s) = (9.5, Some(60.0));
        let state = LoadState { title, elapsed_s, length_s, ended: 12_415, good: 12_345, in_flight: 100, figures: view, unicode };
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        draw(&state, Phrases(&words), &mut buffer);
        let row = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().replace('\u{a0}', " ");
        (0..height).map(|y| row(y).trim_end().to_owned()).collect()
    }

    #[test]
    fn the_view_fits_forty_columns() {
        let page = drawn(40, 24, &view(), true);
        for part in ["9 s of 60 s", "now 1,885/s, mean 1,307/s", "99 % as expected, 100 in flight", "p99", "900 µs", "200", "timed out"] {
            assert!(page.iter().any(|line| line.contains(part)), "{part:?} is missing in\n{}", page.join("\n"));
        }
        assert!(page[23].starts_with("Ctrl-C") && !page.iter().any(|line| line.contains("p75")), "{}", page.join("\n"));
        let wide = drawn(80, 24, &view(), true);
        assert!(wide.iter().any(|line| line.contains("p75") && line.contains("p99.9")), "{}", wide.join("\n"));
    }

    #[test]
    fn the_history_has_a_column_for_each_complete_tenth() {
        let page = drawn(100, 24, &view(), true);
        let rows: Vec<&String> = page.iter().filter(|line| line.contains('█') && !line.contains(" s of ")).collect();
        assert!(!rows.is_empty() && rows.len() <= HISTORY_ROWS, "{}", page.join("\n"));
        let lowest: Vec<char> = rows[rows.len() - 1].chars().collect();
        assert_eq!(lowest.len(), 94, "a column for each complete tenth");
        assert!(drawn(100, 24, &view(), false).iter().all(|line| !line.contains(['█', '▁', '░'])), "only ASCII where there is no more");
    }

    #[test]
    fn any_size_and_an_empty_view_can_be_drawn() {
        let large = View { tenths: vec![Tenth { ended: u64::MAX >> 16, good: 0 }; 1_200], ..view() };
        for view in [View::default(), view(), large] {
            for (width, height) in [(1, 1), (2, 1), (1, 40), (10, 3), (40, 10), (300, 100)] {
                drawn(width, height, &view, true);
            }
        }
    }
}
