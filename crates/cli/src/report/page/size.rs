//! The page of `size`.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;
use chokepoint_sizing::report::{Size, TierReport};

use super::{Answer, Block, ReportPage, Section, Severity, columns, list, remark, terms, text};
use crate::report::plot::size::plots;
use crate::report::view::size::{COLUMNS, facts, place, row};
use crate::report::view::{Ink, Phrases, span};

/// The page; the same for the same result.
pub(crate) fn page(report: &Size, words: &Catalogue) -> ReportPage {
    let phrases = Phrases(words);
    let title = phrases.say(&Message::new("size-title").with("url", report.url.as_str()));
    let known = facts(report, phrases).into_iter().map(|(label, text)| (phrases.word(label), text));
    let steps = report.steps.iter().map(|step| row(step, phrases).map(|text| span(Ink::Plain, text)).to_vec()).collect();
    let mut sections = vec![
        Section::of("size-facts", phrases.word("size-page-facts"), terms(known).into_iter().collect()),
        Section::of("size-curve", phrases.word("size-page-curve"), plots(report, words).map(Block::Plot).to_vec()),
    ];
    sections.extend(
        report
            .tiers
            .iter()
            .enumerate()
            .map(|(at, tier)| Section::of(&format!("size-tier-{at}"), tier.tier.clone(), tier_blocks(tier, phrases))),
    );
    sections.extend([
        Section::of(
            "size-steps",
            phrases.word("size-page-steps"),
            vec![Block::Table { head: columns(&COLUMNS, &[0, 1, 2, 3, 4, 5], phrases), rows: steps }],
        ),
        Section::of("size-warnings", phrases.word("report-warnings"), list(report.warnings.clone(), Ink::Warn).into_iter().collect()),
    ]);
    ReportPage {
        title,
        brand: phrases.word("size-page-brand"),
        subject: report.url.clone(),
        verdicts: vec![Answer { severity: Severity::Unknown, word: String::new(), text: report.summary.clone(), done: None }],
        sections: sections.into_iter().flatten().collect(),
        footer: Vec::new(),
    }
}

/// The advice for a tier.
fn tier_blocks(tier: &TierReport, phrases: Phrases<'_>) -> Vec<Block> {
    let notes = tier.notes.iter().chain(tier.memory.iter().map(|memory| &memory.text)).cloned();
    let lines = tier.config.iter().map(|line| vec![span(Ink::Plain, &line.text), span(Ink::Plain, &line.why)]).collect::<Vec<_>>();
    let heads = ["size-page-line", "size-page-why"];
    let file = place(tier, phrases).filter(|_| !lines.is_empty());
    let table = (!lines.is_empty()).then(|| Block::Table { head: columns(&heads, &[], phrases), rows: lines });
    let source = tier.source.clone().map(remark);
    [text(tier.text.clone())].into_iter().chain(list(notes, Ink::Plain)).chain(file.map(text)).chain(table).chain(source).collect()
}
