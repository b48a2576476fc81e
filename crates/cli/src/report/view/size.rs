//! The figures of `size` in words, for text, Markdown and HTML.

use chokepoint_model::message::Message;
use chokepoint_sizing::interval::Interval;
use chokepoint_sizing::law::ScalingLaw;
use chokepoint_sizing::report::{Size, StepReport, TierReport};

use super::Phrases;

/// Titles of the columns of the steps.
pub(crate) const COLUMNS: [&str; 7] = [
    "size-steps-connections",
    "size-steps-rate",
    "size-steps-goodput",
    "size-steps-p50",
    "size-steps-p99",
    "size-steps-failed",
    "size-steps-limit",
];

/// Labels and values, the most important first.
pub(crate) fn facts(size: &Size, phrases: Phrases<'_>) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let range = |id: &'static str, of: &Interval| {
        phrases.say(&Message::new(id).with("rate", of.value).with("low", of.low.round()).with("high", of.high.round()))
    };
    if let Some(most) = &size.capacity.most_rps {
        let held = size.capacity.at_objective_rps.as_ref();
        let id = |held: &Interval| if held.high > held.value { "size-at-objective" } else { "size-at-objective-only" };
        facts.push(("size-label-capacity", held.map_or_else(|| not_held(size, phrases), |held| range(id(held), held))));
        let safe = size.capacity.safe_rps.map(|safe| phrases.say(&Message::new("size-safe").with("rate", safe)));
        facts.push(("size-label-safe", safe.unwrap_or_else(|| phrases.word("size-safe-none"))));
        facts.push(("size-label-most", range("size-most", most)));
        facts.push(("size-label-knee", size.knee_text.clone()));
        facts.push(("size-label-law", law(size, phrases)));
    }
    facts.extend(size.limits_first.iter().map(|limit| ("size-label-limit", limit.text.clone())));
    facts
}

/// Why no rate is known that held the objective: none did, or none was tried.
fn not_held(size: &Size, phrases: Phrases<'_>) -> String {
    let tried = || size.steps.iter().filter_map(|step| step.rate_per_s);
    match tried().reduce(f64::min).zip(tried().reduce(f64::max)) {
        Some((low, high)) => phrases.say(&Message::new("size-at-objective-none").with("low", low).with("high", high)),
        None => phrases.word("size-at-objective-untried"),
    }
}

fn law(size: &Size, phrases: Phrases<'_>) -> String {
    match (&size.scaling, &size.scaling_refused) {
        (Some(law), _) => fitted(law, phrases),
        (None, why) => phrases.say(&Message::new("size-law-none").with("why", why.as_deref().unwrap_or_default())),
    }
}

fn fitted(law: &ScalingLaw, phrases: Phrases<'_>) -> String {
    let percent = |share: f64| share * 100.0;
    let message = Message::new("size-law").with("contention", percent(law.contention.value));
    let message = message.with("contention_low", percent(law.contention.low)).with("contention_high", percent(law.contention.high));
    let message = message.with("coherency", percent(law.coherency.value)).with("coherency_low", percent(law.coherency.low));
    let text = phrases.say(&message.with("coherency_high", percent(law.coherency.high)));
    match &law.peak_connections {
        Some(peak) => format!("{text}, {}", phrases.say(&Message::new("size-law-peak").with("peak", peak.value.round()))),
        None => text,
    }
}

/// The cells of a step.
pub(crate) fn row(step: &StepReport, phrases: Phrases<'_>) -> [String; 7] {
    let limit = step.finding.clone().unwrap_or_default();
    [
        step.connections.map(|connections| phrases.number(f64::from(connections))).unwrap_or_default(),
        step.rate_per_s.map(|rate| phrases.rounded(rate)).unwrap_or_default(),
        phrases.rounded(step.goodput_rps.value),
        phrases.duration_us(step.latency_us_p50 as f64),
        phrases.duration_us(step.latency_us_p99 as f64),
        phrases.percent(step.failed_share),
        limit,
    ]
}

/// Where the lines of a tier belong.
pub(crate) fn place(tier: &TierReport, phrases: Phrases<'_>) -> Option<String> {
    let file = tier.file.as_deref()?;
    Some(match tier.line {
        Some(line) => phrases.say(&Message::new("size-label-file-line").with("file", file).with("line", f64::from(line))),
        None => phrases.say(&Message::new("size-label-file").with("file", file)),
    })
}
