//! Servers of a known kind: their configuration, what was logged during the observation, and their status pages.

mod access;
mod ask;
pub(crate) mod command_line;
pub(crate) mod config;
pub(crate) mod counter;
pub(crate) mod follow;
mod held;
pub(crate) mod keeps;
pub(crate) mod logs;
mod mark;
mod master;
mod nginx;
mod origin;
mod pages;
mod php_fpm;
mod room;
pub(crate) mod status;
pub(crate) mod tail;
mod tally;
#[cfg(test)]
mod tests;

use crate::table::Source;

/// The sources of this module.
pub(crate) const ALL: &[&Source] = &[&config::SERVER_CONFIG, &follow::SERVER_LOG, &status::SERVER_STATUS];
