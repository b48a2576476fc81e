//! The view of a load while it runs, on a terminal only. It leaves nothing on the screen when the load ends.

mod page;

use std::io;
use std::time::{Duration, Instant};

use anyhow::Result;
use chokepoint_load::{Control, Plan, Viewer};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::load::Measured;

use crate::report::view::Phrases;
use crate::run::measure;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;
use crate::terminal::progress::Progress;
use crate::terminal::screen::{self, Screen};
use crate::terminal::suspend::Suspend;
use page::LoadState;

/// Nothing is shown for this long: a shorter load has no view.
const QUIET: Duration = Duration::from_millis(500);
/// Time between two drawings: the period in which the load reports.
const DRAW_PERIOD: Duration = Duration::from_millis(100);

/// Runs a load and shows it. Returns the measurement, and how long the program was stopped during it. `title`: the target.
pub(super) fn offer(plan: &Plan, title: &str, words: &Catalogue, interrupt: &Interrupt) -> Result<(Measured, Duration)> {
    let control = Control::watched();
    let mut view =
        LoadView { plan, title, words, viewer: Viewer::default(), begin: Instant::now(), drawn: None, screen: None, is_over: false };
    let mut suspend = Suspend::install()?;
    let mut waiting = Progress::new("waiting for the last responses", None);
    let measured = measure::offer_shown(plan, &control, interrupt, &mut |control| {
        if suspend.is_asked() {
            // The view is drawn again when the program continues.
            view.hide();
            suspend.obey();
        }
        // A second Ctrl-C ends the program at once: restore the terminal before that.
        if interrupt.is_set() {
            view.end();
            waiting.tick("");
        } else {
            view.tick(control);
        }
    });
    waiting.finish();
    view.end();
    Ok((measured?, suspend.stopped()))
}

struct LoadView<'a> {
    plan: &'a Plan,
    title: &'a str,
    words: &'a Catalogue,
    viewer: Viewer,
    begin: Instant,
    drawn: Option<Instant>,
    screen: Option<Screen>,
    is_over: bool,
}

impl LoadView<'_> {
    fn tick(&mut self, control: &Control) {
        let is_due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW_PERIOD);
        if self.is_over || !is_due || self.begin.elapsed() < QUIET {
            return;
        }
        self.drawn = Some(Instant::now());
        if !screen::is_in_foreground() {
            self.hide();
            return;
        }
        // If the terminal cannot be written to, the load continues without a view.
        if self.draw(control).is_err() {
            self.end();
        }
    }

    fn draw(&mut self, control: &Control) -> io::Result<()> {
        let figures = self.viewer.look(control).unwrap_or_default();
        let style = output::style();
        if self.screen.is_some() && !screen::is_shown() {
            // A thread that panicked left the screen for its message. Do not draw over it.
            return Err(io::Error::other("the view was left"));
        }
        let screen = match &mut self.screen {
            Some(screen) => screen,
            none => none.insert(Screen::enter(style.color)?),
        };
        let progress = control.progress();
        let state = LoadState {
            title: self.title,
            elapsed_s: self.begin.elapsed().as_secs_f64() - self.plan.options.warm_up.as_secs_f64(),
            length_s: self.plan.duration.map(|duration| duration.as_secs_f64()),
            ended: progress.ended,
            good: progress.good,
            in_flight: progress.in_flight,
            figures: &figures,
            unicode: style.unicode,
        };
        let phrases = Phrases(self.words);
        screen.terminal().draw(|frame| page::draw(&state, phrases, frame.buffer_mut()))?;
        Ok(())
    }

    /// Leaves the view until it is drawn again.
    fn hide(&mut self) {
        self.screen = None;
    }

    /// Leaves the view for good.
    fn end(&mut self) {
        self.is_over = true;
        self.hide();
    }
}
