//! The cause with its strongest proofs, the other findings by name, and the remedy in one sentence.

use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, Evidence, Finding, Remedy, Role};

use super::Detail;
use crate::report::text::page::{TextPage, columns_of};
use crate::report::text::wrap::columns;
use crate::report::view::findings::{confidence, foretold_shortly};
use crate::report::view::path::choke;
use crate::report::view::{Ink, Span, span};

/// Columns before the text.
const INDENT: &str = "  ";

/// Writes the first cause, if there is one.
pub(super) fn write(page: &mut TextPage<'_>, diagnosis: &Diagnosis, detail: Detail) {
    let Some(first) = choke(diagnosis) else { return };
    let cause = &diagnosis.findings[first];
    if detail.is_airy {
        page.gap();
    }
    write_title(page, diagnosis, cause);
    let indent = [span(Ink::Plain, INDENT)];
    page.flow_sentences(detail.explanation, &indent, &indent, Ink::Plain, &cause.explanation);
    for proof in cause.evidence.iter().take(detail.proofs) {
        write_proof(page, proof, detail.proof);
    }
    write_others(page, diagnosis, first, detail.others);
    if diagnosis.rounds.is_empty()
        && let Some(remedy) = cause.remedies.first()
    {
        write_remedy(page, diagnosis, remedy);
    }
}

/// The title, and at the right how sure it is if there is room.
fn write_title(page: &mut TextPage<'_>, diagnosis: &Diagnosis, cause: &Finding) {
    // What was found first no longer holds after a fix.
    let id = if diagnosis.after.is_some() { "brief-cause-found" } else { "brief-cause" };
    let title = page.phrases().say(&Message::new(id).with("title", cause.title.trim_end_matches('.')));
    let sure = confidence(cause, page.phrases());
    let taken = columns(&title) + columns(&sure);
    if taken + 2 <= page.width() {
        let fill = " ".repeat(page.width().min(80).saturating_sub(taken).max(2));
        page.line_within(&[span(Ink::BadStrong, title), span(Ink::Faint, format!("{fill}{sure}"))], false);
    } else {
        page.flow_within(
            usize::MAX,
            &[],
            &[span(Ink::Plain, INDENT)],
            &[span(Ink::BadStrong, title), span(Ink::Faint, format!("({sure})"))],
        );
    }
}

/// A proof with its source, if the source costs no line of its own.
fn write_proof(page: &mut TextPage<'_>, Evidence { text, source, .. }: &Evidence, lines: usize) {
    let first = [span(Ink::Plain, format!("{INDENT}{} ", page.glyph("•", "-")))];
    let rest = [span(Ink::Plain, " ".repeat(columns_of(&first)))];
    let alone = [span(Ink::Plain, text)];
    let both = [span(Ink::Plain, text), span(Ink::Faint, format!("[{source}]"))];
    let fits = !source.is_empty() && page.lines_of(&first, &rest, &both) <= page.lines_of(&first, &rest, &alone);
    page.flow_within(lines, &first, &rest, if fits { &both } else { &alone });
}

/// The other findings by name.
fn write_others(page: &mut TextPage<'_>, diagnosis: &Diagnosis, first: usize, lines: usize) {
    let others = diagnosis.findings.iter().enumerate().filter(|(place, _)| *place != first);
    let names: Vec<String> = others.map(|(_, finding)| other(page, finding)).collect();
    if names.is_empty() {
        return;
    }
    let before = [span(Ink::Faint, format!("{INDENT}{} ", page.word("brief-also")))];
    let rest = [span(Ink::Plain, " ".repeat(columns_of(&before)))];
    page.flow_within(lines, &before, &rest, &[span(Ink::Plain, names.join("; "))]);
}

fn other(page: &TextPage<'_>, finding: &Finding) -> String {
    let id = match finding.role {
        Role::Cause => "brief-other-cause",
        Role::Symptom => "brief-other-symptom",
    };
    page.phrases().say(&Message::new(id).with("id", finding.id.as_str()).with("tier", finding.tier.as_str()))
}

/// What removes the cause, in one sentence that is never cut; the steps are in the long report.
fn write_remedy(page: &mut TextPage<'_>, diagnosis: &Diagnosis, remedy: &Remedy) {
    let before = [span(Ink::Strong, format!("{INDENT}{} ", page.word("brief-remedy")))];
    let rest = [span(Ink::Plain, " ".repeat(columns_of(&before)))];
    let mut text: Vec<Span> = vec![span(Ink::Plain, &remedy.text)];
    text.extend(foretold_shortly(diagnosis, &remedy.prediction, page.phrases()).map(|text| span(Ink::Faint, text)));
    page.flow(&before, &rest, &text);
}
