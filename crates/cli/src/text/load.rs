//! What was asked for and what became of it: target, load, latency, answers, failures.

use chokepoint_model::load::Errors;
use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, LoadReport};

use super::page::{Ink, Page, Span, span};
use super::wrap::columns;

/// Labels of the lines, in their order.
const LABELS: [&str; 5] =
    ["report-label-target", "report-label-load", "report-label-latency", "report-label-answers", "report-label-unanswered"];

/// Writes the lines that there is something to say in.
pub(super) fn write(page: &mut Page<'_>, diagnosis: &Diagnosis) {
    page.blank();
    let target = &diagnosis.target;
    let listener = match (&target.listener, &target.netns) {
        (Some(listener), Some(netns)) => {
            let message = Message::new("report-listener").with("listener", listener.as_str()).with("netns", netns.as_str());
            format!("({})", page.say(&message))
        }
        _ => String::new(),
    };
    labelled(page, "report-label-target", |page, first, rest| {
        page.flow(first, rest, &[span(Ink::Plain, &target.url), span(Ink::Faint, listener)]);
    });
    match &diagnosis.load {
        None => {
            let text = page.word("report-no-load");
            labelled(page, "report-label-load", |page, first, rest| page.flow(first, rest, &[span(Ink::Plain, text)]));
        }
        Some(load) => measured(page, load),
    }
}

fn measured(page: &mut Page<'_>, load: &LoadReport) {
    let notes = [offered(page, load), throughput(page, load), goodput(page, load)];
    labelled(page, "report-label-load", |page, first, rest| page.notes(first, rest, &notes));
    let latency = load.latency_us;
    if load.requests > 0 && latency.max > 0 {
        let named = [("p50", latency.p50), ("p90", latency.p90), ("p99", latency.p99)];
        let message =
            |name: &str, us: u64| Message::new("report-percentile").with("name", name).with("duration", page.duration_us(us as f64));
        let mut notes: Vec<Span> = named.iter().map(|(name, us)| span(Ink::Plain, page.say(&message(name, *us)))).collect();
        let longest = Message::new("report-longest").with("duration", page.duration_us(latency.max as f64));
        notes.push(span(Ink::Plain, page.say(&longest)));
        labelled(page, "report-label-latency", |page, first, rest| page.notes(first, rest, &notes));
    }
    let answers: Vec<Span> =
        load.status.iter().filter(|(_, count)| **count > 0).map(|(status, count)| answer(page, status, *count)).collect();
    if !answers.is_empty() {
        labelled(page, "report-label-answers", |page, first, rest| page.notes(first, rest, &answers));
    }
    let failures = failures(page, &load.errors);
    if !failures.is_empty() {
        labelled(page, "report-label-unanswered", |page, first, rest| page.notes(first, rest, &failures));
    }
}

fn offered(page: &Page<'_>, load: &LoadReport) -> Span {
    let duration = page.duration_us(load.duration_s * 1e6);
    span(Ink::Plain, page.say(&Message::new("report-load").with("requests", load.requests).with("duration", duration)))
}

fn throughput(page: &Page<'_>, load: &LoadReport) -> Span {
    span(Ink::Plain, page.say(&Message::new("report-throughput").with("rate", load.throughput_rps)))
}

fn goodput(page: &Page<'_>, load: &LoadReport) -> Span {
    let share = if load.throughput_rps > 0.0 { load.goodput_rps / load.throughput_rps } else { 0.0 };
    let ink = if share >= 0.99 { Ink::Strong } else { Ink::BadStrong };
    let message = Message::new("report-goodput").with("rate", load.goodput_rps).with("share", page.percent(share));
    span(ink, page.say(&message))
}

fn answer(page: &Page<'_>, status: &str, count: u64) -> Span {
    let ink = if status.starts_with('5') { Ink::Bad } else { Ink::Plain };
    span(ink, page.say(&Message::new("report-status").with("status", status).with("count", count)))
}

/// What went wrong, the most frequent first.
fn failures(page: &Page<'_>, errors: &Errors) -> Vec<Span> {
    let mut all = [
        ("report-error-connect-refused", errors.connect_refused),
        ("report-error-connect-timeout", errors.connect_timeout),
        ("report-error-connect-failed", errors.connect_failed),
        ("report-error-response-timeout", errors.response_timeout),
        ("report-error-reset", errors.reset),
        ("report-error-closed-before-answer", errors.closed_before_answer),
        ("report-error-bad-response", errors.bad_response),
        ("report-error-local-ports", errors.local_ports),
        ("report-error-local-files", errors.local_files),
        ("report-error-local-memory", errors.local_memory),
        ("report-error-never-sent", errors.never_sent),
    ];
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let there = all.iter().filter(|(_, count)| *count > 0);
    there.map(|(id, count)| span(Ink::Bad, page.say(&Message::new(id).with("n", *count)))).collect()
}

/// Calls `write` with the prefixes of a line that has one of the [`LABELS`], all as wide as the widest.
fn labelled(page: &mut Page<'_>, label: &'static str, write: impl FnOnce(&mut Page<'_>, &[Span], &[Span])) {
    let width = LABELS.iter().map(|id| columns(&page.word(id))).max().unwrap_or(0);
    let text = page.word(label);
    let fill = " ".repeat(width - columns(&text).min(width));
    let first = [span(Ink::Faint, format!("  {text}{fill}  "))];
    let rest = [span(Ink::Plain, " ".repeat(width + 4))];
    write(page, &first, &rest);
}
