//! The journal's records, and the sets of changes that they add up to.

use chokepoint_model::change::Change;
use serde::{Deserialize, Serialize};

/// Why changes are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purpose {
    /// The finding's id, "conntrack-table-full".
    pub finding: String,
    /// The remedy's id, "raise-conntrack-max".
    pub remedy: String,
    /// Who makes them: "diagnose", "lab:NAME".
    pub owner: String,
}

/// One change of a set, with what is needed to take it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Intent {
    /// The change.
    pub(crate) change: Change,
    /// The value read just before it.
    pub(crate) was: String,
    /// What tells the place from a later one with the same number (`SO_NETNS_COOKIE`, unix(7); a cgroup's inode), where the kernel gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<u64>,
    /// The file that is edited, for settings that lie in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) backup: Option<Backup>,
    /// True where an undo was about to put the old file back: whether the server was told of it is then not known.
    #[serde(skip)]
    pub(crate) restoring: bool,
}

/// What a server's setting is to have in force.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// Its value.
    pub(crate) value: &'a str,
    /// The limit that its sockets' accept queues are to have, where that is not what listen(2) makes of the value now.
    pub(crate) queue: Option<u64>,
}

impl Intent {
    /// What was in force before the change.
    pub(crate) fn before(&self) -> Wanted<'_> {
        Wanted { value: &self.was, queue: self.backup.as_ref().and_then(|backup| backup.queue) }
    }

    /// What the change puts in force.
    pub(crate) fn after(&self) -> Wanted<'_> {
        Wanted { value: self.change.to(), queue: None }
    }

    /// Takes the place of an earlier change of the same setting: what was before that one is what to return to.
    pub(crate) fn inherit(&mut self, earlier: &Self) {
        self.was.clone_from(&earlier.was);
        if let (Some(backup), Some(below)) = (&mut self.backup, &earlier.backup) {
            backup.queue = below.queue;
        }
    }
}

/// A file as it was before a change, and what it is known by after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Backup {
    /// Its path, links resolved.
    pub(crate) path: String,
    /// Its whole text ([`chokepoint_config::text::decode`]); at most 1 MiB.
    pub(crate) before: String,
    /// What it may be after the change: more than one where an earlier change of the same file was taken back from below this one.
    pub(crate) after: Vec<Print>,
    /// The server's master, by which an undo finds it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) master: Option<Box<crate::server::Known>>,
    /// Paths of the configuration with what php-fpm had read of each before the edit; empty where that was not shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) in_force: Vec<(String, Print)>,
    /// The limit of the accept queues that the setting is about, as it was in force: listen(2) cuts what a configuration asks for to
    /// `net.core.somaxconn`, which may be another value when the change is taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) queue: Option<u64>,
}

/// What a file's bytes are known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Print {
    bytes: u64,
    /// CRC-32.
    crc: u32,
}

impl Print {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, crc: crc32fast::hash(bytes) }
    }
}

/// How a change was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum How {
    /// Its old value is back.
    Restored,
    /// Someone else changed it before it was complete, or (in journals of earlier versions) at any time since.
    Conflict,
    /// What it was made in (the boot, the namespace) is no more.
    Gone,
    /// It was taken back before it was complete.
    TakenBack,
    /// A later change of ours lies over it and took over its old value.
    Folded,
    /// The user said that it is to stay as it is.
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
    /// Written before a set of changes is made.
    Intent {
        /// Number of the set.
        id: u64,
        /// Seconds since 1970 (UTC).
        at_s: u64,
        /// The process that makes it.
        pid: u32,
        /// When that started, clock ticks since boot; 0 in journals of earlier versions.
        #[serde(default)]
        start_ticks: u64,
        /// The boot in which it is made.
        boot_id: String,
        /// Why.
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
        /// Which of its changes.
        index: usize,
        /// The value to which its undo returns now.
        was: String,
        /// The file to which its undo returns now.
        backup: Backup,
    },
    /// Written before the old file of a change is put back.
    Restoring {
        /// Number of the set.
        id: u64,
        /// Which of its changes.
        index: usize,
    },
    /// One change of a set needs nothing more.
    Closed {
        /// Number of the set.
        id: u64,
        /// Which of its changes.
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
    /// For each change, true when it needs nothing more.
    pub(crate) closed: Vec<bool>,
    /// True when all were verified to be in force.
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
    /// Takes a record in. Records about sets that are not known (their intent is damaged) change nothing.
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
