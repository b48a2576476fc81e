//! The report of `size` in GitHub-flavoured Markdown. This module draws and never judges.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_sizing::report::Size;

use super::escape::{code, fence, prose};
use super::page::MarkdownPage;
use crate::report::view::Phrases;
use crate::report::view::size::{COLUMNS, facts, place, row};

/// The report, ending in a newline.
pub(crate) fn render(size: &Size, words: &Catalogue) -> String {
    let phrases = Phrases(words);
    let mut page = MarkdownPage { phrases, out: String::new() };
    page.block(&format!("**{}**", prose(&size.summary)));
    page.block(&code(&size.url));
    let fact = |(label, text): (&'static str, String)| format!("{}: {}", prose(&phrases.word(label)), prose(&text));
    page.list(facts(size, phrases).into_iter().map(fact));
    for tier in &size.tiers {
        page.block(&format!("**{}**", prose(&tier.text)));
        page.list(tier.notes.iter().chain(tier.memory.iter().map(|memory| &memory.text)).map(|note| prose(note)));
        if let Some(place) = place(tier, phrases) {
            page.block(&prose(&place));
            let lines: Vec<String> = tier.config.iter().map(|line| line.text.clone()).collect();
            page.block(&fence(&lines, ""));
        }
    }
    if !size.steps.is_empty() {
        page.table_head(&COLUMNS, &format!("|{}---|", "--:|".repeat(COLUMNS.len() - 1)));
        for step in &size.steps {
            page.row(&row(step, phrases).map(|cell| prose(&cell)));
        }
    }
    page.list(size.warnings.iter().map(|warning| prose(warning)));
    page.out
}
