//! What every kind of setting can do, whatever it is: be read, be put to a value, and say how it stands against a change.

use std::fmt::Debug;
use std::path::Path;

use chokepoint_model::change::Change;

use crate::apply::Consent;
use crate::cgroup::Cgroup;
use crate::error::ApplyError;
use crate::record::{Backup, Intent};
use crate::server::Server;
use crate::sysctl::Sysctl;

/// A setting's value, and what tells its place from a later one with the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) value: String,
    pub(crate) place: Option<u64>,
}

/// Which of a change's two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Toward {
    /// The one that the change sets.
    New,
    /// The one before it.
    Old,
}

/// How a setting stands against a change of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// As before the change.
    Old,
    /// As the change left it.
    Ours,
    /// As the change left it, in a file in which someone else edited something else since.
    Edited,
    /// As someone else left it.
    Other(String),
    /// It is no more, and why.
    Gone(&'static str),
}

/// What else counts for a change: what the user agreed to, and what the journal holds.
#[derive(Debug)]
pub(crate) struct Around<'a> {
    pub(crate) consent: &'a Consent,
    /// Of the changes that are not taken back.
    pub(crate) backups: Vec<&'a Backup>,
}

/// One setting of the host. A new kind is one file with this trait and one line in [`open`] and [`survives_boot`].
pub(crate) trait Setting: Debug {
    /// Reads it now.
    fn read(&self) -> Result<Found, ApplyError>;

    /// Puts it to one of the change's values and waits until it is in force, as far as that can take time. That it holds is another reading.
    fn put(&self, intent: &Intent, toward: Toward) -> Result<(), ApplyError>;

    /// Refuses a value that could not be written, before anything is done.
    fn check(&self, value: &str) -> Result<(), ApplyError>;

    /// True where both values mean the same.
    fn same(&self, one: &str, other: &str) -> bool;

    /// What the journal must hold, beyond the old value, for the change to be taken back. `earlier` are those of the changes before it in its set.
    fn backup(&self, _to: &str, _earlier: &[Intent], _around: &Around<'_>) -> Result<Option<Backup>, ApplyError> {
        Ok(None)
    }

    /// What is told where the place of a change is no more and another one is in its place.
    fn replaced(&self) -> &'static str {
        "its network namespace is no more; another one has its number"
    }

    /// How it stands against a change.
    fn state(&self, intent: &Intent) -> Result<State, ApplyError> {
        let found = match self.read() {
            Err(ApplyError::Missing { .. }) => return Ok(State::Gone("the kernel no longer has it")),
            read => read?,
        };
        if let (Some(then), Some(now)) = (intent.place, found.place)
            && then != now
        {
            return Ok(State::Gone(self.replaced()));
        }
        if self.same(&found.value, &intent.was) {
            return Ok(State::Old);
        }
        Ok(if self.same(&found.value, intent.change.to()) { State::Ours } else { State::Other(found.value) })
    }
}

/// The setting that a change is about. Fails where the place of the setting is not there.
pub(crate) fn open(change: &Change, root: &Path) -> Result<Box<dyn Setting>, ApplyError> {
    match change {
        Change::Sysctl { key, netns, .. } => Ok(Box::new(Sysctl::open(key, *netns, root)?)),
        Change::Cgroup { dir, file, .. } => Ok(Box::new(Cgroup::open(dir, file, root)?)),
        Change::Server { .. } => Ok(Box::new(Server::open(change)?)),
    }
}

/// Whether a setting of this kind outlives a reboot.
pub(crate) fn survives_boot(change: &Change) -> bool {
    match change {
        Change::Sysctl { .. } | Change::Cgroup { .. } => false,
        Change::Server { .. } => true,
    }
}

/// True where both changes are about the same setting in the same place.
pub(crate) fn same_setting(one: &Change, other: &Change) -> bool {
    match (one, other) {
        // The same parameter may be spelled in two ways (sysctl(8)).
        (Change::Sysctl { key, netns, .. }, Change::Sysctl { key: other_key, netns: other_netns, .. }) => {
            netns == other_netns && crate::sysctl::same_key(key, other_key)
        }
        _ => one.is_same_setting(other),
    }
}
