//! The plane of a plot: margins, scales, axes and their labels.

use std::fmt::Write;

use super::text::{cut, escaped, width};
use super::{Plot, Shape, WIDTH};

/// Height of the area of values, if the y axis has no rows.
const AREA: f64 = 212.0;
/// Height of a row, and of one with thick bars.
const ROW: f64 = 16.0;
const ROW_THICK: f64 = 26.0;
/// Room above and below dots, as a share of their span.
const DOTS_EDGE: f64 = 0.06;
/// The smallest drawing.
const HEIGHT_MIN: f64 = 110.0;
/// Margins: where the area begins at the least, and what is below and right of it.
const LEFT: f64 = 76.0;
const RIGHT: f64 = 24.0;
const BOTTOM: f64 = 44.0;
/// The widest names of rows, and the widest notes.
const NAMES_MAX: f64 = 330.0;
const NOTES_MAX: f64 = 230.0;
/// Approximate number of grid lines.
const TICKS: f64 = 6.0;
/// From this many grid lines of a logarithmic axis on, only powers of ten have one.
const LOG_TICKS_MAX: usize = 12;
/// The largest power of ten of such an axis.
const LOG_MAX: f64 = 300.0;

/// Where values are in the drawing.
pub(super) struct Plane {
    x: (f64, f64),
    y: (f64, f64),
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    /// True if y grows downward.
    down: bool,
    /// True if y is the logarithm of a value.
    log: bool,
}

impl Plane {
    /// `top`: where the area begins, below the legend.
    pub(super) fn of(plot: &Plot, top: f64) -> Self {
        let points = || plot.series.iter().flat_map(|series| &series.points).filter(|point| can_be_drawn(plot, point));
        let span = |of: fn(&(f64, f64)) -> f64| {
            let (least, most) = points().map(of).fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(value), most.max(value)));
            if least > most { (0.0, 1.0) } else { (least, if most > least { most } else { least + 1.0 }) }
        };
        let ((x0, x1), (y0, y1)) = (span(|point| point.0), span(|point| point.1));
        let x = match (plot.ticks.first(), plot.ticks.last()) {
            (Some((first, _)), Some((last, _))) => (*first, if last > first { *last } else { first + 1.0 }),
            _ => (x0.min(0.0), x1),
        };
        let rows = plot.rows.len() as f64;
        let (y, area) = match plot.rows.is_empty() {
            true if plot.log => (logarithms(y0, y1), AREA),
            true => {
                let has_dots = plot.series.iter().any(|series| series.shape == Shape::Dots);
                let edge = if has_dots { (y1 - y0) * DOTS_EDGE } else { 0.0 };
                ((y0.min(0.0) - if y0 < 0.0 { edge } else { 0.0 }, y1.max(0.0) + edge), AREA)
            }
            false => {
                let is_thick = plot.series.iter().any(|series| matches!(series.shape, Shape::Ranges | Shape::Wide));
                let row = if is_thick { ROW_THICK } else { ROW };
                ((-0.5, rows - 0.5), (rows * row).max(HEIGHT_MIN - 44.0 - BOTTOM))
            }
        };
        let widest = |texts: &[String], most: f64| texts.iter().map(|text| width(text)).fold(0.0, f64::max).min(most);
        let left = LEFT.max(widest(&plot.rows, NAMES_MAX) + 16.0);
        let notes = widest(&plot.notes, NOTES_MAX);
        let right = WIDTH - RIGHT - if notes > 0.0 { notes + 8.0 } else { 0.0 };
        Self { x, y, left, right, top, bottom: top + area, down: !plot.rows.is_empty(), log: plot.log && plot.rows.is_empty() }
    }

    pub(super) fn height(&self) -> f64 {
        self.bottom + BOTTOM
    }

    /// The place of a point; nothing for one that cannot be drawn.
    pub(super) fn place(&self, plot: &Plot, point: &(f64, f64)) -> Option<(f64, f64)> {
        can_be_drawn(plot, point).then(|| (self.x(point.0), self.y(point.1)))
    }

    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + (value - self.x.0) / (self.x.1 - self.x.0) * (self.right - self.left)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        let value = if self.log { value.log10() } else { value };
        let share = (value - self.y.0) / (self.y.1 - self.y.0);
        let area = self.bottom - self.top;
        if self.down { self.top + share * area } else { self.top + (1.0 - share) * area }
    }

    /// Grid lines, labels and titles of both axes.
    pub(super) fn write_axes(&self, out: &mut String, plot: &Plot) {
        let (left, right, top, bottom) = (self.left, self.right, self.top, self.bottom);
        let numbers = || round_ticks(self.x).map(|(value, step)| (value, label(value, step))).collect();
        let named: Vec<(f64, String)> = if plot.ticks.is_empty() { numbers() } else { plot.ticks.clone() };
        for (value, name) in named {
            let (x, name) = (self.x(value), escaped(&name));
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{x:.1} {top:.1}V{bottom:.1}\"/><text class=\"faint\" text-anchor=\"middle\" x=\"{x:.1}\" y=\"{:.1}\">{name}</text>",
                bottom + 15.0
            );
        }
        for (value, name) in self.y_ticks() {
            let y = self.y(value);
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{left:.1} {y:.1}H{right:.1}\"/><text class=\"faint\" text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
                left - 6.0,
                y + 4.0
            );
        }
        for (place, row) in plot.rows.iter().enumerate() {
            let (y, x) = (self.y(place as f64) + 4.0, left - 8.0);
            let _ = write!(out, "<text text-anchor=\"end\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", cut(row, x - 4.0));
        }
        for (place, note) in plot.notes.iter().enumerate() {
            let (y, x) = (self.y(place as f64) + 4.0, right + 8.0);
            let _ = write!(out, "<text class=\"faint\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", cut(note, WIDTH - 4.0 - x));
        }
        if self.x.0 < 0.0 && self.x.1 > 0.0 {
            let _ = write!(out, "<path class=\"zero\" d=\"M{:.1} {top:.1}V{bottom:.1}\"/>", self.x(0.0));
        }
        if self.y.0 < 0.0 && !self.down && !self.log {
            let _ = write!(out, "<path class=\"zero\" d=\"M{left:.1} {:.1}H{right:.1}\"/>", self.y(0.0));
        }
        let _ = write!(
            out,
            "<path class=\"axis\" d=\"M{left:.1} {top:.1}V{bottom:.1}H{right:.1}\"/><text class=\"faint\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            (left + right) / 2.0,
            bottom + 34.0,
            escaped(&plot.x)
        );
    }

    fn y_ticks(&self) -> Vec<(f64, String)> {
        if self.down {
            return Vec::new();
        }
        if !self.log {
            return round_ticks(self.y).map(|(value, step)| (value, label(value, step))).collect();
        }
        let (low, high) = (self.y.0.floor() as i32, self.y.1.ceil() as i32);
        let within = |value: &f64| (self.y.0 - 1e-9..=self.y.1 + 1e-9).contains(&value.log10());
        let of =
            |factors: &'static [f64]| (low..=high).flat_map(move |power| factors.iter().map(move |factor| factor * 10_f64.powi(power)));
        let fine: Vec<f64> = of(&[1.0, 2.0, 5.0]).filter(within).collect();
        let each = (high - low).div_euclid(LOG_TICKS_MAX as i32).max(0) as usize + 1;
        let all = if fine.len() > LOG_TICKS_MAX { of(&[1.0]).filter(within).step_by(each).collect() } else { fine };
        all.into_iter().map(|value| (value, label(value, value))).collect()
    }
}

/// The ends of a logarithmic axis. Without a value above zero it is one decade.
fn logarithms(least: f64, most: f64) -> (f64, f64) {
    if least <= 0.0 {
        return (0.0, 1.0);
    }
    let [low, high] = [floor_125(least), ceiling_125(most)].map(|end| end.log10().clamp(-LOG_MAX, LOG_MAX));
    (low, high.max(low + 0.1))
}

fn can_be_drawn(plot: &Plot, (x, y): &(f64, f64)) -> bool {
    x.is_finite() && y.is_finite() && (*y > 0.0 || !plot.log || !plot.rows.is_empty())
}

/// Round numbers within a span, each with the distance between two.
fn round_ticks((from, to): (f64, f64)) -> impl Iterator<Item = (f64, f64)> {
    let step = step(to - from);
    let first = (from / step).ceil() as i64;
    (first..=(to / step).floor() as i64).map(move |tick| (tick as f64 * step, step))
}

/// A step of one, two or five times a power of ten that divides a span into about [`TICKS`] parts.
pub(super) fn step(span: f64) -> f64 {
    let rough = (span / TICKS).max(f64::MIN_POSITIVE);
    ceiling_125(rough)
}

/// The least number of one, two or five times a power of ten that is not below a number.
pub(super) fn ceiling_125(number: f64) -> f64 {
    let power = 10_f64.powf(number.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|round| *round >= number).unwrap_or(number)
}

/// The largest such number that is not above a number. Never the number's own ceiling: an axis needs a length.
fn floor_125(number: f64) -> f64 {
    let power = 10_f64.powf(number.log10().floor());
    let found = [5.0, 2.0, 1.0].into_iter().map(|factor| factor * power).find(|round| *round < number);
    found.unwrap_or(power / 2.0)
}

/// A number, as short as the axis allows.
pub(super) fn label(value: f64, step: f64) -> String {
    let (unit, name) = match value.abs().max(step) {
        size if size >= 1e9 => (1e9, "G"),
        size if size >= 1e6 => (1e6, "M"),
        size if size >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let digits = (-(step / unit).log10().floor()).clamp(0.0, 9.0) as usize;
    if value == 0.0 { "0".to_owned() } else { format!("{:.digits$}{name}", value / unit) }
}
