//! The page of two runs compared.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_runs::comparison::{Comparison, Difference};

use super::{Block, ReportPage, Section, columns, figures, list, terms, text};
use crate::report::view::{Ink, Phrases, Span, runs as view, span};

/// The page.
pub(crate) fn page(comparison: &Comparison, words: &Catalogue) -> ReportPage {
    let phrases = Phrases(words);
    let (earlier, later) = (comparison.earlier.id.to_string(), comparison.later.id.to_string());
    let title = phrases.say(&Message::new("runs-compare-title").with("earlier", earlier).with("later", later));
    let section = |id: &'static str, blocks: Vec<Block>| Section::of(id, phrases.word(id), blocks);
    let which = list(view::both(phrases, comparison), Ink::Plain).into_iter().chain([text(view::chosen(phrases, comparison))]);
    let load: Vec<&Difference> = comparison.load.iter().collect();
    let grouped = view::differences(comparison).into_iter();
    let grouped: Vec<Block> = grouped.flat_map(|(group, members)| [text(group), changes(&members, phrases)]).collect();
    let mut sections = vec![
        section("runs-page-which", which.chain(list(view::cautions(phrases, comparison), Ink::WarnStrong)).collect()),
        section("runs-loads-differ", if load.is_empty() { Vec::new() } else { vec![changes(&load, phrases)] }),
        section("runs-figures", vec![figures(view::figure_table(phrases, comparison))]),
        section("runs-differences", grouped),
    ];
    let one_sided = view::one_sided(phrases, comparison).into_iter().enumerate();
    sections
        .extend(one_sided.map(|(at, (heading, values))| Section::of(&format!("only-{at}"), heading, terms(values).into_iter().collect())));
    ReportPage {
        title: title.clone(),
        subject: title,
        sections: sections.into_iter().flatten().collect(),
        footer: vec![view::same(phrases, comparison), phrases.word("runs-no-proof")],
        ..ReportPage::default()
    }
}

/// Values before and after.
fn changes(differences: &[&Difference], phrases: Phrases<'_>) -> Block {
    let side = |value: &Option<String>| span(Ink::Plain, value.clone().unwrap_or_else(|| phrases.word("runs-not-read")));
    let row = |difference: &&Difference| -> Vec<Span> {
        vec![span(Ink::Plain, &difference.name), side(&difference.earlier), side(&difference.later)]
    };
    let heads = ["runs-page-name", "runs-page-earlier", "runs-page-later"];
    Block::Table { head: columns(&heads, &[], phrases), rows: differences.iter().map(row).collect() }
}
