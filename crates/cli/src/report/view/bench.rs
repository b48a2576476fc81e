//! The result of `bench` in words and figures. The text and the Markdown report share it.

use chokepoint_load::{ThresholdResult, Unit};
use chokepoint_model::bench::{Bench, RampStage, TcpSample};
use chokepoint_model::load::Percentiles;
use chokepoint_model::message::Message;

use super::load::{LoadLine, answers, by_threads, ended, failures};
use super::{Ink, Phrases, Span, span};

/// Labels of the facts, in their order.
pub(crate) const LABELS: [&str; 7] = [
    "report-label-target",
    "bench-label-offered",
    "bench-label-done",
    "report-label-answers",
    "report-label-unanswered",
    "bench-label-connections",
    "bench-label-tcp",
];

/// A condition of `--fail-if` and the measured value, in its unit.
pub(crate) fn condition(phrases: Phrases<'_>, judged: &ThresholdResult) -> String {
    let message = |id| Message::new(id).with("condition", judged.condition.as_str());
    phrases.say(&match judged.unit {
        Unit::Us => message("bench-failed-us").with("measured", phrases.duration_us(judged.measured)),
        Unit::Share => message("bench-failed-share").with("measured", judged.measured * 100.0),
        Unit::PerSecond => message("bench-failed-rate").with("measured", judged.measured),
    })
}

/// The offered load and its result: the lines that have content.
pub(crate) fn facts(phrases: Phrases<'_>, bench: &Bench) -> Vec<LoadLine> {
    let load = &bench.load;
    let target = vec![span(Ink::Plain, &bench.target.url), span(Ink::Faint, format!("({})", bench.target.address))];
    let mut done = ended(phrases, load);
    if bench.sending.drained > 0 {
        done.push(span(Ink::Faint, phrases.say(&Message::new("bench-drained").with("n", bench.sending.drained))));
    }
    let generator = &bench.generator;
    done.push(span(Ink::Faint, by_threads(phrases, generator.threads.len() as f64, generator.utilization)));
    let sending = &bench.sending;
    let mut connections = vec![Message::new("bench-connections").with("n", sending.connections)];
    let tls = bench.tls_handshakes.map(|tls| Message::new("bench-handshakes").with("full", tls.full).with("resumed", tls.resumed));
    connections.extend(tls);
    connections.push(Message::new("bench-sent").with("size", size(phrases, sending.sent_bytes)));
    connections.push(Message::new("bench-received").with("size", size(phrases, sending.received_bytes)));
    let notes = [
        target,
        offered(phrases, bench),
        done,
        answers(phrases, load),
        failures(phrases, &load.errors),
        connections.iter().map(|message| span(Ink::Plain, phrases.say(message))).collect(),
        bench.tcp.as_ref().map(|sample| tcp(phrases, sample)).unwrap_or_default(),
    ];
    let lines = LABELS.into_iter().zip(notes).filter(|(_, notes)| !notes.is_empty());
    lines.map(|(label, notes)| LoadLine { label, notes }).collect()
}

/// Figures of the kernel for a sample of connections.
fn tcp(phrases: Phrases<'_>, sample: &TcpSample) -> Vec<Span> {
    let time = |us: u64| phrases.duration_us(us as f64);
    let mut all = Vec::new();
    all.extend(
        sample.rtt_us.map(|rtt| {
            Message::new("bench-tcp-rtt").with("median", time(rtt.median)).with("min", time(rtt.min)).with("max", time(rtt.max))
        }),
    );
    all.extend(sample.cwnd.map(|cwnd| Message::new("bench-tcp-cwnd").with("median", cwnd.median)));
    all.extend(sample.retransmits.map(|segments| Message::new("bench-tcp-retransmits").with("n", segments)));
    if let (Some(busy), Some(rwnd), Some(sndbuf)) = (sample.busy_us, sample.rwnd_limited_us, sample.sndbuf_limited_us) {
        let share = |part: u64| phrases.percent(part as f64 / busy.max(1) as f64);
        let message = Message::new("bench-tcp-busy").with("busy", time(busy)).with("rwnd", share(rwnd)).with("sndbuf", share(sndbuf));
        all.push(message);
    }
    all.push(Message::new("bench-tcp-sample").with("n", sample.connections.len() as u64));
    all.iter().map(|message| span(Ink::Plain, phrases.say(message))).collect()
}

fn offered(phrases: Phrases<'_>, bench: &Bench) -> Vec<Span> {
    let offered = &bench.offered;
    let seconds = |seconds: f64| phrases.duration_us(seconds * 1e6);
    let mut all = vec![match (&offered.ramp, offered.rate_per_s) {
        (Some(ramp), _) => {
            let stage = |stage: &RampStage| {
                let id = if stage.duration_s > 0.0 { "bench-offered-stage" } else { "bench-offered-jump" };
                phrases.say(&Message::new(id).with("rate", stage.rate_per_s).with("duration", seconds(stage.duration_s)))
            };
            let stages: Vec<String> = ramp.stages.iter().map(stage).collect();
            let message = Message::new("bench-offered-ramp").with("start", ramp.start_per_s).with("stages", stages.join(", "));
            message.with("connections", offered.connections)
        }
        (None, Some(rate)) => Message::new("bench-offered-open").with("rate", rate).with("connections", offered.connections),
        (None, None) => Message::new("bench-offered-closed").with("connections", offered.connections),
    }];
    all.extend(offered.duration_s.map(|duration| Message::new("bench-offered-duration").with("duration", seconds(duration))));
    all.extend(offered.requests.map(|requests| Message::new("bench-offered-requests").with("requests", requests)));
    if offered.warm_up_s > 0.0 {
        all.push(Message::new("bench-offered-warm-up").with("duration", seconds(offered.warm_up_s)));
    }
    if !offered.keep_alive {
        all.push(Message::new("bench-offered-single"));
    }
    if !offered.bind.is_empty() {
        let addresses = offered.bind.join(", ");
        all.push(Message::new("bench-offered-bind").with("n", offered.bind.len() as u64).with("addresses", addresses));
    }
    all.extend(offered.targets.map(|targets| match targets.seed {
        Some(seed) => Message::new("bench-offered-drawn").with("n", targets.count).with("seed", seed.to_string()),
        None => Message::new("bench-offered-in-turn").with("n", targets.count),
    }));
    all.extend(offered.requests_per_connection.map(|n| Message::new("bench-offered-carried").with("n", n)));
    all.iter().map(|message| span(Ink::Plain, phrases.say(message))).collect()
}

fn size(phrases: Phrases<'_>, bytes: u64) -> String {
    let (id, n) = match bytes as f64 {
        n if n >= 1e9 => ("bench-gigabytes", n / 1e9),
        n if n >= 1e6 => ("bench-megabytes", n / 1e6),
        n if n >= 1e3 => ("bench-kilobytes", n / 1e3),
        n => ("bench-bytes", n),
    };
    phrases.say(&Message::new(id).with("n", n))
}

/// Heading of the table of times.
pub(crate) fn times_heading(bench: &Bench) -> &'static str {
    if bench.offered.rate_per_s.is_some() { "bench-times-open" } else { "bench-times" }
}

/// The percentiles of each time, after a row of their names.
pub(crate) fn times(phrases: Phrases<'_>, bench: &Bench) -> Vec<[String; 8]> {
    let times = [
        ("bench-time-total", bench.load.latency_us),
        ("bench-time-corrected", bench.corrected_latency_us.filter(|_| bench.warnings.iter().any(|warning| warning.id == "omitted"))),
        ("bench-time-good", bench.good_latency_us.filter(|good| Some(*good) != bench.load.latency_us)),
        ("bench-time-first-byte", bench.first_byte_us),
        ("bench-time-connect", bench.connect_us),
        ("bench-time-tls", bench.tls_us),
    ];
    let mut rows = vec![["", "p50", "p75", "p90", "p95", "p99", "p99.9", "max"].map(str::to_owned)];
    for (id, percentiles) in times {
        let Some(Percentiles { p50, p75, p90, p95, p99, p999, max }) = percentiles.filter(|percentiles| percentiles.max > 0) else {
            continue;
        };
        let time = |us: u64| phrases.duration_us(us as f64);
        rows.push([phrases.word(id), time(p50), time(p75), time(p90), time(p95), time(p99), time(p999), time(max)]);
    }
    rows
}
