//! What every kind of setting can do, whatever it is: be read, be written, and say where it is.

use std::fmt::Debug;
use std::path::Path;

use chokepoint_model::change::Change;

use crate::error::ApplyError;
use crate::sysctl::Sysctl;

/// A setting's value, and what tells its place from a later one with the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) value: String,
    pub(crate) place: Option<u64>,
}

/// One setting of the host. A new kind is one file with this trait and one line in [`open`].
pub(crate) trait Setting: Debug {
    /// Reads it now.
    fn read(&self) -> Result<Found, ApplyError>;

    /// Writes it. That it came into force is another reading.
    fn write(&self, value: &str) -> Result<(), ApplyError>;

    /// Refuses a value that could not be written, before anything is done.
    fn check(&self, value: &str) -> Result<(), ApplyError>;

    /// True where both values mean the same.
    fn same(&self, one: &str, other: &str) -> bool;
}

/// The setting that a change is about. Fails where the place of the setting is not there.
pub(crate) fn open(change: &Change, root: &Path) -> Result<Box<dyn Setting>, ApplyError> {
    match change {
        Change::Sysctl { key, netns, .. } => Ok(Box::new(Sysctl::open(key, *netns, root)?)),
    }
}

/// The setting's name for people.
pub(crate) fn key(change: &Change) -> &str {
    match change {
        Change::Sysctl { key, .. } => key,
    }
}

/// The value that the change was proposed for, and the one that it sets.
pub(crate) fn values(change: &Change) -> (&str, &str) {
    match change {
        Change::Sysctl { from, to, .. } => (from, to),
    }
}

/// Whether a setting of this kind outlives a reboot.
pub(crate) fn survives_boot(change: &Change) -> bool {
    match change {
        Change::Sysctl { .. } => false,
    }
}

/// True where both changes are about the same setting in the same place.
pub(crate) fn same_setting(one: &Change, other: &Change) -> bool {
    match (one, other) {
        (Change::Sysctl { key, netns, .. }, Change::Sysctl { key: other_key, netns: other_netns, .. }) => {
            netns == other_netns && crate::sysctl::same_key(key, other_key)
        }
    }
}
