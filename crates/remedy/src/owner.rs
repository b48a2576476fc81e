//! Whose changes are in force: those of a process that still runs are its own. Nobody else takes them back, or changes what it measures.

use std::fmt;

use chokepoint_model::change::Change;

use crate::host::HostPending;
use crate::process;
use crate::record::{Backup, Intent, Set};
use crate::setting::kinds;
use crate::store::Guard;

/// A running process and what it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// Its PID.
    pub pid: u32,
    /// The owner of its changes: "diagnose", "lab:NAME".
    pub owner: String,
    /// Its changes, in words: "net.core.somaxconn in web".
    pub changes: Vec<String>,
}

impl Running {
    fn of(set: &Set) -> Self {
        let open = set.changes.iter().zip(&set.closed).filter(|(_, closed)| !**closed);
        let words = |(intent, _): (&Intent, &bool)| format!("{} in {}", intent.change.key(), intent.told_place());
        Self { pid: set.pid, owner: set.purpose.owner.clone(), changes: open.map(words).collect() }
    }
}

impl fmt::Display for Running {
    /// "`chokepoint lab run NAME` (process 4711)".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = match self.owner.split_once(':') {
            Some(("lab", name)) => format!("chokepoint lab run {name}"),
            _ if self.owner == "diagnose" => "chokepoint diagnose --fix".to_owned(),
            _ => format!("chokepoint {}", self.owner),
        };
        write!(f, "`{command}` (process {})", self.pid)
    }
}

impl Guard {
    /// The process that a set belongs to, if it is another one and still runs.
    pub(crate) fn owner_of(&self, set: &Set) -> Option<Running> {
        let is_others = !self.store.is_rebooted(set) && !process::is_own(set.pid, set.start_ticks);
        (is_others && process::runs(set.pid, set.start_ticks)).then(|| Running::of(set))
    }

    /// The running process that changed something in the place of a change before. `place` distinguishes a namespace or cgroup from a later one with its
    /// name; `backup` has the file that would be edited.
    pub(crate) fn busy(&self, change: &Change, place: Option<u64>, backup: Option<&Backup>) -> Option<Running> {
        let is_there = |intent: &Intent| {
            let same = place.zip(intent.place).is_none_or(|(one, other)| one == other) && kinds::same_place(&intent.change, change);
            let file = |backup: &Backup| backup.path.clone();
            same || (backup.is_some() && backup.map(file) == intent.backup.as_ref().map(file))
        };
        let has_one = |set: &&Set| set.changes.iter().zip(&set.closed).any(|(intent, closed)| !closed && is_there(intent));
        let own = self.content.ledger.sets.iter().filter(has_one).find_map(|set| self.owner_of(set));
        own.or_else(|| self.busy_root(change, backup))
    }

    /// The same among the changes of root, for another user.
    fn busy_root(&self, change: &Change, backup: Option<&Backup>) -> Option<Running> {
        let host = HostPending::read(self.store.host.as_ref()?, &self.store.boot_id).ok()?;
        let place = backup.map_or(change.place(), |backup| &backup.path);
        let set = host.sets.iter().find(|set| {
            let runs = process::runs(set.pid, set.start_ticks);
            runs && set.changes.iter().any(|other| other.place == place || other.place == change.place())
        })?;
        let changes = set.changes.iter().map(|change| format!("{} in {}", change.key, change.place)).collect();
        Some(Running { pid: set.pid, owner: set.owner.clone(), changes })
    }
}
