//! A live view on a terminal: the alternate screen, single keys, and what Ctrl-Z and the background take away for a while.

use std::time::{Duration, Instant};

use anyhow::Result;
use ratatui_core::buffer::Buffer;

use crate::terminal::interrupt::Interrupt;
use crate::terminal::keys::{Key, Keys};
use crate::terminal::output;
use crate::terminal::screen::{self, Screen};
use crate::terminal::suspend::Suspend;

/// Time between two checks for signals.
const POLL: Duration = Duration::from_millis(200);

/// What a wait ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The time is over, or the user asked to stop by a signal. Then the main screen is back.
    Over,
    /// A key was pressed.
    Key(Key),
    /// The view was hidden for a while and has to be drawn again.
    Redraw,
}

/// The terminal of a live view.
pub(crate) struct Live {
    suspend: Suspend,
    // Dropped in this order: the main screen is restored before the keys are given back to the shell.
    screen: Option<Screen>,
    keys: Option<Keys>,
}

impl Live {
    /// Prepares the terminal. It is changed by the first [`Live::draw`].
    pub(crate) fn open() -> Result<Self> {
        Ok(Self { suspend: Suspend::install()?, screen: None, keys: None })
    }

    /// Draws, unless the program is in the background. `draw` gets the buffer, whether there are keys, and whether the terminal has more than ASCII.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Buffer, bool, bool)) -> Result<()> {
        if !screen::is_in_foreground() {
            self.hide();
            return Ok(());
        }
        let style = output::style();
        if self.keys.is_none() {
            self.keys = Keys::take();
        }
        let has_keys = self.keys.is_some();
        let screen = match &mut self.screen {
            Some(screen) => screen,
            none => none.insert(Screen::enter(style.color)?),
        };
        screen.terminal().draw(|frame| draw(frame.buffer_mut(), has_keys, style.unicode))?;
        Ok(())
    }

    /// Leaves the screen until the view is drawn again.
    pub(crate) fn hide(&mut self) {
        self.screen = None;
        self.keys = None;
    }

    /// Waits for a key, or until a time.
    pub(crate) fn wait(&mut self, until: Instant, interrupt: &Interrupt) -> Result<Waited> {
        loop {
            if interrupt.is_set() {
                // A second Ctrl-C ends the program at once: restore the terminal before that.
                self.hide();
                return Ok(Waited::Over);
            }
            if self.suspend.is_asked() {
                self.hide();
                self.suspend.obey();
                return Ok(Waited::Redraw);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Waited::Over);
            }
            match &self.keys {
                Some(keys) => {
                    if let Some(key) = keys.next(left.min(POLL))? {
                        return Ok(Waited::Key(key));
                    }
                }
                None => std::thread::sleep(left.min(POLL)),
            }
        }
    }
}
