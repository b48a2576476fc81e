//! `chokepoint watch`: follows servers without load, keeps where their requests stood, and diagnoses drops while they last. One thread measures and keeps; the one of the
//! user only draws and listens, so that nothing that measures can hold it up.

mod config;
mod diagnosing;
mod following;
mod front;
mod hooks;
mod incidents;
mod keeping;
mod outlet;
mod page;
mod saying;
mod seconds;
mod service;
mod showing;
mod targets;
mod writing;

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::{Context, Result};
use chokepoint_dashboard::Board;
use chokepoint_model::catalogue::Catalogue;

use crate::args::Watch;
use crate::run::memory;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::leaving::{Doing, Leaving};
use crate::terminal::output;
use config::Settings;
use following::Following;
use front::Front;
pub(crate) use incidents::{busier_program, grown_place};
pub(crate) use keeping::directory;
use outlet::Outlet;

/// Time between two checks for finished diagnoses.
const POLL: Duration = Duration::from_millis(50);

/// Runs the verb. True if something was watched.
pub(crate) fn run(args: &Watch, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    let doing = Doing::begin("the reading of its settings");
    // The history is whole whenever the program ends (docs/watch/README.md).
    let told = doing.clone();
    let _leaving = Leaving::hold(interrupt, move || told.to_string());
    let settings = Settings::of(args)?;
    if args.print_config {
        output::print(&settings.to_toml()?)?;
        return Ok(true);
    }
    if args.config.is_some() {
        interrupt.reload_on_hangup();
    }
    memory::for_months();
    let board = Arc::new(Board::default());
    let outlet = Outlet::of(args);
    let front = Front::new(&outlet, Arc::clone(&board), words, interrupt)?;
    let (to, ended) = channel();
    let (args, follows) = (args.clone(), interrupt.clone());
    let follow = move || {
        let words = Catalogue::english();
        let following = Following::begin(settings, board, outlet, doing, &words, &follows);
        // Nobody hears it only if the front failed.
        let _ = to.send(following.and_then(|following| following.follow(&args)));
    };
    std::thread::Builder::new().name("following".to_owned()).spawn(follow).context("no thread could be started to watch")?;
    front.until(&ended)
}
