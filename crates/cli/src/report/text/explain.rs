//! The page of a station or a finding, for the terminal.

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::explain::ExplainPage;

use super::page::TextPage;
use crate::report::view::{Ink, span};
use crate::terminal::output::{Painted, Style};

/// The indentation of the text of a section.
const INDENT: &str = "  ";

/// The page as text, ending in a newline.
pub(crate) fn page_text(explanation: &ExplainPage, style: &Style, words: &Catalogue) -> Painted {
    let mut page = TextPage::new(style, words);
    page.flow(&[], &[], &[span(Ink::Strong, &explanation.title), span(Ink::Faint, format!("({})", explanation.id))]);
    let indent = [span(Ink::Plain, INDENT)];
    for (heading, text) in &explanation.sections {
        page.blank();
        page.line(&[span(Ink::Strong, heading)]);
        for (place, paragraph) in text.split("\n\n").enumerate() {
            if place > 0 {
                page.blank();
            }
            page.flow(&indent, &indent, &[span(Ink::Plain, paragraph)]);
        }
    }
    page.finish()
}
