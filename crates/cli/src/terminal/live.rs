//! The view of a load while it runs, on a terminal alone; it is gone with the load, and the report stands where it would stand without.

pub(crate) mod keys;
mod page;
pub(crate) mod screen;
pub(crate) mod suspend;

use std::io;
use std::time::{Duration, Instant};

use anyhow::Result;
use chokepoint_load::{Control, Plan, Viewer};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::load::Measured;

use crate::report::view::Phrases;
use crate::run::interrupt::Interrupt;
use crate::run::measure;
use crate::terminal::output;
use crate::terminal::progress::Progress;
use page::Shown;
use screen::Screen;
use suspend::Suspend;

/// What is over sooner needs no view.
const QUIET: Duration = Duration::from_millis(500);
/// How often it is drawn: as often as the load tells.
const EVERY: Duration = Duration::from_millis(100);

/// Offers a load and shows it; beside what was measured, for how long the program was stopped meanwhile. `title`: what is loaded.
pub(crate) fn offer(plan: &Plan, title: &str, words: &Catalogue, interrupt: &Interrupt) -> Result<(Measured, Duration)> {
    let control = Control::watched();
    let mut live = Live { plan, title, words, viewer: Viewer::default(), begin: Instant::now(), drawn: None, screen: None, is_over: false };
    let mut suspend = Suspend::install()?;
    let mut waiting = Progress::new("waiting for the last answers", None);
    let measured = measure::offer_shown(plan, &control, interrupt, &mut |control| {
        if suspend.is_asked() {
            // It is drawn anew when the program goes on.
            live.hide();
            suspend.obey();
        }
        // A second Ctrl-C ends the program at once: by then the terminal has to be as it was.
        if interrupt.is_set() {
            live.end();
            waiting.tick("");
        } else {
            live.tick(control);
        }
    });
    waiting.finish();
    live.end();
    Ok((measured?, suspend.stopped()))
}

struct Live<'a> {
    plan: &'a Plan,
    title: &'a str,
    words: &'a Catalogue,
    viewer: Viewer,
    begin: Instant,
    drawn: Option<Instant>,
    screen: Option<Screen>,
    is_over: bool,
}

impl Live<'_> {
    fn tick(&mut self, control: &Control) {
        let is_due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= EVERY);
        if self.is_over || !is_due || self.begin.elapsed() < QUIET {
            return;
        }
        self.drawn = Some(Instant::now());
        if !screen::is_in_foreground() {
            self.hide();
            return;
        }
        // A terminal that cannot be written to has no view: the load goes on.
        if self.draw(control).is_err() {
            self.end();
        }
    }

    fn draw(&mut self, control: &Control) -> io::Result<()> {
        let view = self.viewer.look(control).unwrap_or_default();
        let style = output::style();
        if self.screen.is_some() && !screen::is_shown() {
            // A thread that panicked has left it for its message, which is to stay.
            return Err(io::Error::other("the view was left"));
        }
        let screen = match &mut self.screen {
            Some(screen) => screen,
            none => none.insert(Screen::enter(style.color)?),
        };
        let progress = control.progress();
        let shown = Shown {
            title: self.title,
            elapsed_s: self.begin.elapsed().as_secs_f64() - self.plan.options.warm_up.as_secs_f64(),
            length_s: self.plan.duration.map(|duration| duration.as_secs_f64()),
            ended: progress.ended,
            good: progress.good,
            in_flight: progress.in_flight,
            view: &view,
            unicode: style.unicode,
        };
        let phrases = Phrases(self.words);
        screen.terminal().draw(|frame| page::draw(&shown, phrases, frame.buffer_mut()))?;
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
