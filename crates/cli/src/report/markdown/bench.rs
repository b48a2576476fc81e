//! The report of `bench` in GitHub-flavoured Markdown, for a pull request. This module draws and never judges.

use chokepoint_load::ThresholdResult;
use chokepoint_model::bench::Bench;
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::message::Message;

use super::escape::prose;
use super::page::MarkdownPage;
use crate::report::view::Phrases;
use crate::report::view::bench::{condition, facts, times, times_heading};

/// The report, ending in a newline. `judged`: the conditions of `--fail-if`.
pub(crate) fn render(bench: &Bench, judged: &[ThresholdResult], words: &Catalogue) -> String {
    let phrases = Phrases(words);
    let mut page = MarkdownPage { phrases, out: String::new() };
    page.block(&format!("**{}**", prose(&bench.summary)));
    if let Some(guard) = &bench.stopped_by {
        page.block(&prose(&phrases.say(&Message::new("bench-stopped").with("guard", guard.as_str()))));
    }
    if bench.interrupted {
        page.block(&prose(&phrases.word("bench-interrupted")));
    }
    let conditions = judged.iter().map(|judged| {
        let mark = if judged.failed { "❌" } else { "✅" };
        format!("{mark} {}", prose(&condition(phrases, judged)))
    });
    page.list(conditions);
    let facts: Vec<String> = facts(phrases, bench).iter().map(|line| page.fact(line)).collect();
    page.list(facts);
    if bench.load.requests > 0 {
        table(&mut page, bench);
    }
    for (heading, texts) in [
        ("bench-warnings", bench.warnings.iter().map(|warning| warning.text.as_str()).collect::<Vec<_>>()),
        ("bench-samples", bench.error_samples.iter().map(String::as_str).collect()),
    ] {
        if !texts.is_empty() {
            page.block(&format!("{}:", prose(&phrases.word(heading))));
            page.list(texts.into_iter().map(prose));
        }
    }
    page.out
}

/// The percentiles of each time.
fn table(page: &mut MarkdownPage<'_>, bench: &Bench) {
    let mut rows = times(page.phrases, bench).into_iter();
    let Some(mut names) = rows.next() else { return };
    names[0] = page.phrases.word(times_heading(bench));
    page.block(&format!("| {} |", names.each_ref().map(|name| prose(name)).join(" | ")));
    page.line(&format!("|---|{}", "--:|".repeat(names.len() - 1)));
    for row in rows {
        page.row(&row.map(|cell| prose(&cell)));
    }
}
