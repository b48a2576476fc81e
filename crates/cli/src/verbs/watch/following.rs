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

/// Time between two looks.
const SECOND: Duration = Duration::from_secs(1);

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
            let missed;
            (missed, due) = missed_and_next(due, Instant::now(), self.seconds.reach());
            for ended in missed.into_iter().map(Some).chain([None]) {
                if ended.is_some() && self.interrupt.is_set() {
                    continue;
                }
                self.doing.now("the readings of a second");
                let look = self.seconds.look(self.words, ended)?;
                has_seen |= look.targets.iter().any(|target| target.sample.under_way.value().is_some());
                if !self.second(&look)? {
                    return Ok(has_seen);
                }
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
            Err(error) => output::note(&format!("note: the configuration stays as it was: {}", output::once(&error))),
        }
        self.service.ready();
    }
}

/// Where this thread got no time, or waited, for longer than a second: the ends of the seconds that it missed, of which the readings are still there, the oldest first,
/// and when the next one is due. The newest second is no missed one.
fn missed_and_next(due: Instant, now: Instant, reach: Duration) -> (Vec<Instant>, Instant) {
    let complete = now.saturating_duration_since(due).as_secs();
    let turns = (0..complete).map(|number| due + SECOND * u32::try_from(number).unwrap_or(u32::MAX));
    let missed = turns.skip(usize::try_from(complete.saturating_sub(reach.as_secs())).unwrap_or(usize::MAX));
    (missed.collect(), due + SECOND * u32::try_from(complete.saturating_add(1)).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missed_seconds_are_looked_at_as_long_as_their_readings_are_kept() {
        let due = Instant::now();
        let of = |late_ms: u64| {
            let (missed, next) = missed_and_next(due, due + Duration::from_millis(late_ms), Duration::from_secs(6));
            (missed.iter().map(|ended| (*ended - due).as_secs()).collect::<Vec<_>>(), (next - due).as_secs())
        };
        assert_eq!(of(0), (vec![], 1));
        assert_eq!(of(999), (vec![], 1));
        assert_eq!(of(1_000), (vec![0], 2), "the second that is due now is the newest one");
        assert_eq!(of(3_840), (vec![0, 1, 2], 4));
        assert_eq!(of(20_500), ((14..20).collect(), 21), "what is not kept any more is missing");
    }
}
