//! The picture of a report: what `diagnose` prints to a terminal of 80 columns, as an SVG in dark and in light colours.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, bail};

/// Columns of the terminal.
const COLUMNS: u32 = 80;
/// Lines that are drawn. A longer report is cut, and the picture says so.
const LINES_MAX: usize = 45;
/// Width of a character, height of a line and margin in pixels, at a font size of 14.
const CHARACTER_PX: f64 = 8.4;
const LINE_PX: f64 = 18.0;
const MARGIN_PX: f64 = 16.0;

/// Colours as "#rrggbb".
struct Palette {
    file: &'static str,
    ground: &'static str,
    text: &'static str,
    dim: &'static str,
    /// Black, red, green, yellow, blue, magenta, cyan, white: the codes 30 to 37 of Select Graphic Rendition (ECMA-48).
    inks: [&'static str; 8],
}

/// Each ink has a contrast of at least 4.5 to 1 on its ground (WCAG 2.1, 1.4.3).
const PALETTES: &[Palette] = &[
    Palette {
        file: "report-dark.svg",
        ground: "#16181d",
        text: "#d8dae0",
        dim: "#8f95a3",
        inks: ["#8f95a3", "#ff7b72", "#6bd07f", "#e3b341", "#79b8ff", "#d2a8ff", "#56d4dd", "#f0f2f6"],
    },
    Palette {
        file: "report-light.svg",
        ground: "#ffffff",
        text: "#24292f",
        dim: "#656d76",
        inks: ["#24292f", "#b3161d", "#11691f", "#7d4e00", "#0550ae", "#8250df", "#1b6a75", "#57606a"],
    },
];

/// The look of some text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Look {
    bold: bool,
    dim: bool,
    ink: Option<u8>,
}

/// Text of one look.
#[derive(Debug, PartialEq, Eq)]
struct Piece {
    look: Look,
    text: String,
}

/// Writes a picture of the report for each palette.
pub(crate) fn write(report: &Path, directory: &Path) -> anyhow::Result<()> {
    let report = std::fs::read_to_string(report).with_context(|| format!("cannot read {}", report.display()))?;
    let lines = cut(lines(&report)?);
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    for palette in PALETTES {
        let path = directory.join(palette.file);
        std::fs::write(&path, draw(&lines, palette)).with_context(|| format!("cannot write {}", path.display()))?;
        println!("picture: wrote {}", path.display());
    }
    Ok(())
}

/// At most [`LINES_MAX`] lines; the last one says how many are missing.
fn cut(mut lines: Vec<Vec<Piece>>) -> Vec<Vec<Piece>> {
    if lines.len() > LINES_MAX {
        let missing = lines.len() - (LINES_MAX - 1);
        lines.truncate(LINES_MAX - 1);
        lines.push(vec![Piece { look: Look { dim: true, ..Look::default() }, text: format!("... {missing} more lines") }]);
    }
    lines
}

/// Splits what a terminal was sent into lines and pieces.
///
/// # Errors
/// On a control sequence that is no Select Graphic Rendition, or one with a parameter that is not known here.
fn lines(text: &str) -> anyhow::Result<Vec<Vec<Piece>>> {
    let mut look = Look::default();
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut pieces = Vec::new();
        let mut parts = line.split("\x1b[");
        let mut add = |look: Look, text: &str| {
            if !text.is_empty() {
                pieces.push(Piece { look, text: text.to_owned() });
            }
        };
        add(look, parts.next().unwrap_or_default());
        for part in parts {
            let Some((parameters, text)) = part.split_once('m') else { bail!("not a colour: ESC [ {part}") };
            for parameter in parameters.split(';') {
                look = changed(look, parameter)?;
            }
            add(look, text);
        }
        lines.push(pieces);
    }
    Ok(lines)
}

fn changed(look: Look, parameter: &str) -> anyhow::Result<Look> {
    Ok(match parameter.parse::<u8>().unwrap_or_default() {
        0 => Look::default(),
        1 => Look { bold: true, ..look },
        2 => Look { dim: true, ..look },
        22 => Look { bold: false, dim: false, ..look },
        39 => Look { ink: None, ..look },
        code @ 30..=37 => Look { ink: Some(code - 30), ..look },
        code @ 90..=97 => Look { ink: Some(code - 90), ..look },
        code => bail!("the picture does not know the parameter {code} of Select Graphic Rendition"),
    })
}

fn draw(lines: &[Vec<Piece>], palette: &Palette) -> String {
    let width = f64::from(COLUMNS).mul_add(CHARACTER_PX, 2.0 * MARGIN_PX);
    let height = (lines.len() as f64).mul_add(LINE_PX, 2.0 * MARGIN_PX);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" \
         aria-label=\"A report of chokepoint in a terminal\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{}\"/>\n\
         <g font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"14\" fill=\"{}\">\n",
        palette.ground, palette.text
    );
    for (row, pieces) in lines.iter().enumerate() {
        let y = (row as f64 + 0.75).mul_add(LINE_PX, MARGIN_PX);
        let mut column = 0;
        for Piece { look, text } in pieces {
            draw_piece(&mut svg, palette, *look, text, (column, y));
            column += text.chars().count();
        }
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// A piece begins at its own column and has its length set, so that columns stand below each other in every font.
fn draw_piece(svg: &mut String, palette: &Palette, look: Look, text: &str, (column, y): (usize, f64)) {
    let start = text.len() - text.trim_start().len();
    let (column, text) = (column + start, text.trim());
    if text.is_empty() {
        return;
    }
    let x = (column as f64).mul_add(CHARACTER_PX, MARGIN_PX);
    let length = text.chars().count() as f64 * CHARACTER_PX;
    let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\" xml:space=\"preserve\"");
    let ink = look.ink.and_then(|ink| palette.inks.get(usize::from(ink))).or(look.dim.then_some(&palette.dim));
    if let Some(ink) = ink {
        let _ = write!(svg, " fill=\"{ink}\"");
    }
    if look.bold {
        svg.push_str(" font-weight=\"bold\"");
    }
    let _ = writeln!(svg, ">{}</text>", text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stand_at_their_columns_in_their_colours() {
        let lines = lines("\x1b[1;31mChoked\x1b[0m: a < b\n\n  \x1b[2m& c\x1b[0m").expect("known sequences");
        let svg = draw(&lines, &PALETTES[0]);
        for wanted in [
            "<text x=\"16.0\" y=\"29.5\" textLength=\"50.4\" xml:space=\"preserve\" fill=\"#ff7b72\" font-weight=\"bold\">Choked</text>",
            "<text x=\"66.4\" y=\"29.5\" textLength=\"58.8\" xml:space=\"preserve\">: a &lt; b</text>",
            "<text x=\"32.8\" y=\"65.5\" textLength=\"25.2\" xml:space=\"preserve\" fill=\"#8f95a3\">&amp; c</text>",
        ] {
            assert!(svg.contains(wanted), "{wanted}\n{svg}");
        }
    }

    #[test]
    fn a_long_report_is_cut_and_says_so() {
        let drawn = cut(lines(&"line\n".repeat(60)).expect("lines"));
        assert_eq!(drawn.len(), LINES_MAX);
        assert_eq!(drawn[LINES_MAX - 1][0].text, "... 16 more lines");
        assert_eq!(cut(lines(&"line\n".repeat(LINES_MAX)).expect("lines"))[LINES_MAX - 1][0].text, "line");
    }

    #[test]
    fn other_control_sequences_are_refused() {
        assert!(lines("\x1b[2J").is_err());
        assert!(lines("\x1b[38;5;1mx").is_err());
    }

    #[test]
    fn inks_can_be_read_on_their_ground() {
        for palette in PALETTES {
            for ink in palette.inks.iter().chain([&palette.text, &palette.dim]) {
                let (light, dark) = (luminance(ink).max(luminance(palette.ground)), luminance(ink).min(luminance(palette.ground)));
                assert!((light + 0.05) / (dark + 0.05) >= 4.5, "{ink} on {} of {}", palette.ground, palette.file);
            }
        }
    }

    /// Relative luminance (WCAG 2.1).
    fn luminance(color: &str) -> f64 {
        let part = |at: usize| {
            let value = f64::from(u8::from_str_radix(&color[at..at + 2], 16).expect("a colour")) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }
}
