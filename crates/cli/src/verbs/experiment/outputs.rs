//! The files of an experiment: Markdown, CSV, HTML, plots and flame graphs.

use std::path::{Path, PathBuf};

use anyhow::Result;
use chokepoint_experiment::Metric;
use chokepoint_experiment::report::Experiment as Report;
use chokepoint_model::catalogue::Catalogue;
use chokepoint_profile::analysis::difference;
use chokepoint_profile::output::flame;

use super::looks::Profiles;
use crate::args::Experiment;
use crate::report::plot::experiment::pictures;
use crate::report::view::Phrases;
use crate::report::{markdown, page};
use crate::run::files::{self, Output, first_error};

/// The files, created before anything is measured, so that an unwritable one is refused early.
pub(super) struct Files {
    html: Option<Output>,
    markdown: Option<Output>,
    csv: Option<Output>,
    plots: Option<PathBuf>,
}

/// Creates the files.
pub(super) fn open(args: &Experiment) -> Result<Files> {
    let open = |file: &Option<PathBuf>| Output::open_where(file.as_deref(), "result");
    if let Some(directory) = &args.plots {
        files::make_directory(directory)?;
    }
    Ok(Files { html: open(&args.html)?, markdown: open(&args.markdown)?, csv: open(&args.csv)?, plots: args.plots.clone() })
}

impl Files {
    /// Writes each; a failed file does not prevent the others.
    pub(super) fn write(self, report: &Report, profiles: &Profiles, words: &Catalogue) -> Result<()> {
        let html = self.html.map(|file| {
            let page = page::experiment::page(report, words);
            let document = serde_json::to_string(report)?;
            file.write(page::file::render(&page, Some(&document), &markdown::experiment(report, words)).as_bytes())
        });
        let markdown = self.markdown.map(|file| file.write(markdown::experiment(report, words).as_bytes()));
        let csv = self.csv.map(|file| file.write(csv(report).as_bytes()));
        let plots = self.plots.iter().flat_map(|directory| plots(directory, report, words));
        let flames = self.plots.iter().flat_map(|directory| flames(directory, report, profiles));
        first_error([html, markdown, csv].into_iter().flatten().chain(plots).chain(flames))
    }
}

/// Writes each plot.
fn plots(directory: &Path, report: &Report, words: &Catalogue) -> Vec<Result<()>> {
    let write = |name: &str, svg: String| Output::open(&directory.join(name), "plot").and_then(|output| output.write(svg.as_bytes()));
    pictures(report, Phrases(words)).into_iter().map(|picture| write(&format!("{}.svg", picture.name), picture.drawing.svg())).collect()
}

/// Writes the differential flame graph of each comparison of which both profiles were taken.
fn flames(directory: &Path, report: &Report, profiles: &Profiles) -> Vec<Result<()>> {
    let mut written = Vec::new();
    let names = file_names(report.variants.iter().map(|variant| variant.name.as_str()));
    for comparison in &report.comparisons {
        let profile = |number: usize| profiles.get(number).and_then(Option::as_ref);
        let Some((before, after)) = profile(comparison.baseline).zip(profile(comparison.variant)) else { continue };
        let name = |number: usize| &report.variants[number].name;
        let title = format!("CPU time of {} against {}", name(comparison.variant), name(comparison.baseline));
        let difference = difference::join(after, before);
        let page = page::file::flame(&flame::of_difference(&difference), &title, vec![comparison.sentence.clone()]);
        let file = directory.join(format!("flame-{}-against-{}.html", names[comparison.variant], names[comparison.baseline]));
        written.push(Output::open(&file, "flame graph").and_then(|output| output.write(page.as_bytes())));
    }
    written
}

/// The names of variants as parts of file names, each another one: of names that differ only in punctuation the later ones get a number.
fn file_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for name in names {
        let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' }).collect();
        let plain = plain.split_ascii_whitespace().collect::<Vec<_>>().join("-");
        // No other name has two dashes.
        let is_own = !plain.is_empty() && !all.contains(&plain);
        all.push(if is_own { plain } else { format!("{plain}--{}", all.len() + 1) });
    }
    all
}

/// Every trial as a row (RFC 4180); docs/experiments/README.md describes the columns.
fn csv(report: &Report) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let mut out = "block,variant,at_s,disturbed,replaced,steal_percent,others_cores".to_owned();
    for metric in Metric::ALL {
        out += &format!(",{}", metric.name());
    }
    out.push('\n');
    for trial in &report.trials {
        let name = report.variants.get(trial.variant).map(|variant| quoted(&variant.name)).unwrap_or_default();
        let others = trial.others_cores.map(|cores| format!("{cores:.3}")).unwrap_or_default();
        out += &format!(
            "{},{name},{:.1},{},{},{:.2},{others}",
            trial.block,
            trial.at_s,
            !trial.disturbed.is_empty(),
            trial.replaced,
            trial.steal_percent
        );
        for metric in Metric::ALL {
            out += &trial.figures.get(metric).map_or_else(|| ",".to_owned(), |value| format!(",{value:.3}"));
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variant_has_a_file_name_of_its_own() {
        let names = ["gzip off", "gzip, off", "gzip off 2", "→"];
        assert_eq!(file_names(names.into_iter()), ["gzip-off", "gzip-off--2", "gzip-off-2", "--4"]);
    }
}
