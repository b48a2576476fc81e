//! The findings: what is wrong, what shows it, and each remedy as exact commands with its price.

use chokepoint_model::change::Activation;
use chokepoint_model::message::Message;
use chokepoint_model::report::{Confidence, Diagnosis, Evidence, Finding, Prediction, Remedy, Role, Signal};

use super::page::{Ink, Page, Span, span};
use super::wrap::columns;

/// Columns before the text of a finding.
const INDENT_COLUMNS: usize = 4;
/// Columns before a command that has no room beside its label.
const COMMAND_INDENT_COLUMNS: usize = 8;
/// Labels before a remedy's lines.
const LABELS: [&str; 7] = [
    "report-label-now",
    "report-label-keep",
    "report-label-effect",
    "report-label-risk",
    "report-label-undo",
    "report-label-proof",
    "report-label-predicted",
];

/// Writes the findings in their order, causes first.
pub(super) fn write(page: &mut Page<'_>, diagnosis: &Diagnosis) {
    if diagnosis.findings.is_empty() {
        return;
    }
    page.heading("report-findings");
    for (place, finding) in diagnosis.findings.iter().enumerate() {
        if place > 0 {
            page.blank();
        }
        // The verdict's sentence usually is the first finding's title.
        let titled = !diagnosis.summary.contains(finding.title.trim_end_matches('.'));
        head(page, diagnosis, place + 1, finding, titled);
        evidence(page, finding);
        for (choice, remedy) in finding.remedies.iter().enumerate() {
            let title = match finding.remedies.len() {
                1 => page.word("report-fix"),
                count => page.say(&Message::new("report-fix-choice").with("n", (choice + 1) as f64).with("count", count as f64)),
            };
            fix(page, &title, remedy);
        }
    }
    let applicable = diagnosis.findings.iter().flat_map(|finding| &finding.remedies).any(|remedy| !remedy.change.is_empty());
    if applicable && diagnosis.rounds.is_empty() {
        page.blank();
        let text = page.word("report-offer-fix");
        page.flow(&indent(), &indent(), &[span(Ink::Faint, text)]);
    }
}

fn indent() -> [Span; 1] {
    [span(Ink::Plain, " ".repeat(INDENT_COLUMNS))]
}

fn head(page: &mut Page<'_>, diagnosis: &Diagnosis, number: usize, finding: &Finding, titled: bool) {
    let role = match finding.role {
        Role::Cause => page.word("report-cause"),
        Role::Symptom if finding.symptom_of.is_empty() => page.word("report-symptom-of-unnamed"),
        Role::Symptom => {
            let numbered = |id: &String| match diagnosis.findings.iter().position(|other| other.id == *id) {
                Some(place) => format!("{id} ({})", place + 1),
                None => id.clone(),
            };
            let ids: Vec<String> = finding.symptom_of.iter().map(numbered).collect();
            page.say(&Message::new("report-symptom-of").with("ids", ids.join(", ")))
        }
    };
    let confidence = page.word(match finding.confidence {
        Confidence::Low => "report-confidence-low",
        Confidence::Medium => "report-confidence-medium",
        Confidence::High => "report-confidence-high",
    });
    let ink = if finding.role == Role::Cause { Ink::BadStrong } else { Ink::WarnStrong };
    let first = [span(ink, format!("{number:>3} "))];
    page.flow(&first, &indent(), &[span(ink, &finding.id), span(Ink::Faint, format!("({role}, {confidence})"))]);
    if titled {
        page.flow(&indent(), &indent(), &[span(Ink::Strong, sentence(&finding.title))]);
    }
    page.flow(&indent(), &indent(), &[span(Ink::Plain, &finding.explanation)]);
}

/// A title as a sentence: a capital at the beginning, a full stop at the end.
fn sentence(title: &str) -> String {
    let mut characters = title.chars();
    let Some(first) = characters.next() else { return String::new() };
    let stop = if title.ends_with(['.', '?', '!', '。']) { "" } else { "." };
    format!("{}{}{stop}", first.to_uppercase(), characters.as_str())
}

fn evidence(page: &mut Page<'_>, finding: &Finding) {
    if finding.evidence.is_empty() {
        return;
    }
    page.blank();
    let title = page.word("report-evidence");
    page.line(&[span(Ink::Plain, " ".repeat(INDENT_COLUMNS)), span(Ink::Strong, title)]);
    let bullet = page.glyph("•", "-");
    for Evidence { text, source, .. } in &finding.evidence {
        let first = [span(Ink::Plain, format!("{}{bullet} ", " ".repeat(INDENT_COLUMNS + 2)))];
        let rest = [span(Ink::Plain, " ".repeat(INDENT_COLUMNS + 4))];
        let source = if source.is_empty() { String::new() } else { format!("[{source}]") };
        page.flow(&first, &rest, &[span(Ink::Plain, text), span(Ink::Faint, source)]);
    }
}

fn fix(page: &mut Page<'_>, title: &str, remedy: &Remedy) {
    page.blank();
    let rest = [span(Ink::Plain, " ".repeat(INDENT_COLUMNS + 2))];
    let heading = [span(Ink::Plain, " ".repeat(INDENT_COLUMNS)), span(Ink::Strong, format!("{title}: ")), span(Ink::Strong, &remedy.id)];
    page.line(&heading);
    page.flow(&rest, &rest, &[span(Ink::Plain, &remedy.text)]);
    commands(page, "report-label-now", &remedy.runtime);
    commands(page, "report-label-keep", &remedy.persistent);
    if !remedy.undo.is_empty() {
        commands(page, "report-label-undo", std::slice::from_ref(&remedy.undo));
    }
    let effect = page.word(match remedy.activation {
        Activation::Live => "report-live",
        Activation::Reload => "report-reload",
        Activation::Restart => "report-restart",
    });
    prose(page, "report-label-effect", &effect);
    prose(page, "report-label-risk", &remedy.risk);
    let signal = match &remedy.signal {
        Signal::Refusals { station } => page.say(&Message::new("report-signal-refusals").with("station", station.as_str())),
        Signal::Goodput => page.word("report-signal-goodput"),
        Signal::LatencyP99 => page.word("report-signal-latency"),
    };
    prose(page, "report-label-proof", &signal);
    let prediction = match &remedy.prediction {
        Prediction::Refused { refused } => page.say(&Message::new("report-not-predicted").with("why", refused.as_str())),
        Prediction::Goodput { goodput_rps, low, high, next_station } => {
            let message = Message::new("report-predicted").with("rate", *goodput_rps).with("low", *low).with("high", *high);
            page.say(&message.with("station", next_station.as_str()))
        }
    };
    prose(page, "report-label-predicted", &prediction);
}

/// A label, all as wide as the widest.
fn label(page: &Page<'_>, id: &'static str) -> Span {
    let width = LABELS.iter().map(|id| columns(&page.word(id))).max().unwrap_or(0);
    let text = page.word(id);
    let fill = " ".repeat(width - columns(&text).min(width));
    span(Ink::Faint, format!("{}{text}{fill}  ", " ".repeat(INDENT_COLUMNS + 2)))
}

/// The place of a label without its text.
fn unlabelled(label: &Span) -> Span {
    span(Ink::Plain, " ".repeat(super::page::columns_of(std::slice::from_ref(label))))
}

fn commands(page: &mut Page<'_>, id: &'static str, lines: &[String]) {
    let mut before = label(page, id);
    for (place, line) in lines.iter().enumerate() {
        let indent = [span(Ink::Plain, " ".repeat(COMMAND_INDENT_COLUMNS))];
        if super::page::columns_of(std::slice::from_ref(&before)) + columns(line) <= page.width() {
            page.verbatim(std::slice::from_ref(&before), line);
        } else {
            // Too long beside its label: more of it is seen on a line of its own.
            if place == 0 {
                page.line(std::slice::from_ref(&before));
            }
            page.verbatim(&indent, line);
        }
        before = unlabelled(&before);
    }
}

fn prose(page: &mut Page<'_>, id: &'static str, text: &str) {
    if !text.is_empty() {
        let first = [label(page, id)];
        let rest = [unlabelled(&first[0])];
        page.flow(&first, &rest, &[span(Ink::Plain, text)]);
    }
}
