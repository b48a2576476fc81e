//! The page of an experiment.

use chokepoint_experiment::report::{Experiment, Outcome};
use chokepoint_model::catalogue::Catalogue;

use super::{Answer, Block, ReportPage, Section, Severity, figures, list, matrix, terms};
use crate::report::plot::experiment as plots;
use crate::report::view::experiment as view;
use crate::report::view::{Ink, Phrases};

/// From this many variants on, every figure of each is not in the page: the JSON and CSV results have it.
const COLUMNS_MAX: usize = 8;

/// The page; the same for the same result.
pub(crate) fn page(report: &Experiment, words: &Catalogue) -> ReportPage {
    let phrases = Phrases(words);
    let section = |id: &'static str, blocks: Vec<Block>| Section::of(id, phrases.word(id), blocks);
    let is_wide = report.variants.len() >= COLUMNS_MAX;
    let every = if is_wide { view::cores(report, phrases) } else { view::figures(report, phrases) };
    let mut drawn: Vec<Block> = plots::intervals(report, phrases).map(Block::Plot).into_iter().collect();
    drawn.extend(plots::percentiles(report, phrases).into_iter().map(Block::Plot));
    drawn.extend(plots::trials(report, phrases).map(Block::Plot));
    let variants = [figures(view::summary(report, phrases))].into_iter().chain(plots::matrix(report, phrases).map(matrix));
    let standing = plots::standing(report, phrases).map(Block::Plot);
    let mut sections = vec![
        section("experiment-remarks", list(view::remarks(report, phrases), Ink::Plain).into_iter().collect()),
        section("experiment-variants", variants.collect()),
        section("experiment-plots", drawn),
        section("experiment-where", standing.into_iter().chain(terms(view::standing(report, phrases))).collect()),
        section("experiment-figures", vec![figures(every)]),
    ];
    sections.extend(view::looks(report).into_iter().map(|(id, lines)| section(id, terms(lines).into_iter().collect())));
    let plan = Block::Folded { heading: phrases.word("experiment-plan"), text: report.plan.clone() };
    sections.extend([
        section("experiment-verified", list(view::verified(report), Ink::Plain).into_iter().collect()),
        section("experiment-warnings", list(report.warnings.clone(), Ink::Warn).into_iter().collect()),
        section("experiment-setting", list(view::setting(report), Ink::Plain).into_iter().chain([plan]).collect()),
    ]);
    ReportPage {
        title: report.title.clone(),
        brand: phrases.word("experiment-brand"),
        subject: report.title.clone(),
        verdicts: report.comparisons.iter().map(|one| answer(one.outcome, &one.sentence)).collect(),
        sections: sections.into_iter().flatten().collect(),
        footer: Vec::new(),
    }
}

fn answer(outcome: Outcome, sentence: &str) -> Answer {
    let severity = match outcome {
        Outcome::Better => Severity::Good,
        Outcome::Worse => Severity::Bad,
        Outcome::Different | Outcome::NoDifference | Outcome::TooFew => Severity::Unknown,
    };
    Answer { severity, word: String::new(), text: sentence.to_owned(), done: None }
}
