//! `chokepoint tcp --live`: the existing connections of the host, by edge.

mod edges;
mod text;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_sources::{Root, read_tcp_sockets};

use super::cycles::{self, Cycles, WATCH_MAX};
use super::edge_filter::EdgeFilter;
use crate::Usage;
use crate::args::Tcp;
use crate::run::settings;
use crate::terminal::interrupt::Interrupt;
use crate::terminal::leaving::Leaving;
use crate::terminal::output;
use edges::LiveSockets;

/// How long life cycles are watched without `-z`.
const WATCH_DEFAULT: Duration = Duration::from_secs(5);

/// Watches the life cycles of connections, if an edge or a time is given.
fn watch_cycles(args: &Tcp, filter: Option<EdgeFilter>, interrupt: &Interrupt) -> Result<Option<Cycles>> {
    let duration = match (&args.duration, &args.edge) {
        (Some(duration), _) => settings::duration(duration).map_err(|error| Usage(error.to_string()))?,
        (None, Some(_)) => WATCH_DEFAULT,
        (None, None) => return Ok(None),
    };
    if duration > WATCH_MAX {
        return Err(Usage(format!(
            "-z {duration:?} is too long, at most {WATCH_MAX:?}: which side closed first is known only for a minute"
        ))
        .into());
    }
    if duration.is_zero() {
        return Ok(None);
    }
    output::note(&format!("watching sockets for {duration:?}"));
    let over = |elapsed: Duration| interrupt.is_set() || elapsed >= duration;
    cycles::watch(filter.unwrap_or_default(), &over).map(Some)
}

/// Reads and prints the host's sockets; false if none could be read.
///
/// Life cycles that were watched are told, however long the rest takes.
pub(super) fn run(args: &Tcp, leaving: Leaving, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    let filter = args.edge.as_deref().map(str::parse::<EdgeFilter>).transpose().map_err(|error| Usage(error.to_string()))?;
    let cycles = watch_cycles(args, filter, interrupt)?;
    if cycles.is_some() {
        leaving.release();
    }
    let states = [(); 2].map(|()| Arc::new(Mutex::new(LiveSockets::new(filter.unwrap_or_default()))));
    let read = read_tcp_sockets(&Root::default(), &states, LiveSockets::add).context("the host's sockets cannot be read")?;
    let [mut live, more] = states.map(|state| std::mem::take(&mut *state.lock().unwrap_or_else(PoisonError::into_inner)));
    live.merge(more);
    if args.json {
        output::print_json(&format!("{:#}\n", live.json(&read, cycles.as_ref().map(|cycles| cycles.json(words)))))?;
    } else {
        output::print_painted(&text::render(&live, &read, cycles.as_ref(), &output::style(), words))?;
    }
    Ok(read.namespaces > 0)
}
