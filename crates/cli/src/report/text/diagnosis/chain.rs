//! The chains from cause to symptom as a tree, root first.

use chokepoint_model::report::Diagnosis;

use crate::report::text::page::TextPage;
use crate::report::view::chain::{ChainLine, lines};
use crate::report::view::{Ink, Span, span};

/// Columns before the text of a finding, as in the list of findings.
const INDENT_COLUMNS: usize = 4;

/// Draws the chains, if there is more than one finding.
pub(super) fn write(page: &mut TextPage<'_>, diagnosis: &Diagnosis) {
    let lines = lines(diagnosis, page.phrases());
    if lines.is_empty() {
        return;
    }
    page.heading("report-chain");
    for (place, line) in lines.iter().enumerate() {
        let has_below = lines.get(place + 1).is_some_and(|next| next.level > line.level);
        write_line(page, line, has_below);
    }
}

fn write_line(page: &mut TextPage<'_>, line: &ChainLine, has_below: bool) {
    let margin = " ".repeat(INDENT_COLUMNS);
    let number = line.number.map(|number| format!("{number} ")).unwrap_or_default();
    let (arrow, first) = match line.rails.split_last() {
        None => (String::new(), format!("{number:>INDENT_COLUMNS$}")),
        Some((follows, above)) => {
            let arrow = if *follows { page.glyph("├▶ ", "|> ") } else { page.glyph("└▶ ", "`> ") };
            (format!("{margin}{}{arrow}", rails(page, above)), number)
        }
    };
    // Wrapped lines start below the text, with the rails that lead to the next node.
    let below = if has_below { page.glyph("│  ", "|  ") } else { "   " };
    let rest = match line.level {
        0 => [span(Ink::Faint, if has_below { format!("{margin}{below}") } else { margin })],
        _ => [span(Ink::Faint, format!("{margin}{}{below}", rails(page, &line.rails)))],
    };
    let first: [Span; 2] = [span(Ink::Faint, arrow), span(line.ink, first)];
    page.flow(&first, &rest, &[span(line.ink, &line.id), span(Ink::Faint, &line.note)]);
    if let Some(why) = &line.why {
        page.flow(&rest, &rest, &[span(Ink::Plain, why)]);
    }
}

/// The rails of the levels above: a vertical line if more nodes follow on that level.
fn rails(page: &TextPage<'_>, levels: &[bool]) -> String {
    levels.iter().map(|follows| if *follows { page.glyph("│  ", "|  ") } else { "   " }).collect()
}
