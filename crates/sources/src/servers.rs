//! Servers of a known kind, read richly: the configuration that their master was started with, what their logs told meanwhile, and their
//! status pages.

mod access;
mod ask;
pub(crate) mod command_line;
pub(crate) mod config;
pub(crate) mod follow;
mod keeps;
mod levels;
mod limits;
mod logs;
mod mark;
mod master;
mod nginx;
mod pages;
mod php_fpm;
mod room;
mod selected;
pub(crate) mod status;
mod tally;
#[cfg(test)]
mod tests;

use chokepoint_model::observation::{Observation, Origin, ServerView, Setting};
use chokepoint_recording::{Entry, Scope};

use crate::table::Source;

pub use keeps::{ConfiguredKeeps, read_configured_keeps};
pub(crate) use status::SERVER_STATUS;

/// The sources of this module.
pub(crate) const ALL: &[&Source] = &[&config::SERVER_CONFIG, &follow::SERVER_LOG, &status::SERVER_STATUS];

/// The view that an entry of a master belongs to; an entry of another scope is told as unplaced.
fn server_of<'o>(observation: &'o mut Observation, entry: &Entry) -> Option<&'o mut ServerView> {
    if let Scope::Process(pid) = entry.scope {
        return Some(observation.servers.entry(pid).or_default());
    }
    let told = format!("{} {:?} \"{}\": it should hold for a process", entry.source, entry.scope, entry.item);
    observation.unplaced.push(told);
    None
}

fn origin(origin: &chokepoint_config::Origin) -> Origin {
    origin.place().map_or_else(Origin::default, |place| Origin { file: place.file.to_string(), line: place.line })
}

/// A setting with its value in another form.
fn setting<T, U>(from: chokepoint_config::Setting<T>, form: impl FnOnce(T) -> U) -> Setting<U> {
    Setting { origin: origin(&from.origin), value: form(from.value) }
}
