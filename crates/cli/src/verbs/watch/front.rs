//! The thread of the user: it draws the live view, takes keys, and says when nothing is measured any more, by its own clock. It does nothing that could wait for a
//! measurement, a disk or a lock.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use chokepoint_dashboard::{Board, Freshness};
use chokepoint_model::catalogue::Catalogue;
use serde::Serialize;

use super::outlet::{Face, Outlet, Shown};
use super::page::{self, WatchState};
use super::service::Service;
use crate::report::view::Phrases;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::keys::Key;
use crate::terminal::live::{Live, Waited};
use crate::terminal::output;

/// Name and version of the JSON line that says that nothing is measured, or that it is again.
const SCHEMA: &str = "chokepoint/stale/1";
/// Time between two checks whether there is something new to draw.
const DRAW_PERIOD: Duration = Duration::from_millis(100);
/// Time between two checks whether anything is measured.
const LOOK_PERIOD: Duration = Duration::from_millis(500);

/// What the thread that watches ended with.
type Ended = Receiver<Result<bool>>;

/// What the user sees, and the keys.
pub(super) struct Front<'a> {
    words: &'a Catalogue,
    interrupt: &'a Interrupt,
    board: Arc<Board>,
    service: Service,
    face: Form,
    /// When nothing was measured any more, if that was told.
    stale_since: Option<Instant>,
}

enum Form {
    Json,
    Lines,
    View(Box<View>),
}

/// The live view.
struct View {
    live: Live,
    shown: Arc<Mutex<Shown>>,
    chosen: usize,
    /// The change that was drawn last, and the age that was shown with it.
    drawn: (u64, Option<u64>),
}

#[derive(Serialize)]
struct StaleLine {
    schema: &'static str,
    #[serde(flatten)]
    freshness: Freshness,
}

impl<'a> Front<'a> {
    pub(super) fn new(outlet: &Outlet, board: Arc<Board>, words: &'a Catalogue, interrupt: &'a Interrupt) -> Result<Self> {
        let face = match outlet.face() {
            Face::Json => Form::Json,
            Face::Lines => Form::Lines,
            Face::View(shown) => Form::View(Box::new(View { live: Live::open()?, shown, chosen: 0, drawn: (0, None) })),
        };
        Ok(Self { words, interrupt, board, service: Service::of_environment(), face, stale_since: None })
    }

    /// Until it is no longer watched. True if something was seen, or the user asked to quit by a key.
    pub(super) fn until(mut self, ended: &Ended) -> Result<bool> {
        let has_quit = match self.shown_until(ended) {
            Ok(Some(result)) => return result,
            Ok(None) => true,
            Err(error) => {
                // The terminal is gone. What is kept ends in order.
                self.interrupt.stop();
                let _ = ended.recv();
                return Err(error);
            }
        };
        self.interrupt.stop();
        ended.recv().unwrap_or_else(|_| broken_off()).map(|_| has_quit)
    }

    /// What watching ended with; nothing if the user asked to quit by a key.
    fn shown_until(&mut self, ended: &Ended) -> Result<Option<Result<bool>>> {
        loop {
            self.tell_staleness()?;
            let patience = match &mut self.face {
                Form::Json | Form::Lines => LOOK_PERIOD,
                Form::View(view) => {
                    if !self.interrupt.is_set() {
                        view.draw(self.board.freshness(), self.words)?;
                    }
                    if view.wait(self.interrupt)? {
                        return Ok(None);
                    }
                    // After a request to stop the main screen is back, and there is nothing to do but wait.
                    if self.interrupt.is_set() { LOOK_PERIOD } else { Duration::ZERO }
                }
            };
            match ended.recv_timeout(patience) {
                Ok(result) => {
                    if let Form::View(view) = &mut self.face {
                        view.live.hide();
                    }
                    return Ok(Some(result));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(Some(broken_off())),
            }
        }
    }

    /// Says once that nothing is measured any more, and once that it is again. The view has a line for it.
    fn tell_staleness(&mut self) -> Result<()> {
        let freshness = self.board.freshness();
        if freshness.stale == self.stale_since.is_some() {
            return Ok(());
        }
        let before = std::mem::take(&mut self.stale_since);
        let sentence = match before {
            None => {
                let now = Instant::now();
                self.stale_since = Some(now.checked_sub(Duration::from_secs_f64(freshness.age_s)).unwrap_or(now));
                format!("nothing was measured for {:.0} s", freshness.age_s)
            }
            Some(since) => format!("measured again, after {:.0} s", since.elapsed().as_secs_f64() - freshness.age_s),
        };
        self.service.status(if freshness.stale { &sentence } else { "" });
        match &self.face {
            Form::Json => {
                output::print_json_on(&format!("{}\n", serde_json::to_string(&StaleLine { schema: SCHEMA, freshness })?)).map(drop)
            }
            Form::Lines => {
                output::note(&format!("note: {sentence}"));
                Ok(())
            }
            Form::View(_) => Ok(()),
        }
    }
}

fn broken_off() -> Result<bool> {
    bail!("watching stopped unexpectedly")
}

impl View {
    /// Draws what changed. Nothing before it is watched: an error is to stay on the main screen.
    fn draw(&mut self, freshness: Freshness, words: &Catalogue) -> Result<()> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let now = (shown.changes, freshness.stale.then_some(freshness.age_s as u64));
        if shown.changes == 0 || self.drawn == now {
            return Ok(());
        }
        self.drawn = now;
        let chosen = self.chosen;
        self.live.draw(|buffer, has_keys, unicode| {
            let state = WatchState {
                samples: shown.ring.all().collect(),
                minute: shown.minute.as_ref(),
                incidents: &shown.incidents,
                unmeasured: &shown.unmeasured,
                chosen,
                has_keys,
                address: shown.address.as_deref(),
                unicode,
                stale: freshness.stale.then_some(freshness),
            };
            page::draw(&state, Phrases(words), buffer);
            // The terminal may be slow: who watches must not wait for it.
            drop(shown);
        })
    }

    /// Waits a little for a key. True if it was the one to quit.
    fn wait(&mut self, interrupt: &Interrupt) -> Result<bool> {
        match self.live.wait(Instant::now() + DRAW_PERIOD, interrupt)? {
            Waited::Over => return Ok(false),
            Waited::Redraw => {}
            Waited::Key(Key::Char('q' | 'Q')) => {
                self.live.hide();
                return Ok(true);
            }
            Waited::Key(Key::Char('s' | 'S')) => self.chosen += 1,
            Waited::Key(_) => return Ok(false),
        }
        // It is drawn again although nothing changed.
        self.drawn.0 = 0;
        Ok(false)
    }
}
