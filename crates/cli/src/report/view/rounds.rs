//! The rounds of `--fix` in words: whether and why a change was kept, the prediction, and the final result.

use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, Kept, LoadReport, Prediction, Round, RoundKind};

use super::load::p99;
use super::{Ink, Phrases, Shown, Span, span};

/// The kept changes and the verdict with them; nothing if none was kept.
pub(crate) fn result(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Option<[Span; 2]> {
    let last = diagnosis.result()?;
    let kept = diagnosis.rounds.iter().filter(|round| round.kind == RoundKind::Apply && round.kept.stays());
    let remedies = kept.map(|round| round.remedy.as_str()).collect::<Vec<_>>().join(", ");
    let before = phrases.say(&Message::new("report-result").with("remedies", remedies));
    Some([span(Ink::Strong, before), span(Shown::of_round(last).ink(), &last.summary)])
}

/// What a round changed: "raise-conntrack-max", "without raise-conntrack-max", "all that stays".
pub(crate) fn change(round: &Round, phrases: Phrases<'_>) -> String {
    match round.kind {
        RoundKind::Apply => round.remedy.clone(),
        RoundKind::Without => phrases.say(&Message::new("round-row-without").with("remedy", round.remedy.as_str())),
        RoundKind::Confirm => phrases.word("round-row-confirm"),
    }
}

/// The share of completed requests that were not answered as expected.
pub(crate) fn failed_share(load: &LoadReport) -> f64 {
    let failed = load.failed_share().unwrap_or(0.0);
    // Rates are quotients of whole numbers: less than a millionth is a rounding error.
    if failed < 1e-6 { 0.0 } else { failed }
}

/// The result for a change: "kept" or "taken back"; after a trial without it "put back" or "left out". Nothing for a round without a single change.
pub(crate) fn fate(round: &Round, phrases: Phrases<'_>) -> Option<Span> {
    let (ink, id) = match (round.kind, round.kept) {
        (RoundKind::Confirm, _) => return None,
        (RoundKind::Without, Kept::No) => (Ink::WarnStrong, "round-left-out"),
        (RoundKind::Without, _) => (Ink::GoodStrong, "round-put-back"),
        (RoundKind::Apply, Kept::Final) => (Ink::GoodStrong, "report-kept-final"),
        (RoundKind::Apply, Kept::Provisional) => (Ink::GoodStrong, "report-kept-provisional"),
        (RoundKind::Apply, Kept::Replaced) => (Ink::Plain, "report-kept-replaced"),
        (RoundKind::Apply, Kept::No) => (Ink::WarnStrong, "report-kept-no"),
    };
    Some(span(ink, phrases.word(id)))
}

/// One measurement as a row of a table; unknown cells are empty.
/// The names of the columns of a table of rounds.
pub(crate) const COLUMNS: [&str; 9] = [
    "html-column-number",
    "html-column-before",
    "html-column-found",
    "html-column-changed",
    "html-column-predicted",
    "html-column-after",
    "report-column-p99",
    "report-column-failed",
    "html-column-outcome",
];

pub(crate) struct RoundRow<'a> {
    /// The round; nothing for the measurement before any change.
    pub(crate) round: Option<&'a Round>,
    /// Its number; 0 is the measurement before any change.
    pub(crate) n: String,
    /// The finding that the remedy is for.
    pub(crate) found: String,
    /// The remedy; for the first measurement, that nothing was changed yet.
    pub(crate) changed: String,
    /// The prediction and whether it held, or why there was none.
    pub(crate) predicted: String,
    /// Goodput of the measurement that it is compared with.
    pub(crate) before: String,
    /// Goodput measured after it.
    pub(crate) after: String,
    /// p99 of the response time after it.
    pub(crate) p99: String,
    /// Share of requests not answered as expected.
    pub(crate) failed: String,
    /// Whether the change was kept or taken back.
    pub(crate) fate: Option<Span>,
    /// Why the change was kept or not.
    pub(crate) why: String,
}

/// The first measurement and the rounds; nothing if nothing was tried.
pub(crate) fn rows<'a>(diagnosis: &'a Diagnosis, phrases: Phrases<'_>) -> Vec<RoundRow<'a>> {
    if diagnosis.rounds.is_empty() {
        return Vec::new();
    }
    let first = RoundRow { n: "0".to_owned(), changed: phrases.word("report-as-found"), ..measured(diagnosis.load.as_ref(), phrases) };
    let row = |round: &'a Round| RoundRow {
        round: Some(round),
        n: round.n.to_string(),
        found: round.finding.clone(),
        changed: change(round, phrases),
        predicted: predicted(round, phrases),
        before: round.before_rps.map(|rate| per_second(rate, phrases)).unwrap_or_default(),
        fate: fate(round, phrases),
        why: round.why.clone(),
        ..measured(Some(&round.load), phrases)
    };
    std::iter::once(first).chain(diagnosis.rounds.iter().map(row)).collect()
}

fn measured<'a>(load: Option<&LoadReport>, phrases: Phrases<'_>) -> RoundRow<'a> {
    let figure = |figure: &dyn Fn(&LoadReport) -> String| load.map(figure).unwrap_or_default();
    RoundRow {
        round: None,
        n: String::new(),
        found: String::new(),
        changed: String::new(),
        predicted: String::new(),
        before: String::new(),
        after: figure(&|load| per_second(load.goodput_rps, phrases)),
        p99: figure(&|load| p99(phrases, load)),
        failed: figure(&|load| phrases.percent(failed_share(load))),
        fate: None,
        why: String::new(),
    }
}

fn per_second(rate: f64, phrases: Phrases<'_>) -> String {
    phrases.say(&Message::new("html-per-second").with("rate", rate))
}

/// The prediction and whether it held, or why there is none.
pub(crate) fn predicted(round: &Round, phrases: Phrases<'_>) -> String {
    match &round.prediction {
        // Only a change has a prediction.
        Prediction::Refused { .. } if round.kind != RoundKind::Apply => String::new(),
        Prediction::Refused { refused, .. } => phrases.say(&Message::new("html-not-predicted").with("why", refused.as_str())),
        Prediction::Goodput { goodput_rps, low, high, .. } => {
            let id = match round.prediction_held {
                Some(true) => "html-predicted-held",
                Some(false) => "html-predicted-missed",
                None => "html-predicted",
            };
            phrases.say(&Message::new(id).with("rate", *goodput_rps).with("low", *low).with("high", *high))
        }
    }
}
