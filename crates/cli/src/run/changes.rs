//! Applies and takes back changes: the wiring between the remedies of the model and crate `remedy`.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use chokepoint_model::change::Change;
use chokepoint_model::report::Remedy;
use chokepoint_remedy::{
    Conflict, Consent, Filter, Forgotten, Guard, HostPending, Pending, Purpose, Restored, Running, Store, UndoReport, Unread,
};

use crate::terminal::output;

/// How long another process may take to apply or take back something before this one gives up: as long as a server may take to reload.
const LOCK_WAIT: Duration = Duration::from_secs(60);

/// The changes of one run. The lock of the host is held only while something is applied or taken back: others may change other places meanwhile.
pub(crate) struct Changes {
    store: Store,
    /// The number in the journal of each change in force, by its number in the session.
    applied: BTreeMap<u32, u64>,
}

/// The result of an undo, in words.
#[derive(Debug, Default)]
pub(crate) struct UndoOutcome {
    /// Values that were restored and verified.
    pub(crate) restored: Vec<String>,
    /// Changes below a later one, whose undo now returns to the value before both.
    pub(crate) folded: Vec<String>,
    /// Changes that needed no undo because their place is gone.
    pub(crate) gone: Vec<String>,
    /// Other edits that the reload of a server activated with the old value.
    pub(crate) unread: Vec<String>,
    /// Changes that could not be undone, conflicts included.
    pub(crate) problems: Vec<String>,
    /// Changes that were left alone because someone else changed the value since.
    pub(crate) conflicts: Vec<Conflict>,
}

impl Changes {
    /// Opens the journal, and shows that it can be written.
    pub(crate) fn open() -> Result<Self> {
        let store = store()?;
        drop(store.lock_within(LOCK_WAIT)?);
        Ok(Self { store, applied: BTreeMap::new() })
    }

    fn lock(&self) -> Result<Guard> {
        Ok(self.store.lock_within(LOCK_WAIT)?)
    }

    /// Applies all changes of a remedy, or none.
    pub(crate) fn apply(&mut self, number: u32, finding: &str, remedy: &Remedy, owner: &str, consent: &Consent) -> Result<()> {
        let purpose = Purpose { finding: finding.to_owned(), remedy: remedy.id.clone(), owner: owner.to_owned() };
        let applied = self.lock()?.apply_agreed(&remedy.change, &purpose, consent, &mut |_| {})?;
        self.applied.insert(number, applied.id);
        Ok(())
    }

    /// Applies changes that no finding asked for, or none of them. `purpose`: what they are for.
    pub(crate) fn apply_alone(&mut self, number: u32, changes: &[Change], purpose: &str, owner: &str) -> Result<()> {
        let purpose = Purpose { finding: String::new(), remedy: purpose.to_owned(), owner: owner.to_owned() };
        let applied = self.lock()?.apply(changes, &purpose, &mut |_| {})?;
        self.applied.insert(number, applied.id);
        Ok(())
    }

    /// Takes one change back, even if others were applied after it: the undo of a later change of the same value then returns to the value before both.
    /// Returns what was done, in words.
    pub(crate) fn take_back(&mut self, number: u32) -> Result<Vec<String>> {
        let id = *self.applied.get(&number).context("it is not in force")?;
        let filter = Filter::Id(id);
        let mut guard = self.lock()?;
        note_unread(&guard, &filter);
        let outcome = UndoOutcome::of(guard.undo(&filter));
        if !outcome.problems.is_empty() {
            bail!(outcome.problems.join("; "));
        }
        if [&outcome.restored, &outcome.folded, &outcome.gone].iter().all(|lines| lines.is_empty()) {
            bail!("the journal has no such change any more: somebody forgot it, and it stays");
        }
        self.applied.remove(&number);
        Ok(outcome.restored.into_iter().chain(outcome.folded).collect())
    }

    /// The changes of this run that are in force, in words.
    pub(crate) fn in_force(&self) -> Vec<String> {
        let own = |pending: &Pending| self.applied.values().any(|id| *id == pending.id);
        let pending = self.store.pending().unwrap_or_default().into_iter().filter(own);
        pending.flat_map(|set| set.changes).map(|applied| in_words(&applied.change, &applied.place)).collect()
    }

    /// The changes of this run that somebody else has changed since, in words.
    pub(crate) fn overridden(&self) -> Result<Vec<String>> {
        let all = self.store.conflicts()?;
        let own = all.iter().filter(|found| self.applied.values().any(|id| *id == found.id));
        Ok(own.map(|found| format!("{} is {} now", key_of(&found.change, &found.place), found.found)).collect())
    }

    /// Takes back everything, or everything of one owner ("diagnose", "lab:NAME").
    pub(crate) fn undo_all(owner: Option<&str>) -> Result<UndoOutcome> {
        let others = |pending: &Pending| owner.is_some_and(|owner| pending.purpose.owner != owner);
        if own_store()?.is_none() {
            return Ok(UndoOutcome::default());
        }
        // If the journal is damaged, the undo itself takes back the readable changes.
        if pending().is_ok_and(|pending| pending.iter().all(others)) {
            return Ok(UndoOutcome::default());
        }
        let filter = owner.map_or(Filter::All, |owner| Filter::Owner(owner.to_owned()));
        let mut guard = store()?.lock_within(LOCK_WAIT)?;
        let unread = note_unread(&guard, &filter);
        Ok(UndoOutcome { unread, ..UndoOutcome::of(guard.undo(&filter)) })
    }
}

impl Drop for Changes {
    /// Its run has ended, and its places are free. If another process has the lock, they are free once this one has ended.
    fn drop(&mut self) {
        if let Ok(mut guard) = self.store.lock() {
            guard.release();
        }
    }
}

impl UndoOutcome {
    fn of(report: UndoReport) -> Self {
        let mut problems: Vec<String> = report.conflicts.iter().map(conflict).collect();
        let running = |one: &Running| format!("left alone while {one} runs: {}; wait until it ends, or stop it", one.changes.join(", "));
        problems.extend(report.running.iter().map(running));
        problems.extend(report.failed.iter().map(|failed| format!("{}: {}", in_words(&failed.change, &failed.place), failed.error)));
        problems.extend(report.journal_error.iter().map(|error| format!("the journal could not be written: {error}")));
        problems.extend(report.corrupt_lines.iter().map(|line| format!("line {line} of the journal is damaged and was skipped")));
        problems.extend(report.set_aside.iter().map(|file| format!("the damaged journal was moved to {}", file.display())));
        Self {
            restored: report.restored.iter().map(restored).collect(),
            folded: report
                .folded
                .iter()
                .map(|below| format!("{} was taken back below a later change of it", in_words(&below.change, &below.place)))
                .collect(),
            conflicts: report.conflicts,
            gone: report.gone.iter().map(|gone| format!("{}: {}", in_words(&gone.change, &gone.place), gone.why)).collect(),
            unread: Vec::new(),
            problems,
        }
    }
}

/// Notes which other edits the reload of an undo activates, and returns them for the result.
fn note_unread(guard: &Guard, filter: &Filter) -> Vec<String> {
    let unread = guard.unread(filter);
    let sentences = |will: &str| -> Vec<String> {
        let one = |unread: &Unread| {
            format!("the reload of {} {will} these changes, which the server had not read: {}", unread.server, unread.files.join(", "))
        };
        unread.iter().map(one).collect()
    };
    sentences("also activates").iter().for_each(|line| output::note(&format!("note: {line}")));
    sentences("also activated")
}

fn restored(restored: &Restored) -> String {
    let edited = if restored.edited { "; edits that somebody else made in the file stay, and a reload activates them as well" } else { "" };
    format!("{} is {} again{edited}", key_of(&restored.change, &restored.place), restored.value)
}

/// A conflict and what to do about it, in words.
pub(crate) fn conflict(conflict: &Conflict) -> String {
    let (key, ours, found, was, id) =
        (key_of(&conflict.change, &conflict.place), &conflict.ours, &conflict.found, &conflict.was, conflict.id);
    format!(
        "{key} was left alone: it is {found} now, and not {ours} as it was set; before that it was {was}. \
         Set it by hand, or leave it as it is: chokepoint undo --forget {id}"
    )
}

/// Changes that this or an earlier run of this user applied and did not take back.
pub(crate) fn pending() -> Result<Vec<Pending>> {
    own_store()?.map_or_else(|| Ok(Vec::new()), |store| Ok(store.pending()?))
}

/// Pending changes whose value someone else changed since.
pub(crate) fn conflicts() -> Result<Vec<Conflict>> {
    own_store()?.map_or_else(|| Ok(Vec::new()), |store| Ok(store.conflicts()?))
}

/// Removes the changes with one number from the journal and leaves their values as they are. Returns what was removed.
pub(crate) fn forget(id: u64) -> Result<Vec<Forgotten>> {
    let forgotten = store()?.lock_within(LOCK_WAIT)?.forget(id)?;
    if forgotten.is_empty() {
        bail!("there is no change {id}: `chokepoint undo --list` shows the applied changes");
    }
    Ok(forgotten)
}

/// What root applied on this host, for other users; empty for root, whose own journal has it.
pub(crate) fn of_root() -> Result<HostPending> {
    match chokepoint_remedy::host_state_dir(euid(), |name| std::env::var_os(name)) {
        Some(dir) => Ok(HostPending::read(&dir, &boot_id()?)?),
        None => Ok(HostPending::default()),
    }
}

/// A change in words: "net.core.somaxconn = 1024 in web".
pub(crate) fn in_words(change: &Change, place: &str) -> String {
    format!("{} = {} in {place}", change.key(), change.to())
}

fn key_of(change: &Change, place: &str) -> String {
    format!("{} in {place}", change.key())
}

fn store() -> Result<Store> {
    own_store()?.context("this is root's journal: run as root, or without CHOKEPOINT_STATE_DIR")
}

/// The store of this user; nothing if CHOKEPOINT_STATE_DIR names the store of root, which other users cannot read.
fn own_store() -> Result<Option<Store>> {
    let env = |name: &str| std::env::var_os(name);
    let directory = chokepoint_remedy::default_state_dir(euid(), env)
        .context("no directory for the journal is known: set HOME, XDG_STATE_HOME or CHOKEPOINT_STATE_DIR")?;
    let host = chokepoint_remedy::host_state_dir(euid(), env);
    let belongs_to_root = || std::fs::metadata(&directory).is_ok_and(|meta| meta.uid() == 0);
    if host.as_ref() == Some(&directory) && belongs_to_root() {
        return Ok(None);
    }
    let store = Store::open(&directory, Path::new("/"), boot_id()?)?;
    Ok(Some(match host {
        Some(host) => store.beside_host(host),
        None => store,
    }))
}

fn boot_id() -> Result<String> {
    chokepoint_remedy::boot_id(Path::new("/")).context("the boot id cannot be read")
}

fn euid() -> u32 {
    rustix::process::geteuid().as_raw()
}
