//! What a diagnosis says, in words and figures and in its order, before anything is drawn: the text, HTML and Markdown reports share it.
//!
//! It words what the model found and computes no verdict.

pub(crate) mod bench;
pub(crate) mod bisect;
pub(crate) mod chain;
pub(crate) mod findings;
pub(crate) mod load;
pub(crate) mod path;
mod phrases;
pub(crate) mod profile;
pub(crate) mod readings;
pub(crate) mod rounds;
pub(crate) mod wire;

use chokepoint_model::report::Verdict;

pub(crate) use phrases::Phrases;

/// What a piece of text looks like where there is colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    Plain,
    Strong,
    Faint,
    Bad,
    BadStrong,
    Warn,
    WarnStrong,
    GoodStrong,
}

/// Text in one ink.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(crate) ink: Ink,
    pub(crate) text: String,
}

/// Text in an ink.
pub(crate) fn span(ink: Ink, text: impl Into<String>) -> Span {
    Span { ink, text: text.into() }
}

/// The ink of a verdict.
pub(crate) fn ink(verdict: Verdict) -> Ink {
    match verdict {
        Verdict::Choked => Ink::BadStrong,
        Verdict::Healthy => Ink::GoodStrong,
        Verdict::ClientLimited | Verdict::Unknown => Ink::WarnStrong,
    }
}

/// True for characters that move the cursor, change the terminal or turn the direction of writing.
pub(crate) fn steers(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// A command or a line of a file as one line to be copied: only characters that steer are spelled out.
pub(crate) fn visible(text: &str) -> String {
    let spelled = |character: char| if steers(character) { character.escape_default().to_string() } else { character.to_string() };
    text.chars().map(spelled).collect()
}
