//! The thread that measures each second, keeps it, and passes it on. It may wait for a disk, a lock or a reader; nobody waits for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use chokepoint_dashboard::Board;
use chokepoint_model::catalogue::Catalogue;
use chokepoint_recorder::incident::Incident;

use super::config::Settings;
use super::hooks::Hooks;
use super::incidents::Incidents;
use super::keeping::{Keeping, directory};
use super::outlet::Outlet;
use super::saying;
use super::seconds::{Look, Seconds};
use super::service::Service;
use super::showing::Showing;
use crate::args::Watch;
use crate::run::memory;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::leaving::Doing;
use crate::terminal::output;

/// Everything that a second passes through.
pub(super) struct Following<'a> {
    words: &'a Catalogue,
    interrupt: &'a Interrupt,
    settings: Settings,
    seconds: Seconds,
    keeping: Keeping,
    showing: Showing,
    incidents: Incidents,
    hooks: Hooks,
    outlet: Outlet,
    service: Service,
    board: Arc<Board>,
    /// What it is in the middle of.
    doing: Doing,
}

impl<'a> Following<'a> {
    /// Opens the history, takes the first readings, and begins to listen.
    pub(super) fn begin(
        settings: Settings,
        board: Arc<Board>,
        outlet: Outlet,
        doing: Doing,
        words: &'a Catalogue,
        interrupt: &'a Interrupt,
    ) -> Result<Self> {
        doing.now("the opening of its history");
        let mut keeping = Keeping::open(&settings, words)?;
        keeping.close_incidents();
        doing.now("the first readings of the host");
        let seconds = Seconds::begin(&settings)?;
        doing.now("the opening of its page");
        let showing = Showing::begin(&settings, Arc::clone(&board), directory(settings.file.data_dir.clone(), words)?, words)?;
        doing.now("the reading of the days before");
        let incidents = Incidents::new(interrupt, &keeping, seconds.at_s());
        outlet.begin(showing.address());
        let service = Service::of_environment();
        service.ready();
        let hooks = Hooks::default();
        Ok(Self { words, interrupt, settings, seconds, keeping, showing, incidents, hooks, outlet, service, board, doing })
    }

    /// Watches until the time is over, the user asks to stop, or nobody reads any more, and ends in order. True if something was seen.
    pub(super) fn follow(mut self, args: &Watch) -> Result<bool> {
        let followed = self.seconds(args);
        self.service.stopping();
        self.finish()?;
        followed
    }

    fn seconds(&mut self, args: &Watch) -> Result<bool> {
        let begin = Instant::now();
        let end = self.settings.duration.map(|duration| begin + duration);
        let mut due = begin + self.seconds.until_readings();
        let mut has_seen = false;
        loop {
            if self.interrupt.is_set() || end.is_some_and(|end| Instant::now() >= end) {
                return Ok(has_seen);
            }
            if self.interrupt.take_reload() {
                self.reload(args);
            }
            self.doing.now("the end of a diagnosis");
            let told = self.incidents.advance(&mut self.keeping, self.words);
            self.tell(&told)?;
            if Instant::now() < due {
                let until = end.map_or(due, |end| due.min(end));
                let is_waiting = self.incidents.are_diagnosing();
                self.interrupt.wait(Some(if is_waiting { until.min(Instant::now() + super::POLL) } else { until }));
                continue;
            }
            self.doing.now("the readings of a second");
            let look = self.seconds.look(self.words)?;
            has_seen |= look.targets.iter().any(|target| target.sample.under_way.value().is_some());
            if !self.second(&look)? {
                return Ok(has_seen);
            }
            // Missed turns are skipped.
            while due <= Instant::now() {
                due += Duration::from_secs(1);
            }
        }
    }

    /// Passes a second on. False if nobody reads any more.
    fn second(&mut self, look: &Look) -> Result<bool> {
        self.doing.now("the comparison of a second with those before");
        let sample = look.sample();
        let minute = self.keeping.add(&sample);
        self.incidents.see(look, &mut self.keeping, self.words);
        self.showing.second(look, &sample, saying::said(look, |name| self.incidents.known(name), self.words));
        self.incidents.take_looks(self.words).iter().for_each(|looks| self.showing.looked(looks));
        if let Some(minute) = minute {
            memory::give_back();
            self.showing.minute(&minute);
            self.outlet.minute(&minute);
            self.incidents.see_minute(&minute, look, &mut self.keeping, self.words);
        }
        self.hooks.remind(&self.settings.file.hook);
        if !self.board.freshness().stale {
            self.service.alive();
        }
        self.doing.now("the output of a second, which nobody reads");
        self.outlet.second(look, &sample, self.words)
    }

    /// Ends in order, however watching ended: what is being diagnosed is told, and nothing is left open in the history.
    fn finish(&mut self) -> Result<()> {
        self.doing.now("a diagnosis: its incident is kept without");
        let told = self.incidents.finish(&mut self.keeping, self.words);
        let told = self.tell(&told);
        self.doing.now("the last write of the history: seconds since the one before are not kept");
        self.keeping.finish();
        self.doing.now("a delivery to a hook");
        self.hooks.finish();
        told
    }

    fn tell(&mut self, incidents: &[Incident]) -> Result<()> {
        incidents.iter().try_for_each(|incident| {
            self.showing.incident(incident);
            self.hooks.tell(&self.settings.file.hook, incident);
            self.outlet.incident(incident, self.words)
        })
    }

    /// Takes the settings of the file as it is now. A mistake in it is told, and everything stays. The directory of what is kept stays until a restart.
    fn reload(&mut self, args: &Watch) {
        self.doing.now("the reading of its settings");
        self.service.reloading();
        let again = Settings::of(args).and_then(|settings| {
            let seconds = Seconds::begin(&settings)?;
            self.showing.again(&self.settings, &settings)?;
            Ok((settings, seconds))
        });
        match again {
            Ok((settings, seconds)) => {
                if settings.file.data_dir != self.settings.file.data_dir {
                    output::note("note: the history stays where it is until a restart");
                }
                (self.settings, self.seconds) = (settings, seconds);
                output::note("note: the configuration was read again");
            }
            Err(error) => output::note(&format!("note: the configuration stays as it was: {error:#}")),
        }
        self.service.ready();
    }
}
