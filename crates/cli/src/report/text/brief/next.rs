//! The commands that come next, and what this user may not read.

use std::collections::BTreeSet;

use chokepoint_model::message::Message;
use chokepoint_model::report::{Diagnosis, Mode};

use super::{Again, COLUMNS_USUAL, NOT_CONFIRMED, label, no_label, padded};
use crate::report::text::page::{TextPage, columns_of};
use crate::report::text::wrap::columns;
use crate::report::view::findings::offers_fix;
use crate::report::view::path::choke;
use crate::report::view::readings::gaps;
use crate::report::view::{Ink, span};

/// The widest column of commands; longer ones push their sentence to the right.
const COMMAND_COLUMNS_MAX: usize = 32;

/// Lines about what more rights would add.
const RIGHTS_LINES: usize = 2;
/// Before what a command does, on a line of its own.
const INDENT: &str = "  ";

/// Writes each command with what it does.
pub(super) fn write(page: &mut TextPage<'_>, diagnosis: &Diagnosis, again: Option<&Again>) {
    let phrases = page.phrases();
    let mut rows: Vec<(String, &'static str)> = Vec::new();
    // What kept this run from a change keeps the same command from it.
    let is_kept = diagnosis.not_applied.iter().any(|one| one.why != NOT_CONFIRMED);
    // A fix is proven under load.
    let (flags, word) = match diagnosis.mode {
        Mode::Load => ("--fix", "brief-command-fix"),
        Mode::Passive => ("--load --fix", "brief-command-fix-load"),
    };
    if is_kept {
        rows.push(("chokepoint undo --list".to_owned(), "brief-next-list"));
        rows.extend(again.map(|again| (again.as_root("--fix"), "brief-next-again")));
    } else if offers_fix(diagnosis) {
        rows.push((again.map_or_else(|| page.word(word), |again| again.as_root(flags)), "brief-next-fix"));
    }
    if diagnosis.after.is_some() {
        rows.push(("chokepoint undo".to_owned(), "brief-next-undo"));
    } else if let Some(cause) = choke(diagnosis).and_then(|place| diagnosis.findings.get(place)) {
        rows.push((phrases.say(&Message::new("brief-command-explain").with("id", cause.id.as_str())), "brief-next-explain"));
    }
    if let Some(again) = again.filter(|again| !again.is_root() && gaps(diagnosis).iter().any(|gap| gap.needs.is_some())) {
        rows.push((again.as_root(""), "brief-next-root"));
    }
    let width = rows.iter().map(|(command, _)| columns(command)).max().unwrap_or(0).min(COMMAND_COLUMNS_MAX);
    let mut before = label(page, "brief-next");
    for (command, what) in rows {
        let before = std::mem::replace(&mut before, no_label());
        let what = span(Ink::Faint, page.word(what));
        let line = [before.clone(), span(Ink::Plain, format!("{} ", padded(&command, width + 1))), what.clone()];
        if columns_of(&line) <= page.width() {
            page.line(&line);
            continue;
        }
        // It is never cut, and what it does stands below. One to be pasted is one line, which the terminal wraps.
        match again {
            Some(_) => page.verbatim(&[before], &command),
            None => page.flow(&[before], &[no_label()], &[span(Ink::Plain, &command)]),
        }
        page.flow(&[no_label(), span(Ink::Plain, INDENT)], &[no_label(), span(Ink::Plain, INDENT)], &[what]);
    }
    write_rights(page, diagnosis, again.is_some_and(Again::is_root));
}

/// What could be read with more rights, whatever the verdict: it rests on the rest alone. Root of a container lacks some.
fn write_rights(page: &mut TextPage<'_>, diagnosis: &Diagnosis, is_root: bool) {
    let phrases = page.phrases();
    let names: Vec<String> = gaps(diagnosis).iter().filter(|gap| gap.needs.is_some()).map(|gap| gap.names(phrases)).collect();
    if !names.is_empty() {
        let lacked: BTreeSet<&str> = gaps(diagnosis).iter().filter_map(|gap| gap.needs).collect();
        let text = Message::new(if is_root { "brief-root-lacks" } else { "brief-root-adds" }).with("names", names.join(", "));
        let text = phrases.say(&text.with("needs", lacked.into_iter().collect::<Vec<_>>().join(", ")));
        let lines = if page.width() < COLUMNS_USUAL { usize::MAX } else { RIGHTS_LINES };
        page.flow_within(lines, &[label(page, "brief-root")], &[no_label()], &[span(Ink::Plain, text)]);
    }
}
