//! The view on a terminal: it draws the page on the alternate screen and reads the keys.

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
use crate::terminal::keys::Keys;
use crate::terminal::output;
use crate::terminal::screen::{self, Screen};
use crate::terminal::suspend::Suspend;

/// Time between two checks for signals.
const POLL: Duration = Duration::from_millis(200);

/// The view.
pub(super) struct View<'a> {
    url: String,
    interval: Duration,
    words: &'a Catalogue,
    suspend: Suspend,
    choice: Choice,
    report: Option<Whereabouts>,
    // Dropped in this order: the main screen is restored before the keys are given back to the shell.
    screen: Option<Screen>,
    keys: Option<Keys>,
}

impl<'a> View<'a> {
    pub(super) fn open(setup: &WhereSetup, words: &'a Catalogue) -> Result<Self> {
        let mut view = Self {
            url: without_values(&setup.target.url),
            interval: setup.interval,
            words,
            suspend: Suspend::install()?,
            choice: Choice::default(),
            report: None,
            screen: None,
            keys: None,
        };
        view.draw()?;
        Ok(view)
    }

    fn draw(&mut self) -> Result<()> {
        if !screen::is_in_foreground() {
            self.hide();
            return Ok(());
        }
        let style = output::style();
        if self.keys.is_none() {
            self.keys = Keys::take();
        }
        let screen = match &mut self.screen {
            Some(screen) => screen,
            none => none.insert(Screen::enter(style.color)?),
        };
        let state = WhereState {
            report: self.report.as_ref(),
            choice: &self.choice,
            url: &self.url,
            interval: self.interval,
            has_keys: self.keys.is_some(),
            unicode: style.unicode,
        };
        screen.terminal().draw(|frame| page::draw(&state, Phrases(self.words), frame.buffer_mut()))?;
        Ok(())
    }

    /// Leaves the screen until the view is drawn again.
    fn hide(&mut self) {
        self.screen = None;
        self.keys = None;
    }
}

impl Outlet for View<'_> {
    fn show(&mut self, report: Whereabouts) -> Result<Next> {
        self.report = Some(report);
        self.draw().map(|()| Next::Continue)
    }

    fn wait(&mut self, until: Instant, interrupt: &Interrupt) -> Result<Next> {
        loop {
            if interrupt.is_set() {
                // A second Ctrl-C ends the program at once: restore the terminal before that.
                self.hide();
                return Ok(Next::Continue);
            }
            if self.suspend.is_asked() {
                self.hide();
                self.suspend.obey();
                self.draw()?;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Next::Continue);
            }
            let key = match &self.keys {
                Some(keys) => keys.next(left.min(POLL))?,
                None => {
                    std::thread::sleep(left.min(POLL));
                    None
                }
            };
            if let Some(key) = key {
                if self.choice.press(key, self.report.as_ref()) == Next::Quit {
                    self.hide();
                    return Ok(Next::Quit);
                }
                self.draw()?;
            }
        }
    }
}
