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

use chokepoint_model::fix::FAILED_SHARE_NOISE;
use chokepoint_model::outcome::utc;
use chokepoint_model::report::{Diagnosis, LoadReport, Round, Verdict};
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

/// A verdict as it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Choked,
    Healthy,
    /// Nothing but physics limits it, and more is asked for than it can answer: nobody whose requests fail would call that healthy.
    Overloaded,
    ClientLimited,
    Unknown,
}

impl Shown {
    /// A verdict, and the share of the requests that failed, if it is known.
    pub(crate) fn of(verdict: Verdict, failed_share: Option<f64>) -> Self {
        match verdict {
            Verdict::Choked => Self::Choked,
            Verdict::Healthy if failed_share.is_some_and(|share| share >= FAILED_SHARE_NOISE) => Self::Overloaded,
            Verdict::Healthy => Self::Healthy,
            Verdict::ClientLimited => Self::ClientLimited,
            Verdict::Unknown => Self::Unknown,
        }
    }

    /// The verdict of a diagnosis, before any change.
    pub(crate) fn of_first(diagnosis: &Diagnosis) -> Self {
        Self::of(diagnosis.verdict, diagnosis.load.as_ref().and_then(LoadReport::failed_share))
    }

    /// The verdict of a round.
    pub(crate) fn of_round(round: &Round) -> Self {
        Self::of(round.verdict, round.load.failed_share())
    }

    /// Its word, as it begins a sentence.
    pub(crate) fn word(self, phrases: Phrases<'_>) -> String {
        phrases.word(match self {
            Self::Choked => "html-verdict-choked",
            Self::Healthy => "html-verdict-healthy",
            Self::Overloaded => "html-verdict-overloaded",
            Self::ClientLimited => "html-verdict-client-limited",
            Self::Unknown => "html-verdict-unknown",
        })
    }

    /// Its ink.
    pub(crate) fn ink(self) -> Ink {
        match self {
            Self::Choked | Self::Overloaded => Ink::BadStrong,
            Self::Healthy => Ink::GoodStrong,
            Self::ClientLimited | Self::Unknown => Ink::WarnStrong,
        }
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
