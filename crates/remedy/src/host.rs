//! The public summary of root's journal: pending changes without file contents, and the process that holds the host's lock.
//!
//! The journal and the lock are readable by root only: copies of configuration files are secret, and anyone who can open a lock can hold it for
//! ever. Only root writes the summary, and it counts only if the file belongs to root.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::RemedyError;
use crate::journal::Content;
use crate::process;
use crate::record::Set;
use crate::setting::kinds;
use crate::state_dir;

/// The summary's name in the state directory.
const SUMMARY: &str = "pending.json";
/// Version of its format.
const SCHEMA: &str = "chokepoint/host/1";
/// Largest summary that is read, bytes: a set of changes takes some 300.
const SUMMARY_BYTES_MAX: u64 = 4 << 20;

/// Root's changes in force on this host, as every user may know them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostPending {
    /// Sets of changes, oldest first, without those that ended with an earlier boot.
    pub sets: Vec<HostSet>,
    /// The process that is changing the host now.
    pub held_by: Option<u32>,
    /// A process that was killed while it changed the host: its changes may be missing here.
    pub broken_off: Option<u32>,
    /// True where the journal is damaged: the changes of its damaged lines are missing here.
    pub damaged: bool,
}

/// A set of root's changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSet {
    /// Its number.
    pub id: u64,
    /// True where all of its changes were verified to be in force.
    pub applied: bool,
    /// Its start, seconds since 1970 (UTC).
    pub at_s: u64,
    /// The process that applied it.
    pub pid: u32,
    /// Start of that process, clock ticks since boot.
    pub start_ticks: u64,
    /// The boot in which it was applied.
    pub boot_id: String,
    /// The finding's id.
    pub finding: String,
    /// The remedy's id.
    pub remedy: String,
    /// Its owner: "diagnose", "lab:NAME".
    pub owner: String,
    /// Its changes that are not taken back.
    pub changes: Vec<HostChange>,
}

/// One of root's changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostChange {
    /// The setting: "net.core.somaxconn", "nginx worker_connections".
    pub key: String,
    /// Its network namespace, cgroup directory or file.
    pub place: String,
    /// The value before the change.
    pub was: String,
    /// The new value.
    pub to: String,
    /// True where a reboot ends it.
    pub ends_with_boot: bool,
}

/// The content of the summary file.
#[derive(Debug, Serialize, Deserialize)]
struct Summary {
    schema: String,
    boot_id: String,
    holder: Option<Holder>,
    damaged: bool,
    pending: Vec<HostSet>,
}

/// The process that holds the host's lock.
#[derive(Debug, Serialize, Deserialize)]
struct Holder {
    pid: u32,
    start_ticks: u64,
}

impl Holder {
    fn is_alive(&self) -> bool {
        process::runs(self.pid, self.start_ticks)
    }
}

impl HostPending {
    /// Reads the summary in root's state directory, for another user, in this boot ([`boot_id`](crate::boot_id)). Empty where root never changed
    /// anything, and where the file does not belong to root.
    ///
    /// # Errors
    /// The summary exists and cannot be read, or root's journal has none (an earlier version wrote it).
    pub fn read(dir: &Path, boot_id: &str) -> Result<Self, RemedyError> {
        let path = dir.join(SUMMARY);
        let unreadable = |source: io::Error| RemedyError::Untold { path: path.clone(), source };
        let summary = match state_dir::read_of(&path, 0, SUMMARY_BYTES_MAX) {
            Ok(Some(text)) => serde_json::from_slice::<Summary>(&text).map_err(|error| unreadable(error.into()))?,
            Ok(None) => return Ok(Self::default()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let journal = fs::symlink_metadata(dir.join("journal")).is_ok_and(|meta| meta.uid() == 0);
                return if journal { Err(unreadable(error)) } else { Ok(Self::default()) };
            }
            Err(error) => return Err(unreadable(error)),
        };
        if summary.schema != SCHEMA {
            return Err(unreadable(io::Error::other("another version of chokepoint wrote it")));
        }
        let this_boot = summary.boot_id == boot_id;
        let (alive, gone): (Option<Holder>, Option<Holder>) = match summary.holder {
            Some(holder) if this_boot && holder.is_alive() => (Some(holder), None),
            holder => (None, holder),
        };
        let in_force = |mut set: HostSet| {
            let rebooted = set.boot_id != boot_id;
            set.changes.retain(|change| !(rebooted && change.ends_with_boot));
            (!set.changes.is_empty()).then_some(set)
        };
        Ok(Self {
            sets: summary.pending.into_iter().filter_map(in_force).collect(),
            held_by: alive.map(|holder| holder.pid),
            broken_off: gone.map(|holder| holder.pid),
            damaged: summary.damaged,
        })
    }

    /// True where root has changes to take back, or may have.
    pub fn is_in_force(&self) -> bool {
        !self.sets.is_empty() || self.broken_off.is_some() || self.damaged
    }
}

/// Writes the summary atomically and synced. Only root has one: other users change only their own settings.
pub(crate) fn publish(dir: &Path, content: &Content, boot_id: &str, held: bool) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let pid = std::process::id();
    let holder = held.then(|| Holder { pid, start_ticks: process::start_ticks(pid).unwrap_or(0) });
    let pending = content.ledger.sets.iter().map(host_set).collect();
    let damaged = !content.corrupt_lines.is_empty();
    let summary = Summary { schema: SCHEMA.to_owned(), boot_id: boot_id.to_owned(), holder, damaged, pending };
    // Readable by all, whatever the umask is.
    state_dir::replace(dir, SUMMARY, &serde_json::to_vec(&summary)?, 0o644)
}

fn host_set(set: &Set) -> HostSet {
    let open = set.changes.iter().zip(&set.closed).filter(|(_, closed)| !**closed);
    let change = |(intent, _): (&crate::record::Intent, &bool)| HostChange {
        key: intent.change.key(),
        place: intent.told_place(),
        was: intent.was.clone(),
        to: intent.change.to().to_owned(),
        ends_with_boot: !kinds::survives_boot(&intent.change),
    };
    HostSet {
        id: set.id,
        applied: set.applied,
        at_s: set.at_s,
        pid: set.pid,
        start_ticks: set.start_ticks,
        boot_id: set.boot_id.clone(),
        finding: set.purpose.finding.clone(),
        remedy: set.purpose.remedy.clone(),
        owner: set.purpose.owner.clone(),
        changes: open.map(change).collect(),
    }
}
