//! The result of an experiment as tables of words, which text, Markdown and HTML draw.

use chokepoint_experiment::Metric;
use chokepoint_experiment::report::{Change, Comparison, Ended, Estimate, Experiment, Outcome, VariantReport};
use chokepoint_model::message::Message;

use super::ledger::place_label;
use super::{Ink, Phrases};

/// Places with a smaller share of the requests are not in the table.
const PLACE_SHARE_MIN: f64 = 0.02;
/// The most places of a variant.
const PLACES_MAX: usize = 4;
/// The most layers of a variant.
const BOUNDS_MAX: usize = 4;

/// The most functions of a comparison.
const FUNCTIONS_MAX: usize = 5;

/// A table: the first row of cells is its head.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    /// Its heading; empty if none.
    pub(crate) title: String,
    /// Rows of cells. The first column is text, the others are figures.
    pub(crate) rows: Vec<Vec<String>>,
}

/// The sentences of the comparisons, with their ink.
pub(crate) fn sentences(report: &Experiment) -> Vec<(Ink, String)> {
    let ink = |comparison: &Comparison| match comparison.outcome {
        Outcome::Better => Ink::GoodStrong,
        Outcome::Worse => Ink::BadStrong,
        Outcome::Different => Ink::Strong,
        Outcome::NoDifference | Outcome::TooFew => Ink::Plain,
    };
    report.comparisons.iter().map(|comparison| (ink(comparison), comparison.sentence.clone())).collect()
}

/// Why it ended, and what more time would give.
pub(crate) fn remarks(report: &Experiment, phrases: Phrases<'_>) -> Vec<String> {
    let id = match report.ended {
        Ended::Precise => "experiment-ended-precise",
        Ended::Budget => "experiment-ended-budget",
        Ended::Interrupted => "experiment-ended-interrupted",
    };
    let mut all = vec![phrases.say(&Message::new(id).with("blocks", report.design.blocks as u64).with("time", time(report.design.used_s)))];
    let open = || report.comparisons.iter().filter(|comparison| comparison.outcome == Outcome::NoDifference);
    let metric = Metric::parse(&report.design.decide).unwrap_or(Metric::Goodput);
    // The worst of the comparisons stands for all.
    let worst = open().filter_map(|comparison| comparison.smallest_percent).max_by(f64::total_cmp);
    if let (Some(smallest), false) = (worst, report.design.blocks == 0) {
        let message =
            Message::new("experiment-smallest").with("pairs", report.design.blocks as u64).with("smallest", format!("{smallest:.1}"));
        all.push(phrases.say(&message.with("unit", if metric.is_ratio() { "percent" } else { "points" })));
    }
    let more = open().filter_map(|comparison| comparison.more_time_s).max_by(f64::total_cmp);
    if let (Some(more), Ended::Budget) = (more, report.ended) {
        let precision = report.design.precision_percent;
        all.push(phrases.say(&Message::new("experiment-more-time").with("precision", precision.to_string()).with("time", time(more))));
    }
    all.push(phrases.say(&Message::new("experiment-descriptive").with("metric", phrases.word(metric.message()))));
    all
}

/// A time for people.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 6000.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// The variants with the figures that matter most, and the change of the deciding one.
pub(crate) fn summary(report: &Experiment, phrases: Phrases<'_>) -> Table {
    let decide = Metric::parse(&report.design.decide).unwrap_or(Metric::Goodput);
    let metrics: Vec<Metric> = [decide, Metric::Goodput, Metric::P50, Metric::P99, Metric::CpuPerRequest, Metric::Failed]
        .into_iter()
        .enumerate()
        .filter(|(place, metric)| *place == 0 || *metric != decide)
        .map(|(_, metric)| metric)
        .collect();
    let mut head = vec![String::new(), heading(metrics[0], phrases), String::new()];
    head.extend(metrics[1..].iter().map(|metric| heading(*metric, phrases)));
    let row = |(number, variant): (usize, &VariantReport)| {
        let comparison = report.comparisons.iter().find(|comparison| comparison.variant == number);
        let change = comparison.and_then(|comparison| comparison.differences.get(&decide)).map(change).unwrap_or_default();
        let mut row = vec![variant.name.clone(), spread(decide, variant.figures.get(&decide), phrases), change];
        row.extend(metrics[1..].iter().map(|metric| middle(variant.figures.get(metric), phrases)));
        row
    };
    let rows = std::iter::once(head).chain(report.variants.iter().enumerate().map(row)).collect();
    Table { title: String::new(), rows }
}

/// Every figure with its interval: a row for each figure, a column for each variant.
pub(crate) fn figures(report: &Experiment, phrases: Phrases<'_>) -> Table {
    let mut rows = vec![std::iter::once(String::new()).chain(report.variants.iter().map(|variant| variant.name.clone())).collect()];
    for metric in Metric::ALL {
        if report.variants.iter().any(|variant| variant.figures.contains_key(metric)) {
            let cells = report.variants.iter().map(|variant| interval(variant.figures.get(metric), phrases));
            rows.push(std::iter::once(heading(*metric, phrases)).chain(cells).collect());
        }
    }
    Table { title: String::new(), rows }
}

/// How the cores of the measured server spent their time, and what it sent.
pub(crate) fn cores(report: &Experiment, phrases: Phrases<'_>) -> Table {
    let metrics = [Metric::CoreUser, Metric::CoreSystem, Metric::CoreSoftirq, Metric::CoreIdle, Metric::Link, Metric::Memory];
    let head = std::iter::once(String::new()).chain(metrics.iter().map(|metric| heading(*metric, phrases))).collect();
    let row = |variant: &VariantReport| -> Vec<String> {
        let cells = metrics.iter().map(|metric| middle(variant.figures.get(metric), phrases));
        std::iter::once(variant.name.clone()).chain(cells).collect()
    };
    Table { title: String::new(), rows: std::iter::once(head).chain(report.variants.iter().map(row)).collect() }
}

/// The deciding figure by the first factor (rows) and the second (columns). `None` without exactly two factors.
pub(crate) fn matrix(report: &Experiment, phrases: Phrases<'_>) -> Option<Table> {
    let [(rows_name, rows), (columns_name, columns)] = &report.design.factors[..] else { return None };
    let decide = Metric::parse(&report.design.decide)?;
    let cell = |row: &String, column: &String| {
        let own = report.variants.iter().find(|variant| variant.levels == [row.clone(), column.clone()]);
        middle(own.and_then(|variant| variant.figures.get(&decide)), phrases)
    };
    let message = Message::new("experiment-matrix")
        .with("metric", heading(decide, phrases))
        .with("rows", rows_name.as_str())
        .with("columns", columns_name.as_str());
    let head = std::iter::once(String::new()).chain(columns.iter().cloned()).collect();
    let body = rows.iter().map(|row| std::iter::once(row.clone()).chain(columns.iter().map(|column| cell(row, column))).collect());
    Some(Table { title: phrases.say(&message), rows: std::iter::once(head).chain(body).collect() })
}

/// Where the requests of each variant stood, the largest share first.
pub(crate) fn standing(report: &Experiment, phrases: Phrases<'_>) -> Vec<(String, String)> {
    let line = |variant: &VariantReport| {
        let places = variant.ledger.iter().filter(|standing| standing.share >= PLACE_SHARE_MIN).take(PLACES_MAX);
        let mut parts: Vec<String> = places
            .map(|standing| format!("{}: {:.0}%", place_label(&standing.tier, standing.place, phrases), standing.share * 100.0))
            .collect();
        if let Some(share) = variant.unaccounted_share.filter(|share| share.abs() >= PLACE_SHARE_MIN) {
            parts.push(format!("{}: {:.0}%", phrases.word("experiment-unaccounted"), share * 100.0));
        }
        (variant.name.clone(), parts.join(", "))
    };
    report.variants.iter().map(line).filter(|(_, text)| !text.is_empty()).collect()
}

/// What the looks after the trials showed, by heading: lines for each variant, those without a line left out.
pub(crate) fn looks(report: &Experiment) -> Vec<(&'static str, Vec<(String, String)>)> {
    let all = [("experiment-calls", calls(report)), ("experiment-bounds", bounds(report)), ("experiment-functions", functions(report))];
    all.into_iter().filter(|(_, lines)| !lines.is_empty()).collect()
}

/// Calls for each request of each variant.
fn calls(report: &Experiment) -> Vec<(String, String)> {
    let one = |calls: &chokepoint_experiment::report::Calls| {
        let (count, low, high) = (calls.per_request?, calls.low?, calls.high?);
        Some(format!("{} {count:.2} ({low:.2} to {high:.2})", calls.what))
    };
    let line = |variant: &VariantReport| (variant.name.clone(), variant.calls.iter().filter_map(one).collect::<Vec<_>>().join(", "));
    report.variants.iter().map(line).filter(|(_, text)| !text.is_empty()).collect()
}

/// What the layers of each variant could give at most.
fn bounds(report: &Experiment) -> Vec<(String, String)> {
    let line = |variant: &VariantReport| {
        let parts =
            variant.bounds.iter().take(BOUNDS_MAX).map(|bound| format!("{} of {} +{:.0}%", bound.layer, bound.tier, bound.gain_percent));
        (variant.name.clone(), parts.collect::<Vec<_>>().join(", "))
    };
    report.variants.iter().map(line).filter(|(_, text)| !text.is_empty()).collect()
}

/// Functions whose CPU time for each request differs most, for each comparison.
fn functions(report: &Experiment) -> Vec<(String, String)> {
    let line = |comparison: &Comparison| {
        let parts = comparison.functions.iter().take(FUNCTIONS_MAX);
        let parts = parts.map(|one| format!("{} {:.1} → {:.1}", one.name, one.before_us, one.after_us));
        let name = |number: usize| report.variants.get(number).map(|variant| variant.name.clone()).unwrap_or_default();
        (name(comparison.variant), parts.collect::<Vec<_>>().join(", "))
    };
    report.comparisons.iter().map(line).filter(|(_, text)| !text.is_empty()).collect()
}

/// Where and when it ran, and what was loaded how long.
pub(crate) fn setting(report: &Experiment) -> Vec<String> {
    let (host, design) = (&report.host, &report.design);
    vec![
        format!("{}, Linux {}, {} cores, chokepoint {}", host.began, host.kernel, host.cores, host.version),
        format!("{}: {} s for each trial after {} s of warm-up", design.stack, design.trial_s, design.warm_up_s),
    ]
}

/// What was verified of each variant.
pub(crate) fn verified(report: &Experiment) -> Vec<String> {
    let known = report.variants.iter().filter(|variant| !variant.verified.is_empty());
    known.map(|variant| format!("{}: {}", variant.name, variant.verified.join("; "))).collect()
}

/// The name of a figure with its unit.
fn heading(metric: Metric, phrases: Phrases<'_>) -> String {
    let (name, unit) = (phrases.word(metric.message()), metric.unit());
    if metric == Metric::Throughput { name } else { format!("{name} {unit}") }
}

fn figure(value: f64, phrases: Phrases<'_>) -> String {
    match value.abs() {
        size if size >= 100.0 => phrases.rounded(value),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn middle(estimate: Option<&Estimate>, phrases: Phrases<'_>) -> String {
    estimate.map_or_else(|| "-".to_owned(), |estimate| figure(estimate.median, phrases))
}

/// The median with half of its interval: in percent of it, or, for shares, in its own unit.
fn spread(metric: Metric, estimate: Option<&Estimate>, phrases: Phrases<'_>) -> String {
    let Some(estimate) = estimate else { return "-".to_owned() };
    let half = (estimate.high - estimate.low) / 2.0;
    if metric.is_ratio() && estimate.median != 0.0 {
        return format!("{} ±{:.1}%", figure(estimate.median, phrases), half / estimate.median.abs() * 100.0);
    }
    format!("{} ±{}", figure(estimate.median, phrases), figure(half, phrases))
}

/// The median with the ends of its interval.
fn interval(estimate: Option<&Estimate>, phrases: Phrases<'_>) -> String {
    let Some(estimate) = estimate else { return "-".to_owned() };
    format!("{} ({} to {})", figure(estimate.median, phrases), figure(estimate.low, phrases), figure(estimate.high, phrases))
}

/// A difference with its interval: "+8.1% (7.0 to 9.2)".
pub(crate) fn change(change: &Change) -> String {
    match change.low.zip(change.high) {
        Some((low, high)) => format!("{} ({low:+.1} to {high:+.1})", size(change)),
        None => size(change),
    }
}

/// A difference without its interval: "+8.1%".
pub(crate) fn size(change: &Change) -> String {
    format!("{:+.1}{}", change.value, if change.is_percent { "%" } else { "" })
}
