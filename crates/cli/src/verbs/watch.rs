//! `chokepoint watch`: follows servers without load, keeps where their requests stood, and diagnoses drops while they last.

mod config;
mod diagnosing;
mod hooks;
mod incidents;
mod keeping;
mod outlet;
mod page;
mod seconds;
mod showing;
mod targets;

use std::time::{Duration, Instant};

use anyhow::Result;
use chokepoint_model::catalogue::Catalogue;

use crate::args::Watch;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::output;
use config::Settings;
use hooks::Hooks;
use incidents::Incidents;
use keeping::Keeping;
pub(crate) use keeping::directory;
use outlet::Outlet;
use seconds::Seconds;
use showing::Showing;

/// Time between two checks for signals and finished diagnoses.
const POLL: Duration = Duration::from_millis(50);

/// Runs the verb. True if something was watched.
pub(crate) fn run(args: &Watch, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    let mut settings = Settings::of(args)?;
    if args.print_config {
        output::print(&settings.to_toml()?)?;
        return Ok(true);
    }
    let mut keeping = Keeping::open(&settings, words)?;
    let showing = Showing::begin(&settings, directory(settings.file.data_dir.clone(), words)?)?;
    let mut seconds = Seconds::begin(&settings)?;
    let mut incidents = Incidents::new(interrupt);
    let mut hooks = Hooks::default();
    let mut outlet = Outlet::of(args, words)?;
    if args.config.is_some() {
        interrupt.reload_on_hangup();
    }
    let began = Instant::now();
    let mut due = began + seconds.until_readings();
    let mut has_seen = false;
    loop {
        let over = settings.duration.is_some_and(|duration| began.elapsed() >= duration);
        if over || interrupt.is_set() {
            incidents.finish(&mut keeping, &mut outlet, words)?;
            keeping.finish();
            hooks.finish();
            return Ok(has_seen);
        }
        if interrupt.take_reload() {
            settings = reloaded(args, settings, &mut seconds);
        }
        for incident in incidents.advance(&mut keeping, words) {
            showing.incident(&incident);
            hooks.tell(&settings.file.hook, &incident);
            outlet.incident(&incident)?;
        }
        if Instant::now() < due {
            if !outlet.wait(due.min(Instant::now() + POLL), interrupt)? {
                keeping.finish();
                return Ok(true);
            }
            continue;
        }
        let look = seconds.look(words)?;
        has_seen |= look.targets.iter().any(|target| target.sample.under_way.value().is_some());
        let sample = look.sample();
        keeping.add(&sample);
        showing.second(&look, &sample);
        incidents.see(&look, &mut keeping, words);
        if !outlet.second(&look, &sample)? {
            keeping.finish();
            return Ok(has_seen);
        }
        // Missed turns are skipped.
        while due <= Instant::now() {
            due += Duration::from_secs(1);
        }
    }
}

/// The settings of the file as it is now. A mistake in it is told, and everything stays. The directory of what is kept stays until a restart.
fn reloaded(args: &Watch, before: Settings, seconds: &mut Seconds) -> Settings {
    let again = Settings::of(args).and_then(|settings| Ok((Seconds::begin(&settings)?, settings)));
    match again {
        Ok((anew, settings)) => {
            *seconds = anew;
            output::note("note: the configuration was read again");
            settings
        }
        Err(error) => {
            output::note(&format!("note: the configuration stays as it was: {error:#}"));
            before
        }
    }
}
