//! The page of an experiment, its plots, and the same as text and Markdown: against stored ones, and with text from outside.

use chokepoint_experiment::report::Experiment;
use chokepoint_model::catalogue::Catalogue;

use super::{HOSTILE, stored_in};
use crate::report::page::{experiment, file};
use crate::report::plot;
use crate::report::plot::experiment::pictures;
use crate::report::samples::experiment::{all, hostile, matrix, pair};
use crate::report::view::{Phrases, steers};
use crate::report::{markdown, text};
use crate::terminal::output::Style;

fn page(report: &Experiment) -> String {
    experiment::page(report, &Catalogue::english()).json().to_string()
}

fn as_text(report: &Experiment) -> String {
    text::experiment(report, &Style { width: 100, color: false, unicode: true }, &Catalogue::english()).to_string()
}

/// Name and text of each SVG file.
fn drawings(report: &Experiment) -> Vec<(String, String)> {
    let words = Catalogue::english();
    pictures(report, Phrases(&words)).into_iter().map(|picture| (picture.name, picture.drawing.svg())).collect()
}

#[test]
fn results_equal_the_stored_ones() {
    let words = Catalogue::english();
    for (name, report) in all() {
        stored_in("page", &format!("experiment-{name}.json"), &format!("{:#}\n", rounded(experiment::page(&report, &words).json())));
        stored_in("experiment", &format!("{name}.md"), &markdown::experiment(&report, &words));
        stored_in("experiment", &format!("{name}.txt"), &as_text(&report));
        for (picture, svg) in
            drawings(&report).into_iter().filter(|(picture, _)| matches!(name, "pair" | "matrix") && !picture.ends_with(['2', '3']))
        {
            stored_in("experiment", &format!("{name}-{picture}.svg"), &svg.replace(plot::STYLE, ""));
        }
    }
    // The recipes of docs/json.md read it.
    let json = rounded(serde_json::to_value(pair()).expect("JSON"));
    stored_in("experiment", "pair.json", &(json.to_string() + "\n"));
}

/// A document with six decimals: the last digits of a logarithm differ between C libraries.
fn rounded(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Number(number) if number.is_f64() => {
            serde_json::json!((number.as_f64().unwrap_or_default() * 1e6).round() / 1e6)
        }
        Value::Array(all) => all.into_iter().map(rounded).collect(),
        Value::Object(all) => Value::Object(all.into_iter().map(|(key, value)| (key, rounded(value))).collect()),
        other => other,
    }
}

#[test]
fn the_same_result_gives_the_same_bytes() {
    for (name, report) in all() {
        assert!(page(&report) == page(&report) && drawings(&report) == drawings(&report), "{name}");
    }
}

#[test]
fn every_message_is_in_the_catalogue() {
    for (name, report) in all() {
        for text in [page(&report), as_text(&report), markdown::experiment(&report, &Catalogue::english())] {
            assert!(!["[experiment-", "[metric-", "[report-"].iter().any(|gap| text.contains(gap)), "{name}: {text}");
        }
    }
}

/// The elements of a picture with their attributes, in order. Panics if a tag is not closed. It understands only what a picture may have: every `<` begins a tag.
fn tags(svg: &str) -> Vec<(&str, &str)> {
    let mut tags = Vec::new();
    let mut rest = svg;
    while let Some((_, after)) = rest.split_once('<') {
        let (tag, behind) = after.split_once('>').expect("a tag ends");
        let name = tag.split([' ', '\n']).next().unwrap_or_default();
        tags.push((name, tag.get(name.len()..).unwrap_or_default()));
        rest = behind;
        if name == "style" {
            rest = rest.get(rest.find("</style>").expect("it is closed")..).unwrap_or_default();
        }
    }
    tags
}

/// Panics if elements are not nested.
fn check_structure(name: &str, svg: &str) {
    let mut open = Vec::new();
    for (tag, attributes) in tags(svg) {
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "{name}");
        } else if !attributes.ends_with('/') {
            open.push(tag);
        }
        assert_eq!(attributes.matches('"').count() % 2, 0, "{name}: <{tag}{attributes}>");
    }
    assert!(open.is_empty(), "{name}: {open:?} stay open");
}

#[test]
fn pictures_load_nothing() {
    assert!(!plot::STYLE.contains("url(") && !plot::STYLE.contains("@import") && !plot::STYLE.contains('<'));
}

#[test]
fn text_from_outside_becomes_no_markup_and_no_control_character() {
    let calm = hostile("calm");
    let written = |report: &Experiment| {
        let file =
            file::render(&experiment::page(report, &Catalogue::english()), None, &markdown::experiment(report, &Catalogue::english()));
        file.split("</style>").nth(1).and_then(|body| body.split("<script type=\"module\">").next().map(str::to_owned)).expect("a body")
    };
    let elements = |text: &str| text.matches('<').count();
    let (page_elements, drawn) = (elements(&written(&calm)), drawings(&calm).len());
    let long = "long ".repeat(2000);
    for text in HOSTILE.into_iter().chain([long.as_str()]) {
        let report = hostile(text);
        let found = written(&report);
        assert!(!found.contains(|character: char| character != '\n' && steers(character)), "{text:?}");
        // The elements do not depend on the text.
        assert_eq!(elements(&found), page_elements, "{text:?}");
        let files = drawings(&report);
        assert_eq!(files.len(), drawn);
        for (name, svg) in &files {
            assert!(!svg.contains("<script") && !svg.contains("<img") && !svg.contains("<!--"), "{name}: {text:?}");
            assert!(!svg.contains(|character: char| character != '\n' && steers(character)), "{name}: {text:?}");
            check_structure(name, svg);
        }
        let written = markdown::experiment(&report, &Catalogue::english());
        let markup = written.replace("\\<", "").replace("---", "");
        assert!(!markup.contains('<'), "{text:?}: {markup}");
        assert!(!written.contains(|character: char| character != '\n' && steers(character)), "{text:?}");
    }
}

#[test]
fn there_is_a_picture_of_everything_that_was_measured() {
    let names = |report: &Experiment| drawings(report).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names(&pair()), ["intervals", "response-times", "trials", "where"]);
    let all = ["intervals", "matrix", "response-times-1", "response-times-2", "response-times-3", "trials", "where"];
    assert_eq!(names(&matrix()), all);
    let mut bare = pair();
    bare.trials.clear();
    bare.comparisons.clear();
    for variant in &mut bare.variants {
        (variant.percentiles_ms, variant.ledger) = (Vec::new(), Vec::new());
    }
    assert!(names(&bare).is_empty());
    assert!(!page(&bare).is_empty());
}

#[test]
fn the_difference_its_interval_and_zero_are_drawn_and_disturbed_trials_marked() {
    let report = pair();
    let svg = |wanted: &str| drawings(&report).into_iter().find(|(name, _)| name == wanted).map(|(_, svg)| svg).expect("it is drawn");
    let intervals = svg("intervals");
    for found in ["class=\"zero\"", "c0 range", "c1 dots", "c7 wide", "jemalloc", "compared with glibc", ">+8."] {
        assert!(intervals.contains(found), "{found}: {intervals}");
    }
    let trials = svg("trials");
    assert!(trials.contains("c1 mark") && trials.contains(">disturbed<"), "{trials}");
    let dots = |trials: &str| trials.matches("h0").count();
    assert_eq!(dots(&trials) - dots(plot::STYLE), report.trials.len() + report.variants.len(), "a mark for each trial, and the legend");
}

#[test]
fn any_number_can_be_drawn() {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, -1.0, 0.0] {
        let mut report = matrix();
        for variant in &mut report.variants {
            variant.figures.values_mut().for_each(|estimate| (estimate.median, estimate.low, estimate.high) = (number, number, number));
            variant.percentiles_ms.iter_mut().for_each(|(percentile, ms)| (*percentile, *ms) = (number, number));
            variant.ledger.iter_mut().for_each(|standing| standing.share = number);
        }
        for change in report.comparisons.iter_mut().flat_map(|comparison| comparison.differences.values_mut()) {
            (change.value, change.low, change.high) = (number, Some(number), Some(number));
        }
        for trial in &mut report.trials {
            trial.at_s = number;
            trial.figures.values_mut().for_each(|figure| *figure = number);
        }
        report.comparisons.iter_mut().for_each(|comparison| comparison.smallest_percent = Some(number));
        for (name, svg) in drawings(&report) {
            let odd = |attributes: &&str| attributes.contains("NaN") || attributes.contains("inf");
            let found: Vec<&str> = tags(&svg).into_iter().map(|(_, attributes)| attributes).filter(odd).collect();
            assert!(found.is_empty(), "{number} {name}: {found:?}");
            assert!(svg.len() < 100_000, "{number} {name}: {}", svg.len());
        }
    }
}
