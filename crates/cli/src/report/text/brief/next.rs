//! The commands that come next, and what this user may not read.

use chokepoint_model::message::Message;
use chokepoint_model::report::Diagnosis;

use super::{label, no_label, padded};
use crate::report::text::page::TextPage;
use crate::report::text::wrap::columns;
use crate::report::view::findings::offers_fix;
use crate::report::view::path::choke;
use crate::report::view::readings::gaps;
use crate::report::view::{Ink, span};

/// The widest column of commands; longer ones push their sentence to the right.
const COMMAND_COLUMNS_MAX: usize = 32;

/// Lines about what more rights would add.
const RIGHTS_LINES: usize = 2;

/// Writes each command with what it does.
pub(super) fn write(page: &mut TextPage<'_>, diagnosis: &Diagnosis) {
    let phrases = page.phrases();
    let mut rows: Vec<(String, &'static str)> = Vec::new();
    if offers_fix(diagnosis) {
        rows.push((page.word("brief-command-fix"), "brief-next-fix"));
    }
    if diagnosis.after.is_some() {
        rows.push(("chokepoint undo".to_owned(), "brief-next-undo"));
    } else if let Some(cause) = choke(diagnosis).and_then(|place| diagnosis.findings.get(place)) {
        rows.push((phrases.say(&Message::new("brief-command-explain").with("id", cause.id.as_str())), "brief-next-explain"));
    }
    rows.push(("--verbose".to_owned(), "brief-next-verbose"));
    let width = rows.iter().map(|(command, _)| columns(command)).max().unwrap_or(0).min(COMMAND_COLUMNS_MAX);
    let mut before = label(page, "brief-next");
    for (command, what) in rows {
        let what = page.word(what);
        let command = span(Ink::Plain, format!("{} ", padded(&command, width + 1)));
        page.line_within(&[std::mem::replace(&mut before, no_label()), command, span(Ink::Faint, what)], false);
    }
    write_rights(page, diagnosis);
}

/// What could be read with more rights, whatever the verdict: it rests on the rest alone.
fn write_rights(page: &mut TextPage<'_>, diagnosis: &Diagnosis) {
    let phrases = page.phrases();
    let names: Vec<String> = gaps(diagnosis).iter().filter(|gap| gap.needs.is_some()).map(|gap| gap.names(phrases)).collect();
    if !names.is_empty() {
        let text = phrases.say(&Message::new("brief-root-adds").with("names", names.join(", ")));
        page.flow_within(RIGHTS_LINES, &[label(page, "brief-root")], &[no_label()], &[span(Ink::Plain, text)]);
    }
}
