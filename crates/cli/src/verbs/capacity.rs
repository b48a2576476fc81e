//! `chokepoint capacity`: watches traffic, and tells what it leaves in reserve at each station.

use std::time::Duration;

use anyhow::{Error, Result};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_model::diagnose::diagnose;
use chokepoint_model::observation::Request;
use chokepoint_sizing::capacity;
use chokepoint_sizing::growth::Growth;
use chokepoint_sources::{Root, netns};

use crate::Usage;
use crate::args::Capacity;
use crate::report::text;
use crate::run::measure::{self, Setup};
use crate::run::settings::{self, Target};
use crate::terminal::interrupt::Interrupt;
use crate::terminal::leaving::Leaving;
use crate::terminal::output;

/// Runs the verb. True if it is known of some station when it is full.
pub(crate) fn run(args: &Capacity, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    let usage = |error: Error| Error::new(Usage(output::once(&error)));
    let leaving = Leaving::hold_while_preparing(interrupt);
    let target = Target::parse(&args.url).map_err(usage)?;
    let duration = settings::duration(&args.duration).map_err(usage)?;
    let growth = args.growth.as_deref().map(growth).transpose()?;
    let setup = setup(args, &target, duration)?;
    let (entries, _) = measure::measure_leaving(&setup, "watching", Some(&leaving), interrupt)?;
    let observation = measure::observation(&entries);
    let watched_s = observation.window_us.map_or(0.0, |(begin, end)| end.saturating_sub(begin) as f64 / 1e6);
    let report = capacity::report(&diagnose(&observation, words), watched_s, growth, words);
    match args.json {
        true => output::print_json(&format!("{}\n", serde_json::to_string_pretty(&report)?))?,
        false => output::print_painted(&text::capacity_text(&report, args.verbose, &output::style(), words))?,
    }
    Ok(report.first.is_some())
}

fn growth(text: &str) -> Result<Growth> {
    Growth::parse(text).ok_or_else(|| Usage(format!("\"{text}\" is not a rate of growth: write 5%/week (day, week, month or year)")).into())
}

fn setup(args: &Capacity, target: &Target, duration: Duration) -> Result<Setup> {
    let root = Root::default();
    let named = |name: &Option<String>| name.as_deref().map(|name| netns::resolve(&root, name)).transpose();
    let client_netns = named(&args.client_netns)?.map_or_else(netns::own, |netns| Ok(netns.id))?;
    let server_netns = named(&args.server_netns)?.map(|netns| netns.id);
    let request = Request { client_netns, server_netns, loaded: false, ..target.request() };
    Ok(Setup::new(request, duration))
}
