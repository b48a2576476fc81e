//! The view on a terminal: it draws the page and takes the keys.

use std::time::{Duration, Instant};

use anyhow::Result;
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::report::Whereabouts;
use chokepoint_model::url::without_values;
use chokepoint_recorder::is_stale;

use super::choice::Choice;
use super::outlet::{Next, Outlet};
use super::page::{self, WhereState};
use super::setup::WhereSetup;
use crate::report::view::Phrases;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::live::{Live, Waited};

/// The view.
pub(super) struct View<'a> {
    url: String,
    interval: Duration,
    words: &'a Catalogue,
    choice: Choice,
    report: Option<Whereabouts>,
    /// When something was measured last; before the first time, when the view was opened.
    measured: Instant,
    /// The age that is shown because it is old, seconds.
    stale_s: Option<u64>,
    live: Live,
}

impl<'a> View<'a> {
    pub(super) fn open(setup: &WhereSetup, words: &'a Catalogue) -> Result<Self> {
        let (url, live) = (without_values(&setup.target.url), Live::open()?);
        let mut view = Self {
            url,
            interval: setup.interval,
            words,
            choice: Choice::default(),
            report: None,
            measured: Instant::now(),
            stale_s: None,
            live,
        };
        view.draw()?;
        Ok(view)
    }

    fn draw(&mut self) -> Result<()> {
        self.stale_s = self.stale_s();
        let Self { url, interval, words, choice, report, stale_s, live, .. } = self;
        live.draw(|buffer, has_keys, unicode| {
            let stale_s = *stale_s;
            let state = WhereState { report: report.as_ref(), choice, url, interval: *interval, has_keys, unicode, stale_s };
            page::draw(&state, Phrases(words), buffer);
        })
    }
}

impl View<'_> {
    /// How long ago something was measured, if that is too long for a view of this interval.
    fn stale_s(&self) -> Option<u64> {
        let age = self.measured.elapsed();
        is_stale(age.saturating_sub(self.interval)).then_some(age.as_secs())
    }
}

impl Outlet for View<'_> {
    fn show(&mut self, report: Whereabouts, age: Option<Duration>) -> Result<Next> {
        self.report = Some(report);
        self.measured = age.and_then(|age| Instant::now().checked_sub(age)).unwrap_or(self.measured);
        self.draw().map(|()| Next::Continue)
    }

    fn wait(&mut self, until: Instant, interrupt: &Interrupt) -> Result<Next> {
        loop {
            match self.live.wait(until, interrupt)? {
                Waited::Over if interrupt.is_set() || self.stale_s == self.stale_s() => return Ok(Next::Continue),
                Waited::Over => return self.draw().map(|()| Next::Continue),
                Waited::Redraw => {}
                Waited::Key(key) if self.choice.press(key, self.report.as_ref()) == Next::Quit => {
                    self.live.hide();
                    return Ok(Next::Quit);
                }
                Waited::Key(_) => {}
            }
            self.draw()?;
        }
    }
}
