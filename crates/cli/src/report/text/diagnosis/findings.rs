//! The findings: what is wrong, the evidence, and each remedy with its exact commands and its risk.

use chokepoint_model::report::{Diagnosis, Evidence, Finding, Remedy, Role};

use crate::report::text::page::{TextPage, columns_of};
use crate::report::text::wrap::columns;
use crate::report::view::findings::{commands, fix_title, offers_fix, standing, standing_of_improvement, terms, title};
use crate::report::view::{Ink, Span, span};

/// Columns before the text of a finding.
const INDENT_COLUMNS: usize = 4;
/// Columns before a command that does not fit on the line of its label.
const COMMAND_INDENT_COLUMNS: usize = 8;
/// Labels of the lines of a remedy.
const LABELS: [&str; 7] = [
    "report-label-now",
    "report-label-keep",
    "report-label-effect",
    "report-label-risk",
    "report-label-undo",
    "report-label-proof",
    "report-label-predicted",
];

/// Writes the findings, causes first.
pub(super) fn write(page: &mut TextPage<'_>, diagnosis: &Diagnosis) {
    if diagnosis.findings.is_empty() {
        return;
    }
    page.heading("report-findings");
    if let Some(harm) = &diagnosis.harm {
        page.flow(&indent(), &indent(), &[span(Ink::Faint, harm.text.as_str())]);
    }
    for (place, finding) in diagnosis.findings.iter().enumerate() {
        if place > 0 {
            page.blank();
        }
        let ink = if finding.role == Role::Cause { Ink::BadStrong } else { Ink::WarnStrong };
        let standing = standing(diagnosis, finding, page.phrases());
        head(page, diagnosis, (ink, &format!("{:>3} ", place + 1)), finding, standing);
        body(page, diagnosis, finding);
    }
    if offers_fix(diagnosis) {
        page.blank();
        let text = page.word("report-offer-fix");
        page.flow(&indent(), &indent(), &[span(Ink::Faint, text)]);
    }
}

/// Writes the improvements: what could be faster although nothing is choked.
pub(super) fn write_improvements(page: &mut TextPage<'_>, diagnosis: &Diagnosis) {
    if diagnosis.improvements.is_empty() {
        return;
    }
    page.heading("report-improvements");
    for finding in &diagnosis.improvements {
        let standing = standing_of_improvement(finding, page.phrases());
        head(page, diagnosis, (Ink::Strong, &" ".repeat(INDENT_COLUMNS)), finding, standing);
        body(page, diagnosis, finding);
        page.blank();
    }
    let text = page.word("report-improvements-note");
    page.flow(&indent(), &indent(), &[span(Ink::Faint, text)]);
}

fn body(page: &mut TextPage<'_>, diagnosis: &Diagnosis, finding: &Finding) {
    evidence(page, finding);
    for (choice, remedy) in finding.remedies.iter().enumerate() {
        let title = fix_title(choice, finding.remedies.len(), page.phrases());
        fix(page, diagnosis, &title, remedy);
    }
}

fn indent() -> [Span; 1] {
    [span(Ink::Plain, " ".repeat(INDENT_COLUMNS))]
}

fn head(page: &mut TextPage<'_>, diagnosis: &Diagnosis, (ink, number): (Ink, &str), finding: &Finding, standing: String) {
    let first = [span(ink, number)];
    page.flow(&first, &indent(), &[span(ink, &finding.id), span(Ink::Faint, format!("({standing})"))]);
    if let Some(title) = title(diagnosis, finding) {
        page.flow(&indent(), &indent(), &[span(Ink::Strong, title)]);
    }
    page.flow(&indent(), &indent(), &[span(Ink::Plain, &finding.explanation)]);
}

fn evidence(page: &mut TextPage<'_>, finding: &Finding) {
    if finding.evidence.is_empty() {
        return;
    }
    page.blank();
    let title = page.word("report-evidence");
    page.line(&[span(Ink::Plain, " ".repeat(INDENT_COLUMNS)), span(Ink::Strong, title)]);
    for Evidence { text, source, .. } in &finding.evidence {
        let source = if source.is_empty() { String::new() } else { format!("[{source}]") };
        page.point(INDENT_COLUMNS + 2, &[span(Ink::Plain, text), span(Ink::Faint, source)]);
    }
}

fn fix(page: &mut TextPage<'_>, diagnosis: &Diagnosis, title: &str, remedy: &Remedy) {
    page.blank();
    let rest = [span(Ink::Plain, " ".repeat(INDENT_COLUMNS + 2))];
    let heading = [span(Ink::Plain, " ".repeat(INDENT_COLUMNS)), span(Ink::Strong, format!("{title}: ")), span(Ink::Strong, &remedy.id)];
    page.line(&heading);
    page.flow(&rest, &rest, &[span(Ink::Plain, &remedy.text)]);
    for (id, lines) in commands(remedy) {
        write_commands(page, id, &lines);
    }
    for (label, text) in terms(diagnosis, remedy, page.phrases()) {
        prose(page, label, &text);
    }
}

/// A label, padded to the width of the widest.
fn label(page: &TextPage<'_>, id: &'static str) -> Span {
    let width = LABELS.iter().map(|id| columns(&page.word(id))).max().unwrap_or(0);
    let text = page.word(id);
    let fill = " ".repeat(width - columns(&text).min(width));
    span(Ink::Faint, format!("{}{text}{fill}  ", " ".repeat(INDENT_COLUMNS + 2)))
}

/// Blanks as wide as a label.
fn blank_label(label: &Span) -> Span {
    span(Ink::Plain, " ".repeat(columns_of(std::slice::from_ref(label))))
}

/// Writes lines to be copied: a single one beside its label if it fits there, all others below it.
fn write_commands(page: &mut TextPage<'_>, id: &'static str, lines: &[String]) {
    let label = [label(page, id)];
    if let [line] = lines
        && columns_of(&label) + columns(line) <= page.width()
    {
        return page.verbatim(&label, line);
    }
    page.line(&label);
    let indent = [span(Ink::Plain, " ".repeat(COMMAND_INDENT_COLUMNS))];
    lines.iter().for_each(|line| page.verbatim(&indent, line));
}

fn prose(page: &mut TextPage<'_>, id: &'static str, text: &str) {
    let first = [label(page, id)];
    let rest = [blank_label(&first[0])];
    page.flow(&first, &rest, &[span(Ink::Plain, text)]);
}
