//! The rounds of `--fix` as bars: goodput with its prediction, and p99 of the response time.

use chokepoint_model::report::{Diagnosis, Kept, LoadReport, Prediction, RoundKind};

use crate::report::view::rounds::{RoundRow, rows};
use crate::report::view::{Phrases, steers};

/// Length of the longest bar, in units of the drawing (400 wide).
const BAR_MAX: f64 = 300.0;
/// Height of a bar with its label.
const BAR_HEIGHT: usize = 48;
/// The longest label, characters.
const LABEL_CHARS_MAX: usize = 52;

/// One chart.
pub(super) struct RoundsChart {
    /// Id, unique in the page.
    pub(super) id: &'static str,
    /// What it shows.
    pub(super) title: String,
    /// Height, units of the drawing.
    pub(super) height: usize,
    /// The bars, top first.
    pub(super) bars: Vec<Bar>,
    /// The meaning of the marks of predictions.
    pub(super) note: Option<String>,
    /// The bars in words.
    pub(super) words: String,
}

/// One measurement.
pub(super) struct Bar {
    /// Top.
    pub(super) y: usize,
    pub(super) label: String,
    /// CSS class: as found, kept, taken back, or a trial without one change.
    pub(super) class: &'static str,
    pub(super) length: String,
    /// The figure with its unit.
    pub(super) value: String,
    /// The predicted interval: low, value, high.
    pub(super) predicted: Option<[String; 3]>,
}

/// The charts; none if nothing was tried or the first measurement is missing.
pub(super) fn charts(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Vec<RoundsChart> {
    let mut rows = rows(diagnosis, phrases);
    // The trials without one change are no steps: the table has them.
    rows.retain(|row| row.round.is_none_or(|round| round.kind != RoundKind::Without));
    let (Some(first), false) = (&diagnosis.load, rows.is_empty()) else { return Vec::new() };
    let predicted = |row: &RoundRow<'_>| match row.round.map(|round| &round.prediction) {
        Some(Prediction::Goodput { goodput_rps, low, high, .. }) => Some([*low, *goodput_rps, *high].map(finite)),
        _ => None,
    };
    let goodput = rows.iter().map(|row| (finite(load(row, first).goodput_rps), row.after.as_str(), predicted(row)));
    let p99 = rows.iter().map(|row| (load(row, first).latency_us.p99 as f64, row.p99.as_str(), None));
    let note = rows.iter().any(|row| predicted(row).is_some()).then(|| phrases.word("html-chart-note"));
    vec![
        chart("goodput-of-rounds", phrases.word("html-goodput-of-rounds"), &rows, goodput.collect(), note),
        chart("p99-of-rounds", phrases.word("html-p99-of-rounds"), &rows, p99.collect(), None),
    ]
}

fn load<'a>(row: &RoundRow<'a>, first: &'a LoadReport) -> &'a LoadReport {
    row.round.map_or(first, |round| &round.load)
}

/// The number, or zero if it is negative or not finite: neither can be drawn.
fn finite(number: f64) -> f64 {
    if number.is_finite() { number.max(0.0) } else { 0.0 }
}

/// A figure, the same with its unit, and its prediction.
type Figure<'a> = (f64, &'a str, Option<[f64; 3]>);

fn chart(id: &'static str, title: String, rows: &[RoundRow<'_>], figures: Vec<Figure<'_>>, note: Option<String>) -> RoundsChart {
    let longest = figures.iter().map(|(figure, _, predicted)| predicted.map_or(*figure, |[_, _, high]| high.max(*figure)));
    let longest = longest.fold(0.0, f64::max);
    let length = |figure: f64| format!("{:.1}", if longest > 0.0 { (figure / longest).min(1.0) * BAR_MAX } else { 0.0 });
    let bars: Vec<Bar> = rows
        .iter()
        .zip(figures)
        .enumerate()
        .map(|(place, (row, (figure, value, predicted)))| Bar {
            y: place * BAR_HEIGHT,
            label: label(row),
            class: match row.round.map(|round| (round.kind, round.kept)) {
                None => "found",
                Some((RoundKind::Apply, Kept::No)) => "back",
                Some(_) => "kept",
            },
            length: length(figure),
            value: value.to_owned(),
            predicted: predicted.map(|marks| marks.map(length)),
        })
        .collect();
    let words = bars.iter().map(|bar| format!("{}: {}", bar.label, bar.value)).collect::<Vec<_>>().join("; ");
    RoundsChart { id, title, height: bars.len() * BAR_HEIGHT, bars, note, words }
}

/// Number, change and its result, cut to the longest label.
fn label(row: &RoundRow<'_>) -> String {
    let fate = row.fate.as_ref().map(|fate| format!(" ({})", fate.text)).unwrap_or_default();
    let text: String = format!("{} {}", row.n, row.changed).chars().filter(|character| !steers(*character)).collect();
    let room = LABEL_CHARS_MAX.saturating_sub(fate.chars().count());
    let cut: String = text.chars().take(room).collect();
    if cut.len() < text.len() { format!("{cut}…{fate}") } else { cut + &fate }
}
