//! The result of an experiment as a self-contained HTML page. This module draws and never judges.

use anyhow::{Context, Result};
use askama::Template;
use chokepoint_experiment::report::Experiment;
use chokepoint_model::catalogue::Catalogue;

use super::{STYLE, STYLE_SHA256, class};
use crate::report::plot::experiment as plots;
use crate::report::plot::{self, Drawing};
use crate::report::view::Phrases;
use crate::report::view::experiment::{self as view, Table};

/// The style sheet of this page, beside that of all reports and that of drawings.
pub(super) const OWN_STYLE: &str = include_str!("../../../templates/experiment.css");
/// SHA-256 of each style sheet in base64, as in [`STYLE_SHA256`].
pub(super) const OWN_STYLE_SHA256: &str = "6dpXUMnmX/Jcuey8JeJaYwFMv8pM97xngKoZMm8IFGs=";
pub(super) const PLOT_STYLE_SHA256: &str = "RYYUSM9rzbyBh1NIVSNCzvBt9hCYTid7sFuGsSIxW1o=";

/// From this many variants on, every figure of each is not in the page: the JSON and CSV results have it.
const COLUMNS_MAX: usize = 8;

#[derive(Template)]
#[template(path = "experiment.html")]
struct ExperimentPage<'a> {
    say: Say<'a>,
    report: &'a Experiment,
    /// Style sheets, each with its hash.
    styles: [(&'static str, &'static str); 3],
    /// What the comparisons show, each with its class.
    sentences: Vec<(&'static str, String)>,
    remarks: Vec<String>,
    summary: Table,
    matrix: Option<String>,
    plots: Vec<String>,
    /// Stacked bars, and the same in words.
    standing: Option<String>,
    standing_lines: Vec<(String, String)>,
    figures: Table,
    /// Headings with lines for each variant.
    lists: Vec<(&'static str, Vec<(String, String)>)>,
    verified: Vec<String>,
    setting: Vec<String>,
}

/// Functions for the template.
struct Say<'a>(Phrases<'a>);

impl Say<'_> {
    fn word(&self, id: &'static str) -> String {
        self.0.word(id)
    }
}

/// The page, ending in a newline; the same bytes for the same result.
pub(crate) fn render(report: &Experiment, words: &Catalogue) -> Result<String> {
    let phrases = Phrases(words);
    let element = |drawing: Drawing| drawing.element();
    let mut plots: Vec<String> = plots::intervals(report, phrases).map(Drawing::Plot).map(element).into_iter().collect();
    plots.extend(plots::percentiles(report, phrases).into_iter().map(Drawing::Plot).map(element));
    plots.extend(plots::trials(report, phrases).map(Drawing::Plot).map(element));
    let is_wide = report.variants.len() >= COLUMNS_MAX;
    let page = ExperimentPage {
        say: Say(phrases),
        report,
        styles: [(STYLE, STYLE_SHA256), (plot::STYLE, PLOT_STYLE_SHA256), (OWN_STYLE, OWN_STYLE_SHA256)],
        sentences: view::sentences(report).into_iter().map(|(ink, sentence)| (class(ink), sentence)).collect(),
        remarks: view::remarks(report, phrases),
        summary: view::summary(report, phrases),
        matrix: plots::matrix(report, phrases).map(Drawing::HeatMap).map(element),
        plots,
        standing: plots::standing(report, phrases).map(Drawing::Plot).map(element),
        standing_lines: view::standing(report, phrases),
        figures: if is_wide { view::cores(report, phrases) } else { view::figures(report, phrases) },
        lists: view::looks(report),
        verified: view::verified(report),
        setting: view::setting(report),
    };
    // A rendered template lacks the last line break.
    Ok(page.render().context("the report is no HTML")? + "\n")
}
