//! A figure by two factors: a table of coloured cells, each with its figure written in it.

use std::fmt::Write;

use serde::Serialize;

use super::text::{cut, escaped, width};
use super::{WIDTH, open_svg};

/// Height of a cell.
const CELL: f64 = 46.0;
/// The narrowest and the widest cell.
const CELL_WIDTH_MIN: f64 = 76.0;
const CELL_WIDTH_MAX: f64 = 190.0;
/// Where cells begin from the top, below the title and the names of columns.
const TOP: f64 = 62.0;
/// The least and the most room for the names of rows.
const NAMES_MIN: f64 = 76.0;
const NAMES_MAX: f64 = 260.0;
/// Number of colours.
const SHADES: f64 = 7.0;
/// From this ratio of the largest to the smallest value on, colours follow the logarithm.
const LOG_FROM: f64 = 20.0;

/// A matrix.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct HeatMap {
    pub(crate) title: String,
    /// Names of the factors.
    pub(crate) rows_title: String,
    pub(crate) columns_title: String,
    /// Names of the levels.
    pub(crate) rows: Vec<String>,
    pub(crate) columns: Vec<String>,
    /// A cell for each column of each row.
    pub(crate) cells: Vec<Vec<Option<HeatCell>>>,
    /// Words around the scale of colours: "less", "more".
    pub(crate) ends: [String; 2],
}

/// A cell.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct HeatCell {
    /// Decides the colour.
    pub(crate) value: f64,
    pub(crate) text: String,
    /// A second line; empty for none.
    pub(crate) note: String,
}

impl HeatMap {
    /// The shade of each cell from 0, the least value, to 1; nothing where there is no figure.
    pub(crate) fn shades(&self) -> Vec<Vec<Option<f64>>> {
        let scale = Scale::of(self);
        let shade = |cell: &Option<HeatCell>| cell.as_ref().and_then(|cell| scale.share(cell.value));
        self.cells.iter().map(|row| row.iter().map(shade).collect()).collect()
    }
}

/// The drawing, with its style sheet.
pub(super) fn draw(map: &HeatMap) -> String {
    let names = map.rows.iter().map(|name| width(name)).fold(width(&map.rows_title), f64::max).clamp(NAMES_MIN, NAMES_MAX);
    let left = names + 20.0;
    let columns = map.columns.len().max(1) as f64;
    let cell = ((WIDTH - left - 16.0) / columns).clamp(CELL_WIDTH_MIN, CELL_WIDTH_MAX);
    let full = WIDTH.max(left + columns * cell + 16.0);
    let bottom = TOP + map.rows.len() as f64 * CELL;
    let mut out = open_svg(&map.title, (full, bottom + 40.0), true);
    let _ = write!(out, "<text class=\"head\" x=\"12\" y=\"18\">{}</text>", cut(&map.title, full - 24.0));
    let room = columns * cell;
    let _ = write!(out, "<text class=\"faint\" x=\"{left:.1}\" y=\"38\">{}</text>", cut(&map.columns_title, room));
    let _ =
        write!(out, "<text class=\"faint\" text-anchor=\"end\" x=\"{:.1}\" y=\"56\">{}</text>", left - 10.0, cut(&map.rows_title, names));
    for (place, column) in map.columns.iter().enumerate() {
        let x = left + (place as f64 + 0.5) * cell;
        let _ = write!(out, "<text text-anchor=\"middle\" x=\"{x:.1}\" y=\"56\">{}</text>", cut(column, cell - 6.0));
    }
    let scale = Scale::of(map);
    for (row, name) in map.rows.iter().enumerate() {
        let y = TOP + row as f64 * CELL;
        let _ =
            write!(out, "<text text-anchor=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>", left - 10.0, y + CELL / 2.0 + 4.0, cut(name, names));
        for column in 0..map.columns.len() {
            let found = map.cells.get(row).and_then(|cells| cells.get(column)).and_then(Option::as_ref);
            write_cell(&mut out, (left + column as f64 * cell, y, cell), found, &scale);
        }
    }
    write_legend(&mut out, (left, bottom + 16.0), &map.ends);
    out.push_str("</svg>\n");
    out
}

fn write_cell(out: &mut String, (x, y, width): (f64, f64, f64), cell: Option<&HeatCell>, scale: &Scale) {
    let shade = cell.map_or_else(|| "x".to_owned(), |cell| scale.shade(cell.value));
    let (inner, tall) = (width - 2.0, CELL - 2.0);
    let _ = write!(out, "<rect class=\"h{shade}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{inner:.1}\" height=\"{tall:.0}\"/>");
    let Some(cell) = cell else { return };
    let (middle, has_note) = (x + inner / 2.0, !cell.note.is_empty());
    let line = y + if has_note { 20.0 } else { 27.0 };
    let _ = write!(out, "<text class=\"cell t{shade}\" x=\"{middle:.1}\" y=\"{line:.1}\">{}</text>", cut(&cell.text, inner - 4.0));
    if has_note {
        let _ = write!(
            out,
            "<text class=\"under t{shade}\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text>",
            line + 16.0,
            cut(&cell.note, inner - 4.0)
        );
    }
}

/// The colours from the least to the most.
fn write_legend(out: &mut String, (x, y): (f64, f64), ends: &[String; 2]) {
    let _ = write!(out, "<text class=\"faint\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>", y + 10.0, escaped(&ends[0]));
    let begin = x + width(&ends[0]) + 8.0;
    for shade in 0..SHADES as usize {
        let _ = write!(out, "<rect class=\"h{shade}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"24\" height=\"12\"/>", begin + 24.0 * shade as f64);
    }
    let _ =
        write!(out, "<text class=\"faint\" x=\"{:.1}\" y=\"{:.1}\">{}</text>", begin + 24.0 * SHADES + 8.0, y + 10.0, escaped(&ends[1]));
}

/// Colours by value.
struct Scale {
    span: (f64, f64),
    log: bool,
}

impl Scale {
    fn of(map: &HeatMap) -> Self {
        let values = || map.cells.iter().flatten().flatten().map(|cell| cell.value).filter(|value| value.is_finite());
        let (low, high) = values().fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let log = low > 0.0 && high / low >= LOG_FROM;
        Self { span: if log { (low.ln(), high.ln()) } else { (low, high) }, log }
    }

    /// The colour of a value, "x" for none.
    fn shade(&self, value: f64) -> String {
        self.share(value).map_or_else(|| "x".to_owned(), |share| format!("{:.0}", (share * SHADES).floor().min(SHADES - 1.0)))
    }

    /// Where a value is between the least and the largest one, 0 to 1.
    fn share(&self, value: f64) -> Option<f64> {
        let value = if self.log { value.ln() } else { value };
        let share = (value - self.span.0) / (self.span.1 - self.span.0);
        // All values being the same, the share is no number.
        value.is_finite().then(|| if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 })
    }
}
