//! Text of a drawing: safe, and cut to the room that it has.

use askama::filters::Escaper;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::report::html::escape::Visible;

/// Mean width of a character of 12 pixels in the fonts of a drawing.
const COLUMN: f64 = 6.8;

/// A text that cannot become markup.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = Visible.write_escaped_str(&mut out, text);
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
