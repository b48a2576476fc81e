//! Where ledgers are shown: as lines of JSON, as blocks of text, or in a view.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::report::{SourceReport, Whereabouts};

use crate::report::text::whereabouts_text;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;

/// Time between two checks for Ctrl-C.
const POLL: Duration = Duration::from_millis(50);

/// Whether to continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Continue,
    /// The user asked to quit, or the reader closed the pipe.
    Quit,
}

/// Where ledgers are shown.
pub(super) trait Outlet {
    /// Shows a ledger. `age`: how long ago its samples were taken; nothing if that is not known.
    fn show(&mut self, report: Whereabouts, age: Option<Duration>) -> Result<Next>;

    /// Waits until a time, or until the user asks to stop.
    fn wait(&mut self, until: Instant, interrupt: &Interrupt) -> Result<Next> {
        while !interrupt.is_set() && Instant::now() < until {
            thread::sleep(POLL.min(until.saturating_duration_since(Instant::now())));
        }
        Ok(Next::Continue)
    }
}

/// A line of JSON for each ledger.
pub(super) struct JsonLines;

impl Outlet for JsonLines {
    fn show(&mut self, report: Whereabouts, _: Option<Duration>) -> Result<Next> {
        let is_read = output::print_json_on(&format!("{}\n", serde_json::to_string(&report)?))?;
        Ok(if is_read { Next::Continue } else { Next::Quit })
    }
}

/// A block of text for each ledger. What could not be read is printed when it changes.
pub(super) struct TextBlocks<'a> {
    words: &'a Catalogue,
    lacking: Vec<SourceReport>,
}

impl<'a> TextBlocks<'a> {
    pub(super) fn new(words: &'a Catalogue) -> Self {
        Self { words, lacking: Vec::new() }
    }
}

impl Outlet for TextBlocks<'_> {
    fn show(&mut self, mut report: Whereabouts, _: Option<Duration>) -> Result<Next> {
        if report.lacking == self.lacking {
            report.lacking.clear();
        } else {
            self.lacking.clone_from(&report.lacking);
        }
        let is_read = output::print_painted_on(&whereabouts_text(&report, &output::style(), self.words))?;
        Ok(if is_read { Next::Continue } else { Next::Quit })
    }
}
