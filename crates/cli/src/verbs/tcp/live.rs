//! `chokepoint tcp --live`: the existing connections of the host, by edge.

mod edges;
mod table;
mod text;
mod view;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use chokepoint_model::catalogue::Catalogue;
use chokepoint_sources::{Root, TcpSocketsRead, read_tcp_sockets};

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

/// Reads and prints the host's sockets, on a terminal again each second until the user quits; false if none could be read.
///
/// Life cycles that were watched are told, however long the rest takes.
pub(super) fn run(args: &Tcp, leaving: Leaving, words: &Catalogue, interrupt: &Interrupt) -> Result<bool> {
    let filter = args.edge.as_deref().map(str::parse::<EdgeFilter>).transpose().map_err(|error| Usage(error.to_string()))?;
    let cycles = watch_cycles(args, filter, interrupt)?;
    if cycles.is_some() {
        leaving.release();
    }
    // Life cycles and chosen edges are told once.
    if args.edge.is_none() && args.duration.is_none() && !args.json && output::is_watched() {
        drop(leaving);
        return view::follow(|| read_sockets(EdgeFilter::default()), words, interrupt);
    }
    let seen = read_sockets(filter.unwrap_or_default())?;
    let (live, read) = &seen;
    if args.json {
        output::print_json(&format!("{:#}\n", live.json(read, cycles.as_ref().map(|cycles| cycles.json(words)))))?;
    } else {
        output::print_painted(&text::render(&seen, args.edge.is_none(), cycles.as_ref(), &output::style(), words))?;
    }
    Ok(read.namespaces > 0)
}

/// The host's sockets by edge.
fn read_sockets(filter: EdgeFilter) -> Result<(LiveSockets, TcpSocketsRead)> {
    let states = [(); 2].map(|()| Arc::new(Mutex::new(LiveSockets::new(filter))));
    let read = read_tcp_sockets(&Root::default(), &states, LiveSockets::add).context("the host's sockets cannot be read")?;
    let [mut live, more] = states.map(|state| std::mem::take(&mut *state.lock().unwrap_or_else(PoisonError::into_inner)));
    live.merge(more);
    Ok((live, read))
}
