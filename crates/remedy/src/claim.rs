//! The places in which a run changed something. They are its own until it ends, also while its changes are taken back: what it measures then is as easily
//! disturbed as before.

use std::io;
use std::path::Path;

use chokepoint_model::change::ServerKind;
use chokepoint_model::observation::NetnsId;
use serde::{Deserialize, Serialize};

use crate::error::RemedyError;
use crate::process;
use crate::record::{Intent, Set};
use crate::setting::kinds;
use crate::state_dir;
use crate::store::Guard;

/// Name of the file in the state directory, and version of its format.
const NAME: &str = "claims.json";
const SCHEMA: &str = "chokepoint/claims/1";
/// Largest file, bytes. A claim takes some 200.
const BYTES_MAX: u64 = 1 << 20;

/// A place in which changes are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub(crate) enum Place {
    /// A network namespace. `cookie` tells it from a later one with its number, if known.
    Netns { id: NetnsId, cookie: Option<u64> },
    /// A cgroup, with its inode if known.
    Cgroup { dir: String, inode: Option<u64> },
    /// A process.
    Process { pid: u32, start_ticks: u64 },
    /// The configuration of a server, by its main file.
    Configuration { server: ServerKind, main: String },
    /// An edited file: two servers may share it.
    File { path: String },
}

impl Place {
    /// The places of a change.
    pub(crate) fn of(intent: &Intent) -> Vec<Self> {
        let edited = intent.backup.as_ref().map(|backup| Self::File { path: backup.path.clone() });
        std::iter::once(kinds::place(&intent.change, intent.place)).chain(edited).collect()
    }

    /// True for the same place. What is not known of one of them distinguishes nothing.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let same = |one: &Option<u64>, other: &Option<u64>| one.zip(*other).is_none_or(|(one, other)| one == other);
        match (self, other) {
            (Self::Netns { id, cookie }, Self::Netns { id: other, cookie: its }) => id == other && same(cookie, its),
            (Self::Cgroup { dir, inode }, Self::Cgroup { dir: other, inode: its }) => dir == other && same(inode, its),
            _ => self == other,
        }
    }
}

/// A place of a running process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claim {
    pub(crate) pid: u32,
    start_ticks: u64,
    /// Whose changes: "diagnose", "lab:NAME".
    pub(crate) owner: String,
    place: Place,
    /// What it changed there first, in words: "net.core.somaxconn in web".
    pub(crate) setting: String,
}

impl Claim {
    fn runs(&self) -> bool {
        process::runs(self.pid, self.start_ticks)
    }

    fn is_own(&self) -> bool {
        process::is_own(self.pid, self.start_ticks)
    }

    /// True where another process that runs claims one of these places.
    pub(crate) fn keeps(&self, places: &[Place]) -> bool {
        places.iter().any(|place| place.is(&self.place)) && !self.is_own() && self.runs()
    }
}

/// The claims of this boot.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Claims {
    schema: String,
    boot_id: String,
    claims: Vec<Claim>,
}

impl Claims {
    /// Reads them from a state directory whose files belong to `owner`. One that is missing, damaged or another user's claims nothing: what its processes
    /// have in force is known from the journal.
    pub(crate) fn read(dir: &Path, owner: u32, boot_id: &str) -> Self {
        let bytes = state_dir::read_of(&dir.join(NAME), owner, BYTES_MAX).ok().flatten();
        let claims = bytes.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        claims.filter(|claims| claims.schema == SCHEMA && claims.boot_id == boot_id).unwrap_or_default()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Claim> {
        self.claims.iter()
    }

    /// Writes them, without those of processes that have ended. Everybody may read them, as the summary of root's journal.
    fn write(&self, dir: &Path, boot_id: &str) -> io::Result<()> {
        let claims = self.claims.iter().filter(|claim| claim.runs()).cloned().collect();
        let bytes = serde_json::to_vec(&Self { schema: SCHEMA.to_owned(), boot_id: boot_id.to_owned(), claims })?;
        if bytes.len() as u64 > BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        state_dir::replace(dir, NAME, &bytes, 0o644)
    }
}

impl Guard {
    /// Claims the places of changes for this process, before the first of them is made.
    pub(crate) fn claim<'i>(&mut self, owner: &str, intents: impl Iterator<Item = &'i Intent>) -> Result<(), RemedyError> {
        let pid = std::process::id();
        let start_ticks = process::start_ticks(pid).unwrap_or(0);
        let before = self.claims.claims.len();
        for intent in intents {
            for place in Place::of(intent) {
                if !self.claims.iter().any(|claim| claim.is_own() && claim.place == place) {
                    let (owner, setting) = (owner.to_owned(), intent.in_words());
                    self.claims.claims.push(Claim { pid, start_ticks, owner, place, setting });
                }
            }
        }
        if self.claims.claims.len() == before {
            return Ok(());
        }
        let dir = self.store.journal.dir();
        self.claims.write(dir, &self.store.boot_id).map_err(|error| RemedyError::io("write", &dir.join(NAME), error))
    }

    /// Gives up the claims of this process: its run has ended. If that cannot be written, they end with the process.
    pub fn release(&mut self) {
        self.claims.claims.retain(|claim| !claim.is_own());
        drop(self.claims.write(self.store.journal.dir(), &self.store.boot_id));
    }

    /// The places of a set's changes that are in force, unless they ended with an earlier boot.
    pub(crate) fn places_of(&self, set: &Set) -> Vec<Place> {
        let open = set.changes.iter().zip(&set.closed).filter(|(_, closed)| !**closed).map(|(intent, _)| intent);
        open.filter(|intent| !self.store.has_ended(set, &intent.change)).flat_map(Place::of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_the_same_as_far_as_it_is_known() {
        let netns = |id, cookie| Place::Netns { id: NetnsId(id), cookie };
        assert!(netns(1, Some(2)).is(&netns(1, Some(2))) && netns(1, None).is(&netns(1, Some(2))));
        assert!(!netns(1, Some(2)).is(&netns(1, Some(3))) && !netns(1, None).is(&netns(2, None)));
        let cgroup = |inode| Place::Cgroup { dir: "/sys/fs/cgroup/a".into(), inode };
        assert!(cgroup(None).is(&cgroup(Some(1))) && !cgroup(Some(2)).is(&cgroup(Some(1))) && !cgroup(None).is(&netns(1, None)));
    }

    #[test]
    fn claims_of_another_boot_or_that_are_damaged_hold_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let own = rustix::process::geteuid().as_raw();
        let pid = std::process::id();
        let claim = |pid, start_ticks| Claim {
            pid,
            start_ticks,
            owner: "diagnose".into(),
            place: Place::File { path: "/etc/x".into() },
            setting: "x in /etc/x".into(),
        };
        let claims = vec![claim(pid, process::start_ticks(pid).unwrap()), claim(pid, 1)];
        Claims { claims, ..Claims::default() }.write(dir.path(), "boot").unwrap();
        let read = |owner, boot: &str| Claims::read(dir.path(), owner, boot).claims.len();
        assert_eq!((read(own, "boot"), read(own, "another"), read(own + 1, "boot")), (1, 0, 0), "one of them has ended");
        std::fs::write(dir.path().join(NAME), "{").unwrap();
        assert_eq!(read(own, "boot"), 0);
    }
}
