//! What every user may know of root's journal: a summary beside it without any file's contents, and which run of root's holds the host's lock.
//!
//! The journal and the lock are root's alone, because copies of configuration files are secret, and because a lock that others can open can be
//! held by them for ever. Nobody but root writes the summary, and it is believed only where the file is root's.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use crate::error::RemedyError;
use crate::journal::Content;
use crate::process;
use crate::record::Set;
use crate::setting;

/// The summary's name in the state directory.
const SUMMARY: &str = "pending.json";
/// Version of its format.
const SCHEMA: &str = "chokepoint/host/1";
/// Largest summary that is read, bytes: a set of changes takes some 300.
const SUMMARY_BYTES_MAX: u64 = 4 << 20;

/// The changes of root's runs that are in force on this host, as every user may know them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostPending {
    /// Sets of changes, oldest first. Those that ended with an earlier boot are left out.
    pub sets: Vec<HostSet>,
    /// The process that changes the host at this moment.
    pub held_by: Option<u32>,
    /// The process that was ended while it changed the host: what it did may not all be told here.
    pub broken_off: Option<u32>,
    /// True where the journal is damaged: what the damaged lines spoke of is not told here.
    pub damaged: bool,
}

/// A set of changes of root's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSet {
    /// Its number.
    pub id: u64,
    /// True where all of its changes were verified to be in force.
    pub applied: bool,
    /// When it was begun, seconds since 1970 (UTC).
    pub at_s: u64,
    /// The process that made it.
    pub pid: u32,
    /// When that started, clock ticks since boot.
    pub start_ticks: u64,
    /// The boot in which it was made.
    pub boot_id: String,
    /// The finding's id.
    pub finding: String,
    /// The remedy's id.
    pub remedy: String,
    /// Who made it: "diagnose", "lab:NAME".
    pub owner: String,
    /// Its changes that are not taken back.
    pub changes: Vec<HostChange>,
}

/// A change of root's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostChange {
    /// The setting: "net.core.somaxconn", "nginx worker_connections".
    pub key: String,
    /// Where it is: a network namespace, a cgroup's directory, a file.
    pub place: String,
    /// The value before it.
    pub was: String,
    /// The value that it set.
    pub to: String,
    /// True where a reboot ends it.
    pub ends_with_boot: bool,
}

/// The file.
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
    /// True where it runs. A process that may not be looked at (hidepid, proc(5)) runs where a signal would be refused (kill(2)).
    fn is_alive(&self) -> bool {
        match process::start_ticks(self.pid) {
            Some(start_ticks) => start_ticks == self.start_ticks,
            None => {
                let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
                pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::PERM))
            }
        }
    }
}

impl HostPending {
    /// Reads the summary in root's state directory, for a user who is not root, in this boot ([`boot_id`](crate::boot_id)). Where root never
    /// changed anything there is none; a directory that is not root's tells nothing of root.
    ///
    /// # Errors
    /// It is there and cannot be read, or root's journal has no summary (an earlier version wrote it).
    pub fn read(dir: &Path, boot_id: &str) -> Result<Self, RemedyError> {
        let path = dir.join(SUMMARY);
        let untold = |source: io::Error| RemedyError::Untold { path: path.clone(), source };
        let summary = match open(&path) {
            Ok(Some(text)) => serde_json::from_slice::<Summary>(&text).map_err(|error| untold(error.into()))?,
            Ok(None) => return Ok(Self::default()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let journal = fs::symlink_metadata(dir.join("journal")).is_ok_and(|meta| meta.uid() == 0);
                return if journal { Err(untold(error)) } else { Ok(Self::default()) };
            }
            Err(error) => return Err(untold(error)),
        };
        if summary.schema != SCHEMA {
            return Err(untold(io::Error::other("another version of chokepoint wrote it")));
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

    /// True where root has something to take back, or may have.
    pub fn is_in_force(&self) -> bool {
        !self.sets.is_empty() || self.broken_off.is_some() || self.damaged
    }
}

/// The summary's bytes; nothing where the file is not root's alone.
fn open(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() || meta.uid() != 0 || meta.mode() & 0o022 != 0 {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(SUMMARY_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Writes the summary in one step; synced where it must be right after the machine stops. Only root has one: what other users change is their own.
pub(crate) fn publish(dir: &Path, content: &Content, boot_id: &str, held: bool) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let pid = std::process::id();
    let holder = held.then(|| Holder { pid, start_ticks: process::start_ticks(pid).unwrap_or(0) });
    let pending = content.ledger.sets.iter().map(told).collect();
    let damaged = !content.corrupt_lines.is_empty();
    let summary = Summary { schema: SCHEMA.to_owned(), boot_id: boot_id.to_owned(), holder, damaged, pending };
    // Whatever the umask is: it is there to be read.
    replace(dir, SUMMARY, &serde_json::to_vec(&summary)?, 0o644)
}

/// Writes a file of the state directory in one step, with this mode.
pub(crate) fn replace(dir: &Path, name: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
    let fresh = dir.join(format!("{name}.new"));
    write(&fresh, bytes, mode).and_then(|()| fs::rename(&fresh, dir.join(name))).inspect_err(|_| drop(fs::remove_file(&fresh)))
}

fn write(fresh: &PathBuf, bytes: &[u8], mode: u32) -> io::Result<()> {
    match fs::remove_file(fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(fresh)?;
    file.write_all(bytes)?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.sync_all()
}

fn told(set: &Set) -> HostSet {
    let open = set.changes.iter().zip(&set.closed).filter(|(_, closed)| !**closed);
    let change = |(intent, _): (&crate::record::Intent, &bool)| HostChange {
        key: intent.change.key(),
        place: intent.change.place().to_owned(),
        was: intent.was.clone(),
        to: intent.change.to().to_owned(),
        ends_with_boot: !setting::survives_boot(&intent.change),
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
