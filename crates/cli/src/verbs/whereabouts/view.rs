//! The view on a terminal: the second screen, the keys, and what they choose.

use std::time::{Duration, Instant};

use anyhow::Result;
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::report::Whereabouts;
use chokepoint_model::url::without_values;

use super::page::{self, Shown};
use super::{Next, Outlet, Setup};
use crate::report::view::Phrases;
use crate::run::interrupt::Interrupt;
use crate::terminal::live::keys::{Key, Keys};
use crate::terminal::live::screen::{self, Screen};
use crate::terminal::live::suspend::Suspend;
use crate::terminal::output;

/// How often a wait looks for signals.
const POLL: Duration = Duration::from_millis(200);

/// In which order places are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// As a request passes them.
    #[default]
    Path,
    /// Most requests first.
    Size,
    /// Summed up by tier.
    Tier,
}

/// What the keys chose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Choice {
    /// The tier that alone is shown, by its name.
    pub(super) tier: Option<String>,
    pub(super) order: Order,
    pub(super) clients: bool,
    pub(super) help: bool,
}

impl Choice {
    /// Takes a key in.
    pub(super) fn press(&mut self, key: Key, report: Option<&Whereabouts>) -> Next {
        match key {
            Key::Char('q' | 'Q') => return Next::Quit,
            _ if self.help => self.help = false,
            Key::Char('?' | 'h') => self.help = true,
            Key::Char('c') => self.clients = !self.clients,
            Key::Char('p') => {
                self.order = match self.order {
                    Order::Path => Order::Size,
                    Order::Size => Order::Tier,
                    Order::Tier => Order::Path,
                };
            }
            Key::Char('t') => {
                let mut names = report.into_iter().flat_map(|report| &report.target.tiers).map(|tier| &tier.name);
                self.tier = match &self.tier {
                    None => names.next().cloned(),
                    Some(own) => names.skip_while(|name| *name != own).nth(1).cloned(),
                };
            }
            Key::Char(_) | Key::Other => {}
        }
        Next::Go
    }
}

/// The view.
pub(super) struct View<'a> {
    url: String,
    interval: Duration,
    words: &'a Catalogue,
    suspend: Suspend,
    choice: Choice,
    report: Option<Whereabouts>,
    // Dropped in this order: the first screen comes back before keys are a shell's again.
    screen: Option<Screen>,
    keys: Option<Keys>,
}

impl<'a> View<'a> {
    pub(super) fn open(setup: &Setup, words: &'a Catalogue) -> Result<Self> {
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
        let shown = Shown {
            report: self.report.as_ref(),
            choice: &self.choice,
            url: &self.url,
            interval: self.interval,
            has_keys: self.keys.is_some(),
            unicode: style.unicode,
        };
        screen.terminal().draw(|frame| page::draw(&shown, Phrases(self.words), frame.buffer_mut()))?;
        Ok(())
    }

    /// Leaves the view until it is drawn again.
    fn hide(&mut self) {
        self.screen = None;
        self.keys = None;
    }
}

impl Outlet for View<'_> {
    fn show(&mut self, report: Whereabouts) -> Result<Next> {
        self.report = Some(report);
        self.draw().map(|()| Next::Go)
    }

    fn wait(&mut self, until: Instant, interrupt: &Interrupt) -> Result<Next> {
        loop {
            if interrupt.is_set() {
                // A second Ctrl-C ends the program at once: by then the terminal has to be as it was.
                self.hide();
                return Ok(Next::Go);
            }
            if self.suspend.is_asked() {
                self.hide();
                self.suspend.obey();
                self.draw()?;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Next::Go);
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

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn each_key_chooses_and_comes_round_again() {
        let report = samples::busy();
        let mut choice = Choice::default();
        let mut press = |key| (choice.press(Key::Char(key), Some(&report)), choice.clone());
        let tiers: Vec<Option<String>> = (0..3).map(|_| press('t').1.tier).collect();
        assert_eq!(tiers, [Some("nginx".to_owned()), Some("php-fpm".to_owned()), None]);
        assert_eq!([0; 3].map(|_| press('p').1.order), [Order::Size, Order::Tier, Order::Path]);
        assert_eq!([0; 2].map(|_| press('c').1.clients), [true, false]);
        assert!(press('?').1.help);
        assert_eq!(press('t').1, Choice::default(), "any key leads back and does nothing else");
        assert_eq!(press('x'), (Next::Go, Choice::default()));
        assert_eq!(press('q').0, Next::Quit);
    }

    #[test]
    fn a_tier_that_went_away_leads_to_all_tiers() {
        let mut choice = Choice { tier: Some("gone".to_owned()), ..Choice::default() };
        choice.press(Key::Char('t'), Some(&samples::busy()));
        assert_eq!(choice.tier, None);
        choice.press(Key::Char('t'), None);
        assert_eq!(choice.tier, None);
    }
}
