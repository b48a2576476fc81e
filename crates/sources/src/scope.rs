//! Which part of an observation an entry belongs to, and how its reading gets there.

use std::fmt::Display;

use chokepoint_model::observation::{NetnsId, NetnsView, Observation, ProcessView, ServerView};
use chokepoint_model::series::Series;
use chokepoint_recording::{Entry, Scope};

use crate::root::reading_of;

/// The view of the entry's network namespace. An entry of another scope goes to `unplaced`.
pub(crate) fn netns_view<'o>(observation: &'o mut Observation, entry: &Entry) -> Option<&'o mut NetnsView> {
    if let Scope::Netns(inode) = entry.scope {
        return Some(observation.netns.entry(NetnsId(inode)).or_default());
    }
    unplaced(observation, entry, "it should hold for a network namespace");
    None
}

/// The view of the entry's process. An entry of another scope goes to `unplaced`.
pub(crate) fn process_view<'o>(observation: &'o mut Observation, entry: &Entry) -> Option<&'o mut ProcessView> {
    process_of(observation, entry).map(|pid| observation.processes.entry(pid).or_default())
}

/// The view of the entry's server, by the pid of its master. An entry of another scope goes to `unplaced`.
pub(crate) fn server_view<'o>(observation: &'o mut Observation, entry: &Entry) -> Option<&'o mut ServerView> {
    process_of(observation, entry).map(|pid| observation.servers.entry(pid).or_default())
}

fn process_of(observation: &mut Observation, entry: &Entry) -> Option<u32> {
    if let Scope::Process(pid) = entry.scope {
        return Some(pid);
    }
    unplaced(observation, entry, "it should hold for a process");
    None
}

/// True for an entry of the host. An entry of another scope goes to `unplaced`.
pub(crate) fn is_of_host(observation: &mut Observation, entry: &Entry) -> bool {
    if entry.scope != Scope::Host {
        unplaced(observation, entry, "it should hold for the host");
    }
    entry.scope == Scope::Host
}

/// Parses an entry into a series of its network namespace.
pub(crate) fn put_netns<T, E: Display>(
    observation: &mut Observation,
    entry: &Entry,
    series: fn(&mut NetnsView) -> &mut Series<T>,
    parse: impl FnOnce(&[u8]) -> Result<T, E>,
) {
    if let Some(view) = netns_view(observation, entry) {
        series(view).push(entry.at_us, reading_of(&entry.outcome, parse));
    }
}

/// Parses an entry into a series of its process.
pub(crate) fn put_process<T, E: Display>(
    observation: &mut Observation,
    entry: &Entry,
    series: fn(&mut ProcessView) -> &mut Series<T>,
    parse: impl FnOnce(&[u8]) -> Result<T, E>,
) {
    if let Some(view) = process_view(observation, entry) {
        series(view).push(entry.at_us, reading_of(&entry.outcome, parse));
    }
}

/// Notes in the observation that an entry has no place in it, and why.
pub(crate) fn unplaced(observation: &mut Observation, entry: &Entry, why: &str) {
    observation.unplaced.push(format!("{} {:?} \"{}\": {why}", entry.source, entry.scope, entry.item));
}
