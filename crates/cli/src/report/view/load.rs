//! The load and its result: target, load, latency, answers, failures.

use chokepoint_model::load::Errors;
use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, LoadReport, Station};

use super::{Ink, Phrases, Span, span};

/// Labels of the lines, in their order.
pub(crate) const LABELS: [&str; 6] = [
    "report-label-target",
    "report-label-load",
    "report-label-latency",
    "report-label-tls",
    "report-label-answers",
    "report-label-unanswered",
];

/// The lost share of the clients' time is reported from this value on.
const LOST_MIN: f64 = 0.01;

/// A labelled line.
pub(crate) struct LoadLine {
    /// Id of the label: one of [`LABELS`] in the report of a diagnosis.
    pub(crate) label: &'static str,
    pub(crate) notes: Vec<Span>,
}

/// The lines that have content.
pub(crate) fn lines(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Vec<LoadLine> {
    let mut lines = vec![LoadLine { label: "report-label-target", notes: target(diagnosis, phrases) }];
    match &diagnosis.load {
        None => lines.push(LoadLine { label: "report-label-load", notes: vec![span(Ink::Plain, phrases.word("report-no-load"))] }),
        Some(load) => {
            let mut notes = ended(phrases, load);
            notes.extend(later(phrases, load));
            notes.extend(sent_by(diagnosis, phrases).map(|text| span(Ink::Faint, text)));
            lines.push(LoadLine { label: "report-label-load", notes });
            let measured = [
                ("report-label-latency", latency(phrases, diagnosis, load)),
                ("report-label-tls", handshakes(phrases, load)),
                ("report-label-answers", answers(phrases, load)),
                ("report-label-unanswered", failures(phrases, &load.errors)),
            ];
            lines.extend(measured.into_iter().filter(|(_, notes)| !notes.is_empty()).map(|(label, notes)| LoadLine { label, notes }));
        }
    }
    lines
}

/// The URL, and its listener in parentheses.
fn target(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Vec<Span> {
    let target = &diagnosis.target;
    let mut notes = vec![span(Ink::Plain, &target.url)];
    if let (Some(listener), Some(netns)) = (&target.listener, &target.netns) {
        let message = Message::new("report-listener").with("listener", listener.as_str()).with("netns", netns.as_str());
        notes.push(span(Ink::Faint, format!("({})", phrases.say(&message))));
    }
    notes
}

fn latency(phrases: Phrases<'_>, diagnosis: &Diagnosis, load: &LoadReport) -> Vec<Span> {
    let Some(latency) = load.latency_us else {
        return if load.requests > 0 { vec![span(Ink::Plain, response_time(phrases, diagnosis, load))] } else { Vec::new() };
    };
    let named = [("p50", latency.p50), ("p90", latency.p90), ("p99", latency.p99)];
    let message =
        |name: &str, us: u64| Message::new("report-percentile").with("name", name).with("duration", phrases.duration_us(us as f64));
    let mut notes: Vec<Span> = named.iter().map(|(name, us)| span(Ink::Plain, phrases.say(&message(name, *us)))).collect();
    let longest = Message::new("report-longest").with("duration", phrases.duration_us(latency.max as f64));
    notes.push(span(Ink::Plain, phrases.say(&longest)));
    if let Some(lost) = load.lost_share.filter(|lost| *lost >= LOST_MIN) {
        notes.push(span(Ink::Bad, phrases.say(&Message::new("report-lost").with("share", phrases.percent(lost)))));
    }
    notes
}

/// The response time in a few words: p99; without times the mean that the sockets show, or that there is none.
pub(crate) fn response_time(phrases: Phrases<'_>, diagnosis: &Diagnosis, load: &LoadReport) -> String {
    let named =
        |name: &str, us: f64| phrases.say(&Message::new("report-percentile").with("name", name).with("duration", phrases.duration_us(us)));
    let mean_ms = diagnosis.ledger.as_ref().and_then(|ledger| ledger.response_time_ms);
    match (load.p99_us(), mean_ms) {
        (Some(us), _) => named("p99", us as f64),
        (None, Some(ms)) => phrases.say(&Message::new("report-mean").with("duration", phrases.duration_us(ms * 1e3))),
        (None, None) => phrases.word("report-no-times"),
    }
}

/// The 99th percentile of the response times; a dash if none were read.
pub(crate) fn p99(phrases: Phrases<'_>, load: &LoadReport) -> String {
    load.p99_us().map_or_else(|| "-".to_owned(), |us| phrases.duration_us(us as f64))
}

/// The TLS handshakes and their times.
fn handshakes(phrases: Phrases<'_>, load: &LoadReport) -> Vec<Span> {
    let Some(tls) = load.tls else { return Vec::new() };
    let count = Message::new("report-handshakes").with("full", tls.handshakes.full).with("resumed", tls.handshakes.resumed);
    let mut notes = vec![span(Ink::Plain, phrases.say(&count))];
    if let Some(time) = tls.time_us.filter(|time| time.max > 0) {
        let of =
            |name: &str, us: u64| Message::new("report-percentile").with("name", name).with("duration", phrases.duration_us(us as f64));
        notes.extend([("p50", time.p50), ("p99", time.p99)].map(|(name, us)| span(Ink::Plain, phrases.say(&of(name, us)))));
    }
    notes
}

/// Requests completed, throughput and goodput.
pub(crate) fn ended(phrases: Phrases<'_>, load: &LoadReport) -> Vec<Span> {
    vec![offered(phrases, load), throughput(phrases, load), goodput(phrases, load)]
}

fn offered(phrases: Phrases<'_>, load: &LoadReport) -> Span {
    let duration = phrases.duration_us(load.duration_s * 1e6);
    span(Ink::Plain, phrases.say(&Message::new("report-load").with("requests", in_time(load)).with("duration", duration)))
}

/// Share of the requests below which the difference of a rate and a number is that of rounded figures.
const ROUNDING: f64 = 1e-3;

/// Requests that ended while load was offered: those of the rates.
pub(crate) fn in_time(load: &LoadReport) -> f64 {
    let (all, ended) = (load.requests as f64, (load.throughput_rps * load.duration_s).round());
    if (all - ended).abs() <= ROUNDING * all { all } else { ended }
}

/// The load generator, whose limit is the number of its threads.
const GENERATOR: &str = "load-generator";

/// By how many threads the load was sent, and how busy the busiest of them was. `None` if no load was applied.
fn sent_by(diagnosis: &Diagnosis, phrases: Phrases<'_>) -> Option<String> {
    let (threads, busy) = generator(diagnosis).and_then(|generator| generator.limit.zip(generator.utilization))?;
    Some(by_threads(phrases, threads, busy))
}

/// "sent by 2 threads, the busiest of them 34 % busy".
pub(crate) fn by_threads(phrases: Phrases<'_>, threads: f64, busy: f64) -> String {
    phrases.say(&Message::new("report-threads").with("threads", threads).with("busy", phrases.percent(busy)))
}

/// The number of threads that sent the load. `None` if none was applied.
pub(crate) fn threads(diagnosis: &Diagnosis) -> Option<f64> {
    generator(diagnosis)?.limit
}

fn generator(diagnosis: &Diagnosis) -> Option<&Station> {
    diagnosis.path.iter().find(|station| station.station == GENERATOR)
}

/// Those that were awaited after it, if there are any.
fn later(phrases: Phrases<'_>, load: &LoadReport) -> Option<Span> {
    let later = load.requests as f64 - in_time(load);
    (later >= 1.0).then(|| span(Ink::Faint, phrases.say(&Message::new("bench-drained").with("n", later))))
}

fn throughput(phrases: Phrases<'_>, load: &LoadReport) -> Span {
    span(Ink::Plain, phrases.say(&Message::new("report-throughput").with("rate", load.throughput_rps)))
}

/// Goodput and its share of the throughput.
pub(crate) fn goodput(phrases: Phrases<'_>, load: &LoadReport) -> Span {
    let share = if load.throughput_rps > 0.0 { load.goodput_rps / load.throughput_rps } else { 0.0 };
    let ink = if share >= 0.99 { Ink::Strong } else { Ink::BadStrong };
    let message = Message::new("report-goodput").with("rate", load.goodput_rps).with("share", phrases.percent(share));
    span(ink, phrases.say(&message))
}

/// The answers by status.
pub(crate) fn answers(phrases: Phrases<'_>, load: &LoadReport) -> Vec<Span> {
    let there = load.status.iter().filter(|(_, count)| **count > 0);
    there.map(|(status, count)| answer(phrases, status, *count)).collect()
}

/// The number of answers with a status.
pub(crate) fn answer(phrases: Phrases<'_>, status: &str, count: u64) -> Span {
    let ink = if status.starts_with('5') { Ink::Bad } else { Ink::Plain };
    span(ink, phrases.say(&Message::new("report-status").with("status", status).with("count", count)))
}

/// The failures by kind, the most frequent first.
pub(crate) fn failures(phrases: Phrases<'_>, errors: &Errors) -> Vec<Span> {
    let mut all = [
        ("report-error-connect-refused", errors.connect_refused),
        ("report-error-connect-timeout", errors.connect_timeout),
        ("report-error-connect-failed", errors.connect_failed),
        ("report-error-tls-failed", errors.tls_failed),
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
    there.map(|(id, count)| span(Ink::Bad, phrases.say(&Message::new(id).with("n", *count)))).collect()
}
