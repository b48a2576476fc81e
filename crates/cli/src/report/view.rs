//! The contents of a report in words and figures, before anything is drawn. The text, the page and Markdown share it.
//!
//! It puts the findings of the model into words and computes no verdict.

pub(crate) mod bench;
pub(crate) mod bisect;
pub(crate) mod chain;
pub(crate) mod experiment;
pub(crate) mod findings;
pub(crate) mod ledger;
pub(crate) mod load;
pub(crate) mod path;
mod phrases;
pub(crate) mod profile;
pub(crate) mod readings;
pub(crate) mod rounds;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod size;
pub(crate) mod wire;

use chokepoint_model::outcome::utc;
use chokepoint_model::report::Verdict;
use serde::Serialize;

pub(crate) use chokepoint_foreign::{printable, steers};
pub(crate) use phrases::Phrases;

/// The emphasis of a piece of text. It decides colour and weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
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
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Span {
    pub(crate) ink: Ink,
    pub(crate) text: String,
}

/// Makes a span.
pub(crate) fn span(ink: Ink, text: impl Into<String>) -> Span {
    Span { ink, text: text.into() }
}

/// The word of a verdict.
pub(crate) fn verdict_word(verdict: Verdict, phrases: Phrases<'_>) -> String {
    phrases.word(match verdict {
        Verdict::Choked => "html-verdict-choked",
        Verdict::Healthy => "html-verdict-healthy",
        Verdict::ClientLimited => "html-verdict-client-limited",
        Verdict::Unknown => "html-verdict-unknown",
    })
}

/// The ink of a verdict.
pub(crate) fn ink(verdict: Verdict) -> Ink {
    match verdict {
        Verdict::Choked => Ink::BadStrong,
        Verdict::Healthy => Ink::GoodStrong,
        Verdict::ClientLimited | Verdict::Unknown => Ink::WarnStrong,
    }
}

/// The sentence of a verdict below its word: without the word, if it begins with it.
pub(crate) fn told(word: &str, summary: &str) -> String {
    let rest = summary.strip_prefix(word).and_then(|rest| rest.strip_prefix(": ").or_else(|| rest.strip_prefix(", ")));
    capitalized(rest.unwrap_or(summary))
}

/// A text with a capital first letter.
pub(crate) fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| format!("{}{}", first.to_uppercase(), characters.as_str())).unwrap_or_default()
}

/// A time in seconds since 1970 as RFC 3339; empty after the year 9999.
pub(crate) fn time(at_s: u64) -> String {
    i64::try_from(at_s).ok().and_then(utc).unwrap_or_default()
}
