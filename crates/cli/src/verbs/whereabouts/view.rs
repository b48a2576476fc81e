//! The view on a terminal: it draws the page and takes the keys.

use std::time::{Duration, Instant};

use anyhow::Result;
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::report::Whereabouts;
use chokepoint_model::url::without_values;

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
    live: Live,
}

impl<'a> View<'a> {
    pub(super) fn open(setup: &WhereSetup, words: &'a Catalogue) -> Result<Self> {
        let (url, live) = (without_values(&setup.target.url), Live::open()?);
        let mut view = Self { url, interval: setup.interval, words, choice: Choice::default(), report: None, live };
        view.draw()?;
        Ok(view)
    }

    fn draw(&mut self) -> Result<()> {
        let Self { url, interval, words, choice, report, live } = self;
        live.draw(|buffer, has_keys, unicode| {
            let state = WhereState { report: report.as_ref(), choice, url, interval: *interval, has_keys, unicode };
            page::draw(&state, Phrases(words), buffer);
        })
    }
}

impl Outlet for View<'_> {
    fn show(&mut self, report: Whereabouts) -> Result<Next> {
        self.report = Some(report);
        self.draw().map(|()| Next::Continue)
    }

    fn wait(&mut self, until: Instant, interrupt: &Interrupt) -> Result<Next> {
        loop {
            match self.live.wait(until, interrupt)? {
                Waited::Over => return Ok(Next::Continue),
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
