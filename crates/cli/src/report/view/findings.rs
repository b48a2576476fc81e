//! The findings in words: their role, and the terms of each remedy.

use chokepoint_model::change::Activation;
use chokepoint_model::fix::NOISE_SHARE;
use chokepoint_model::message::Message;
use chokepoint_model::report::{Confidence, Diagnosis, Finding, Prediction, Remedy, Role, Signal, Step};

use super::Phrases;

/// "cause, high confidence", "symptom of conntrack-table-full (1), low confidence".
pub(crate) fn standing(diagnosis: &Diagnosis, finding: &Finding, phrases: Phrases<'_>) -> String {
    let role = match finding.role {
        Role::Cause => phrases.word("report-cause"),
        Role::Symptom if finding.symptom_of.is_empty() => phrases.word("report-symptom-of-unnamed"),
        Role::Symptom => {
            let numbered = |id: &String| match diagnosis.findings.iter().position(|other| other.id == *id) {
                Some(place) => format!("{id} ({})", place + 1),
                None => id.clone(),
            };
            let ids: Vec<String> = finding.symptom_of.iter().map(numbered).collect();
            phrases.say(&Message::new("report-symptom-of").with("ids", ids.join(", ")))
        }
    };
    format!("{role}, {}", confidence(finding, phrases))
}

/// "no fault, high confidence", for an improvement.
pub(crate) fn standing_of_improvement(finding: &Finding, phrases: Phrases<'_>) -> String {
    phrases.say(&Message::new("report-improvement").with("confidence", confidence(finding, phrases)))
}

pub(crate) fn confidence(finding: &Finding, phrases: Phrases<'_>) -> String {
    phrases.word(match finding.confidence {
        Confidence::Low => "report-confidence-low",
        Confidence::Medium => "report-confidence-medium",
        Confidence::High => "report-confidence-high",
    })
}

/// The title as a sentence; nothing if the summary already contains it, as it usually does for the first finding.
pub(crate) fn title(diagnosis: &Diagnosis, finding: &Finding) -> Option<String> {
    (!diagnosis.summary.contains(finding.title.trim_end_matches('.'))).then(|| sentence(&finding.title))
}

/// A title with a capital at the beginning and a full stop at the end.
fn sentence(title: &str) -> String {
    let mut characters = title.chars();
    let Some(first) = characters.next() else { return String::new() };
    let stop = if title.ends_with(['.', '?', '!', '。']) { "" } else { "." };
    format!("{}{}{stop}", first.to_uppercase(), characters.as_str())
}

/// "Fix" or "Fix 1 of 2".
pub(crate) fn fix_title(choice: usize, count: usize, phrases: Phrases<'_>) -> String {
    match count {
        1 => phrases.word("report-fix"),
        count => phrases.say(&Message::new("report-fix-choice").with("n", (choice + 1) as f64).with("count", count as f64)),
    }
}

/// The steps of a remedy as lines that can be copied: the label's id, then the lines.
pub(crate) fn commands(remedy: &Remedy) -> impl Iterator<Item = (&'static str, Vec<String>)> {
    let all = [("report-label-now", &remedy.runtime), ("report-label-keep", &remedy.persistent), ("report-label-undo", &remedy.undo)];
    all.into_iter().filter(|(_, steps)| !steps.is_empty()).map(|(id, steps)| (id, lines(steps)))
}

/// Numbered steps. What a step does is a comment of the shell, so that the lines can be pasted all at once. A single command needs no words.
fn lines(steps: &[Step]) -> Vec<String> {
    let mut lines = Vec::new();
    for (place, step) in steps.iter().enumerate() {
        match (&step.text, steps.len()) {
            (None, _) => {}
            (Some(_), 1) if step.command.is_some() => {}
            (Some(text), 1) => lines.push(format!("# {text}")),
            (Some(text), _) => lines.push(format!("# {}. {text}", place + 1)),
        }
        lines.extend(step.command.iter().chain(&step.lines).flat_map(|text| text.split('\n')).map(str::to_owned));
    }
    lines
}

/// What to know before a remedy is applied: label id and text.
pub(crate) fn terms(diagnosis: &Diagnosis, remedy: &Remedy, phrases: Phrases<'_>) -> Vec<(&'static str, String)> {
    let effect = phrases.word(match remedy.activation {
        Activation::Live => "report-live",
        Activation::Reload => "report-reload",
        Activation::Restart => "report-restart",
    });
    let signal = match &remedy.signal {
        Signal::Refusals { station } => phrases.say(&Message::new("report-signal-refusals").with("station", station.as_str())),
        Signal::Goodput => phrases.word("report-signal-goodput"),
        Signal::LatencyP99 => phrases.word("report-signal-latency"),
    };
    let terms = [
        ("report-label-effect", effect),
        ("report-label-risk", remedy.risk.clone()),
        ("report-label-proof", signal),
        ("report-label-predicted", foretold(diagnosis, &remedy.prediction, phrases)),
    ];
    terms.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

fn foretold(diagnosis: &Diagnosis, prediction: &Prediction, phrases: Phrases<'_>) -> String {
    match prediction {
        Prediction::Refused { refused, at_most: Some(most), .. } => {
            phrases.say(&Message::new("report-not-predicted-bound").with("why", refused.as_str()).with("most", *most))
        }
        Prediction::Refused { refused, .. } => phrases.say(&Message::new("report-not-predicted").with("why", refused.as_str())),
        Prediction::Goodput { goodput_rps, low, high, next_station } => {
            let id = match Gain::of(diagnosis, *goodput_rps) {
                Gain::More => "report-predicted",
                Gain::Same => "report-predicted-same",
                Gain::Less => "report-predicted-less",
            };
            let message = Message::new(id).with("rate", *goodput_rps).with("low", *low).with("high", *high);
            phrases.say(&message.with("station", next_station.as_str()))
        }
    }
}

/// The prediction in a short sentence; nothing where none is made.
pub(crate) fn foretold_shortly(diagnosis: &Diagnosis, prediction: &Prediction, phrases: Phrases<'_>) -> Option<String> {
    let Prediction::Goodput { goodput_rps, .. } = prediction else { return None };
    let id = match Gain::of(diagnosis, *goodput_rps) {
        Gain::More => "brief-predicted",
        Gain::Same => "brief-predicted-same",
        Gain::Less => "brief-predicted-less",
    };
    Some(phrases.say(&Message::new(id).with("rate", phrases.rounded(*goodput_rps))))
}

/// A predicted rate beside today's. Of a cause that costs no goodput, fewer requests fail or wait long without it: by the rule of harm there is no third.
enum Gain {
    More,
    /// Within the noise that the rule of harm allows for.
    Same,
    Less,
}

impl Gain {
    fn of(diagnosis: &Diagnosis, predicted_rps: f64) -> Self {
        let noise = diagnosis.harm.as_ref().map_or(NOISE_SHARE, |rule| rule.goodput_share);
        match diagnosis.load.as_ref().map(|load| load.goodput_rps) {
            Some(rate) if predicted_rps < rate * (1.0 - noise) => Gain::Less,
            Some(rate) if predicted_rps <= rate * (1.0 + noise) => Gain::Same,
            _ => Gain::More,
        }
    }
}

/// True if `--fix` was not given and would change something: it mends causes.
pub(crate) fn offers_fix(diagnosis: &Diagnosis) -> bool {
    let causes = diagnosis.findings.iter().filter(|finding| finding.role == Role::Cause);
    let mut remedies = causes.flat_map(|finding| &finding.remedies);
    diagnosis.rounds.is_empty() && remedies.any(|remedy| !remedy.change.is_empty())
}
