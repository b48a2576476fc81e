//! The records of the journal, and the sets of changes that they add up to.

use chokepoint_model::change::Change;
use serde::{Deserialize, Serialize};

use crate::server::known_master::KnownMaster;

/// The purpose of a set of changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purpose {
    /// The finding's id, "conntrack-table-full".
    pub finding: String,
    /// The remedy's id, "raise-conntrack-max".
    pub remedy: String,
    /// The owner: "diagnose", "lab:NAME".
    pub owner: String,
}

/// An applied change and the value that an undo restores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedChange {
    /// The change.
    pub change: Change,
    /// The value read just before it.
    pub was: String,
    /// Where it is, for people: the edited file, or the place of the setting.
    pub place: String,
}

impl AppliedChange {
    pub(crate) fn of(intent: &Intent) -> Self {
        Self { change: intent.change.clone(), was: intent.was.clone(), place: intent.told_place() }
    }
}

/// One change of a set, with everything needed to take it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Intent {
    /// The change.
    pub(crate) change: Change,
    /// The value read just before it.
    pub(crate) was: String,
    /// Distinguishes the namespace or cgroup from a later one with the same name (`SO_NETNS_COOKIE`, unix(7); a cgroup's inode), if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<u64>,
    /// The edited file, for a setting in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) backup: Option<Backup>,
    /// True where an undo was about to restore the old file: the server may not have been reloaded.
    #[serde(skip)]
    pub(crate) restoring: bool,
}

/// The value that a server is to have in force.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// Its value.
    pub(crate) value: &'a str,
    /// The limit of its accept queues, where listen(2) would not derive it from the value now.
    pub(crate) queue: Option<u64>,
}

impl Intent {
    /// The value in force before the change.
    pub(crate) fn before(&self) -> Wanted<'_> {
        Wanted { value: &self.was, queue: self.backup.as_ref().and_then(|backup| backup.queue) }
    }

    /// The value that the change puts in force.
    pub(crate) fn after(&self) -> Wanted<'_> {
        Wanted { value: self.change.to(), queue: None }
    }

    /// Where the change is, for people. A server's settings are named by its main file, which may include the one that was edited.
    pub(crate) fn told_place(&self) -> String {
        self.backup.as_ref().map_or_else(|| self.change.place().to_owned(), |backup| backup.path.clone())
    }

    /// Its setting and place in words: "net.core.somaxconn in web".
    pub(crate) fn in_words(&self) -> String {
        format!("{} in {}", self.change.key(), self.told_place())
    }

    /// Takes over the old value of an earlier change of the same setting.
    pub(crate) fn inherit(&mut self, earlier: &Self) {
        self.was.clone_from(&earlier.was);
        if let (Some(backup), Some(below)) = (&mut self.backup, &earlier.backup) {
            backup.queue = below.queue;
        }
    }
}

/// A file before a change, and its checksum after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Backup {
    /// Its path, links resolved.
    pub(crate) path: String,
    /// Its whole text ([`chokepoint_config::text::decode`]); at most 1 MiB.
    pub(crate) before: String,
    /// Its possible checksums after the change: several where an earlier change of the same file was taken back from below this one.
    pub(crate) after: Vec<Checksum>,
    /// The server's master, so that an undo can find it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) master: Option<Box<KnownMaster>>,
    /// Files of the configuration with the checksums that php-fpm had read before the edit; empty where unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) in_force: Vec<(String, Checksum)>,
    /// The limit of the setting's accept queues that was in force. listen(2) cuts the configured value to `net.core.somaxconn`, which may differ when the
    /// change is taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) queue: Option<u64>,
}

/// The checksum of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checksum {
    bytes: u64,
    /// CRC-32.
    crc: u32,
}

impl Checksum {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, crc: crc32fast::hash(bytes) }
    }
}

/// How a change was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum How {
    /// Its old value is back.
    Restored,
    /// Someone else changed it before it was complete, or (in journals of earlier versions) at any time since.
    Conflict,
    /// Its boot or namespace no longer exists.
    Gone,
    /// It was taken back before it was complete.
    TakenBack,
    /// A later change of the same setting took over its old value.
    Folded,
    /// The user decided to keep it.
    Forgotten,
}

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "record")]
pub(crate) enum Record {
    /// The first line.
    Head {
        /// Version of the journal's format.
        version: u32,
        /// The number of the next set of changes.
        next_id: u64,
    },
    /// Written before a set of changes is applied.
    Intent {
        /// Number of the set.
        id: u64,
        /// Seconds since 1970 (UTC).
        at_s: u64,
        /// The process that applies it.
        pid: u32,
        /// Start of that process, clock ticks since boot; 0 in journals of earlier versions.
        #[serde(default)]
        start_ticks: u64,
        /// The current boot.
        boot_id: String,
        /// Its purpose.
        purpose: Purpose,
        /// The changes, in order.
        changes: Vec<Intent>,
    },
    /// Written when all changes of the set are verified to be in force.
    Applied {
        /// Number of the set.
        id: u64,
    },
    /// An earlier change of the same file was taken back from below this change.
    Rebased {
        /// Number of the set.
        id: u64,
        /// Index of the change in the set.
        index: usize,
        /// The value that its undo now restores.
        was: String,
        /// The file that its undo now restores.
        backup: Backup,
    },
    /// Written before the old file of a change is restored.
    Restoring {
        /// Number of the set.
        id: u64,
        /// Index of the change in the set.
        index: usize,
    },
    /// One change of a set is settled.
    Closed {
        /// Number of the set.
        id: u64,
        /// Index of the change in the set.
        index: usize,
        /// How.
        how: How,
        /// For `Folded`: the set and change that took over its old value.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        into: Option<(u64, usize)>,
    },
}

/// A set of changes that is not closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Set {
    pub(crate) id: u64,
    pub(crate) at_s: u64,
    pub(crate) pid: u32,
    pub(crate) start_ticks: u64,
    pub(crate) boot_id: String,
    pub(crate) purpose: Purpose,
    pub(crate) changes: Vec<Intent>,
    /// For each change, true where it is settled.
    pub(crate) closed: Vec<bool>,
    /// True where all were verified to be in force.
    pub(crate) applied: bool,
}

impl Set {
    pub(crate) fn is_open(&self) -> bool {
        self.closed.contains(&false)
    }
}

/// The open sets, oldest first, and the number of the next one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ledger {
    pub(crate) sets: Vec<Set>,
    pub(crate) next_id: u64,
}

impl Ledger {
    /// Applies a record. Records about unknown sets (their intent is damaged) have no effect.
    pub(crate) fn take(&mut self, record: Record) {
        match record {
            Record::Head { next_id, .. } => self.next_id = self.next_id.max(next_id),
            Record::Intent { id, at_s, pid, start_ticks, boot_id, purpose, changes } => {
                self.next_id = self.next_id.max(id.saturating_add(1));
                let closed = vec![false; changes.len()];
                self.sets.push(Set { id, at_s, pid, start_ticks, boot_id, purpose, changes, closed, applied: false });
            }
            Record::Applied { id } => {
                if let Some(set) = self.set(id) {
                    set.applied = true;
                }
            }
            Record::Rebased { id, index, was, backup } => {
                if let Some(intent) = self.set(id).and_then(|set| set.changes.get_mut(index)) {
                    intent.was = was;
                    intent.backup = Some(backup);
                }
            }
            Record::Restoring { id, index } => {
                if let Some(intent) = self.set(id).and_then(|set| set.changes.get_mut(index)) {
                    intent.restoring = true;
                }
            }
            Record::Closed { id, index, into, .. } => {
                let Some(set) = self.set(id) else { return };
                if let Some(closed) = set.closed.get_mut(index) {
                    *closed = true;
                }
                let was = set.changes.get(index).map(|intent| intent.was.clone());
                let over = into.and_then(|(id, index)| self.set(id)?.changes.get_mut(index));
                if let (Some(was), Some(over)) = (was, over) {
                    over.was = was;
                }
                self.sets.retain(Set::is_open);
            }
        }
    }

    fn set(&mut self, id: u64) -> Option<&mut Set> {
        self.sets.iter_mut().find(|set| set.id == id)
    }
}
