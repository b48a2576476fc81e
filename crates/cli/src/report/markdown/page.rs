//! The Markdown page that a report is written on: blocks, lists, headings and rows of tables.

use super::escape::{code, prose};
use crate::report::view::load::LoadLine;
use crate::report::view::{Ink, Phrases, Span};

/// A report that is being written.
pub(super) struct MarkdownPage<'a> {
    pub(super) phrases: Phrases<'a>,
    pub(super) out: String,
}

impl MarkdownPage<'_> {
    pub(super) fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    /// A block, with an empty line before it.
    pub(super) fn block(&mut self, text: &str) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.line(text);
    }

    pub(super) fn list(&mut self, items: impl IntoIterator<Item = String>) {
        for (place, item) in items.into_iter().enumerate() {
            let item = format!("- {item}");
            if place == 0 { self.block(&item) } else { self.line(&item) }
        }
    }

    pub(super) fn heading(&mut self, id: &'static str) {
        let word = prose(&self.phrases.word(id));
        self.block(&format!("## {word}"));
    }

    pub(super) fn row(&mut self, cells: &[String]) {
        self.line(&format!("| {} |", cells.join(" | ")));
    }

    /// A row of titles, and the row below it that sets the alignment of the columns.
    pub(super) fn table_head(&mut self, titles: &[&'static str], alignment: &str) {
        let titles: Vec<String> = titles.iter().map(|id| prose(&self.phrases.word(id))).collect();
        self.block(&format!("| {} |", titles.join(" | ")));
        self.line(alignment);
    }

    /// A labelled line of facts as an item of a list; the URL of the target is code.
    pub(super) fn fact(&self, line: &LoadLine) -> String {
        let label = prose(&self.phrases.word(line.label));
        match line.notes.split_first() {
            Some((url, rest)) if line.label == "report-label-target" => format!("{label}: {} {}", code(&url.text), spans(rest, " ")),
            _ => format!("{label}: {}", spans(&line.notes, ", ")),
        }
    }
}

/// Spans joined by `between`; emphasized spans are bold.
pub(super) fn spans(spans: &[Span], between: &str) -> String {
    let one = |span: &Span| match span.ink {
        Ink::Strong | Ink::BadStrong | Ink::WarnStrong | Ink::GoodStrong => format!("**{}**", prose(&span.text)),
        Ink::Plain | Ink::Faint | Ink::Bad | Ink::Warn => prose(&span.text),
    };
    spans.iter().map(one).collect::<Vec<_>>().join(between)
}
