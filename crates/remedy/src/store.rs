//! The store of changes: the pending ones, and the guard that applies and undoes changes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chokepoint_model::change::Change;

use crate::claim::Claims;
use crate::error::RemedyError;
use crate::host::{self, HostPending};
use crate::journal::{Content, Journal};
use crate::lock::Lock;
use crate::memory;
use crate::process;
use crate::record::{AppliedChange, Purpose, Record, Set};
use crate::setting::kinds;

/// Time between two tries for a lock that another process holds.
const LOCK_POLL: Duration = Duration::from_millis(50);

/// The changes that were applied on a host and not taken back yet.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) journal: Journal,
    lock: PathBuf,
    /// Root's state directory, for another user.
    pub(crate) host: Option<PathBuf>,
    pub(crate) root: PathBuf,
    pub(crate) boot_id: String,
}

/// A set of changes that is not taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// Its number.
    pub id: u64,
    /// How far it got.
    pub state: PendingState,
    /// Its start, seconds since 1970 (UTC).
    pub at_s: u64,
    /// The process that applied it.
    pub pid: u32,
    /// True while that process runs: it may still take the changes back by itself.
    pub alive: bool,
    /// Its purpose.
    pub purpose: Purpose,
    /// Its changes that are not taken back, in the order of their application.
    pub changes: Vec<AppliedChange>,
}

/// How far a set of changes got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingState {
    /// The process ended between announcing and verifying the changes, or is still running: each setting may hold either value.
    Unfinished,
    /// All changes were applied and verified.
    Applied,
    /// The changes ended with an earlier boot. An undo only clears them from the journal.
    Rebooted,
}

impl Store {
    /// The store in a state directory, for the host whose file tree begins at `root` ("/", or a tree of files in a test), in this boot
    /// ([`boot_id`](crate::boot_id)). Only checks that the directory is one.
    ///
    /// # Errors
    /// `state_dir` exists and is not a directory, or cannot be inspected.
    pub fn open(state_dir: &Path, root: &Path, boot_id: String) -> Result<Self, RemedyError> {
        let lock = state_dir.join("lock");
        let journal = Journal::new(state_dir);
        match std::fs::metadata(state_dir) {
            Ok(meta) if !meta.is_dir() => {
                let not_a_directory = std::io::ErrorKind::NotADirectory.into();
                return Err(RemedyError::io("use", state_dir, not_a_directory));
            }
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(RemedyError::io("open", state_dir, error)),
            _ => {}
        }
        Ok(Self { journal, lock, host: None, root: root.to_owned(), boot_id })
    }

    /// The same store for another user than root: it cannot be locked while root, with the state directory `host`, changes the host.
    pub fn beside_host(mut self, host: PathBuf) -> Self {
        self.host = Some(host);
        self
    }

    /// The changes not taken back yet, oldest first. Changes nothing and takes no lock.
    ///
    /// # Errors
    /// The journal cannot be read, or is damaged before its last line.
    pub fn pending(&self) -> Result<Vec<Pending>, RemedyError> {
        let content = self.journal.read()?;
        self.refuse_corrupt(&content)?;
        Ok(self.describe(&content))
    }

    /// Takes the lock without waiting. Root's lock is the host's. Another user's lock keeps this user's runs apart and gives way to root's, but never
    /// keeps root from taking changes back.
    ///
    /// # Errors
    /// [`RemedyError::LockHeld`] where another process has it, or root the host's; or the state directory cannot be created or is not safe; or its journal
    /// cannot be read. A read-only journal is no error yet: its changes can still be taken back.
    pub fn lock(&self) -> Result<Guard, RemedyError> {
        self.journal.prepare_dir()?;
        let lock = Lock::take(&self.lock)?;
        if let Some(host) = &self.host
            && let Some(pid) = HostPending::read(host, &self.boot_id).ok().and_then(|host| host.held_by)
        {
            return Err(RemedyError::LockHeld { lock: host.join("lock"), pid: Some(pid) });
        }
        let content = self.journal.read()?;
        memory::load(self.journal.dir(), &self.boot_id);
        let claims = Claims::read(self.journal.dir(), rustix::process::geteuid().as_raw(), &self.boot_id);
        let mut guard = Guard { store: self.clone(), content, claims, is_appendable: false, _lock: lock };
        guard.is_appendable = guard.make_appendable().is_ok();
        guard.publish(true);
        Ok(guard)
    }

    /// [`Store::lock`], but waits for this long while another process has the lock: each holds it only while it applies or takes back something.
    ///
    /// # Errors
    /// As of [`Store::lock`].
    pub fn lock_within(&self, time: Duration) -> Result<Guard, RemedyError> {
        let until = Instant::now() + time;
        loop {
            match self.lock() {
                Err(RemedyError::LockHeld { .. }) if Instant::now() < until => std::thread::sleep(LOCK_POLL),
                locked => return locked,
            }
        }
    }

    pub(crate) fn refuse_corrupt(&self, content: &Content) -> Result<(), RemedyError> {
        match content.corrupt_lines.first() {
            Some(line) => Err(RemedyError::Corrupt { path: self.journal.path().to_owned(), line: *line }),
            None => Ok(()),
        }
    }

    /// True where the set was applied in an earlier boot.
    pub(crate) fn is_rebooted(&self, set: &Set) -> bool {
        set.boot_id != self.boot_id
    }

    /// True where the set was applied in an earlier boot, and this change ended with it.
    pub(crate) fn has_ended(&self, set: &Set, change: &Change) -> bool {
        self.is_rebooted(set) && !kinds::survives_boot(change)
    }

    fn describe(&self, content: &Content) -> Vec<Pending> {
        let describe = |set: &Set| {
            let open = || set.changes.iter().zip(&set.closed).filter(|(_, closed)| !**closed).map(|(intent, _)| intent);
            let ended = self.is_rebooted(set) && !open().any(|intent| kinds::survives_boot(&intent.change));
            let state = match (ended, set.applied) {
                (true, _) => PendingState::Rebooted,
                (false, true) => PendingState::Applied,
                (false, false) => PendingState::Unfinished,
            };
            let changes = open().map(AppliedChange::of).collect();
            // A later process may have the same number.
            let alive = !self.is_rebooted(set) && process::runs(set.pid, set.start_ticks);
            Pending { id: set.id, state, at_s: set.at_s, pid: set.pid, alive, purpose: set.purpose.clone(), changes }
        };
        content.ledger.sets.iter().map(describe).collect()
    }
}

/// The held lock of the host. Changes are applied and undone through it.
#[derive(Debug)]
pub struct Guard {
    pub(crate) store: Store,
    pub(crate) content: Content,
    pub(crate) claims: Claims,
    /// True where the journal file is ready for appending.
    is_appendable: bool,
    _lock: Lock,
}

impl Guard {
    /// The changes not taken back yet, oldest first.
    pub fn pending(&self) -> Vec<Pending> {
        self.store.describe(&self.content)
    }

    /// Makes the journal ready for appending.
    pub(crate) fn make_appendable(&mut self) -> Result<(), RemedyError> {
        if !self.is_appendable {
            self.store.journal.make_appendable(&self.content)?;
            self.store.journal.sync_dir()?;
            self.is_appendable = true;
        }
        Ok(())
    }

    /// Writes a record and, once it is on disk, applies it to the ledger.
    pub(crate) fn record(&mut self, record: Record) -> Result<(), RemedyError> {
        self.make_appendable()?;
        self.store.journal.append(&record)?;
        self.content.ledger.take(record);
        self.publish(true);
        Ok(())
    }

    /// Updates the summary. If it cannot be written (a full disk), other users know less, but undo still works.
    pub(crate) fn publish(&self, held: bool) {
        drop(host::publish(self.store.journal.dir(), &self.content, &self.store.boot_id, held));
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        memory::save(self.store.journal.dir(), &self.store.boot_id);
        self.publish(false);
    }
}
