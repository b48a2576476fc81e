//! A progress bar on stderr for waits of more than two seconds; nothing if stderr is no terminal.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use chokepoint_foreign::printable;
use indicatif::{ProgressBar, ProgressStyle};

use super::output;

/// Shorter waits have no bar.
const WAIT_MIN: Duration = Duration::from_secs(2);

/// The progress bar of a wait.
pub(crate) struct Progress {
    label: String,
    begin: Instant,
    length: Option<Duration>,
    bar: Option<ProgressBar>,
}

/// Says what begins, where no bar will show it.
pub(crate) fn announce(what: &str) {
    if !std::io::stderr().is_terminal() {
        output::note(what);
    }
}

impl Progress {
    /// A wait of about `length`, if that is known. Without a label nothing is shown.
    pub(crate) fn new(label: &str, length: Option<Duration>) -> Self {
        Self { label: printable(label).into_owned(), begin: Instant::now(), length, bar: None }
    }

    /// Updates the bar.
    pub(crate) fn tick(&mut self, detail: &str) {
        let short = self.label.is_empty() || self.length.is_some_and(|length| length <= WAIT_MIN);
        if self.bar.is_none() && !short && (self.length.is_some() || self.begin.elapsed() > WAIT_MIN) && std::io::stderr().is_terminal() {
            self.bar = Some(self.draw());
        }
        if let Some(bar) = &self.bar {
            let done = self.begin.elapsed().as_millis();
            bar.set_position(u64::try_from(done).unwrap_or(u64::MAX).min(bar.length().unwrap_or(u64::MAX)));
            bar.set_message(printable(detail).into_owned());
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }

    fn draw(&self) -> ProgressBar {
        let (bar, template) = match self.length {
            Some(length) => (ProgressBar::new(u64::try_from(length.as_millis()).unwrap_or(u64::MAX)), "{prefix} {bar:30} {elapsed} {msg}"),
            None => (ProgressBar::new_spinner(), "{prefix} {spinner} {elapsed} {msg}"),
        };
        bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_prefix(self.label.clone());
        bar
    }
}
