//! What every kind of setting can do, whatever it is: be read, be put to a value, and say how it stands against a change.

mod affinity;
mod cgroup;
pub(crate) mod kinds;
mod sysctl;

use std::fmt::Debug;

use crate::consent::Consent;
use crate::error::ApplyError;
use crate::record::{Backup, Intent};

/// A setting's value and the id of its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) value: String,
    pub(crate) place: Option<u64>,
}

/// One of a change's two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Toward {
    /// The value that the change sets.
    New,
    /// The value before the change.
    Old,
}

/// The state of a setting relative to a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// The value before the change.
    Old,
    /// The value that the change set.
    Ours,
    /// The value that the change set, in a file that someone else has edited elsewhere.
    Edited,
    /// A value that someone else set.
    Other(String),
    /// The setting no longer exists, and why.
    Gone(&'static str),
}

/// The user's consent and the journal's backups.
#[derive(Debug)]
pub(crate) struct ChangeContext<'a> {
    pub(crate) consent: &'a Consent,
    /// The backups of changes that are not taken back.
    pub(crate) backups: Vec<&'a Backup>,
}

/// One setting of the host. A new kind is one file with this trait and one line in [`kinds::open`] and [`kinds::survives_boot`].
pub(crate) trait Setting: Debug {
    /// Reads the present value.
    fn read(&self) -> Result<Found, ApplyError>;

    /// Sets one of the change's values and waits until it is in force. The caller verifies it by reading.
    fn put(&self, intent: &Intent, toward: Toward) -> Result<(), ApplyError>;

    /// Refuses a value that cannot be written.
    fn check(&self, value: &str) -> Result<(), ApplyError>;

    /// True where both values mean the same.
    fn same(&self, one: &str, other: &str) -> bool;

    /// What the journal must hold beyond the old value. `earlier` are the changes before this one in its set.
    fn backup(&self, _to: &str, _earlier: &[Intent], _context: &ChangeContext<'_>) -> Result<Option<Backup>, ApplyError> {
        Ok(None)
    }

    /// The message where another namespace or cgroup has replaced that of the change.
    fn replaced(&self) -> &'static str {
        "its network namespace no longer exists; another one has its number"
    }

    /// Its state relative to a change.
    fn state(&self, intent: &Intent) -> Result<State, ApplyError> {
        let found = match self.read() {
            Err(ApplyError::Missing { .. }) => return Ok(State::Gone("the kernel no longer has it")),
            Err(ApplyError::Ended { .. }) => return Ok(State::Gone("its process has ended")),
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
