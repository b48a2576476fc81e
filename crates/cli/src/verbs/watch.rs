//! `chokepoint watch`: follows servers without load, keeps where their requests stood, and diagnoses drops while they last.

mod config;
mod diagnosing;
mod hooks;
mod incidents;
mod keeping;
mod outlet;
mod page;
mod saying;
mod seconds;
mod showing;
mod targets;

use std::time::{Duration, Instant};

use anyhow::Result;
use chokepoint_model::catalogue::Catalogue;
use chokepoint_recorder::incident::Incident;

use crate::args::Watch;
use crate::run::memory;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;
use config::Settings;
use hooks::Hooks;
use incidents::Incidents;
pub(crate) use incidents::{busier_program, grown_place};
use keeping::Keeping;
pub(crate) use keeping::directory;
use outlet::Outlet;
use seconds::Seconds;
use showing::Showing;

/// Time between two checks for signals and finished diagnoses.
const POLL: Duration = Duration::from_millis(50);

/// Runs the verb. True if something was watched.
pub(crate) fn run(args: &Watch, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    let settings = Settings::of(args)?;
    if args.print_config {
        output::print(&settings.to_toml()?)?;
        return Ok(true);
    }
    if args.config.is_some() {
        interrupt.reload_on_hangup();
    }
    memory::for_months();
    let mut watching = Watching::begin(args, settings, words, interrupt)?;
    let followed = watching.follow(args, interrupt);
    watching.finish()?;
    followed
}

/// Everything that a second passes through.
struct Watching<'a> {
    words: &'a Catalogue,
    settings: Settings,
    seconds: Seconds,
    keeping: Keeping,
    showing: Showing,
    incidents: Incidents,
    hooks: Hooks,
    outlet: Outlet<'a>,
}

impl<'a> Watching<'a> {
    fn begin(args: &Watch, settings: Settings, words: &'a Catalogue, interrupt: &Interrupt) -> Result<Self> {
        let mut keeping = Keeping::open(&settings, words)?;
        keeping.close_incidents();
        let seconds = Seconds::begin(&settings)?;
        let showing = Showing::begin(&settings, directory(settings.file.data_dir.clone(), words)?, words)?;
        Ok(Self {
            words,
            incidents: Incidents::new(interrupt, &keeping, seconds.at_s()),
            seconds,
            keeping,
            hooks: Hooks::default(),
            outlet: Outlet::of(args, showing.address(), words)?,
            showing,
            settings,
        })
    }

    /// Watches until the time is over, the user asks to stop, or nobody reads any more. True if something was seen.
    fn follow(&mut self, args: &Watch, interrupt: &Interrupt) -> Result<bool> {
        let began = Instant::now();
        let mut due = began + self.seconds.until_readings();
        let mut has_seen = false;
        loop {
            if interrupt.is_set() || self.settings.duration.is_some_and(|duration| began.elapsed() >= duration) {
                return Ok(has_seen);
            }
            if interrupt.take_reload() {
                self.reload(args);
            }
            let told = self.incidents.advance(&mut self.keeping, self.words);
            self.tell(&told)?;
            if Instant::now() < due {
                if !self.outlet.wait(due.min(Instant::now() + POLL), interrupt)? {
                    return Ok(true);
                }
                continue;
            }
            let look = self.seconds.look(self.words)?;
            has_seen |= look.targets.iter().any(|target| target.sample.under_way.value().is_some());
            let sample = look.sample();
            let minute = self.keeping.add(&sample);
            self.incidents.see(&look, &mut self.keeping, self.words);
            self.showing.second(&look, &sample, saying::said(&look, |name| self.incidents.known(name), self.words));
            self.incidents.take_looks(self.words).iter().for_each(|looks| self.showing.looked(looks));
            if let Some(minute) = minute {
                memory::give_back();
                self.showing.minute(&minute);
                self.outlet.minute(&minute);
                self.incidents.see_minute(&minute, &look, &mut self.keeping, self.words);
            }
            self.hooks.remind(&self.settings.file.hook);
            if !self.outlet.second(&look, &sample)? {
                return Ok(has_seen);
            }
            // Missed turns are skipped.
            while due <= Instant::now() {
                due += Duration::from_secs(1);
            }
        }
    }

    /// Ends in order, however watching ended: what is being diagnosed is told, and nothing is left open in the history.
    fn finish(&mut self) -> Result<()> {
        let told = self.incidents.finish(&mut self.keeping, self.words);
        let told = self.tell(&told);
        self.keeping.finish();
        self.hooks.finish();
        told
    }

    fn tell(&mut self, incidents: &[Incident]) -> Result<()> {
        incidents.iter().try_for_each(|incident| {
            self.showing.incident(incident);
            self.hooks.tell(&self.settings.file.hook, incident);
            self.outlet.incident(incident)
        })
    }

    /// Takes the settings of the file as it is now. A mistake in it is told, and everything stays. The directory of what is kept stays until a restart.
    fn reload(&mut self, args: &Watch) {
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
    }
}
