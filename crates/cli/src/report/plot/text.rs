//! Text of a drawing: safe, and cut to the room that it has.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::report::view::steers;

/// Mean width of a character of 12 pixels in the fonts of a drawing.
const COLUMN: f64 = 6.8;

/// A text that cannot become markup: its signs are written as text, and control and bidirectional characters are replaced.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\r' | '\t' => out.push(' '),
            character if steers(character) => out.push(char::REPLACEMENT_CHARACTER),
            character => out.push(character),
        }
    }
    out
}

/// The approximate width of a text.
pub(super) fn width(text: &str) -> f64 {
    COLUMN * text.width() as f64
}

/// The content of a text element: the whole text, or its beginning and the whole text as a tooltip.
pub(super) fn cut(text: &str, room: f64) -> String {
    let most = (room / COLUMN).max(2.0) as usize;
    if text.width() <= most {
        return escaped(text);
    }
    let mut used = 1;
    let fits = |character: &char| {
        used += character.width().unwrap_or(1);
        used <= most
    };
    let begin: String = text.chars().take_while(fits).collect();
    format!("<title>{}</title>{}…", escaped(text), escaped(begin.trim_end()))
}
