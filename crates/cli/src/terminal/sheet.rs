//! Lines of a live view: cut to its width, wrapped, and with bars.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::Line;

use crate::report::text::columns;
use crate::report::view::printable;

/// Eighths of a character, from the left, and from below.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The same in ASCII, from the least to the most.
const DENSITIES: [char; 8] = ['.', ':', '-', '=', '+', '*', '#', '@'];

/// A view under construction.
pub(crate) struct Sheet {
    pub(crate) width: usize,
    pub(crate) unicode: bool,
    pub(crate) lines: Vec<Line<'static>>,
}

impl Sheet {
    /// An empty one.
    pub(crate) fn new(width: usize, unicode: bool) -> Self {
        Self { width, unicode, lines: Vec::new() }
    }

    /// Adds a line, cut to the width.
    pub(crate) fn line(&mut self, text: &str, style: Style) {
        let text = self.cut(text, self.width);
        self.lines.push(Line::styled(text, style));
    }

    /// Adds an empty line.
    pub(crate) fn blank(&mut self) {
        self.lines.push(Line::default());
    }

    /// Adds a sentence, wrapped.
    pub(crate) fn sentence(&mut self, text: &str, style: Style) {
        for line in wrapped(text, self.width) {
            self.line(&line, style);
        }
    }

    /// The printable text, cut to `room` columns with a mark at the end.
    pub(crate) fn cut(&self, text: &str, room: usize) -> String {
        let text = printable(text).replace('\u{a0}', " ");
        if columns(&text) <= room {
            return text;
        }
        let mark = if self.unicode { "…" } else { "~" };
        let mut short = String::new();
        for character in text.chars() {
            if columns(&short) + columns(character.encode_utf8(&mut [0; 4])) + 1 > room {
                break;
            }
            short.push(character);
        }
        if room > 0 { short + mark } else { short }
    }

    /// A bar of this share of the room, in eighths of a character if the terminal has them.
    pub(crate) fn bar(&self, share: f64, room: usize) -> String {
        if !self.unicode {
            return "#".repeat((share * room as f64).round() as usize);
        }
        let eighths = (share * room as f64 * 8.0).round() as usize;
        format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
    }

    /// A character for each value, as high as its share of the largest; a blank where there is none.
    pub(crate) fn spark(&self, values: &[Option<f64>]) -> String {
        let most = values.iter().flatten().copied().fold(0.0, f64::max);
        let steps = if self.unicode { HEIGHTS } else { DENSITIES };
        let one = |value: &Option<f64>| match value {
            Some(value) if most > 0.0 => steps[((value / most * 7.0).round() as usize).min(7)],
            Some(_) => steps[0],
            None => ' ',
        };
        values.iter().map(one).collect()
    }

    /// Draws as many lines as fit above the last row, which has the keys.
    pub(crate) fn draw(&self, keys: &str, buffer: &mut Buffer) {
        let area = buffer.area;
        let room = usize::from(area.height).saturating_sub(1);
        for (row, line) in (0u16..).zip(self.lines.iter().take(room)) {
            buffer.set_line(area.x, area.y + row, line, area.width);
        }
        if area.height > 1 {
            let last = Rect { y: area.bottom() - 1, height: 1, ..area };
            buffer.set_line(last.x, last.y, &Line::styled(keys.to_owned(), faint()), last.width);
        }
    }
}

pub(crate) fn faint() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

pub(crate) fn strong() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

/// A sentence in lines of at most `width` columns; a longer word has a line of its own.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spark_is_as_high_as_its_share_of_the_largest() {
        let sheet = Sheet::new(80, true);
        assert_eq!(sheet.spark(&[Some(0.0), None, Some(4.0), Some(8.0)]), "▁ ▅█");
        assert_eq!(Sheet::new(80, false).spark(&[Some(0.0), Some(8.0)]), ".@");
        assert_eq!((sheet.spark(&[Some(0.0), None]), sheet.spark(&[])), ("▁ ".to_owned(), String::new()));
    }
}
