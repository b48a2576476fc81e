//! The diagnosis as text for a terminal: what limits, where, why, and what to do about it, in that order. It draws and never judges.

mod bench;
mod bisect;
mod chain;
mod explain;
mod findings;
mod ledger;
mod load;
mod page;
mod path;
mod profile;
mod readings;
mod rounds;
mod streams;
mod tcp;
mod tcp_live;
mod tcp_watch;
mod whereabouts;
mod wire;
mod wrap;

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;

use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::report::Diagnosis;

pub(crate) use bench::bench_text;
pub(crate) use explain::page_text;
use page::TextPage;
pub(crate) use streams::streams_text;
pub(crate) use tcp::tcp_text;
pub(crate) use tcp_live::tcp_live_text;
pub(crate) use tcp_watch::{tcp_watch_lines, tcp_watch_plots, tcp_watch_text};
pub(crate) use whereabouts::{lacking, whereabouts_text};
pub(crate) use wrap::columns;

use crate::report::view::{ink, span};
use crate::terminal::output::Painted;

/// How the report is to look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// Columns; below 40 it is taken for 40, above 1,000 for 1,000.
    pub(crate) width: usize,
    /// Colours (SGR sequences).
    pub(crate) color: bool,
    /// Line drawing and other characters beyond ASCII.
    pub(crate) unicode: bool,
}

/// The report of a diagnosis, ending in a newline.
///
/// Text wraps at the width; commands, paths and other single words are never broken and may stand out. Control characters that came from
/// outside (names, addresses, answers) are made visible, so that nothing in a report can steer the terminal.
pub(crate) fn render(diagnosis: &Diagnosis, style: &Style, words: &Catalogue) -> Painted {
    let mut page = TextPage::new(style, words);
    page.flow(&[], &[], &[span(ink(diagnosis.verdict), &diagnosis.summary)]);
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
