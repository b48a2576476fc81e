//! The plots of an experiment: differences with their intervals, response times, the matrix of two factors, every trial, and where requests stood.

use chokepoint_experiment::Metric;
use chokepoint_experiment::report::{Comparison, Experiment, Outcome, VariantReport};
use chokepoint_model::message::Message;

use super::heatmap::{HeatCell, HeatMap};
use super::plane::{label, step};
use super::{Drawing, Plot, Series, Shape};
use crate::report::view::Phrases;
use crate::report::view::experiment as view;
use crate::report::view::ledger::place_label;

/// The most lines of one plot of response times.
const LINES_MAX: usize = 6;
/// The most places with a colour of their own.
const PLACES_MAX: usize = 6;
/// Colours of other places, and of requests at no known place.
const OTHER: usize = 6;
const UNACCOUNTED: usize = 7;
/// The most trials that are drawn. Of more, every second, third, ... is.
const TRIALS_MAX: usize = 4000;
/// Larger differences are not drawn.
const DIFFERENCE_MAX: f64 = 1e12;
/// The band of differences that could not be seen is cut at so many times the widest difference.
const BAND_TIMES_MAX: f64 = 1.5;
/// From this difference on, percent, the axis of differences has factors.
const FACTORS_FROM: f64 = 100.0;
/// Factors that may have a label on such an axis: 1 is no difference.
const FACTORS: [f64; 22] =
    [1e-3, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1e3, 1e4];
/// Two labels of it are at least this share of the axis apart.
const FACTORS_APART: f64 = 0.06;
/// The longest bar of shares that is drawn whole, percent.
const SHARES_MAX: f64 = 200.0;

/// A drawing with its name, which is part of the name of its file.
pub(crate) struct Picture {
    pub(crate) name: String,
    pub(crate) drawing: Drawing,
}

/// All plots for which there are figures.
pub(crate) fn pictures(report: &Experiment, phrases: Phrases<'_>) -> Vec<Picture> {
    let picture = |name: &str, drawing| Picture { name: name.to_owned(), drawing };
    let mut all = Vec::new();
    all.extend(intervals(report, phrases).map(|plot| picture("intervals", Drawing::Plot(plot))));
    all.extend(matrix(report, phrases).map(|map| picture("matrix", Drawing::HeatMap(map))));
    let times = percentiles(report, phrases);
    let count = times.len();
    for (place, plot) in times.into_iter().enumerate() {
        let name = if count == 1 { "response-times".to_owned() } else { format!("response-times-{}", place + 1) };
        all.push(picture(&name, Drawing::Plot(plot)));
    }
    all.extend(trials(report, phrases).map(|plot| picture("trials", Drawing::Plot(plot))));
    all.extend(standing(report, phrases).map(|plot| picture("where", Drawing::Plot(plot))));
    all
}

fn decide(report: &Experiment) -> Metric {
    Metric::parse(&report.design.decide).unwrap_or(Metric::Goodput)
}

/// What all variants are compared with, if it is the same for all: a variant, or a level of the first factor.
fn baseline(report: &Experiment) -> Option<String> {
    let of = |comparison: &Comparison| report.variants.get(comparison.baseline).map(|variant| (comparison.baseline, variant));
    let (number, first) = of(report.comparisons.first()?)?;
    let all = || report.comparisons.iter().map(of);
    if all().all(|other| other.is_some_and(|(other, _)| other == number)) {
        return Some(first.name.clone());
    }
    let level = first.levels.first()?;
    all().all(|other| other.is_some_and(|(_, other)| other.levels.first() == Some(level))).then(|| level.clone())
}

/// A row for each comparison: the difference of the deciding figure, its interval, and the smallest difference that could be seen.
pub(crate) fn intervals(report: &Experiment, phrases: Phrases<'_>) -> Option<Plot> {
    let metric = decide(report);
    let shown = || report.comparisons.iter().filter_map(|comparison| Some((comparison, comparison.differences.get(&metric)?)));
    let is_percent = shown().all(|(_, change)| change.is_percent);
    let name = |number: usize| report.variants.get(number).map(|variant| variant.name.clone()).unwrap_or_default();
    let common = baseline(report);
    let (mut band, mut ranges, mut values, mut rows, mut notes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (row, (comparison, change)) in shown().enumerate() {
        let y = row as f64;
        if let Some(least) = comparison.smallest_percent.filter(|least| least.is_finite() && *least > 0.0) {
            // The fall that undoes a rise of x is the factor 1 / (1 + x).
            band.extend([(if is_percent { (1.0 / (1.0 + least / 100.0) - 1.0) * 100.0 } else { -least }, y), (least, y)]);
        }
        ranges.extend(change.low.zip(change.high).into_iter().flat_map(|(low, high)| [(low, y), (high, y)]));
        values.push((change.value, y));
        rows.push(match &common {
            Some(_) => name(comparison.variant),
            None => format!("{} / {}", name(comparison.variant), name(comparison.baseline)),
        });
        notes.push(view::change(change));
    }
    if values.is_empty() {
        return None;
    }
    for points in [&mut ranges, &mut values] {
        points.iter_mut().for_each(|point: &mut (f64, f64)| point.0 = point.0.clamp(-DIFFERENCE_MAX, DIFFERENCE_MAX));
    }
    // A band much wider than all intervals would hide them.
    let widest = ranges.iter().chain(&values).map(|point| point.0.abs()).filter(|x| x.is_finite()).fold(0.0, f64::max);
    band.iter_mut().for_each(|point| point.0 = point.0.clamp(-BAND_TIMES_MAX * widest, BAND_TIMES_MAX * widest));
    let mut series = vec![
        Series { name: phrases.word("experiment-plot-unseen"), color: UNACCOUNTED, shape: Shape::Wide, points: band },
        Series { name: phrases.word("experiment-plot-interval"), color: 0, shape: Shape::Ranges, points: ranges },
        Series { name: phrases.word("experiment-plot-difference"), color: 1, shape: Shape::Dots, points: values },
    ];
    series.retain(|series| !series.points.is_empty());
    let ticks = difference_axis(&mut series, is_percent);
    let title = Message::new("experiment-intervals").with("metric", phrases.word(metric.message()));
    let title = phrases.say(&title);
    Some(Plot {
        title: match common {
            Some(common) => format!("{title}, {}", phrases.say(&Message::new("experiment-baseline").with("baseline", common))),
            None => title,
        },
        x: phrases.word(if is_percent { "experiment-plot-percent" } else { "experiment-plot-points" }),
        series,
        rows,
        notes,
        ticks,
        ..Plot::default()
    })
}

/// The labels of the axis of differences. Large differences in percent become logarithms of factors, as they are compared: otherwise one of them would hide
/// all others.
fn difference_axis(series: &mut [Series], is_percent: bool) -> Vec<(f64, String)> {
    let span = |series: &[Series]| {
        let all = series.iter().flat_map(|series| &series.points).map(|point| point.0).filter(|x| x.abs() < DIFFERENCE_MAX);
        all.fold((0.0_f64, 0.0_f64), |(low, high), x| (low.min(x), high.max(x)))
    };
    let (low, high) = span(series);
    if !is_percent || high < FACTORS_FROM {
        let step = step((high - low).max(1e-3));
        let (first, last) = ((low / step).floor().min(-1.0) as i64, (high / step).ceil().max(1.0) as i64);
        let signed = |value: f64| if value > 0.0 { format!("+{}", label(value, step)) } else { label(value, step) };
        return (first..=last).map(|tick| tick as f64 * step).map(|value| (value, signed(value))).collect();
    }
    for point in series.iter_mut().flat_map(|series| &mut series.points) {
        point.0 = (point.0 / 100.0).max(-0.999_9).ln_1p();
    }
    let (low, high) = span(series);
    let first = FACTORS.iter().rposition(|factor| factor.ln() <= low.min(-0.01)).unwrap_or(0);
    let last = FACTORS.iter().position(|factor| factor.ln() >= high).unwrap_or(FACTORS.len() - 1);
    let name = |factor: f64| {
        let percent = (factor - 1.0) * 100.0;
        if percent == 0.0 { "0".to_owned() } else { format!("{percent:+.3}").trim_end_matches('0').trim_end_matches('.').to_owned() }
    };
    let length = FACTORS[last].ln() - FACTORS[first].ln();
    // Labels are placed from zero to both sides, so that zero has one.
    let zero = FACTORS.iter().position(|factor| *factor == 1.0).unwrap_or(first);
    let mut shown = vec![1.0_f64];
    let mut place = |factors: &mut dyn Iterator<Item = &f64>, end: f64| {
        let mut before = 1.0_f64;
        for factor in factors {
            let is_apart = |other: f64| (factor.ln() - other.ln()).abs() >= FACTORS_APART * length;
            if *factor == end || is_apart(before) && is_apart(end) {
                shown.push(*factor);
                before = *factor;
            }
        }
    };
    place(&mut FACTORS[zero + 1..=last.max(zero)].iter(), FACTORS[last]);
    place(&mut FACTORS[first.min(zero)..zero].iter().rev(), FACTORS[first]);
    shown.sort_by(f64::total_cmp);
    shown.into_iter().map(|factor| (factor.ln(), name(factor))).collect()
}

/// Response times by percentile. With several factors there is a plot for each combination of the others, because their loads may differ.
pub(crate) fn percentiles(report: &Experiment, phrases: Phrases<'_>) -> Vec<Plot> {
    let mut groups: Vec<(Vec<String>, Vec<&VariantReport>)> = Vec::new();
    for variant in report.variants.iter().filter(|variant| !variant.percentiles_ms.is_empty()) {
        let others = variant.levels.get(1..).unwrap_or_default();
        match groups.iter_mut().find(|(levels, _)| levels == others) {
            Some((_, group)) => group.push(variant),
            None => groups.push((others.to_vec(), vec![variant])),
        }
    }
    let title = phrases.word("experiment-percentiles");
    let mut plots = Vec::new();
    for (levels, group) in &groups {
        let title = if levels.is_empty() { title.clone() } else { format!("{title}: {}", levels.join(" / ")) };
        let Some((first, others)) = group.split_first() else { continue };
        let others: Vec<&[&VariantReport]> = if others.is_empty() { vec![&[]] } else { others.chunks(LINES_MAX - 1).collect() };
        for part in others {
            let lines: Vec<&VariantReport> = std::iter::once(first).chain(part).copied().collect();
            plots.push(times(&lines, title.clone(), phrases));
        }
    }
    plots
}

/// Response times of some variants.
fn times(variants: &[&VariantReport], title: String, phrases: Phrases<'_>) -> Plot {
    // Each nine of a percentile has the same room. The longest time is one nine further than p99.9.
    let at = |percentile: f64| -(1.0 - percentile / 100.0).max(1e-4).log10();
    let line = |(color, variant): (usize, &&VariantReport)| Series {
        name: if variant.levels.len() > 1 { variant.levels[0].clone() } else { variant.name.clone() },
        color,
        shape: Shape::Line,
        points: variant.percentiles_ms.iter().map(|(percentile, ms)| (at(*percentile), *ms)).collect(),
    };
    let mut known: Vec<f64> = variants.iter().flat_map(|variant| &variant.percentiles_ms).map(|(percentile, _)| *percentile).collect();
    known.retain(|percentile| (0.0..=100.0).contains(percentile));
    known.sort_by(f64::total_cmp);
    known.dedup();
    let name = |percentile: f64| if percentile >= 100.0 { phrases.word("experiment-plot-max") } else { format!("p{percentile}") };
    Plot {
        title,
        x: phrases.word("experiment-plot-percentile"),
        y: phrases.word("experiment-plot-ms"),
        series: variants.iter().enumerate().map(line).collect(),
        ticks: known.into_iter().map(|percentile| (at(percentile), name(percentile))).collect(),
        log: true,
        ..Plot::default()
    }
}

/// The deciding figure by two factors.
pub(crate) fn matrix(report: &Experiment, phrases: Phrases<'_>) -> Option<HeatMap> {
    let [(rows_title, rows), (columns_title, columns)] = &report.design.factors[..] else { return None };
    let (metric, table) = (decide(report), view::matrix(report, phrases)?);
    let cell = |row: usize, column: usize| {
        let is_own = |variant: &VariantReport| variant.levels == [rows[row].clone(), columns[column].clone()];
        let number = report.variants.iter().position(is_own)?;
        let estimate = report.variants[number].figures.get(&metric)?;
        let differs = |comparison: &&Comparison| {
            comparison.variant == number && matches!(comparison.outcome, Outcome::Better | Outcome::Worse | Outcome::Different)
        };
        let change = report.comparisons.iter().find(differs).and_then(|comparison| comparison.differences.get(&metric));
        Some(HeatCell {
            value: estimate.median,
            text: table.rows.get(row + 1)?.get(column + 1)?.clone(),
            note: change.map(view::size).unwrap_or_default(),
        })
    };
    Some(HeatMap {
        title: table.title.clone(),
        rows_title: rows_title.clone(),
        columns_title: columns_title.clone(),
        rows: rows.clone(),
        columns: columns.clone(),
        cells: (0..rows.len()).map(|row| (0..columns.len()).map(|column| cell(row, column)).collect()).collect(),
        ends: [phrases.word("experiment-plot-less"), phrases.word("experiment-plot-more")],
    })
}

/// The deciding figure of every trial, as its distance from the median of its variant: so noise and drift can be seen beside large differences.
pub(crate) fn trials(report: &Experiment, phrases: Phrases<'_>) -> Option<Plot> {
    let metric = decide(report);
    let one_in = report.trials.len().div_ceil(TRIALS_MAX).max(1);
    let point = |trial: &chokepoint_experiment::Trial| {
        let median = report.variants.get(trial.variant)?.figures.get(&metric)?.median;
        let value = *trial.figures.get(&metric)?;
        Some((trial.at_s, if metric.is_ratio() { (value / median - 1.0) * 100.0 } else { value - median }))
    };
    let points = |wanted: &dyn Fn(&chokepoint_experiment::Trial) -> bool| -> Vec<(f64, f64)> {
        report.trials.iter().step_by(one_in).filter(|trial| wanted(trial)).filter_map(point).collect()
    };
    let few = report.variants.len() <= LINES_MAX;
    let mut series: Vec<Series> = match few {
        true => (0..report.variants.len())
            .map(|number| Series {
                name: report.variants[number].name.clone(),
                color: number,
                shape: Shape::Dots,
                points: points(&|trial| trial.variant == number),
            })
            .collect(),
        false => vec![Series { name: phrases.word("experiment-plot-trial"), color: 0, shape: Shape::Dots, points: points(&|_| true) }],
    };
    let marked = |id, color, wanted: &dyn Fn(&chokepoint_experiment::Trial) -> bool| Series {
        name: phrases.word(id),
        color,
        shape: Shape::Crosses,
        points: points(wanted),
    };
    series.push(marked("experiment-plot-replaced", OTHER, &|trial| trial.replaced));
    series.push(marked("experiment-plot-disturbed", 1, &|trial| !trial.replaced && !trial.disturbed.is_empty()));
    series.retain(|series| !series.points.is_empty());
    let message = Message::new("experiment-plot-trials").with("metric", phrases.word(metric.message()));
    (!series.is_empty()).then(|| Plot {
        title: phrases.say(&message),
        x: phrases.word("experiment-plot-seconds"),
        y: phrases.word(if metric.is_ratio() { "experiment-plot-percent" } else { "experiment-plot-points" }),
        series,
        ..Plot::default()
    })
}

/// Where the requests of each variant stood: a bar of shares for each.
pub(crate) fn standing(report: &Experiment, phrases: Phrases<'_>) -> Option<Plot> {
    let variants: Vec<&VariantReport> = report.variants.iter().filter(|variant| !variant.ledger.is_empty()).collect();
    let mut places: Vec<(String, f64)> = Vec::new();
    let named = |variant: &VariantReport| -> Vec<(String, f64)> {
        variant.ledger.iter().map(|standing| (place_label(&standing.tier, standing.place, phrases), standing.share.max(0.0))).collect()
    };
    for (name, share) in variants.iter().flat_map(|variant| named(variant)) {
        match places.iter_mut().find(|(known, _)| *known == name) {
            Some((_, most)) => *most = most.max(share),
            None => places.push((name, share)),
        }
    }
    places.sort_by(|a, b| b.1.total_cmp(&a.1));
    places.truncate(PLACES_MAX);
    let mut series: Vec<Series> = places
        .iter()
        .map(|(name, _)| name.clone())
        .chain(["experiment-plot-other", "experiment-unaccounted"].map(|id| phrases.word(id)))
        .enumerate()
        .map(|(color, name)| Series { name, color, shape: Shape::Wide, points: Vec::new() })
        .collect();
    // With fewer places than colours the two last series keep their own colours.
    let count = places.len();
    (series[count].color, series[count + 1].color) = (OTHER, UNACCOUNTED);
    let mut widest = 100.0_f64;
    for (row, variant) in variants.iter().enumerate() {
        let mut shares = vec![0.0; series.len()];
        for (name, share) in named(variant) {
            shares[places.iter().position(|(known, _)| *known == name).unwrap_or(count)] += share;
        }
        shares[count + 1] = variant.unaccounted_share.unwrap_or(0.0).max(0.0);
        let mut from = 0.0;
        for (place, share) in shares.into_iter().enumerate().filter(|(_, share)| *share > 0.0 && share.is_finite()) {
            series[place].points.extend([(from, row as f64), (from + share * 100.0, row as f64)]);
            from += share * 100.0;
        }
        // An account that counts too much is shown as it is.
        widest = widest.max(from);
    }
    // Half a percent is rounding.
    let ticks = ((widest.min(SHARES_MAX) - 0.5) / 20.0).ceil() as u32;
    series.retain(|series| !series.points.is_empty());
    (!series.is_empty()).then(|| Plot {
        title: phrases.word("experiment-where"),
        x: phrases.word("experiment-plot-share"),
        series,
        rows: variants.iter().map(|variant| variant.name.clone()).collect(),
        ticks: (0..=ticks).map(|tick| (f64::from(tick * 20), format!("{}%", tick * 20))).collect(),
        ..Plot::default()
    })
}
