//! The report of a diagnosis: what limits, where, why, and what to do about it, in that order.

pub(super) mod bisect;
mod chain;
mod findings;
pub(super) mod ledger;
pub(super) mod load;
mod path;
mod profile;
mod readings;
mod rounds;
pub(super) mod wire;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::report::Diagnosis;

use super::page::TextPage;
use crate::report::view::{Shown, span};
use crate::terminal::output::{Painted, Style};

/// The report of a diagnosis, ending in a newline.
///
/// Text wraps at the width. Commands, paths and other single words are never broken and may exceed it. Control characters from outside (names, addresses,
/// answers) are escaped, so that nothing in a report can control the terminal.
pub(crate) fn render(diagnosis: &Diagnosis, style: &Style, words: &Catalogue) -> Painted {
    let mut page = TextPage::new(style, words);
    page.flow(&[], &[], &[span(Shown::of_first(diagnosis).ink(), &diagnosis.summary)]);
    rounds::write_result(&mut page, diagnosis);
    load::write(&mut page, diagnosis);
    path::write(&mut page, diagnosis);
    ledger::write(&mut page, diagnosis);
    chain::write(&mut page, diagnosis);
    findings::write(&mut page, diagnosis);
    bisect::write(&mut page, diagnosis);
    rounds::write(&mut page, diagnosis);
    findings::write_improvements(&mut page, diagnosis);
    profile::write(&mut page, diagnosis);
    wire::write(&mut page, diagnosis);
    readings::write(&mut page, diagnosis);
    page.finish()
}
